package expr

import "github.com/expr-lang/expr/ast"

func (c *compiler) at(n ast.Node) *Error { return errorAt(c.src, n.Location(), "") }

func (c *compiler) asBool(n ast.Node, e code) func(*Sample) bool {
	if e.b != nil {
		return e.b
	}
	m := c.machine(n)
	if m == nil {
		return nil
	}
	return as[bool](m, c.at(n), "true or false")
}

func (c *compiler) asText(n ast.Node, e code) func(*Sample) string {
	if e.s != nil {
		return e.s
	}
	m := c.machine(n)
	if m == nil {
		return nil
	}
	return as[string](m, c.at(n), "a string")
}

func (c *compiler) asNumber(n ast.Node, e code) func(*Sample) float64 {
	if e.f != nil {
		return e.f
	}
	if e.i != nil {
		i := e.i
		return func(x *Sample) float64 { return float64(i(x)) }
	}
	m := c.machine(n)
	if m == nil {
		return nil
	}
	at := c.at(n)
	return func(x *Sample) float64 {
		switch v := m.eval(x).(type) {
		case float64:
			return v
		case int:
			return float64(v)
		}
		if x.err == nil {
			e := *at
			e.Msg = "it must be a number"
			x.fail(&e)
		}
		return 0
	}
}

// open compiles a predicate for samples without a value: what depends on the
// value is Open, and the logic around it is Kleene's.
func (c *compiler) open(n ast.Node) func(*Sample) Verdict {
	if dependsOn(n)&readsValue == 0 {
		eval := c.asBool(n, c.node(n))
		return func(x *Sample) Verdict {
			if eval(x) {
				return True
			}
			return False
		}
	}
	switch n := n.(type) {
	case *ast.UnaryNode:
		if n.Operator == "!" || n.Operator == "not" {
			in := c.open(n.Node)
			return func(x *Sample) Verdict { return [...]Verdict{Open: Open, False: True, True: False}[in(x)] }
		}
	case *ast.BinaryNode:
		if isAnd(n) || isOr(n) {
			l, r := c.open(n.Left), c.open(n.Right)
			decides := False
			if isOr(n) {
				decides = True
			}
			return func(x *Sample) Verdict {
				lv := l(x)
				if lv == decides || x.err != nil {
					return lv
				}
				rv := r(x)
				if rv == decides || lv != Open {
					return rv
				}
				return Open
			}
		}
	}
	return func(*Sample) Verdict { return Open }
}
