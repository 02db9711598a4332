package expr

import (
	"math"
	"reflect"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/conf"

	"github.com/weir-run/weir/engine/batch"
)

// compiler converts a checked tree to closures. Common forms of nodes (a label
// or the value compared with a constant) have special closures: each avoided
// call saves about a nanosecond.
type compiler struct {
	src  string
	conf *conf.Config
	logs bool
	err  *Error
}

// code is a compiled node. At most one of the functions is set, depending on
// its result type. None is set if only expr's VM can run it.
type code struct {
	b func(*Sample) bool
	i func(*Sample) int
	f func(*Sample) float64
	s func(*Sample) string

	// fails means that evaluation may fail on some samples. It then continues with
	// a meaningless value; the first error is kept and checked at the end.
	fails bool

	// ints, if not 0, means that expr computes an int for some samples where f is
	// a float64, and is the maximum magnitude of those ints. Below 2^53 they are
	// exact: comparisons are the same, as is arithmetic that stays below. Their
	// text form is not.
	ints float64
}

// byMachine marks a node without a closure, which expr's VM evaluates.
var byMachine = code{fails: true}

// exact is the limit from which on float64 cannot represent all ints.
const exact = 1 << 53

// comparesExactly reports whether comparing l and r as float64 gives the same
// result as expr.
func comparesExactly(l, r code) bool {
	mayInt := func(e code) bool { return e.i != nil || e.ints != 0 }
	return !mayInt(l) || !mayInt(r) || l.ints < exact && r.ints < exact
}

func (e code) numeric() bool { return e.i != nil || e.f != nil }

// node compiles n to a closure, or, if the checker knows its result type, to a
// closure around expr's VM, so that only the necessary nodes run there.
func (c *compiler) node(n ast.Node) code {
	if e := c.closure(n); e.b != nil || e.s != nil || e.numeric() {
		return e
	}
	e := byMachine
	if _, ok := n.(*ast.NilNode); ok {
		return e
	}
	switch n.Type().Kind() {
	case reflect.Bool:
		e.b = byMachineAs[bool](c, n, "true or false")
	case reflect.Int:
		e.i = byMachineAs[int](c, n, "a whole number")
	case reflect.Float64:
		e.f = byMachineAs[float64](c, n, "a number")
	case reflect.String:
		e.s = byMachineAs[string](c, n, "a string")
	}
	return e
}

func (c *compiler) closure(n ast.Node) code {
	switch n := n.(type) {
	case *ast.BoolNode:
		v := n.Value
		return code{b: func(*Sample) bool { return v }}
	case *ast.StringNode:
		v := n.Value
		return code{s: func(*Sample) string { return v }}
	case *ast.IntegerNode, *ast.FloatNode:
		if i, ok := constInt(n); ok {
			return code{i: func(*Sample) int { return i }}
		}
		f, _ := constFloat(n)
		return code{f: func(*Sample) float64 { return f }}
	case *ast.IdentifierNode:
		return c.identifier(n)
	case *ast.MemberNode:
		return c.member(n)
	case *ast.ChainNode:
		// The value of a node with a closure is never nil, so ?. is a plain access.
		return c.closure(n.Node)
	case *ast.UnaryNode:
		return c.unary(n)
	case *ast.BinaryNode:
		return c.binary(n)
	case *ast.ConditionalNode:
		return c.conditional(n)
	case *ast.BuiltinNode:
		return c.builtin(n)
	case *ast.CallNode:
		return c.call(n)
	}
	return byMachine
}

func (c *compiler) identifier(n *ast.IdentifierNode) code {
	switch n.Value {
	case "name":
		return code{s: func(x *Sample) string { return x.Series.Name() }}
	case "type":
		return code{s: func(x *Sample) string { return typeOf(x.Series) }}
	case "value":
		return code{f: func(x *Sample) float64 { return x.Value }}
	case "time":
		return code{i: func(x *Sample) int { return int(x.Time) }}
	case "line":
		return code{s: func(x *Sample) string { return x.Line }}
	}
	return byMachine
}

// metaOf returns a value of a line's metadata, or "" if it is missing.
func metaOf(x *Sample, name string) string {
	for _, l := range x.Meta {
		if l.Name == name {
			return l.Value
		}
	}
	return ""
}

// label returns the constant label name that n reads.
func (c *compiler) label(n ast.Node) (string, bool) {
	if ch, ok := n.(*ast.ChainNode); ok {
		n = ch.Node
	}
	m, ok := n.(*ast.MemberNode)
	if !ok {
		if id, ok := n.(*ast.IdentifierNode); ok && id.Value == "name" && !c.logs {
			return batch.NameLabel, true
		}
		return "", false
	}
	id, ok := m.Node.(*ast.IdentifierNode)
	if !ok || id.Value != "labels" {
		return "", false
	}
	p, ok := m.Property.(*ast.StringNode)
	if !ok || p.Value == batch.NameLabel && !c.logs {
		return "", false
	}
	return p.Value, true
}

func (c *compiler) member(n *ast.MemberNode) code {
	if name, ok := c.label(n); ok {
		return code{s: func(x *Sample) string { return x.Series.Label(name) }}
	}
	id, ok := n.Node.(*ast.IdentifierNode)
	if !ok || id.Value != "labels" && id.Value != "meta" {
		return byMachine
	}
	p := c.node(n.Property)
	if p.s == nil {
		return byMachine
	}
	if id.Value == "meta" {
		if k, ok := n.Property.(*ast.StringNode); ok {
			return code{s: func(x *Sample) string { return metaOf(x, k.Value) }}
		}
		return code{fails: p.fails, s: func(x *Sample) string { return metaOf(x, p.s(x)) }}
	}
	logs := c.logs
	return code{fails: p.fails, s: func(x *Sample) string {
		name := p.s(x)
		if name == batch.NameLabel && !logs {
			return "" // the name does not count as a label
		}
		return x.Series.Label(name)
	}}
}

func (c *compiler) unary(n *ast.UnaryNode) code {
	e := c.node(n.Node)
	switch n.Operator {
	case "!", "not":
		if b := e.b; b != nil {
			return code{fails: e.fails, b: func(x *Sample) bool { return !b(x) }}
		}
	case "+":
		if e.numeric() {
			return e
		}
	case "-":
		if i := e.i; i != nil {
			return code{fails: e.fails, i: func(x *Sample) int { return -i(x) }}
		}
		if f := e.f; f != nil && e.ints == 0 { // -(0) and -(0.0) differ
			return code{fails: e.fails, f: func(x *Sample) float64 { return -f(x) }}
		}
	}
	return byMachine
}

func (c *compiler) conditional(n *ast.ConditionalNode) code {
	cond, l, r := c.node(n.Cond), c.node(n.Exp1), c.node(n.Exp2)
	if cond.b == nil {
		return byMachine
	}
	b, fails := cond.b, cond.fails || l.fails || r.fails
	switch {
	case l.b != nil && r.b != nil:
		return code{fails: fails, b: choose(b, l.b, r.b)}
	case l.s != nil && r.s != nil:
		return code{fails: fails, s: choose(b, l.s, r.s)}
	case l.i != nil && r.i != nil:
		return code{fails: fails, i: choose(b, l.i, r.i)}
	}
	lf, rf, ints, ok := floats(n.Exp1, n.Exp2, l, r)
	if !ok {
		return byMachine
	}
	return code{fails: fails, f: choose(b, lf, rf), ints: ints}
}

func choose[T any](b func(*Sample) bool, l, r func(*Sample) T) func(*Sample) T {
	return func(x *Sample) T {
		if b(x) {
			return l(x)
		}
		return r(x)
	}
}

// floats converts two numeric operands, at least one of which is a float, to
// floats, and returns the limit of the ints among them in expr. An int operand
// must be a constant.
func floats(ln, rn ast.Node, l, r code) (lf, rf func(*Sample) float64, ints float64, ok bool) {
	if !l.numeric() || !r.numeric() || l.i != nil && r.i != nil {
		return nil, nil, 0, false
	}
	ints = max(l.ints, r.ints)
	for _, o := range []struct {
		n ast.Node
		e code
	}{{ln, l}, {rn, r}} {
		if o.e.i == nil {
			continue
		}
		i, ok := constInt(o.n)
		if !ok {
			return nil, nil, 0, false
		}
		ints = max(ints, math.Abs(float64(i)), 1)
	}
	if ints >= exact {
		return nil, nil, 0, false
	}
	return l.float(), r.float(), ints, true
}

func (c *compiler) binary(n *ast.BinaryNode) code {
	switch n.Operator {
	case "&&", "and", "||", "or":
		return c.logic(n)
	case "==", "!=":
		return c.equal(n)
	case "<", "<=", ">", ">=":
		return c.order(n)
	case "+", "-", "*", "/", "%", "**", "^":
		return c.arithmetic(n)
	case "in":
		return c.compileIn(n)
	case "matches":
		return c.matches(n)
	case "contains":
		return c.substring(n, strings.Contains)
	case "startsWith":
		return c.substring(n, strings.HasPrefix)
	case "endsWith":
		return c.substring(n, strings.HasSuffix)
	}
	return byMachine
}

func (c *compiler) logic(n *ast.BinaryNode) code {
	l, r := c.node(n.Left), c.node(n.Right)
	if l.b == nil || r.b == nil {
		return byMachine
	}
	lb, rb, fails := l.b, r.b, l.fails || r.fails
	if isAnd(n) {
		return code{fails: fails, b: func(x *Sample) bool { return lb(x) && rb(x) }}
	}
	return code{fails: fails, b: func(x *Sample) bool { return lb(x) || rb(x) }}
}

// constInt returns an int literal, including a signed one.
func constInt(n ast.Node) (int, bool) {
	switch n := n.(type) {
	case *ast.IntegerNode:
		return n.Value, n.Type().Kind() != reflect.Float64 // the checker may have made it a float
	case *ast.UnaryNode:
		i, ok := constInt(n.Node)
		if n.Operator == "-" {
			i = -i
		}
		return i, ok && (n.Operator == "-" || n.Operator == "+")
	}
	return 0, false
}

// constFloat returns a numeric literal, including a signed one.
func constFloat(n ast.Node) (float64, bool) {
	switch n := n.(type) {
	case *ast.IntegerNode:
		return float64(n.Value), true
	case *ast.FloatNode:
		return n.Value, true
	case *ast.UnaryNode:
		if i, ok := constInt(n); ok {
			return float64(i), true
		}
		f, ok := constFloat(n.Node)
		if n.Operator == "-" {
			f = -f
		}
		return f, ok && (n.Operator == "-" || n.Operator == "+")
	}
	return 0, false
}
