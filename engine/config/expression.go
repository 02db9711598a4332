package config

import (
	"fmt"
	"reflect"

	"github.com/grafana/alloy/syntax/ast"
)

// Expression is the value of an attribute that becomes a variable: an argument
// of an instance, an export, or the collection of a foreach.
type Expression struct {
	// Name is the name of the attribute.
	Name string
	// NameSpan is the position of the name, Span the position of the value.
	NameSpan Span
	Span

	expr ast.Expr
	refs []Reference
}

func newExpression(st *ast.AttributeStmt) *Expression {
	return &Expression{Name: st.Name.Name, NameSpan: spanOf(st.Name), Span: spanOf(st.Value), expr: st.Value, refs: appendReferences(nil, st.Value)}
}

// Resolve is like Block.Resolve, for an expression.
func (x *Expression) Resolve(s *Scope) (nodes []string, ds Diagnostics) {
	return s.resolveAll(x.refs)
}

// Evaluate returns the current value of the expression. If the expression is
// invalid, the Err of the Value is a Diagnostics. If it refers to something
// unknown, the Err is ErrUnknown or a Pending.
//
// A bare reference keeps the Go type of its value. Any other expression has a
// type of the language: string, int, float64, bool, []any, map[string]any, or
// an opaque value such as a receiver.
func (x *Expression) Evaluate(s *Scope) (v Value) {
	for _, r := range x.refs {
		switch c, why := s.lookupKnown(r); c {
		case unknown:
			return Value{Err: why}
		case provisional:
			if v.Provisional = true; v.Err == nil {
				v.Err = why
			}
		}
	}
	if got, ok := x.bare(s); ok {
		v.V = got
		return v
	}
	err := evaluate(s, x.expr, x.refs, reflect.ValueOf(&v.V).Elem())
	if err == nil {
		return v
	}
	if v.Provisional { // an unknown value may be the cause of the error
		if v.Err == nil {
			v.Err = ErrUnknown
		}
		return Value{Err: v.Err}
	}
	ds := fromSyntax(err, x.Span)
	for i := range ds {
		ds[i].Msg = x.Name + ": " + message(x.expr, reflect.TypeFor[any](), ds[i])
	}
	return Value{Err: ds}
}

// bare returns the value of a bare reference. It does not convert it to the
// types of the language, which would copy long lists and lose the type of empty
// lists.
func (x *Expression) bare(s *Scope) (any, bool) {
	switch x.expr.(type) {
	case *ast.AccessExpr, *ast.IdentifierExpr:
	default:
		return nil, false
	}
	if len(x.refs) != 1 || x.refs[0].Span != x.Span {
		return nil, false
	}
	_, _, n, rest := s.find(&x.refs[0])
	switch {
	case n == nil || n.whole:
		return nil, false
	case n.variable && len(rest) == 0:
		return n.exports, true
	case n.variable || len(rest) != 1:
		return nil, false
	}
	if v, ok := export(n.exports, rest[0]); ok {
		return v.Interface(), true
	}
	return nil, false
}

// Mentions reports whether the expression refers to name or a part of it.
func (x *Expression) Mentions(name string) bool { return mentions(x.refs, x.Span, name) }

// Mentions reports whether the block refers to name or a part of it at the
// given position or around it.
func (b *Block) Mentions(at Span, name string) bool {
	return mentions(b.refs, b.enclosingValue(at), name)
}

func mentions(refs []Reference, in Span, name string) bool {
	for _, r := range refs {
		if !in.contains(r.Span) {
			continue
		}
		if ref := r.String(); ref == name || len(ref) > len(name) && ref[:len(name)] == name && ref[len(name)] == '.' {
			return true
		}
	}
	return false
}

// enclosingValue returns the attribute value that contains the position. If
// there is none, it returns at, or the whole block if at is its header.
func (b *Block) enclosingValue(at Span) Span {
	found := at
	ast.Walk(statements(func(st *ast.AttributeStmt) {
		if s := newSpan(ast.StartPos(st), ast.EndPos(st)); s.contains(at) {
			found = s
		}
	}), b.stmt.Body)
	if at == b.Span {
		found = newSpan(b.stmt.NamePos, b.stmt.RCurlyPos)
	}
	return found
}

type statements func(*ast.AttributeStmt)

// Visit calls the function with each attribute.
func (f statements) Visit(n ast.Node) ast.Visitor {
	if st, ok := n.(*ast.AttributeStmt); ok {
		f(st)
	}
	return f
}

// contains reports whether t lies in s.
func (s Span) contains(t Span) bool {
	before := func(aLine, aCol, bLine, bCol int) bool { return aLine < bLine || aLine == bLine && aCol <= bCol }
	return s.File == t.File && before(s.Line, s.Col, t.Line, t.Col) && before(t.EndLine, t.EndCol, s.EndLine, s.EndCol)
}

// Attributes returns the attributes of b by name, and an error for everything
// else in it.
func (b *Block) Attributes() (xs map[string]*Expression, ds Diagnostics) {
	xs = map[string]*Expression{}
	for _, stmt := range b.stmt.Body {
		switch st := stmt.(type) {
		case *ast.AttributeStmt:
			if first := xs[st.Name.Name]; first != nil {
				ds.add(spanOf(st.Name), fmt.Sprintf("attribute %s is set twice", st.Name.Name), "first set at "+first.NameSpan.String())
				continue
			}
			xs[st.Name.Name] = newExpression(st)
		case *ast.BlockStmt:
			ds.add(headerSpan(st), fmt.Sprintf("unknown block %s", st.GetBlockName()), fmt.Sprintf("%s has only attributes, the arguments of its declare", b.Name))
		}
	}
	return xs, ds
}
