package lua

import (
	"strings"

	"github.com/yuin/gopher-lua/ast"

	"github.com/weir-run/weir/scripting"
)

// beginsHook remembers the statement that a hook for batches begins with. Its work can
// be done before the hook.
func (l *linter) beginsHook(p *scripting.Param, fn *ast.FunctionExpr) {
	hook, _ := l.rules.CachedHook(p)
	if hook == "" || len(fn.Stmts) == 0 {
		return
	}
	switch s := fn.Stmts[0].(type) {
	case *ast.FuncCallStmt:
		l.first[s.Expr] = hook
	case *ast.GenericForStmt:
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
	if !w.block(r.body, false) || !w.edits {
		return ""
	}
	params := r.record
	if w.context != "" {
		params += ", " + w.context
	}
	return hook + " = function(" + params + ") " + l.bodyOf(r) + " end"
}

// bodyOf returns the code of a loop in one line, or … if it is long.
func (l *linter) bodyOf(r *recordLoop) string {
	ts := tokensOf(l.file.Text)
	i := 0
	next := func(word string) { // goes behind the next token with this text
		for i < len(ts) && ts[i].Text != word {
			i++
		}
		i++
	}
	for i < len(ts) && ts[i].Line < r.line {
		i++
	}
	next(r.word)
	if r.called {
		next("function")
		next(")")
	} else {
		next("do")
	}
	var b strings.Builder
	for depth := 1; i < len(ts) && b.Len() <= scripting.MaxShownRewrite; i++ {
		switch ts[i].Text {
		case "function", "if", "do", "repeat":
			depth++
		case "end", "until":
			depth--
		}
		if depth == 0 {
			return b.String()
		}
		if b.Len() > 0 && ts[i].At > ts[i-1].End() {
			b.WriteByte(' ')
		}
		b.WriteString(ts[i].Text)
	}
	return "…"
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

// block reports whether a hook can run statements. inner means that they are in a loop
// of the code.
func (w *seriesWork) block(ss []ast.Stmt, inner bool) bool {
	for _, s := range ss {
		if !w.stmt(s, inner) {
			return false
		}
	}
	return true
}

func (w *seriesWork) stmt(s ast.Stmt, inner bool) bool {
	switch s := s.(type) {
	case *ast.LocalAssignStmt:
		return w.exprs(s.Exprs) && w.declare(s.Names...)
	case *ast.AssignStmt:
		for _, lhs := range s.Lhs {
			if !w.target(lhs) {
				return false
			}
		}
		return w.exprs(s.Rhs)
	case *ast.FuncCallStmt:
		return w.drop(s.Expr)
	case *ast.DoBlockStmt:
		return w.block(s.Stmts, inner)
	case *ast.IfStmt:
		return w.expr(s.Condition) && w.block(s.Then, inner) && w.block(s.Else, inner)
	case *ast.NumberForStmt:
		return w.exprs([]ast.Expr{s.Init, s.Limit, s.Step}) && w.declare(s.Name) && w.block(s.Stmts, true)
	case *ast.GenericForStmt:
		call, ok := s.Exprs[0].(*ast.FuncCallExpr)
		if !ok || len(s.Exprs) != 1 || len(call.Args) != 1 || !w.global(call.Func, "pairs", "ipairs") {
			return false
		}
		return (w.labels(call.Args[0]) || w.expr(call.Args[0])) && w.declare(s.Names...) && w.block(s.Stmts, true)
	case *ast.BreakStmt:
		return inner
	case *ast.ReturnStmt:
		return w.r.called && (len(s.Exprs) == 0 || len(s.Exprs) == 1 && w.drop(s.Exprs[0]))
	}
	return false
}

func (w *seriesWork) declare(names ...string) bool {
	for _, n := range names {
		if n == w.r.record {
			return false
		}
		w.locals[n] = true
	}
	return true
}

// drop reports whether an expression drops the record.
func (w *seriesWork) drop(e ast.Expr) bool {
	call, ok := e.(*ast.FuncCallExpr)
	if !ok || call.Method != "drop" || len(call.Args) > 0 || !w.record(call.Receiver) {
		return false
	}
	w.edits = true
	return true
}

// target reports whether a hook can assign to an expression.
func (w *seriesWork) target(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.IdentExpr:
		return w.locals[e.Value]
	case *ast.AttrGetExpr:
		if w.labels(e.Object) {
			w.edits = true
			return w.expr(e.Key)
		}
		if key, ok := e.Key.(*ast.StringExpr); ok && w.record(e.Object) {
			_, settable := w.l.rules.HasField(w.of, key.Value)
			w.edits = true
			return settable && key.Value != "labels"
		}
		return w.expr(e)
	}
	return false
}

func (w *seriesWork) record(e ast.Expr) bool {
	id, ok := e.(*ast.IdentExpr)
	return ok && id.Value == w.r.record
}

// labels reports whether an expression is the labels of the record.
func (w *seriesWork) labels(e ast.Expr) bool {
	get, ok := e.(*ast.AttrGetExpr)
	if !ok || !w.record(get.Object) {
		return false
	}
	key, ok := get.Key.(*ast.StringExpr)
	return ok && key.Value == "labels"
}

func (w *seriesWork) exprs(es []ast.Expr) bool {
	for _, e := range es {
		if e != nil && !w.expr(e) {
			return false
		}
	}
	return true
}

// expr reports whether an expression has the same value for all records of a series.
func (w *seriesWork) expr(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.TrueExpr, *ast.FalseExpr, *ast.NilExpr, *ast.NumberExpr, *ast.StringExpr:
		return true
	case *ast.IdentExpr:
		return w.locals[e.Value]
	case *ast.AttrGetExpr:
		key, named := e.Key.(*ast.StringExpr)
		switch {
		case w.labels(e.Object):
			return w.expr(e.Key)
		case w.record(e.Object):
			if !named || key.Value == "labels" {
				return false
			}
			has, _ := w.l.rules.HasField(w.of, key.Value)
			return has
		}
		return (w.cached(e.Object) || w.expr(e.Object)) && w.expr(e.Key)
	case *ast.TableExpr:
		for _, f := range e.Fields {
			if f.Key != nil && !w.expr(f.Key) || !w.expr(f.Value) {
				return false
			}
		}
		return true
	case *ast.FuncCallExpr:
		return w.call(e)
	case *ast.LogicalOpExpr:
		return w.expr(e.Lhs) && w.expr(e.Rhs)
	case *ast.RelationalOpExpr:
		return w.expr(e.Lhs) && w.expr(e.Rhs)
	case *ast.ArithmeticOpExpr:
		return w.expr(e.Lhs) && w.expr(e.Rhs)
	case *ast.StringConcatOpExpr:
		return w.expr(e.Lhs) && w.expr(e.Rhs)
	case *ast.UnaryMinusOpExpr:
		return w.expr(e.Expr)
	case *ast.UnaryNotOpExpr:
		return w.expr(e.Expr)
	case *ast.UnaryLenOpExpr:
		return w.expr(e.Expr)
	}
	return false
}

// textMethods are the methods of strings.
var textMethods = map[string]bool{"byte": true, "find": true, "format": true, "gsub": true, "len": true, "lower": true, "match": true, "rep": true, "reverse": true, "sub": true, "upper": true}

// call reports whether a call has no effects and depends on its arguments alone.
func (w *seriesWork) call(e *ast.FuncCallExpr) bool {
	if !w.exprs(e.Args) {
		return false
	}
	if e.Receiver != nil {
		return w.cached(e.Receiver) || textMethods[e.Method] && w.expr(e.Receiver)
	}
	if get, ok := e.Func.(*ast.AttrGetExpr); ok {
		return w.global(get.Object, "string") || w.cached(get.Object)
	}
	return w.global(e.Func, "tostring", "tonumber", "type")
}

// global reports whether an expression is one of these globals.
func (w *seriesWork) global(e ast.Expr, names ...string) bool {
	id, ok := e.(*ast.IdentExpr)
	if !ok || w.locals[id.Value] {
		return false
	}
	_, _, local := w.sc.find(id.Value)
	for _, n := range names {
		if !local && n == id.Value {
			return true
		}
	}
	return false
}

// cached reports whether an expression outside of the code is the same in all calls.
func (w *seriesWork) cached(e ast.Expr) bool { return w.l.rules.Cached(w.known(e)) }

// known returns what is known of a variable outside of the code, or of its members.
func (w *seriesWork) known(e ast.Expr) *known {
	switch e := e.(type) {
	case *ast.IdentExpr:
		if w.locals[e.Value] {
			return nil
		}
		k, _, _ := w.sc.find(e.Value)
		return k
	case *ast.AttrGetExpr:
		owner := w.known(e.Object)
		if key, ok := e.Key.(*ast.StringExpr); ok && owner != nil {
			if id, ok := e.Object.(*ast.IdentExpr); ok && owner.Object == w.l.rules.Table.Context && key.Value == "args" {
				w.context = id.Value
			}
			return w.l.member(owner, e)
		}
	}
	return nil
}
