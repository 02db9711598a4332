package expr

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/expr-lang/expr/ast"
)

// normal converts a Go value to a type that expressions support: string, int,
// float64, bool, []string, []any, map[string]string, map[string]any. A duration
// is converted to seconds.
func normal(v any) (any, error) {
	switch v := v.(type) {
	case time.Duration:
		return v.Seconds(), nil
	case string, bool, int, float64, []string, map[string]string:
		return v, nil
	}
	rv := reflect.ValueOf(v)
	switch rv.Kind() {
	case reflect.String:
		return rv.String(), nil
	case reflect.Bool:
		return rv.Bool(), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return int(rv.Int()), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return int(rv.Uint()), nil
	case reflect.Float32, reflect.Float64:
		return rv.Float(), nil
	case reflect.Slice, reflect.Array:
		out, texts := make([]any, rv.Len()), make([]string, rv.Len())
		all := true
		for i := range out {
			e, err := normal(rv.Index(i).Interface())
			if err != nil {
				return nil, err
			}
			out[i] = e
			s, ok := e.(string)
			texts[i], all = s, all && ok
		}
		if all {
			return texts, nil
		}
		return out, nil
	case reflect.Map:
		if rv.Type().Key().Kind() != reflect.String {
			break
		}
		out, texts := map[string]any{}, map[string]string{}
		for it := rv.MapRange(); it.Next(); {
			e, err := normal(it.Value().Interface())
			if err != nil {
				return nil, err
			}
			out[it.Key().String()] = e
			if s, ok := e.(string); ok {
				texts[it.Key().String()] = s
			}
		}
		if len(texts) == len(out) {
			return texts, nil
		}
		return out, nil
	}
	return nil, fmt.Errorf("it is no text, number, boolean, list or map")
}

// foldArgs replaces args.x by its value. Arguments are constant for a program,
// so a pattern, a list or a comparison with an argument is prepared once, and a
// part that reads only arguments costs nothing.
type foldArgs struct {
	src  string
	args map[string]any
	err  *Error
}

func (f *foldArgs) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.MemberNode:
		id, ok := n.Node.(*ast.IdentifierNode)
		if !ok || id.Value != "args" {
			return
		}
		name, ok := n.Property.(*ast.StringNode)
		if !ok {
			f.fail(n, "args takes a constant name, as in args.region")
			return
		}
		v, ok := f.args[name.Value]
		if !ok {
			f.fail(n, "args has no %q%s", name.Value, f.knownText())
			return
		}
		c, err := normal(v)
		if err != nil {
			f.fail(n, "args.%s cannot be used in an expression: %v", name.Value, err)
			return
		}
		ast.Patch(node, literal(c))
	case *ast.ChainNode:
		// args?.x was a chain over a member that is now a constant.
		switch n.Node.(type) {
		case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.ConstantNode:
			*node = n.Node
		}
	}
}

func (f *foldArgs) fail(n ast.Node, format string, args ...any) {
	if f.err == nil {
		f.err = errorAt(f.src, n.Location(), format, args...)
	}
}

func (f *foldArgs) knownText() string {
	if len(f.args) == 0 {
		return "; it is empty"
	}
	names := make([]string, 0, len(f.args))
	for n := range f.args {
		names = append(names, n)
	}
	slices.Sort(names)
	return "; it has " + strings.Join(names, ", ")
}

// literal returns the node of a constant in normal form.
func literal(v any) ast.Node {
	var n ast.Node
	switch v := v.(type) {
	case string:
		n = &ast.StringNode{Value: v}
	case int:
		n = &ast.IntegerNode{Value: v}
	case float64:
		n = &ast.FloatNode{Value: v}
	case bool:
		n = &ast.BoolNode{Value: v}
	default:
		n = &ast.ConstantNode{Value: v}
	}
	n.SetType(reflect.TypeOf(v))
	return n
}
