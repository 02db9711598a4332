package js

import (
	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/token"
)

// restrict takes from a tree what no limit could stop while it runs: a shift or
// a power of BigInts, of which one may take all memory. Their right side is made
// a number, which BigInts refuse, and numbers are already.
func restrict(tree ast.Node) {
	visit(tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpression:
			n.Right = asNumber(n.Operator, n.Right)
		case *ast.AssignExpression:
			n.Right = asNumber(n.Operator, n.Right)
		}
		return true
	})
}

func asNumber(op token.Token, x ast.Expression) ast.Expression {
	switch op {
	case token.EXPONENT, token.SHIFT_LEFT, token.SHIFT_RIGHT:
	default:
		return x
	}
	if lit, ok := x.(*ast.NumberLiteral); ok {
		if _, big := lit.Value.(interface{ IsInt64() bool }); !big {
			return x
		}
	}
	return &ast.UnaryExpression{Operator: token.PLUS, Idx: x.Idx0(), Operand: x}
}
