package js

import (
	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/token"
)

// restrict changes parts of a tree that no limit could stop while they run. A
// shift or a power of BigInts can take all memory, so the right side is
// converted to a number, which BigInts refuse. An object literal that spreads a
// text, or a pattern that takes its rest, creates a property for each
// character, so the value is checked first.
func restrict(tree ast.Node) {
	visit(tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpression:
			n.Right = asNumber(n.Operator, n.Right)
		case *ast.AssignExpression:
			n.Right = asNumber(n.Operator, n.Right)
			if p, ok := n.Left.(*ast.ObjectPattern); ok && p.Rest != nil {
				n.Right = spreadable(n.Right)
			}
		case *ast.ObjectLiteral:
			for _, p := range n.Value {
				if p, ok := p.(*ast.SpreadElement); ok {
					p.Expression = spreadable(p.Expression)
				}
			}
		case *ast.Binding:
			if p, ok := n.Target.(*ast.ObjectPattern); ok && p.Rest != nil && n.Initializer != nil {
				n.Initializer = spreadable(n.Initializer)
			}
		}
		return true
	})
}

// spreadName is the global function that checks whether a value may be spread.
// Scripts cannot write this name.
const spreadName = "weir:spread"

func spreadable(x ast.Expression) ast.Expression {
	if _, ok := x.(*ast.ObjectLiteral); ok {
		return x
	}
	at := x.Idx0()
	return &ast.CallExpression{Callee: &ast.Identifier{Name: spreadName, Idx: at}, ArgumentList: []ast.Expression{x}, LeftParenthesis: at, RightParenthesis: x.Idx1()}
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
