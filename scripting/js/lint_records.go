package js

import (
	"fmt"
	"strings"

	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/file"
	"github.com/dop251/goja/token"

	"github.com/weir-run/weir/scripting"
)

// eachRecord checks batch.each((r) => { … }).
func (l *linter) eachRecord(e *ast.CallExpression, f *known, sc *lintScope) {
	t := l.rules.Table
	dot, ok := e.Callee.(*ast.DotExpression)
	if !ok || dot.Identifier.Name != "each" || f.Of == nil || f.Of != t.Batch && f.Of != t.Logs || len(e.ArgumentList) != 1 {
		return
	}
	fn, ok := e.ArgumentList[0].(*ast.ArrowFunctionLiteral)
	if !ok || fn.Async || len(fn.ParameterList.List) != 1 || fn.ParameterList.Rest != nil {
		return
	}
	b := fn.ParameterList.List[0]
	record, ok := b.Target.(*ast.Identifier)
	if !ok || b.Initializer != nil {
		return
	}
	switch body := fn.Body.(type) {
	case *ast.BlockStatement:
		l.perRecord(&recordLoop{at: e, idx: dot.Identifier.Idx, what: "each", on: dot.Left, record: record.Name.String(), body: body.List, start: body.LeftBrace + 1, called: true}, sc)
	case *ast.ExpressionBody:
		statement := &ast.ExpressionStatement{Expression: body.Expression}
		l.perRecord(&recordLoop{at: e, idx: dot.Identifier.Idx, what: "each", on: dot.Left, record: record.Name.String(), body: []ast.Statement{statement}, start: body.Expression.Idx0(), called: true}, sc)
	}
}

// loopOverRecords checks for (const r of batch) { … }.
func (l *linter) loopOverRecords(s *ast.ForOfStatement, k *known, sc *lintScope) {
	t := l.rules.Table
	into, ok := s.Into.(*ast.ForDeclaration)
	if !ok || k == nil || k.Object == nil || k.Object != t.Batch && k.Object != t.Logs {
		return
	}
	record, ok := into.Target.(*ast.Identifier)
	if !ok {
		return
	}
	body, start := []ast.Statement{s.Body}, s.Source.Idx1()+1
	block, ok := s.Body.(*ast.BlockStatement)
	if ok {
		body, start = block.List, block.LeftBrace+1
	}
	l.perRecord(&recordLoop{at: s, idx: s.Source.Idx0(), what: "the loop", on: s.Source, record: record.Name.String(), body: body, start: start, single: !ok}, sc)
}

// recordLoop is code that runs for each record of a batch.
type recordLoop struct {
	at     ast.Node // the statement, or the call of each
	idx    file.Idx // of the finding
	what   string
	on     ast.Expression
	record string // the name of the record
	body   []ast.Statement
	start  file.Idx // of the body
	called bool     // body is that of a function
	single bool     // body is one statement without braces
}

// perRecord warns of code that does for each record what an operation does for
// all, or a hook once for each series.
func (l *linter) perRecord(r *recordLoop, sc *lintScope) {
	on, ok := r.on.(*ast.Identifier)
	if !ok || len(r.body) == 0 || on.Name.String() == r.record {
		return
	}
	k := l.expr(r.on, sc)
	logs := k == nil || k.Object != l.rules.Table.Batch
	only, rewrite, gain := r.operation(on.Name.String(), logs)
	if rewrite == "" {
		only, rewrite, gain = scripting.EditsSeries, l.hookFor(r, sc), scripting.SeriesGain(logs)
	}
	if rewrite != "" {
		hint, err := scripting.PerRecord(r.what, only, rewrite, gain)
		l.addFinding(scripting.LintPerRecord, true, r.idx, err, hint)
	}
}

// operation returns the call of an operation that does the same, or "".
func (r *recordLoop) operation(on string, logs bool) (only scripting.RecordWork, rewrite string, gain int) {
	c := condition{record: r.record}
	if len(r.body) == 1 {
		if cond, ok := c.drops(r.body[0]); ok && cond.Expression(logs) != "" {
			return scripting.DropsRecords, fmt.Sprintf("%s.dropWhere('%s')", on, cond.Expression(logs)), cond.Gain()
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
		ops = append(ops, on+"."+op)
	}
	return scripting.SetsConstant, strings.Join(ops, "; "), scripting.SetLabelGain
}

// condition translates conditions on a record.
type condition struct{ record string }

// drops returns the condition of a statement that only drops records. esbuild
// may write if (c) r.drop() as c && r.drop().
func (c condition) drops(s ast.Statement) (*scripting.Condition, bool) {
	switch s := s.(type) {
	case *ast.IfStatement:
		body := []ast.Statement{s.Consequent}
		if b, ok := s.Consequent.(*ast.BlockStatement); ok {
			body = b.List
		}
		if len(body) == 2 {
			if ret, ok := body[1].(*ast.ReturnStatement); ok && ret.Argument == nil {
				body = body[:1]
			}
		}
		if len(body) != 1 || s.Alternate != nil {
			return nil, false
		}
		drop, ok := body[0].(*ast.ExpressionStatement)
		return c.of(s.Test), ok && c.isDrop(drop.Expression)
	case *ast.ExpressionStatement:
		if e, ok := s.Expression.(*ast.BinaryExpression); ok && e.Operator == token.LOGICAL_AND {
			return c.of(e.Left), c.isDrop(e.Right)
		}
	}
	return nil, false
}

func (c condition) isDrop(e ast.Expression) bool {
	call, ok := e.(*ast.CallExpression)
	if !ok || len(call.ArgumentList) > 0 {
		return false
	}
	dot, ok := call.Callee.(*ast.DotExpression)
	return ok && dot.Identifier.Name == "drop" && c.isRecord(dot.Left)
}

func (c condition) isRecord(e ast.Expression) bool {
	id, ok := e.(*ast.Identifier)
	return ok && id.Name.String() == c.record
}

// setLabel returns the operation that sets a label of all records, or "".
func (c condition) setLabel(s ast.Statement) string {
	st, ok := s.(*ast.ExpressionStatement)
	if !ok {
		return ""
	}
	set, ok := st.Expression.(*ast.AssignExpression)
	if !ok || set.Operator != token.ASSIGN {
		return ""
	}
	name := c.label(set.Left)
	value, ok := constant(set.Right)
	if name == "" || !ok {
		return ""
	}
	return scripting.SetLabel("setLabel", name, value)
}

// label returns the name in r.labels.NAME, or "".
func (c condition) label(e ast.Expression) string {
	dot, ok := e.(*ast.DotExpression)
	if !ok || scripting.NewLabelField(dot.Identifier.Name.String()) == nil || ofObjects[dot.Identifier.Name.String()] {
		return ""
	}
	labels, ok := dot.Left.(*ast.DotExpression)
	if !ok || labels.Identifier.Name != "labels" || !c.isRecord(labels.Left) {
		return ""
	}
	return dot.Identifier.Name.String()
}

// field returns the field of the record that an expression reads, or nil.
func (c condition) field(e ast.Expression) *scripting.RecordField {
	switch e := e.(type) {
	case *ast.BinaryExpression:
		if s, ok := constant(e.Right); ok && s == "" && (e.Operator == token.COALESCE || e.Operator == token.LOGICAL_OR) {
			return c.field(e.Left).OrEmpty()
		}
	case *ast.DotExpression:
		if name := c.label(e); name != "" {
			return scripting.NewLabelField(name)
		}
		if c.isRecord(e.Left) {
			return scripting.NewRecordField(e.Identifier.Name.String())
		}
	}
	return nil
}

// of returns a condition, or nil.
func (c condition) of(e ast.Expression) *scripting.Condition {
	switch e := e.(type) {
	case *ast.UnaryExpression:
		if e.Operator == token.NOT {
			return c.of(e.Operand).Not()
		}
	case *ast.BinaryExpression:
		switch e.Operator {
		case token.LOGICAL_AND, token.LOGICAL_OR:
			return c.of(e.Left).Join(e.Operator.String(), c.of(e.Right))
		}
		return c.comparison(e)
	case *ast.DotExpression:
		if f := c.field(e); f != nil && f.Maybe {
			return f.Is("!=", nil)
		}
	case *ast.CallExpression:
		return c.part(e)
	}
	return nil
}

// comparisons are the operators of expressions. == of JavaScript converts its
// operands, so it is not among them.
var comparisons = map[token.Token]string{
	token.STRICT_EQUAL: "==", token.STRICT_NOT_EQUAL: "!=",
	token.LESS: "<", token.LESS_OR_EQUAL: "<=", token.GREATER: ">", token.GREATER_OR_EQUAL: ">=",
}

func (c condition) comparison(e *ast.BinaryExpression) *scripting.Condition {
	op, ok := comparisons[e.Operator]
	f := c.field(e.Left)
	if !ok || f == nil {
		return nil
	}
	if s, ok := constant(e.Right); ok {
		return f.Is(op, s)
	}
	switch v := e.Right.(type) {
	case *ast.Identifier:
		if v.Name == "undefined" {
			return f.Is(op, nil)
		}
	case *ast.UnaryExpression: // esbuild writes undefined as void 0
		if v.Operator == token.VOID {
			return f.Is(op, nil)
		}
	}
	if n, ok := literal(e.Right); ok {
		return f.Is(op, n)
	}
	return nil
}

// literal returns a constant number.
func literal(e ast.Expression) (float64, bool) {
	switch e := e.(type) {
	case *ast.UnaryExpression:
		if e.Operator == token.MINUS {
			n, ok := literal(e.Operand)
			return -n, ok
		}
	case *ast.NumberLiteral:
		switch n := e.Value.(type) {
		case int64:
			return float64(n), true
		case float64:
			return n, true
		}
	}
	return 0, false
}

// tests are the methods of strings, and the one of lines, that test for a part.
var tests = map[string]string{"startsWith": "startsWith", "endsWith": "endsWith", "includes": "contains"}

func (c condition) part(e *ast.CallExpression) *scripting.Condition {
	dot, ok := e.Callee.(*ast.DotExpression)
	if !ok || len(e.ArgumentList) != 1 {
		return nil
	}
	s, ok := constant(e.ArgumentList[0])
	if !ok {
		return nil
	}
	if dot.Identifier.Name == "contains" && c.isRecord(dot.Left) {
		return (&scripting.RecordField{Name: "line"}).Has("contains", s)
	}
	if op := tests[dot.Identifier.Name.String()]; op != "" {
		return c.field(dot.Left).Has(op, s)
	}
	return nil
}
