package api

import (
	"fmt"

	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/operation"
)

// completeOperations sets how the languages convert the arguments.
func (t *Table) completeOperations() {
	for _, typ := range t.Types() {
		for i := range typ.Methods {
			if f := &typ.Methods[i]; f.Op != nil {
				f.Op.Kinds = kinds(f)
			}
		}
	}
}

// kinds returns how a language converts the arguments of an operation.
func kinds(f *scripting.Function) []operation.Kind {
	var ks []operation.Kind
	for i := range f.Params {
		k := kindOf(&f.Params[i])
		ks = append(ks, k)
		if k == operation.Values {
			break // which also takes the next argument
		}
	}
	if len(ks) > operation.MaxArgs {
		panic(fmt.Sprintf("BUG: %s has more than %d parameters", f.Name, operation.MaxArgs))
	}
	return ks
}

func kindOf(p *scripting.Param) operation.Kind {
	or := func(k scripting.Kind) bool {
		for i := range p.Or {
			if p.Or[i].Kind == k {
				return true
			}
		}
		return false
	}
	switch p.Kind {
	case scripting.KindNumber:
		return operation.Number
	case scripting.KindInt:
		return operation.Row
	case scripting.KindFunction:
		return operation.Function
	case scripting.KindList:
		return operation.Names
	case scripting.KindString:
		switch {
		case p.Rest:
			return operation.RestNames
		case or(scripting.KindObject):
			return operation.Pattern
		case or(scripting.KindMap):
			return operation.Values
		case or(scripting.KindNumber):
			return operation.Label
		case p.Optional:
			return operation.OptionalText
		}
		return operation.Text
	}
	panic(fmt.Sprintf("BUG: there is no operation with a parameter such as %s", p.Name))
}

// OfBatch returns the batch operation called name. If both signals have it, the
// expressions among its parameters are the same.
func (t *Table) OfBatch(name string) (*scripting.Function, bool) {
	if f, ok := t.Batch.Method(name); ok {
		return f, true
	}
	return t.Logs.Method(name)
}
