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
		l.perRecord(e.Line(), e.Method, e.Receiver, fn.ParList.Names[0], fn.Stmts, sc)
	}
}

// loopOverRecords looks at for r in batch:records() do … end.
func (l *linter) loopOverRecords(s *ast.GenericForStmt, sc *lintScope) {
	e, ok := s.Exprs[0].(*ast.FuncCallExpr)
	if !ok || len(s.Exprs) != 1 || len(s.Names) != 1 || e.Method != "records" || len(e.Args) > 0 {
		return
	}
	if f := l.member(l.expr(e.Receiver, sc), methodOf(e)); l.isBatch(f) {
		l.perRecord(e.Line(), e.Method, e.Receiver, s.Names[0], s.Stmts, sc)
	}
}

// isBatch reports whether a function is a method of a batch.
func (l *linter) isBatch(f *known) bool {
	t := l.rules.Table
	return f != nil && f.Of != nil && (f.Of == t.Batch || f.Of == t.Logs)
}

// perRecord warns of code that does for each record what an operation does for
// all.
func (l *linter) perRecord(line int, word string, receiver ast.Expr, record string, body []ast.Stmt, sc *lintScope) {
	on, ok := receiver.(*ast.IdentExpr)
	if !ok || len(body) == 0 || on.Value == record {
		return
	}
	c := condition{record: record}
	k := l.expr(receiver, sc)
	logs := k == nil || k.Object != l.rules.Table.Batch
	if drop, ok := body[0].(*ast.IfStmt); ok && len(body) == 1 && len(drop.Else) == 0 && c.drops(drop.Then) {
		cond := c.of(drop.Condition)
		if text := cond.Expression(logs); text != "" {
			l.addFinding(scripting.LintPerRecord, true, line, word, fmt.Errorf("%s calls the script for every record only to drop records", word),
				fmt.Sprintf("write %s:drop_where [[ %s ]], which was measured to be %d times as fast", on.Value, text, cond.Gain()))
		}
		return
	}
	if logs {
		return // without a measurement
	}
	var ops []string
	for _, s := range body {
		op := c.setLabel(s)
		if op == "" {
			return
		}
		ops = append(ops, on.Value+":"+op)
	}
	l.addFinding(scripting.LintPerRecord, true, line, word, fmt.Errorf("%s calls the script for every record only to set a constant label", word),
		fmt.Sprintf("write %s, which was measured to be %d times as fast", strings.Join(ops, " "), scripting.SetLabelGain))
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
