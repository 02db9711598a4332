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
	base       int // of the file's counters
	n          int
	statements []scripting.Counted
	branches   []scripting.Branch
}

// cover changes the tree of a file so that coverage counts what runs of it.
func (p *program) cover(f scripting.File, stmts []ast.Stmt) []ast.Stmt {
	if p.probe == nil || p.probe.Coverage == nil || f.Path == "" {
		return stmts
	}
	c := &counters{base: len(p.covered) * coverCounters}
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
	fn, arg := &ast.IdentExpr{Value: coverGlobal}, &ast.NumberExpr{Value: strconv.Itoa(c.base + n)}
	call := &ast.FuncCallExpr{Func: fn, Args: []ast.Expr{arg}}
	stmt := &ast.FuncCallStmt{Expr: call}
	for _, at := range []ast.PositionHolder{fn, arg, call, stmt} {
		at.SetLine(line)
		at.SetLastLine(line)
	}
	return stmt, n
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
	for s != nil {
		c.expr(s.Condition)
		call, n := c.counter(s.Line())
		b.Arms = append(b.Arms, n)
		s.Then = append([]ast.Stmt{call}, c.stmts(s.Then)...)
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

// inside visits what a statement is made of, but for an if.
func (c *counters) inside(s ast.Stmt) {
	switch s := s.(type) {
	case *ast.AssignStmt:
		c.exprs(s.Lhs)
		c.exprs(s.Rhs)
	case *ast.LocalAssignStmt:
		c.exprs(s.Exprs)
	case *ast.FuncCallStmt:
		c.expr(s.Expr)
	case *ast.DoBlockStmt:
		s.Stmts = c.stmts(s.Stmts)
	case *ast.WhileStmt:
		c.expr(s.Condition)
		s.Stmts = c.stmts(s.Stmts)
	case *ast.RepeatStmt:
		c.expr(s.Condition)
		s.Stmts = c.stmts(s.Stmts)
	case *ast.NumberForStmt:
		c.exprs([]ast.Expr{s.Init, s.Limit, s.Step})
		s.Stmts = c.stmts(s.Stmts)
	case *ast.GenericForStmt:
		c.exprs(s.Exprs)
		s.Stmts = c.stmts(s.Stmts)
	case *ast.FuncDefStmt:
		s.Func.Stmts = c.stmts(s.Func.Stmts)
	case *ast.ReturnStmt:
		c.exprs(s.Exprs)
	}
}

func (c *counters) exprs(es []ast.Expr) {
	for _, e := range es {
		c.expr(e)
	}
}

// expr finds functions in an expression.
func (c *counters) expr(e ast.Expr) {
	switch e := e.(type) {
	case *ast.AttrGetExpr:
		c.expr(e.Object)
		c.expr(e.Key)
	case *ast.TableExpr:
		for _, f := range e.Fields {
			c.expr(f.Key)
			c.expr(f.Value)
		}
	case *ast.FuncCallExpr:
		c.expr(e.Func)
		c.expr(e.Receiver)
		c.exprs(e.Args)
	case *ast.LogicalOpExpr:
		c.exprs([]ast.Expr{e.Lhs, e.Rhs})
	case *ast.RelationalOpExpr:
		c.exprs([]ast.Expr{e.Lhs, e.Rhs})
	case *ast.ArithmeticOpExpr:
		c.exprs([]ast.Expr{e.Lhs, e.Rhs})
	case *ast.StringConcatOpExpr:
		// A long a .. b .. c is a list to the right.
		for e != nil {
			c.expr(e.Lhs)
			next, _ := e.Rhs.(*ast.StringConcatOpExpr)
			if next == nil {
				c.expr(e.Rhs)
			}
			e = next
		}
	case *ast.UnaryMinusOpExpr:
		c.expr(e.Expr)
	case *ast.UnaryNotOpExpr:
		c.expr(e.Expr)
	case *ast.UnaryLenOpExpr:
		c.expr(e.Expr)
	case *ast.FunctionExpr:
		e.Stmts = c.stmts(e.Stmts)
	}
}
