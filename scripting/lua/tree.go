package lua

import (
	"fmt"

	"github.com/yuin/gopher-lua/ast"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/api"
)

// tree is what was found in a file's syntax tree.
type tree struct {
	file     scripting.File
	body     []ast.Stmt // what is to be compiled
	requires []required
	exprs    []scripting.Expr
	hooks    []hookLines
	keys     []keyLines     // of the table that weir.transform is called with, by call line
	unheard  map[int]string // functions by line, called outside of functions for their first result only
	depth    int            // of functions
	count    count          // of the function at hand
	jumps    []jump
	errs     []error
}

type required struct {
	name string
	line int
}

// keyLines are the lines of the keys of one table constructor.
type keyLines struct {
	line  int // of the call
	lines map[string]int
}

// hookLines are the lines of a hook that sees batches.
type hookLines struct {
	over       batch.Signals
	first, end int
}

// batchHooks are the hooks that see batches, by their keys.
var batchHooks = map[string]batch.Signals{"metrics": batch.SignalMetrics, "logs": batch.SignalLogs}

// signalAt is the signal of the batches that an expression in a line meets, 0 for
// one outside of the hooks.
func (t *tree) signalAt(line int) batch.Signals {
	for _, h := range t.hooks {
		if h.first <= line && line <= h.end {
			return h.over
		}
	}
	return 0
}

// walk visits the tree, notes what matters, and rewrites what gopher-lua would
// compile to what is wrong or cannot be bounded.
func walk(f scripting.File, stmts []ast.Stmt) *tree {
	t := &tree{file: f, unheard: map[int]string{}}
	t.body = t.function(stmts, 0)
	return t
}

// firstResult notes a call whose second result, the error, nobody receives.
func (t *tree) firstResult(es []ast.Expr) {
	if t.depth > 1 || len(es) != 1 {
		return
	}
	call, ok := es[0].(*ast.FuncCallExpr)
	if !ok {
		return
	}
	name := call.Method
	if attr, ok := call.Func.(*ast.AttrGetExpr); ok {
		if key, ok := attr.Key.(*ast.StringExpr); ok {
			name = key.Value
		}
	}
	if name != "" {
		t.unheard[call.Line()] = name
	}
}

// stmts visits statements and returns what stands in their place.
func (t *tree) stmts(ss []ast.Stmt) []ast.Stmt {
	for i, s := range ss {
		t.stmt(s)
		if a, ok := s.(*ast.AssignStmt); ok {
			ss[i] = assigned(a)
		}
	}
	return steadyLabels(ss)
}

func (t *tree) stmt(s ast.Stmt) {
	switch s := s.(type) {
	case *ast.AssignStmt:
		if len(s.Lhs) == 1 {
			t.firstResult(s.Rhs)
		}
		t.exprList(s.Lhs)
		t.exprList(s.Rhs)
	case *ast.LocalAssignStmt:
		if len(s.Names) == 1 {
			t.firstResult(s.Exprs)
		}
		t.exprList(s.Exprs)
	case *ast.FuncCallStmt:
		s.Expr = t.expr(s.Expr)
	case *ast.DoBlockStmt:
		s.Stmts = t.stmts(s.Stmts)
	case *ast.WhileStmt:
		s.Condition = t.expr(s.Condition)
		s.Stmts = t.loop(s.Stmts, s)
		steadyLoop(s)
	case *ast.RepeatStmt:
		s.Condition = t.expr(s.Condition)
		s.Stmts = landing(t.loop(s.Stmts, s), s)
	case *ast.IfStmt:
		// elseif is an If in Else: follow the chain without recursion.
		for s != nil {
			s.Condition = t.expr(s.Condition)
			s.Then = t.stmts(s.Then)
			next, ok := (*ast.IfStmt)(nil), false
			if len(s.Else) == 1 {
				next, ok = s.Else[0].(*ast.IfStmt)
			}
			if !ok {
				s.Else = t.stmts(s.Else)
			}
			s = next
		}
	case *ast.NumberForStmt:
		s.Init, s.Limit = t.expr(s.Init), t.expr(s.Limit)
		if s.Step != nil {
			s.Step = t.expr(s.Step)
		}
		s.Stmts = t.loop(s.Stmts, s)
	case *ast.GenericForStmt:
		t.exprList(s.Exprs)
		threeNames(s)
		s.Stmts = landing(t.loop(s.Stmts, s), s)
	case *ast.FuncDefStmt:
		s.Func.Stmts = t.function(s.Func.Stmts, parameters(s.Func, s.Name.Func == nil))
	case *ast.ReturnStmt:
		t.exprList(s.Exprs)
	case *ast.BreakStmt:
		t.count.breaks++
	case *ast.GotoStmt:
		t.count.gotos++
	}
}

func (t *tree) exprList(es []ast.Expr) {
	for i, e := range es {
		es[i] = t.expr(e)
	}
}

// expr visits an expression and returns what stands in its place.
func (t *tree) expr(e ast.Expr) ast.Expr {
	switch e := e.(type) {
	case *ast.AttrGetExpr:
		e.Object, e.Key = t.expr(e.Object), t.expr(e.Key)
	case *ast.TableExpr:
		for _, f := range e.Fields {
			if f.Key != nil {
				f.Key = t.expr(f.Key)
			}
			f.Value = t.expr(f.Value)
		}
	case *ast.FuncCallExpr:
		t.call(e)
		if e.Func != nil {
			e.Func = t.expr(e.Func)
		}
		if e.Receiver != nil {
			e.Receiver = t.expr(e.Receiver)
		}
		t.exprList(e.Args)
	case *ast.LogicalOpExpr:
		e.Lhs, e.Rhs = t.expr(e.Lhs), t.expr(e.Rhs)
	case *ast.RelationalOpExpr:
		e.Lhs, e.Rhs = t.expr(e.Lhs), t.expr(e.Rhs)
	case *ast.ArithmeticOpExpr:
		e.Lhs, e.Rhs = t.expr(e.Lhs), t.expr(e.Rhs)
	case *ast.UnaryMinusOpExpr:
		e.Expr = t.expr(e.Expr)
	case *ast.UnaryNotOpExpr:
		e.Expr = t.expr(e.Expr)
	case *ast.UnaryLenOpExpr:
		e.Expr = t.expr(e.Expr)
	case *ast.FunctionExpr:
		e.Stmts = t.function(e.Stmts, parameters(e, false))
	case *ast.StringConcatOpExpr:
		return t.concat(e)
	}
	return e
}

// concatArgs is how many operands one call takes: each needs a register.
const concatArgs = 50

// concat turns a .. b .. c into a call of the function concat.
func (t *tree) concat(e *ast.StringConcatOpExpr) ast.Expr {
	var operands []ast.Expr
	line, last := e.Line(), e.LastLine()
	for {
		operands = append(operands, t.operand(e.Lhs))
		next, ok := e.Rhs.(*ast.StringConcatOpExpr)
		if !ok {
			operands = append(operands, t.operand(e.Rhs))
			break
		}
		e = next
	}
	for len(operands) > concatArgs {
		// From the right, as the operator associates.
		n := len(operands) - concatArgs
		operands = append(operands[:n:n], concatCall(operands[n:], line, last))
	}
	return concatCall(operands, line, last)
}

func (t *tree) operand(e ast.Expr) ast.Expr {
	e = t.expr(e)
	switch e := e.(type) { // one value each, also the last
	case *ast.FuncCallExpr:
		e.AdjustRet = true
	case *ast.Comma3Expr:
		e.AdjustRet = true
	}
	return e
}

func concatCall(args []ast.Expr, line, last int) ast.Expr {
	fn := &ast.IdentExpr{Value: concatGlobal}
	fn.SetLine(line)
	fn.SetLastLine(line)
	call := &ast.FuncCallExpr{Func: fn, Args: args, AdjustRet: true}
	call.SetLine(line)
	call.SetLastLine(max(line, last))
	return call
}

// call notes calls that mean something when a script is loaded: require,
// weir.<kind>, and batch operations with a constant expression.
func (t *tree) call(e *ast.FuncCallExpr) {
	if id, ok := e.Func.(*ast.IdentExpr); ok && id.Value == "require" {
		s, ok := stringArg(e, 0)
		if !ok {
			t.fail(e.Line(), "cannot require what is no constant string: weir must know which files a component is made of")
			return
		}
		t.requires = append(t.requires, required{s, e.Line()})
		return
	}
	if attr, ok := e.Func.(*ast.AttrGetExpr); ok && len(e.Args) == 1 {
		key, isKey := attr.Key.(*ast.StringExpr)
		table, isTable := e.Args[0].(*ast.TableExpr)
		if isKey && isTable && (key.Value == "transform" || key.Value == "source" || key.Value == "sink") {
			t.tableKeys(e, table)
		}
	}
	if e.Receiver == nil {
		return
	}
	f, ok := api.Get().OfBatch(e.Method)
	if !ok {
		return
	}
	for i := range f.Params {
		kind := f.Params[i].Expression
		if s, ok := stringArg(e, i); ok && kind != nil {
			t.exprs = append(t.exprs, scripting.Expr{File: t.file, Line: e.Args[i].Line(), Src: s, Kind: *kind})
		}
	}
}

func stringArg(e *ast.FuncCallExpr, i int) (string, bool) {
	if i >= len(e.Args) {
		return "", false
	}
	s, ok := e.Args[i].(*ast.StringExpr)
	if !ok {
		return "", false
	}
	return s.Value, true
}

func (t *tree) tableKeys(e *ast.FuncCallExpr, table *ast.TableExpr) {
	k := keyLines{line: e.Line(), lines: map[string]int{}}
	for _, f := range table.Fields {
		key, ok := f.Key.(*ast.StringExpr)
		if !ok {
			continue
		}
		if first, twice := k.lines[key.Value]; twice {
			t.fail(key.Line(), "cannot have %q twice in one table: it is in line %d already", key.Value, first)
		}
		k.lines[key.Value] = key.Line()
		if fn, ok := f.Value.(*ast.FunctionExpr); ok && batchHooks[key.Value] != 0 {
			t.hooks = append(t.hooks, hookLines{batchHooks[key.Value], fn.Line(), fn.LastLine()})
		}
	}
	t.keys = append(t.keys, k)
}

func (t *tree) fail(line int, format string, args ...any) {
	t.errs = append(t.errs, t.file.Error(line, "load", fmt.Errorf(format, args...)))
}
