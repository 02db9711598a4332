package api_test

import (
	"testing"

	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/api"
	"github.com/weir-run/weir/scripting/operation"
	"github.com/weir-run/weir/stdlib"
)

// TestOperations: the languages bind all methods of batches, records, series and
// groups from the table.
func TestOperations(t *testing.T) {
	table := api.Get()
	for _, typ := range []*scripting.ObjectType{
		table.Batch, table.Record, table.Group, table.Series, table.Logs, table.Line, table.LineGroup, table.Stream,
	} {
		for i := range typ.Methods {
			f := &typ.Methods[i]
			switch {
			case f.Op == nil:
				t.Errorf("%s.%s has no Op", typ.Name, f.Name)
			case f.Op.Run == nil && f.Op.Result == operation.Nothing:
				t.Errorf("%s.%s does nothing", typ.Name, f.Name)
			case len(f.Op.Kinds) == 0 && len(f.Params) > 0:
				t.Errorf("the arguments of %s.%s are not converted", typ.Name, f.Name)
			}
		}
	}
}

// TestExpressionNames: a linter may know an operation with expressions by its
// name alone, so nothing else has that name, and the operations of both signals
// have the same expressions.
func TestExpressionNames(t *testing.T) {
	table := api.Get()
	kinds := func(f *scripting.Function) (out string) {
		for i := range f.Params {
			if k := f.Params[i].Expression; k != nil {
				out += f.Params[i].Name + ": " + k.String() + "\n"
			}
		}
		return out
	}
	others := map[string]string{}
	for _, m := range append(table.Modules(), stdlib.Modules()...) {
		for _, typ := range m.Types {
			for i := range typ.Methods {
				others[typ.Methods[i].Name] = typ.Name
			}
		}
	}
	for _, typ := range table.Types() {
		if typ != table.Batch && typ != table.Logs {
			for i := range typ.Methods {
				others[typ.Methods[i].Name] = typ.Name
			}
		}
	}
	for _, typ := range []*scripting.ObjectType{table.Batch, table.Logs} {
		for i := range typ.Methods {
			f := &typ.Methods[i]
			if kinds(f) != "" && others[f.Name] != "" {
				t.Errorf("%s.%s has an expression and the name of a method of %s", typ.Name, f.Name, others[f.Name])
			}
			if of, ok := table.OfBatch(f.Name); !ok || kinds(of) != kinds(f) {
				t.Errorf("%s.%s has other expressions than the batch of the other signal", typ.Name, f.Name)
			}
		}
	}
}
