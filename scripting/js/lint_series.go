package js

import (
	"strings"

	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/token"

	"github.com/weir-run/weir/scripting"
)

// beginsHook remembers the statement that a hook for batches begins with. Its work can
// be done before the hook.
func (l *linter) beginsHook(p *scripting.Param, fn ast.Expression) {
	hook, _ := l.rules.CachedHook(p)
	var body *ast.BlockStatement
	switch fn := fn.(type) {
	case *ast.FunctionLiteral:
		body = fn.Body
	case *ast.ArrowFunctionLiteral:
		body, _ = fn.Body.(*ast.BlockStatement)
	}
	if hook == "" || body == nil || len(body.List) == 0 {
		return
	}
	switch s := body.List[0].(type) {
	case *ast.ExpressionStatement:
		l.first[s.Expression] = hook
	case *ast.ForOfStatement:
		l.first[s] = hook
	}
}

// hookFor returns a hook that does the work of a loop once for each series, or "" if the
// work depends on more than the labels, or does not begin the hook for batches.
func (l *linter) hookFor(r *recordLoop, sc *lintScope) string {
	hook := l.first[r.at]
	if hook == "" {
		return ""
	}
	w := &seriesWork{l: l, r: r, sc: sc, of: l.rules.Table.Series, locals: map[string]bool{}}
	if hook == "stream" {
		w.of = l.rules.Table.Stream
	}
	if !w.block(r.body) || !w.edits {
		return ""
	}
	params := r.record
	if w.context != "" {
		params += ", " + w.context
	}
	return hook + "(" + params + ") { " + l.bodyOf(r) + " }"
}

// bodyOf returns the code of a loop in one line, or … if it is long.
func (l *linter) bodyOf(r *recordLoop) string {
	var b strings.Builder
	ts := tokensOf(l.c.code[int(r.start)-l.code.Base():])
	depth := 0 // of brackets
	for i, t := range ts {
		switch t.Text {
		case "(", "[", "{", "${":
			depth++
		case ")", "]", "}":
			depth--
		}
		if depth < 0 || b.Len() > scripting.MaxShownRewrite {
			break
		}
		if i > 0 && t.At > ts[i-1].End() {
			b.WriteByte(' ')
		}
		b.WriteString(t.Text)
		if r.single && depth == 0 && t.Text == ";" && i+1 < len(ts) && ts[i+1].Text != "else" {
			break
		}
	}
	if b.Len() > scripting.MaxShownRewrite {
		return "…"
	}
	return b.String()
}

// seriesWork examines whether code for a record depends on its series alone.
type seriesWork struct {
	l       *linter
	r       *recordLoop
	sc      *lintScope // of the loop
	of      *scripting.ObjectType
	locals  map[string]bool // of the code
	context string          // the name of ctx, if the code reads it
	edits   bool
}

// block reports whether a hook can run statements.
func (w *seriesWork) block(ss []ast.Statement) bool {
	for _, s := range ss {
		if !w.stmt(s) {
			return false
		}
	}
	return true
}

func (w *seriesWork) stmt(s ast.Statement) bool {
	switch s := s.(type) {
	case nil, *ast.EmptyStatement:
		return true
	case *ast.VariableStatement:
		return w.bindings(s.List)
	case *ast.LexicalDeclaration:
		return w.bindings(s.List)
	case *ast.ExpressionStatement:
		return w.effect(s.Expression)
	case *ast.BlockStatement:
		return w.block(s.List)
	case *ast.IfStatement:
		return w.expr(s.Test) && w.stmt(s.Consequent) && w.stmt(s.Alternate)
	case *ast.ReturnStatement:
		return w.r.called && (s.Argument == nil || w.drop(s.Argument))
	}
	return false
}

func (w *seriesWork) bindings(bs []*ast.Binding) bool {
	for _, b := range bs {
		id, ok := b.Target.(*ast.Identifier)
		if !ok || id.Name.String() == w.r.record || b.Initializer != nil && !w.expr(b.Initializer) {
			return false
		}
		w.locals[id.Name.String()] = true
	}
	return true
}

// effect reports whether a hook can run an expression that is a statement.
func (w *seriesWork) effect(e ast.Expression) bool {
	switch e := e.(type) {
	case *ast.AssignExpression:
		return w.target(e.Left) && w.expr(e.Right)
	case *ast.UnaryExpression:
		return e.Operator == token.DELETE && w.target(e.Operand)
	case *ast.BinaryExpression: // if (c) r.drop(), as esbuild writes it
		return e.Operator == token.LOGICAL_AND && w.expr(e.Left) && w.effect(e.Right)
	}
	return w.drop(e)
}

// drop reports whether an expression drops the record.
func (w *seriesWork) drop(e ast.Expression) bool {
	if !(condition{record: w.r.record}).isDrop(e) {
		return false
	}
	w.edits = true
	return true
}

// target reports whether a hook can assign to an expression.
func (w *seriesWork) target(e ast.Expression) bool {
	switch e := e.(type) {
	case *ast.Identifier:
		return w.locals[e.Name.String()]
	case *ast.DotExpression:
		w.edits = true
		if w.record(e.Left) {
			_, settable := w.l.rules.HasField(w.of, e.Identifier.Name.String())
			return settable && e.Identifier.Name != "labels"
		}
		return w.labels(e.Left)
	case *ast.BracketExpression:
		w.edits = true
		return w.labels(e.Left) && w.expr(e.Member)
	}
	return false
}

func (w *seriesWork) record(e ast.Expression) bool {
	return (condition{record: w.r.record}).isRecord(e)
}

// labels reports whether an expression is the labels of the record.
func (w *seriesWork) labels(e ast.Expression) bool {
	dot, ok := e.(*ast.DotExpression)
	return ok && dot.Identifier.Name == "labels" && w.record(dot.Left)
}

func (w *seriesWork) exprs(es []ast.Expression) bool {
	for _, e := range es {
		if !w.expr(e) {
			return false
		}
	}
	return true
}

// expr reports whether an expression has the same value for all records of a series,
// and no effects.
func (w *seriesWork) expr(e ast.Expression) bool {
	switch e := e.(type) {
	case *ast.StringLiteral, *ast.NumberLiteral, *ast.BooleanLiteral, *ast.NullLiteral:
		return true
	case *ast.TemplateLiteral:
		return e.Tag == nil && w.exprs(e.Expressions)
	case *ast.Identifier:
		return w.locals[e.Name.String()] || w.global(e, "undefined")
	case *ast.DotExpression:
		switch {
		case w.record(e.Left):
			has, _ := w.l.rules.HasField(w.of, e.Identifier.Name.String())
			return has && e.Identifier.Name != "labels"
		case w.labels(e.Left):
			return true
		}
		return w.cached(e.Left) || w.expr(e.Left)
	case *ast.BracketExpression:
		return (w.labels(e.Left) || w.cached(e.Left) || w.expr(e.Left)) && w.expr(e.Member)
	case *ast.ArrayLiteral:
		return w.exprs(e.Value)
	case *ast.CallExpression:
		return w.call(e)
	case *ast.BinaryExpression:
		return w.expr(e.Left) && w.expr(e.Right)
	case *ast.ConditionalExpression:
		return w.expr(e.Test) && w.expr(e.Consequent) && w.expr(e.Alternate)
	case *ast.UnaryExpression:
		switch e.Operator {
		case token.NOT, token.MINUS, token.PLUS, token.VOID, token.TYPEOF:
			return w.expr(e.Operand)
		}
	case *ast.OptionalChain:
		return w.expr(e.Expression)
	case *ast.Optional:
		return w.expr(e.Expression)
	}
	return false
}

// textMethods are methods of strings and arrays that change nothing.
var textMethods = map[string]bool{
	"at": true, "charAt": true, "concat": true, "endsWith": true, "includes": true, "indexOf": true, "join": true, "lastIndexOf": true,
	"match": true, "padEnd": true, "padStart": true, "repeat": true, "replace": true, "replaceAll": true, "slice": true, "split": true,
	"startsWith": true, "substring": true, "toLowerCase": true, "toString": true, "toUpperCase": true, "trim": true,
}

// call reports whether a call has no effects and depends on its arguments alone.
func (w *seriesWork) call(e *ast.CallExpression) bool {
	var args []ast.Expression
	for _, a := range e.ArgumentList {
		if _, pattern := a.(*ast.RegExpLiteral); !pattern {
			args = append(args, a)
		}
	}
	if !w.exprs(args) {
		return false
	}
	callee := e.Callee
	if s, ok := callee.(*ast.SequenceExpression); ok { // (0, import_x.f)(), as esbuild writes it
		callee = s.Sequence[len(s.Sequence)-1]
	}
	if o, ok := callee.(*ast.Optional); ok {
		callee = o.Expression
	}
	switch callee := callee.(type) {
	case *ast.Identifier:
		return w.global(callee, "String", "Number", "Boolean")
	case *ast.DotExpression:
		left := callee.Left
		if o, ok := left.(*ast.Optional); ok {
			left = o.Expression
		}
		if _, pattern := left.(*ast.RegExpLiteral); pattern {
			return callee.Identifier.Name == "test"
		}
		return w.cached(left) || textMethods[callee.Identifier.Name.String()] && w.expr(left)
	}
	return false
}

// global reports whether a name is one of these globals.
func (w *seriesWork) global(id *ast.Identifier, names ...string) bool {
	_, at := w.sc.find(id.Name.String())
	for _, n := range names {
		if at == nil && !w.locals[n] && id.Name.String() == n {
			return true
		}
	}
	return false
}

// cached reports whether an expression outside of the code is the same in all calls.
func (w *seriesWork) cached(e ast.Expression) bool { return w.l.rules.Cached(w.known(e)) }

// known returns what is known of a variable outside of the code, or of its members.
func (w *seriesWork) known(e ast.Expression) *known {
	switch e := e.(type) {
	case *ast.Identifier:
		if w.locals[e.Name.String()] {
			return nil
		}
		k, _ := w.sc.find(e.Name.String())
		return k
	case *ast.DotExpression:
		owner := w.known(e.Left)
		if owner == nil {
			return nil
		}
		if id, ok := e.Left.(*ast.Identifier); ok && owner.Object == w.l.rules.Table.Context && e.Identifier.Name == "args" {
			w.context = id.Name.String()
		}
		return w.l.member(owner, e.Identifier.Name.String(), e.Identifier.Idx)
	}
	return nil
}
