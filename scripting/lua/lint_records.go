package lua

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/yuin/gopher-lua/ast"

	"github.com/weir-run/weir/scripting"
)

// eachRecord looks at batch:each(function(r) … end).
func (l *linter) eachRecord(e *ast.FuncCallExpr, f *known, sc *lintScope) {
	if e.Method != "each" || len(e.Args) != 1 || !l.isBatch(f) {
		return
	}
	if fn, ok := e.Args[0].(*ast.FunctionExpr); ok && len(fn.ParList.Names) == 1 && !fn.ParList.HasVargs {
		l.perRecord(&recordLoop{at: e, line: e.Line(), word: e.Method, on: e.Receiver, record: fn.ParList.Names[0], body: fn.Stmts, called: true}, sc)
	}
}

// loopOverRecords looks at for r in batch:records() do … end.
func (l *linter) loopOverRecords(s *ast.GenericForStmt, sc *lintScope) {
	e, ok := s.Exprs[0].(*ast.FuncCallExpr)
	if !ok || len(s.Exprs) != 1 || len(s.Names) != 1 || e.Method != "records" || len(e.Args) > 0 {
		return
	}
	if f := l.member(l.expr(e.Receiver, sc), methodOf(e)); l.isBatch(f) {
		l.perRecord(&recordLoop{at: s, line: e.Line(), word: e.Method, on: e.Receiver, record: s.Names[0], body: s.Stmts}, sc)
	}
}

// isBatch reports whether a function is a method of a batch.
func (l *linter) isBatch(f *known) bool {
	t := l.rules.Table
	return f != nil && f.Of != nil && (f.Of == t.Batch || f.Of == t.Logs)
}

// recordLoop is code that runs for each record of a batch.
type recordLoop struct {
	at     any // the statement, or the call of each
	line   int
	word   string // in that line
	on     ast.Expr
	record string // the name of the record
	body   []ast.Stmt
	called bool // body is that of a function
}

// perRecord warns of code that does for each record what an operation does for
// all, or a hook once for each series.
func (l *linter) perRecord(r *recordLoop, sc *lintScope) {
	on, ok := r.on.(*ast.IdentExpr)
	if !ok || len(r.body) == 0 || on.Value == r.record {
		return
	}
	k := l.expr(r.on, sc)
	logs := k == nil || k.Object != l.rules.Table.Batch
	only, rewrite, gain := r.operation(on.Value, logs)
	if rewrite == "" {
		only, rewrite, gain = scripting.EditsSeries, l.hookFor(r, sc), scripting.SeriesGain(logs)
	}
	if rewrite != "" {
		hint, err := scripting.PerRecord(r.word, only, rewrite, gain)
		l.addFinding(scripting.LintPerRecord, true, r.line, r.word, err, hint)
	}
}

// operation returns the call of an operation that does the same, or "".
func (r *recordLoop) operation(on string, logs bool) (only scripting.RecordWork, rewrite string, gain int) {
	c := condition{record: r.record}
	if drop, ok := r.body[0].(*ast.IfStmt); ok && len(r.body) == 1 && len(drop.Else) == 0 && c.drops(drop.Then) {
		if cond := c.of(drop.Condition); cond.Expression(logs) != "" {
			return scripting.DropsRecords, fmt.Sprintf("%s:drop_where [[ %s ]]", on, cond.Expression(logs)), cond.Gain()
		}
	}
	if logs {
		return "", "", 0 // without a measurement
	}
	var ops []string
	for _, s := range r.body {
		op := c.setLabel(s)
		if op == "" {
			return "", "", 0
		}
		ops = append(ops, on+":"+op)
	}
	return scripting.SetsConstant, strings.Join(ops, " "), scripting.SetLabelGain
}

// condition translates conditions on a record.
type condition struct{ record string }

// drops reports whether code only drops the record.
func (c condition) drops(body []ast.Stmt) bool {
	if len(body) == 2 {
		if ret, ok := body[1].(*ast.ReturnStmt); ok && len(ret.Exprs) == 0 {
			body = body[:1]
		}
	}
	if len(body) != 1 {
		return false
	}
	s, ok := body[0].(*ast.FuncCallStmt)
	if !ok {
		return false
	}
	e, ok := s.Expr.(*ast.FuncCallExpr)
	return ok && e.Method == "drop" && len(e.Args) == 0 && c.isRecord(e.Receiver)
}

func (c condition) isRecord(e ast.Expr) bool {
	id, ok := e.(*ast.IdentExpr)
	return ok && id.Value == c.record
}

// setLabel returns the operation that sets or removes a label of all records, or
// "".
func (c condition) setLabel(s ast.Stmt) string {
	set, ok := s.(*ast.AssignStmt)
	if !ok || len(set.Lhs) != 1 || len(set.Rhs) != 1 {
		return ""
	}
	name := c.label(set.Lhs[0])
	if name == "" {
		return ""
	}
	switch v := set.Rhs[0].(type) {
	case *ast.NilExpr:
		return fmt.Sprintf("drop_label(%q)", name)
	case *ast.StringExpr:
		return scripting.SetLabel("set_label", name, v.Value)
	}
	return ""
}

// label returns the name in r.labels.NAME, or "".
func (c condition) label(e ast.Expr) string {
	get, ok := e.(*ast.AttrGetExpr)
	if !ok {
		return ""
	}
	name, ok := get.Key.(*ast.StringExpr)
	if !ok || scripting.NewLabelField(name.Value) == nil {
		return ""
	}
	labels, ok := get.Object.(*ast.AttrGetExpr)
	if !ok || !c.isRecord(labels.Object) {
		return ""
	}
	if key, ok := labels.Key.(*ast.StringExpr); !ok || key.Value != "labels" {
		return ""
	}
	return name.Value
}

// field returns the field of the record that an expression reads, or nil.
func (c condition) field(e ast.Expr) *scripting.RecordField {
	switch e := e.(type) {
	case *ast.LogicalOpExpr:
		if s, ok := e.Rhs.(*ast.StringExpr); ok && e.Operator == "or" && s.Value == "" {
			return c.field(e.Lhs).OrEmpty()
		}
	case *ast.AttrGetExpr:
		if name := c.label(e); name != "" {
			return scripting.NewLabelField(name)
		}
		if key, ok := e.Key.(*ast.StringExpr); ok && c.isRecord(e.Object) {
			return scripting.NewRecordField(key.Value)
		}
	}
	return nil
}

// of returns a condition, or nil.
func (c condition) of(e ast.Expr) *scripting.Condition {
	switch e := e.(type) {
	case *ast.UnaryNotOpExpr:
		return c.of(e.Expr).Not()
	case *ast.LogicalOpExpr:
		return c.of(e.Lhs).Join(map[string]string{"and": "&&", "or": "||"}[e.Operator], c.of(e.Rhs))
	case *ast.RelationalOpExpr:
		return c.comparison(e)
	case *ast.FuncCallExpr:
		return c.part(e)
	case *ast.AttrGetExpr:
		if f := c.field(e); f != nil && f.Maybe {
			return f.Is("!=", nil)
		}
	}
	return nil
}

func (c condition) comparison(e *ast.RelationalOpExpr) *scripting.Condition {
	op := e.Operator
	if op == "~=" {
		op = "!="
	}
	if s, ok := e.Rhs.(*ast.StringExpr); ok && op == "==" {
		if call, ok := e.Lhs.(*ast.FuncCallExpr); ok {
			return c.sub(call, s.Value)
		}
	}
	f := c.field(e.Lhs)
	switch v := e.Rhs.(type) {
	case *ast.StringExpr:
		return f.Is(op, v.Value)
	case *ast.NilExpr:
		return f.Is(op, nil)
	default:
		if n, ok := number(v); ok {
			return f.Is(op, n)
		}
	}
	return nil
}

// number returns a constant number in decimal form.
func number(e ast.Expr) (float64, bool) {
	if neg, ok := e.(*ast.UnaryMinusOpExpr); ok {
		n, ok := number(neg.Expr)
		return -n, ok
	}
	lit, ok := e.(*ast.NumberExpr)
	if !ok || strings.ContainsAny(lit.Value, "xX_") {
		return 0, false
	}
	n, err := strconv.ParseFloat(lit.Value, 64)
	return n, err == nil
}

// sub translates r.name:sub(1, 3) == "go_".
func (c condition) sub(e *ast.FuncCallExpr, part string) *scripting.Condition {
	if e.Method != "sub" || len(e.Args) == 0 {
		return nil
	}
	from, ok := number(e.Args[0])
	n := float64(len(part))
	switch {
	case !ok || n == 0:
	case len(e.Args) == 1 && from == -n:
		return c.field(e.Receiver).Has("endsWith", part)
	case len(e.Args) == 2 && from == 1:
		if to, ok := number(e.Args[1]); ok && to == n {
			return c.field(e.Receiver).Has("startsWith", part)
		}
	}
	return nil
}

// part translates r.name:find("^go_"), r.name:find("go_", 1, true) and
// r:contains("x").
func (c condition) part(e *ast.FuncCallExpr) *scripting.Condition {
	if len(e.Args) == 0 {
		return nil
	}
	s, ok := e.Args[0].(*ast.StringExpr)
	if !ok {
		return nil
	}
	const magic = "^$()%.[]*+-?"
	switch {
	case e.Method == "contains" && len(e.Args) == 1 && c.isRecord(e.Receiver):
		return (&scripting.RecordField{Name: "line"}).Has("contains", s.Value)
	case e.Method == "find" && len(e.Args) == 3:
		n, ok := number(e.Args[1])
		if _, plain := e.Args[2].(*ast.TrueExpr); ok && n == 1 && plain {
			return c.field(e.Receiver).Has("contains", s.Value)
		}
	case (e.Method == "find" || e.Method == "match") && len(e.Args) == 1:
		f := c.field(e.Receiver)
		if start, ok := strings.CutPrefix(s.Value, "^"); ok && !strings.ContainsAny(start, magic) {
			return f.Has("startsWith", start)
		}
		if end, ok := strings.CutSuffix(s.Value, "$"); ok && !strings.ContainsAny(end, magic) {
			return f.Has("endsWith", end)
		}
		if !strings.ContainsAny(s.Value, magic) {
			return f.Has("contains", s.Value)
		}
	}
	return nil
}
