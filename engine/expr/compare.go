package expr

import (
	"reflect"

	"github.com/expr-lang/expr/ast"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/regex"
)

func (c *compiler) equal(n *ast.BinaryNode) code {
	l, r := c.node(n.Left), c.node(n.Right)
	e := code{fails: l.fails || r.fails}
	switch {
	case l.s != nil && r.s != nil:
		e.b = c.equalText(n.Left, n.Right, l.s, r.s)
	case l.b != nil && r.b != nil:
		lb, rb := l.b, r.b
		e.b = func(x *Sample) bool { return lb(x) == rb(x) }
	case l.i != nil && r.i != nil:
		li, ri := l.i, r.i
		e.b = func(x *Sample) bool { return li(x) == ri(x) }
	case l.numeric() && r.numeric() && comparesExactly(l, r):
		lf, rf := l.float(), r.float()
		e.b = func(x *Sample) bool { return lf(x) == rf(x) }
	default:
		return byMachine
	}
	if n.Operator == "!=" {
		eq := e.b
		e.b = func(x *Sample) bool { return !eq(x) }
	}
	return e
}

func (c *compiler) equalText(ln, rn ast.Node, l, r func(*Sample) string) func(*Sample) bool {
	if _, ok := ln.(*ast.StringNode); ok {
		ln, rn, l, r = rn, ln, r, l
	}
	if s, ok := rn.(*ast.StringNode); ok {
		want := s.Value
		if name, ok := c.label(ln); ok {
			return func(x *Sample) bool { return x.Series.Label(name) == want }
		}
		return func(x *Sample) bool { return l(x) == want }
	}
	return func(x *Sample) bool { return l(x) == r(x) }
}

// float returns a numeric code as float64, as expr does for an int and a float.
func (e code) float() func(*Sample) float64 {
	if e.f != nil {
		return e.f
	}
	i := e.i
	return func(x *Sample) float64 { return float64(i(x)) }
}

func (c *compiler) order(n *ast.BinaryNode) code {
	l, r := c.node(n.Left), c.node(n.Right)
	e := code{fails: l.fails || r.fails}
	switch {
	case l.s != nil && r.s != nil:
		e.b = ordered(n.Operator, l.s, r.s)
	case l.i != nil && r.i != nil:
		e.b = ordered(n.Operator, l.i, r.i)
	case l.numeric() && r.numeric() && comparesExactly(l, r):
		if id, ok := n.Left.(*ast.IdentifierNode); ok && id.Value == "value" {
			if k, ok := constFloat(n.Right); ok {
				e.b = valueOrdered(n.Operator, k)
				return e
			}
		}
		e.b = ordered(n.Operator, l.float(), r.float())
	default:
		return byMachine
	}
	return e
}

func valueOrdered(op string, k float64) func(*Sample) bool {
	switch op {
	case "<":
		return func(x *Sample) bool { return x.Value < k }
	case "<=":
		return func(x *Sample) bool { return x.Value <= k }
	case ">":
		return func(x *Sample) bool { return x.Value > k }
	}
	return func(x *Sample) bool { return x.Value >= k }
}

func ordered[T int | float64 | string](op string, l, r func(*Sample) T) func(*Sample) bool {
	switch op {
	case "<":
		return func(x *Sample) bool { return l(x) < r(x) }
	case "<=":
		return func(x *Sample) bool { return l(x) <= r(x) }
	case ">":
		return func(x *Sample) bool { return l(x) > r(x) }
	}
	return func(x *Sample) bool { return l(x) >= r(x) }
}

func (c *compiler) substring(n *ast.BinaryNode, has func(s, part string) bool) code {
	l, r := c.node(n.Left), c.node(n.Right)
	if l.s == nil || r.s == nil {
		return byMachine
	}
	ls, rs := l.s, r.s
	e := code{fails: l.fails || r.fails}
	if k, ok := n.Right.(*ast.StringNode); ok {
		part := k.Value
		e.b = func(x *Sample) bool { return has(ls(x), part) }
		return e
	}
	e.b = func(x *Sample) bool { return has(ls(x), rs(x)) }
	return e
}

func (c *compiler) matches(n *ast.BinaryNode) code {
	l, k := c.node(n.Left), c.constant(n.Right)
	pattern, ok := k.(string)
	if !ok {
		c.refuse(n.Right, "matches takes a constant pattern")
		return byMachine
	}
	re, err := regex.Compile(pattern, regex.MaxBytes)
	if err != nil {
		c.refuse(n.Right, "%v", err)
		return byMachine
	}
	if l.s == nil {
		return byMachine
	}
	s, at := l.s, c.errorFor(n)
	return code{fails: l.fails, b: func(x *Sample) bool {
		ok, err := re.Match(s(x), regex.Guard{Steps: regex.MaxSteps})
		if err != nil {
			x.failAt(at, "%v", err)
		}
		return ok
	}}
}

func (c *compiler) compileIn(n *ast.BinaryNode) code {
	l := c.node(n.Left)
	if id, ok := n.Right.(*ast.IdentifierNode); ok && id.Value == "labels" && l.s != nil {
		s, logs := l.s, c.logs
		return code{fails: l.fails, b: func(x *Sample) bool {
			name := s(x)
			return (name != batch.NameLabel || logs) && x.Series.Label(name) != ""
		}}
	}
	if id, ok := n.Right.(*ast.IdentifierNode); ok && id.Value == "meta" && l.s != nil {
		s := l.s
		return code{fails: l.fails, b: func(x *Sample) bool { return metaOf(x, s(x)) != "" }}
	}
	list := reflect.ValueOf(c.constant(n.Right))
	switch {
	case !list.IsValid():
		return byMachine
	case list.Kind() == reflect.Map && l.s != nil && list.Type().Key().Kind() == reflect.String:
		keys := map[string]bool{}
		for _, k := range list.MapKeys() {
			keys[k.String()] = true
		}
		return code{fails: l.fails, b: inSet(l.s, keys)}
	case list.Kind() != reflect.Slice:
		return byMachine
	case l.s != nil:
		keys := map[string]bool{}
		for i := range list.Len() {
			if s, ok := list.Index(i).Interface().(string); ok {
				keys[s] = true
			}
		}
		return code{fails: l.fails, b: inSet(l.s, keys)}
	case l.f != nil && l.ints < exact:
		return code{fails: l.fails, b: inNumbers(l.f, list)}
	}
	return byMachine
}

func inSet(s func(*Sample) string, keys map[string]bool) func(*Sample) bool {
	if len(keys) > 8 {
		return func(x *Sample) bool { return keys[s(x)] }
	}
	few := make([]string, 0, len(keys))
	for k := range keys {
		few = append(few, k)
	}
	return func(x *Sample) bool {
		v := s(x)
		for _, k := range few {
			if k == v {
				return true
			}
		}
		return false
	}
}

func inNumbers(f func(*Sample) float64, list reflect.Value) func(*Sample) bool {
	var ks []float64
	for i := range list.Len() {
		switch v := list.Index(i).Interface().(type) {
		case int:
			ks = append(ks, float64(v))
		case float64:
			ks = append(ks, v)
		}
	}
	return func(x *Sample) bool {
		v := f(x)
		for _, k := range ks {
			if k == v {
				return true
			}
		}
		return false
	}
}

// constant returns the value of a node that does not depend on the sample, or
// nil if it does or fails.
func (c *compiler) constant(n ast.Node) any {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value
	case *ast.ConstantNode:
		return n.Value
	}
	if dependsOn(n) != 0 || pointsInto(n) {
		return nil
	}
	m := c.machine(n)
	if m == nil {
		return nil
	}
	var x Sample
	return m.eval(&x)
}

// pointsInto reports whether n refers to the element of an enclosing predicate.
func pointsInto(n ast.Node) bool {
	switch n.(type) {
	case *ast.PointerNode:
		return true
	case *ast.PredicateNode:
		return false // its pointers refer to its own elements
	}
	for _, k := range children(n) {
		if pointsInto(k) {
			return true
		}
	}
	return false
}

func (c *compiler) refuse(n ast.Node, format string, args ...any) {
	if c.err == nil {
		c.err = errorAt(c.src, n.Location(), format, args...)
	}
}
