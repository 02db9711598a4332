package expr

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/expr-lang/expr/ast"
)

func (c *compiler) arithmetic(n *ast.BinaryNode) code {
	l, r := c.node(n.Left), c.node(n.Right)
	e := code{fails: l.fails || r.fails}
	if l.s != nil && r.s != nil && n.Operator == "+" {
		ls, rs := l.s, r.s
		e.s = func(x *Sample) string { return ls(x) + rs(x) }
		return e
	}
	if !l.numeric() || !r.numeric() {
		return byMachine
	}
	switch n.Operator {
	case "/":
		e.f = floatOp("/", l.float(), r.float())
		return e
	case "**", "^":
		e.f = floatOp("**", l.float(), r.float())
		return e
	case "%":
		return c.modulo(n, l, r)
	}
	switch {
	case l.i != nil && r.i != nil:
		e.i = intOp(n.Operator, l.i, r.i)
	case l.ints != 0 && r.f == nil, r.ints != 0 && l.f == nil, l.ints != 0 && r.ints != 0:
		return maybeInts(n, l, r)
	default:
		if id, ok := n.Left.(*ast.IdentifierNode); ok && id.Value == "value" {
			if k, ok := constFloat(n.Right); ok {
				e.f = valueOp(n.Operator, k)
				return e
			}
		}
		e.f = floatOp(n.Operator, l.float(), r.float())
	}
	return e
}

// maybeInts computes with ints for some samples and with floats for the rest,
// which gives the same result as long as the ints are exact and there is no
// negative zero.
func maybeInts(n *ast.BinaryNode, l, r code) code {
	lf, rf, _, ok := floats(n.Left, n.Right, l, r)
	if !ok {
		return byMachine
	}
	k, other, isConst := 0, l.ints, false
	if l.i != nil {
		k, isConst = constInt(n.Left)
		other = r.ints
	} else if r.i != nil {
		k, isConst = constInt(n.Right)
	}
	bound := other + math.Abs(float64(k))
	if n.Operator == "*" {
		bound = other * math.Abs(float64(k))
	}
	if !isConst || bound >= exact || n.Operator == "*" && k <= 0 {
		return byMachine
	}
	return code{fails: l.fails || r.fails, f: floatOp(n.Operator, lf, rf), ints: max(bound, 1)}
}

func valueOp(op string, k float64) func(*Sample) float64 {
	switch op {
	case "+":
		return func(x *Sample) float64 { return x.Value + k }
	case "-":
		return func(x *Sample) float64 { return x.Value - k }
	}
	return func(x *Sample) float64 { return x.Value * k }
}

func floatOp(op string, l, r func(*Sample) float64) func(*Sample) float64 {
	switch op {
	case "+":
		return func(x *Sample) float64 { return l(x) + r(x) }
	case "-":
		return func(x *Sample) float64 { return l(x) - r(x) }
	case "*":
		return func(x *Sample) float64 { return l(x) * r(x) }
	case "/":
		return func(x *Sample) float64 { return l(x) / r(x) }
	}
	return func(x *Sample) float64 { return math.Pow(l(x), r(x)) }
}

func intOp(op string, l, r func(*Sample) int) func(*Sample) int {
	switch op {
	case "+":
		return func(x *Sample) int { return l(x) + r(x) }
	case "-":
		return func(x *Sample) int { return l(x) - r(x) }
	}
	return func(x *Sample) int { return l(x) * r(x) }
}

func (c *compiler) modulo(n *ast.BinaryNode, l, r code) code {
	if l.i == nil || r.i == nil {
		return byMachine
	}
	li, ri := l.i, r.i
	if k, ok := constInt(n.Right); ok && k != 0 {
		return code{fails: l.fails, i: func(x *Sample) int { return li(x) % k }}
	}
	at := c.errorFor(n)
	return code{fails: true, i: func(x *Sample) int {
		a, b := li(x), ri(x)
		if b == 0 {
			x.failAt(at, "integer divide by zero")
			return 0
		}
		return a % b
	}}
}

func (x *Sample) failAt(at *Error, format string, args ...any) {
	if x.err == nil {
		e := *at
		e.Msg, e.failure = fmt.Sprintf(format, args...), true
		x.err = &e
	}
}

func (c *compiler) builtin(n *ast.BuiltinNode) code {
	args := make([]code, len(n.Arguments))
	fails := false
	for i, a := range n.Arguments {
		if _, ok := a.(*ast.PredicateNode); ok {
			return byMachine
		}
		args[i] = c.node(a)
		fails = fails || args[i].fails
	}
	var e code
	switch {
	case len(args) == 1:
		e = c.builtin1(n, args[0])
	case len(args) == 2:
		e = c.builtin2(n, args[0], args[1])
	}
	e.fails = e.fails || fails
	return e
}

func (c *compiler) builtin1(n *ast.BuiltinNode, a code) (e code) {
	switch n.Name {
	case "len":
		if s := a.s; s != nil {
			e.i = func(x *Sample) int { return utf8.RuneCountInString(s(x)) }
		}
	case "upper":
		e.s = onText(a.s, strings.ToUpper)
	case "lower":
		e.s = onText(a.s, strings.ToLower)
	case "trim":
		e.s = onText(a.s, strings.TrimSpace)
	case "abs":
		if i := a.i; i != nil {
			e.i = func(x *Sample) int { return max(i(x), -i(x)) }
		} else if f := a.f; f != nil && a.ints == 0 {
			e.f = func(x *Sample) float64 {
				v := f(x)
				if v < 0 { // as in expr: -0 stays
					return -v
				}
				return v
			}
		}
	case "ceil":
		e.f = onNumber(a, math.Ceil)
	case "floor":
		e.f = onNumber(a, math.Floor)
	case "round":
		e.f = onNumber(a, math.Round)
	case "int":
		return c.toInt(n, a)
	case "float":
		return c.toFloat(n, a)
	case "string":
		return toText(a)
	}
	return e
}

func onText(s func(*Sample) string, f func(string) string) func(*Sample) string {
	if s == nil {
		return nil
	}
	return func(x *Sample) string { return f(s(x)) }
}

func onNumber(a code, f func(float64) float64) func(*Sample) float64 {
	switch {
	case a.i != nil:
		return a.float()
	case a.f != nil:
		v := a.f
		return func(x *Sample) float64 { return f(v(x)) }
	}
	return nil
}

func (c *compiler) toInt(n ast.Node, a code) code {
	switch {
	case a.i != nil:
		return code{i: a.i}
	case a.f != nil && a.ints < exact:
		f := a.f
		return code{i: func(x *Sample) int { return int(f(x)) }}
	case a.s != nil:
		s, at := a.s, c.errorFor(n)
		return code{fails: true, i: func(x *Sample) int {
			text := s(x)
			i, err := strconv.Atoi(text)
			if err != nil {
				x.failAt(at, "int(%q): it is no whole number", text)
				return 0
			}
			return i
		}}
	}
	return byMachine
}

func (c *compiler) toFloat(n ast.Node, a code) code {
	switch {
	case a.numeric():
		return code{f: a.float()}
	case a.s != nil:
		s, at := a.s, c.errorFor(n)
		return code{fails: true, f: func(x *Sample) float64 {
			text := s(x)
			f, err := strconv.ParseFloat(text, 64)
			if err != nil {
				x.failAt(at, "float(%q): it is no number", text)
				return 0
			}
			return f
		}}
	}
	return byMachine
}

func toText(a code) code {
	switch {
	case a.s != nil:
		return code{s: a.s}
	case a.i != nil:
		i := a.i
		return code{s: func(x *Sample) string { return strconv.Itoa(i(x)) }}
	case a.b != nil:
		b := a.b
		return code{s: func(x *Sample) string { return strconv.FormatBool(b(x)) }}
	case a.f != nil && a.ints == 0:
		f := a.f
		return code{s: func(x *Sample) string { return fmt.Sprint(f(x)) }}
	}
	return byMachine
}

func (c *compiler) builtin2(n *ast.BuiltinNode, l, r code) (e code) {
	switch n.Name {
	case "min":
		return c.extreme(n, l, r, false)
	case "max":
		return c.extreme(n, l, r, true)
	}
	ls, rs := l.s, r.s
	if ls == nil || rs == nil {
		return byMachine
	}
	switch n.Name {
	case "trim":
		e.s = func(x *Sample) string { return strings.Trim(ls(x), rs(x)) }
	case "trimPrefix":
		e.s = func(x *Sample) string { return strings.TrimPrefix(ls(x), rs(x)) }
	case "trimSuffix":
		e.s = func(x *Sample) string { return strings.TrimSuffix(ls(x), rs(x)) }
	case "hasPrefix":
		e.b = func(x *Sample) bool { return strings.HasPrefix(ls(x), rs(x)) }
	case "hasSuffix":
		e.b = func(x *Sample) bool { return strings.HasSuffix(ls(x), rs(x)) }
	case "indexOf":
		e.i = func(x *Sample) int { return strings.Index(ls(x), rs(x)) }
	case "lastIndexOf":
		e.i = func(x *Sample) int { return strings.LastIndex(ls(x), rs(x)) }
	}
	return e
}

// extreme is min or max: the first argument, unless the second is beyond it,
// which determines the result for NaN.
func (c *compiler) extreme(n *ast.BuiltinNode, l, r code, isMax bool) code {
	if l.i != nil && r.i != nil {
		li, ri := l.i, r.i
		if isMax {
			return code{i: func(x *Sample) int { return max(li(x), ri(x)) }}
		}
		return code{i: func(x *Sample) int { return min(li(x), ri(x)) }}
	}
	lf, rf, ints, ok := floats(n.Arguments[0], n.Arguments[1], l, r)
	if !ok {
		return byMachine
	}
	return code{ints: ints, f: func(x *Sample) float64 {
		a, b := lf(x), rf(x)
		if isMax && a < b || !isMax && a > b {
			return b
		}
		return a
	}}
}

func (c *compiler) call(n *ast.CallNode) code {
	id, ok := n.Callee.(*ast.IdentifierNode)
	if !ok || id.Value != "replace" || len(n.Arguments) != 3 {
		return byMachine
	}
	var s [3]func(*Sample) string
	for i, a := range n.Arguments {
		if s[i] = c.node(a).s; s[i] == nil {
			return byMachine
		}
	}
	at := c.errorFor(n)
	return code{fails: true, s: func(x *Sample) string {
		out, err := replace(s[0](x), s[1](x), s[2](x))
		if err != nil {
			x.failAt(at, "%v", err)
		}
		return out
	}}
}
