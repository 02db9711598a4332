package lua

import (
	"strconv"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"

	"github.com/weir-run/weir/scripting"
)

// coverGlobal is the name of the function that counts statements: no source
// can write it.
const coverGlobal = "\x00cover"

// coverCounters is how many counters a file may have; a call passes the number
// of its file times this, plus its counter.
const coverCounters = 1 << 20

// coverCost is how many instructions a call of coverGlobal takes: they are
// given back, so that what is counted may run as long as what is not.
const coverCost = 3

// counters puts a call before each statement of a file, which tells what ran
// whatever thread it runs in, and finds branches. An instruction hook would
// have to be told the thread, and sees no branches.
type counters struct {
	global     string // the function that is called
	debugs     bool   // the calls are for a debugger, see debug.go
	base       int    // of the file's counters
	n          int
	statements []scripting.Counted
	branches   []scripting.Branch
}

// cover changes the tree of a file so that coverage counts what runs of it.
func (p *program) cover(f scripting.File, stmts []ast.Stmt) []ast.Stmt {
	if p.probe == nil || p.probe.Coverage == nil || f.Path == "" {
		return stmts
	}
	c := &counters{global: coverGlobal, base: len(p.covered) * coverCounters}
	out := c.stmts(stmts)
	if c.n > coverCounters {
		return stmts // no file of MaxFileSize comes near
	}
	p.covered = append(p.covered, p.probe.Coverage.Of(f, c.n, c.statements, c.branches))
	return out
}

// hit is coverGlobal.
func (v *vm) hit(L *lua.LState) int {
	n, _ := L.Get(1).(lua.LNumber)
	v.prog.covered[int(n)/coverCounters].Hit(int(n) % coverCounters)
	v.budget.instr.left += coverCost
	return 0
}

// counter returns a call that counts, and the number of the counter.
func (c *counters) counter(line int) (ast.Stmt, int) {
	n := c.n
	c.n++
	arg := &ast.NumberExpr{Value: strconv.Itoa(c.base + n)}
	arg.SetLine(line)
	arg.SetLastLine(line)
	stmt := &ast.FuncCallStmt{Expr: callGlobal(c.global, arg, line)}
	stmt.SetLine(line)
	stmt.SetLastLine(line)
	return stmt, n
}

// callGlobal returns a call of a global function.
func callGlobal(name string, arg ast.Expr, line int) *ast.FuncCallExpr {
	fn := &ast.IdentExpr{Value: name}
	call := &ast.FuncCallExpr{Func: fn, Args: []ast.Expr{arg}}
	for _, at := range []ast.PositionHolder{fn, call} {
		at.SetLine(line)
		at.SetLastLine(line)
	}
	return call
}

// stmts returns the statements with calls before them. Labels have none: they
// do nothing, and one at the end of a block must stay there.
func (c *counters) stmts(ss []ast.Stmt) []ast.Stmt {
	out := make([]ast.Stmt, 0, 2*len(ss))
	for _, s := range ss {
		if countable(s) {
			call, n := c.counter(s.Line())
			out = append(out, call)
			c.statements = append(c.statements, scripting.Counted{Line: s.Line(), Counter: n})
			if s, ok := s.(*ast.IfStmt); ok {
				c.branch(s, n)
			}
		}
		c.inside(s)
		if r, ok := s.(*ast.ReturnStmt); ok && c.debugs {
			keepFrame(r)
		}
		out = append(out, s)
	}
	return out
}

func countable(s ast.Stmt) bool {
	switch s.(type) {
	case *ast.LabelStmt, *ast.DoBlockStmt:
		return false
	}
	return true
}

// branch counts the arms of an if. An elseif is an If in Else, which must stay
// alone there: the tree of a long chain would become as deep.
func (c *counters) branch(s *ast.IfStmt, counter int) {
	b := scripting.Branch{Line: s.Line(), If: counter}
	in := functionsIn(c.function)
	for s != nil {
		in.expr(s.Condition)
		if c.debugs {
			s.Then = c.stmts(s.Then)
		} else {
			call, n := c.counter(s.Line())
			b.Arms = append(b.Arms, n)
			s.Then = append([]ast.Stmt{call}, c.stmts(s.Then)...)
		}
		var next *ast.IfStmt
		if len(s.Else) == 1 {
			next, _ = s.Else[0].(*ast.IfStmt)
		}
		if next == nil {
			s.Else = c.stmts(s.Else)
		}
		s = next
	}
	c.branches = append(c.branches, b)
}

// function inserts calls into a function.
func (c *counters) function(f *ast.FunctionExpr) {
	f.Stmts = c.stmts(f.Stmts)
	if c.debugs {
		f.Stmts = append([]ast.Stmt{position(f.Line())}, f.Stmts...)
	}
}

// inside visits what a statement is made of, but for an if.
func (c *counters) inside(s ast.Stmt) {
	functionsIn(c.function).stmt(s)
	switch s := s.(type) {
	case *ast.DoBlockStmt:
		s.Stmts = c.stmts(s.Stmts)
	case *ast.WhileStmt:
		s.Stmts = c.stmts(s.Stmts)
	case *ast.RepeatStmt:
		s.Stmts = c.stmts(s.Stmts)
	case *ast.NumberForStmt:
		s.Stmts = c.stmts(s.Stmts)
	case *ast.GenericForStmt:
		s.Stmts = c.stmts(s.Stmts)
	}
}

// functionsIn is called with the functions in the expressions of statements,
// but not with functions in functions.
type functionsIn func(*ast.FunctionExpr)

// stmt visits the expressions of a statement, but not those of its blocks, nor of
// an if.
func (f functionsIn) stmt(s ast.Stmt) {
	switch s := s.(type) {
	case *ast.AssignStmt:
		f.exprs(s.Lhs)
		f.exprs(s.Rhs)
	case *ast.LocalAssignStmt:
		f.exprs(s.Exprs)
	case *ast.FuncCallStmt:
		f.expr(s.Expr)
	case *ast.WhileStmt:
		f.expr(s.Condition)
	case *ast.RepeatStmt:
		f.expr(s.Condition)
	case *ast.NumberForStmt:
		f.exprs([]ast.Expr{s.Init, s.Limit, s.Step})
	case *ast.GenericForStmt:
		f.exprs(s.Exprs)
	case *ast.FuncDefStmt:
		f(s.Func)
	case *ast.ReturnStmt:
		f.exprs(s.Exprs)
	}
}

func (f functionsIn) exprs(es []ast.Expr) {
	for _, e := range es {
		f.expr(e)
	}
}

// expr finds functions in an expression.
func (f functionsIn) expr(e ast.Expr) {
	switch e := e.(type) {
	case *ast.AttrGetExpr:
		f.expr(e.Object)
		f.expr(e.Key)
	case *ast.TableExpr:
		for _, field := range e.Fields {
			f.expr(field.Key)
			f.expr(field.Value)
		}
	case *ast.FuncCallExpr:
		f.expr(e.Func)
		f.expr(e.Receiver)
		f.exprs(e.Args)
	case *ast.LogicalOpExpr:
		f.exprs([]ast.Expr{e.Lhs, e.Rhs})
	case *ast.RelationalOpExpr:
		f.exprs([]ast.Expr{e.Lhs, e.Rhs})
	case *ast.ArithmeticOpExpr:
		f.exprs([]ast.Expr{e.Lhs, e.Rhs})
	case *ast.StringConcatOpExpr:
		// A long a .. b .. c is a list to the right.
		for e != nil {
			f.expr(e.Lhs)
			next, _ := e.Rhs.(*ast.StringConcatOpExpr)
			if next == nil {
				f.expr(e.Rhs)
			}
			e = next
		}
	case *ast.UnaryMinusOpExpr:
		f.expr(e.Expr)
	case *ast.UnaryNotOpExpr:
		f.expr(e.Expr)
	case *ast.UnaryLenOpExpr:
		f.expr(e.Expr)
	case *ast.FunctionExpr:
		f(e)
	}
}
