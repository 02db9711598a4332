package lua

import (
	"slices"
	"strconv"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"

	"github.com/weir-run/weir/scripting"
)

// A file that is compiled for a debugger calls debugGlobal before each statement,
// with the number of a mark, and stores the number in a hidden local of the
// function, so that the debugger finds out where the calling functions are. The
// debug information of gopher-lua 1.1.2 does not say which locals are in scope:
// it overwrites the ends of other locals. The marks do.

const (
	// debugGlobal and returnGlobal are names of functions, and positionLocal is the
	// name of the hidden local. No source can write them.
	debugGlobal   = "\x00debug"
	returnGlobal  = "\x00return"
	positionLocal = "\x00position"
)

// mark is a statement with the locals in its scope.
type mark struct {
	scripting.DebugStatement
	locals []local
}

// local is a local with its register. Hidden locals have no valid name.
type local struct {
	name     string
	register int
}

// visible reports whether a script can use a name.
func visible(name string) bool { return name != "" && name[0] != 0 && name[0] != '(' }

// mark changes the tree of a file so that it calls the debugger.
func (p *program) mark(f scripting.File, stmts []ast.Stmt) []ast.Stmt {
	if p.debug == nil {
		return stmts
	}
	c := &counters{global: debugGlobal, debugs: true, base: len(p.marks)}
	main := &ast.FunctionExpr{Stmts: stmts}
	main.SetLine(1)
	c.function(main)
	for _, s := range p.debug.AddFile(f, c.base, c.statements) {
		p.marks = append(p.marks, mark{DebugStatement: s})
	}
	return main.Stmts
}

// position returns the declaration of the hidden local.
func position(line int) ast.Stmt {
	s := &ast.LocalAssignStmt{Names: []string{positionLocal}}
	s.SetLine(line)
	s.SetLastLine(line)
	return s
}

// keepFrame makes a tail call a call, so that the function stays on the stack.
func keepFrame(r *ast.ReturnStmt) {
	if len(r.Exprs) != 1 {
		return
	}
	if call, ok := r.Exprs[0].(*ast.FuncCallExpr); ok && !call.AdjustRet {
		r.Exprs[0] = callGlobal(returnGlobal, call, r.Line())
	}
}

// findLocals fills in the locals of the marks from first on, which belong to c. It
// uses the tree that was compiled, in which walk has added locals.
func (p *program) findLocals(c *chunk, first int) {
	if len(p.marks) > first {
		p.blockLocals(c.tree.body, nil)
	}
}

// blockLocals visits a block. Locals have the registers from 0 on, in their order.
func (p *program) blockLocals(ss []ast.Stmt, locals []local) {
	in := functionsIn(p.functionLocals)
	for _, s := range ss {
		if n, ok := markOf(s); ok {
			p.marks[n].locals = slices.Clip(locals)
			continue
		}
		if f, ok := s.(*ast.FuncDefStmt); ok {
			var self []string
			if f.Name.Func == nil { // a method
				self = []string{"self"}
			}
			p.blockLocals(f.Func.Stmts, parameterLocals(f.Func, self...))
			continue
		}
		in.stmt(s)
		switch s := s.(type) {
		case *ast.LocalAssignStmt:
			locals = declare(locals, s.Names...)
		case *ast.DoBlockStmt:
			p.blockLocals(s.Stmts, locals)
		case *ast.WhileStmt:
			p.blockLocals(s.Stmts, locals)
		case *ast.RepeatStmt:
			p.blockLocals(s.Stmts, locals)
		case *ast.NumberForStmt:
			p.blockLocals(s.Stmts, declare(locals, "", "", "", s.Name))
		case *ast.GenericForStmt:
			p.blockLocals(s.Stmts, declare(declare(locals, "", "", ""), s.Names...))
		case *ast.IfStmt:
			for s != nil {
				in.expr(s.Condition)
				p.blockLocals(s.Then, locals)
				next, ok := (*ast.IfStmt)(nil), false
				if len(s.Else) == 1 {
					next, ok = s.Else[0].(*ast.IfStmt)
				}
				if !ok {
					p.blockLocals(s.Else, locals)
				}
				s = next
			}
		}
	}
}

func (p *program) functionLocals(f *ast.FunctionExpr) { p.blockLocals(f.Stmts, parameterLocals(f)) }

// parameterLocals returns the locals of a function at its start.
func parameterLocals(f *ast.FunctionExpr, self ...string) []local {
	locals := declare(declare(nil, self...), f.ParList.Names...)
	if f.ParList.HasVargs {
		locals = declare(locals, "arg")
	}
	return locals
}

func declare(locals []local, names ...string) []local {
	locals = slices.Clip(locals)
	for _, name := range names {
		locals = append(locals, local{name, len(locals)})
	}
	return locals
}

// markOf returns the number of the mark that a statement is.
func markOf(s ast.Stmt) (n int, ok bool) {
	call, ok := s.(*ast.FuncCallStmt)
	if !ok {
		return 0, false
	}
	e, ok := call.Expr.(*ast.FuncCallExpr)
	if !ok {
		return 0, false
	}
	if id, ok := e.Func.(*ast.IdentExpr); !ok || id.Value != debugGlobal {
		return 0, false
	}
	text, ok := e.Args[0].(*ast.NumberExpr)
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(text.Value)
	return n, err == nil
}

// atMark is debugGlobal.
func (v *vm) atMark(L *lua.LState) int {
	n, _ := L.Get(1).(lua.LNumber)
	v.budget.instr.left += coverCost
	if v.aside {
		return 0
	}
	d, ok := L.GetStack(1)
	if !ok {
		return 0
	}
	if _, register, ok := positionOf(L, d); ok {
		L.SetLocal(d, register+1, n)
	}
	if err := v.prog.debug.At(v.prog.marks[int(n)].DebugStatement, &paused{v: v, L: L}); err != nil {
		v.must(L, v.budget.stopCall(err))
	}
	return 0
}

// positionOf returns the function of a frame and the register of its hidden local.
func positionOf(L *lua.LState, d *lua.Debug) (fn *lua.LFunction, register int, ok bool) {
	x, err := L.GetInfo("fnSl", d, lua.LNil)
	fn, ok = x.(*lua.LFunction)
	if err != nil || !ok || fn.IsG {
		return nil, 0, false
	}
	// Parameters come first in DbgLocals, in the order of their registers.
	register = slices.IndexFunc(fn.Proto.DbgLocals, func(l *lua.DbgLocalInfo) bool { return l.Name == positionLocal })
	return fn, register, register >= 0
}
