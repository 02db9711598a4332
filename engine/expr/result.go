package expr

import "github.com/expr-lang/expr/ast"

func (c *compiler) errorFor(n ast.Node) *Error { return errorAt(c.src, n.Location(), "") }

func (c *compiler) asBool(n ast.Node, e code) func(*Sample) bool {
	if e.b != nil {
		return e.b
	}
	return byMachineAs[bool](c, n, "true or false")
}

func (c *compiler) asText(n ast.Node, e code) func(*Sample) string {
	if e.s != nil {
		return e.s
	}
	return byMachineAs[string](c, n, "a string")
}

func (c *compiler) asNumber(n ast.Node, e code) func(*Sample) float64 {
	if e.numeric() {
		return e.float()
	}
	return c.numberByMachine(n)
}

// open compiles a predicate for samples without a value: parts that depend on
// the value are Open, and logical operators use Kleene's logic.
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
