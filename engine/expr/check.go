package expr

import (
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/checker"
	"github.com/expr-lang/expr/checker/nature"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/types"

	"github.com/weir-run/weir/engine/regex"
)

// config returns the configuration of expr's checker and compiler: the names
// that an expression sees and the functions that it may call.
func config(logs bool) *conf.Config {
	c := conf.CreateNew()
	c.Optimize = false
	c.MaxNodes = 4096
	env := types.Map{}
	for _, v := range variables {
		if v.samples && !logs || v.logs && logs {
			env[v.name] = v.typ
		}
	}
	c.WithEnv(env)
	for name := range c.Builtins {
		if f := lookup(name); f == nil || f.own {
			c.Disabled[name] = true
			delete(c.Builtins, name)
		}
	}
	c.Functions["replace"] = &builtin.Function{
		Name:  "replace",
		Func:  func(a ...any) (any, error) { return replace(a[0].(string), a[1].(string), a[2].(string)) },
		Types: []reflect.Type{reflect.TypeFor[func(string, string, string) string]()},
	}
	c.Functions["matches"] = &builtin.Function{Name: "matches", Func: matches} // it is an operator, so no source can call it
	return c
}

// replace is strings.ReplaceAll with a limited result.
func replace(s, from, to string) (string, error) {
	n := strings.Count(s, from)
	if from == "" {
		n = utf8.RuneCountInString(s) + 1
	}
	if len(s)+n*(len(to)-len(from)) > maxText {
		return "", errTooLong
	}
	return strings.ReplaceAll(s, from, to), nil
}

// parse parses, folds args and checks types and rules.
func parse(src string, args map[string]any, logs bool) (*parser.Tree, *conf.Config, *Error) {
	if err := checkSource(src); err != nil {
		return nil, nil, err
	}
	if strings.TrimSpace(src) == "" {
		return nil, nil, &Error{Source: src, Msg: "it is empty"}
	}
	c := config(logs)
	tree, err := parser.ParseWithConfig(src, c)
	if err != nil {
		return nil, nil, foreign(src, err)
	}
	fold := &foldArgs{src: src, args: args}
	ast.Walk(&tree.Node, fold)
	if fold.err != nil {
		return nil, nil, fold.err
	}
	r := &rules{src: src, logs: logs}
	if r.walk(tree.Node, false); r.err != nil {
		return nil, nil, r.err
	}
	if _, err := checker.Check(tree, c); err != nil {
		return nil, nil, foreign(src, err)
	}
	if r.typed(tree.Node); r.err != nil {
		return nil, nil, r.err
	}
	return tree, c, nil
}

// rules refuses parts of expr's language that are not supported.
type rules struct {
	src  string
	logs bool
	err  *Error
}

func (r *rules) fail(at file.Location, format string, args ...any) {
	if r.err == nil {
		r.err = errorAt(r.src, at, format, args...)
	}
}

// lacks refuses names that only the other signal has.
func (r *rules) lacks(at file.Location, name string) {
	if r.err != nil {
		return
	}
	if r.logs {
		r.fail(at, "a log line has no %s: there is line, labels, meta, time and args", name)
	} else {
		r.fail(at, "a sample has no %s: there is name, labels, value, type, time and args", name)
	}
	r.err.other = true
}

func (r *rules) walk(n ast.Node, inPredicate bool) {
	switch n := n.(type) {
	case *ast.VariableDeclaratorNode, *ast.SequenceNode:
		r.fail(n.Location(), "let and ; are not supported")
		return
	case *ast.IdentifierNode:
		switch n.Value {
		case "args":
			r.fail(n.Location(), "args is used by its fields, as in args.region")
		case "$env":
			r.fail(n.Location(), "$env is not supported")
		case "name", "value", "type":
			if r.logs {
				r.lacks(n.Location(), n.Value)
			}
		case "line", "meta", "metadata":
			if !r.logs {
				r.lacks(n.Location(), n.Value)
			} else if n.Value == "metadata" {
				r.fail(n.Location(), "metadata is called meta here")
			}
		}
	case *ast.CallNode:
		if id, ok := n.Callee.(*ast.IdentifierNode); !ok || id.Value != "replace" {
			r.function(n.Location(), n.Callee.String())
		}
	case *ast.BuiltinNode:
		f := lookup(n.Name)
		if f == nil {
			r.function(n.Location(), n.Name)
		}
		if f != nil && f.predicate {
			if inPredicate {
				r.fail(n.Location(), "%s within a predicate is not supported", n.Name)
			}
			if len(n.Arguments) > 0 {
				r.walk(n.Arguments[0], inPredicate)
			}
			for _, a := range n.Arguments[min(1, len(n.Arguments)):] {
				r.walk(a, true)
			}
			return
		}
	case *ast.BinaryNode:
		switch n.Operator {
		case "matches": // expr's checker compiles it
			if k, ok := n.Right.(*ast.StringNode); ok {
				if size, err := regex.Measure(k.Value); err == nil && size.Fits(regex.MaxBytes) != nil {
					r.fail(n.Right.Location(), "%v", size.Fits(regex.MaxBytes))
				}
			}
		case "..":
			from, ok1 := n.Left.(*ast.IntegerNode)
			to, ok2 := n.Right.(*ast.IntegerNode)
			if !ok1 || !ok2 || to.Value-from.Value >= maxRange {
				r.fail(n.Location(), "a range takes constant bounds and has at most %d elements", maxRange)
			}
		}
	}
	for _, c := range children(n) {
		r.walk(c, inPredicate)
	}
}

func (r *rules) function(at file.Location, name string) {
	if why, ok := refused[name]; ok {
		r.fail(at, "function %s is not supported: %s", name, why)
		return
	}
	if _, ok := builtin.Index[name]; ok {
		r.fail(at, "function %s is not supported", name)
		return
	}
	r.fail(at, "unknown function %s", name)
}

// typed refuses expressions that type-check but are certainly mistakes.
func (r *rules) typed(n ast.Node) {
	if b, ok := n.(*ast.BinaryNode); ok {
		switch b.Operator {
		case "==", "!=":
			_, lnil := b.Left.(*ast.NilNode)
			_, rnil := b.Right.(*ast.NilNode)
			if lnil && !nilable(b.Right) || rnil && !nilable(b.Left) {
				r.fail(b.Location(), `it is never nil: a missing label is ""`)
			}
		case "??":
			if !nilable(b.Left) {
				r.fail(b.Location(), `the left side of ?? is never nil: a missing label is "", so write labels.x != "" ? labels.x : "default"`)
			}
		}
	}
	for _, c := range children(n) {
		r.typed(c)
	}
}

// nilable reports whether a checked node may be nil.
func nilable(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.NilNode:
		return true
	case *ast.BuiltinNode:
		if n.Name == "first" || n.Name == "last" || n.Name == "find" { // for an empty list
			return true
		}
	}
	switch n.Type().Kind() {
	case reflect.String, reflect.Bool, reflect.Int, reflect.Float64, reflect.Map, reflect.Slice:
		return false
	}
	return true
}

// loosenTypes removes types of the checker that may be wrong, and reports
// whether it did: min(1, value) has the type of its first argument, and a
// conditional that of one branch, whatever the result is. expr's compiler would
// select instructions by this type that fail.
func loosenTypes(n ast.Node) bool {
	loose := false
	for _, c := range children(n) {
		loose = loosenTypes(c) || loose
	}
	switch n := n.(type) {
	case *ast.BuiltinNode:
		switch n.Name {
		case "min", "max":
			loose = true
		default:
			loose = loose && n.Name == "abs"
		}
	case *ast.UnaryNode:
		loose = loose && (n.Operator == "-" || n.Operator == "+")
	case *ast.BinaryNode:
		loose = loose && (n.Operator == "+" || n.Operator == "-" || n.Operator == "*")
	case *ast.ConditionalNode:
		loose = loose || n.Exp1.Type() != n.Exp2.Type()
	default:
		return false
	}
	if loose {
		n.SetNature(nature.Nature{})
	}
	return loose
}

func children(n ast.Node) []ast.Node {
	switch n := n.(type) {
	case *ast.UnaryNode:
		return []ast.Node{n.Node}
	case *ast.BinaryNode:
		return []ast.Node{n.Left, n.Right}
	case *ast.ChainNode:
		return []ast.Node{n.Node}
	case *ast.MemberNode:
		return []ast.Node{n.Node, n.Property}
	case *ast.SliceNode:
		out := []ast.Node{n.Node}
		if n.From != nil {
			out = append(out, n.From)
		}
		if n.To != nil {
			out = append(out, n.To)
		}
		return out
	case *ast.CallNode:
		return n.Arguments
	case *ast.BuiltinNode:
		return n.Arguments
	case *ast.PredicateNode:
		return []ast.Node{n.Node}
	case *ast.VariableDeclaratorNode:
		return []ast.Node{n.Value, n.Expr}
	case *ast.SequenceNode:
		return n.Nodes
	case *ast.ConditionalNode:
		return []ast.Node{n.Cond, n.Exp1, n.Exp2}
	case *ast.ArrayNode:
		return n.Nodes
	case *ast.MapNode:
		return n.Pairs
	case *ast.PairNode:
		return []ast.Node{n.Key, n.Value}
	}
	return nil
}

// reads is the set of inputs on which a node depends.
type reads uint8

const (
	readsLabels reads = 1 << iota // name, labels, type
	readsValue
	readsTime
	readsLine // line, meta
)

func dependsOn(n ast.Node) (r reads) {
	if id, ok := n.(*ast.IdentifierNode); ok {
		switch id.Value {
		case "name", "labels", "type":
			return readsLabels
		case "value":
			return readsValue
		case "time":
			return readsTime
		case "line", "meta":
			return readsLine
		}
	}
	for _, c := range children(n) {
		r |= dependsOn(c)
	}
	return r
}
