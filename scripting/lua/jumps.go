package lua

import "github.com/yuin/gopher-lua/ast"

// gopher-lua 1.1.2 shortens a jump to a jump. When it meets one that it has
// shortened before, it takes its distance for the number of a label, so that a
// jump back to a jump goes anywhere. Here the tree is changed so that what is
// jumped back to, the start of a loop or a label, begins with something else.

// landing returns ss with an instruction before it that does nothing, unless
// ss surely begins with an instruction that is no jump. A for over numbers
// needs none: it goes back by an instruction of its own.
func landing(ss []ast.Stmt, at ast.PositionHolder) []ast.Stmt {
	if len(ss) > 0 && steady(ss[0]) {
		return ss
	}
	return append([]ast.Stmt{noop(at)}, ss...)
}

// noop is do local _ end.
func noop(at ast.PositionHolder) ast.Stmt {
	l := &ast.LocalAssignStmt{Names: []string{"_"}}
	d := &ast.DoBlockStmt{Stmts: []ast.Stmt{l}}
	for _, s := range []ast.Stmt{l, d} {
		s.SetLine(at.Line())
		s.SetLastLine(at.Line())
	}
	return d
}

// steadyLoop changes a while so that it begins with no jump.
func steadyLoop(s *ast.WhileStmt) {
	if steadyCondition(s.Condition) {
		return
	}
	if _, ok := s.Condition.(*ast.TrueExpr); !ok {
		out := &ast.BreakStmt{}
		out.SetLine(s.Line())
		in := &ast.IfStmt{Condition: s.Condition, Else: []ast.Stmt{out}}
		in.SetLine(s.Line())
		in.SetLastLine(s.Line())
		forever := &ast.TrueExpr{}
		forever.SetLine(s.Line())
		s.Condition, s.Stmts = forever, append([]ast.Stmt{in}, s.Stmts...)
	}
	s.Stmts = landing(s.Stmts, s) // the condition true is no instruction
}

// steadyLabels does for labels what landing does for loops. One at the end of
// a block is jumped to from before it only.
func steadyLabels(ss []ast.Stmt) []ast.Stmt {
	for i := len(ss) - 2; i >= 0; i-- {
		l, ok := ss[i].(*ast.LabelStmt)
		if !ok || steady(ss[i+1]) {
			continue
		}
		if _, ok := ss[i+1].(*ast.LabelStmt); ok {
			continue // they are one
		}
		ss = append(ss[:i+1:i+1], landing(ss[i+1:], l)...)
	}
	return ss
}

// steady reports whether s surely begins with an instruction that is no jump.
func steady(s ast.Stmt) bool {
	switch s := s.(type) {
	case *ast.LocalAssignStmt:
		return len(s.Exprs) == 0 || steadyExpr(s.Exprs[0])
	case *ast.AssignStmt:
		_, local := s.Rhs[0].(*ast.IdentExpr) // x = x may be no instruction
		for _, e := range s.Lhs {
			if !steadyExpr(e) {
				return false
			}
		}
		return !local && steadyExpr(s.Rhs[0])
	case *ast.FuncCallStmt:
		return steadyExpr(s.Expr)
	case *ast.IfStmt:
		return steadyCondition(s.Condition)
	case *ast.NumberForStmt:
		return steadyExpr(s.Init)
	case *ast.GenericForStmt:
		return steadyExpr(s.Exprs[0])
	case *ast.ReturnStmt:
		return len(s.Exprs) == 0 || steadyExpr(s.Exprs[0])
	case *ast.GotoStmt, *ast.FuncDefStmt:
		return true
	}
	return false
}

// steadyCondition reports whether the condition of an if or a while surely
// begins with an instruction that is no jump.
func steadyCondition(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.IdentExpr:
		return true
	case *ast.AttrGetExpr, *ast.FuncCallExpr, *ast.RelationalOpExpr:
		return steadyExpr(e)
	case *ast.UnaryNotOpExpr:
		return steadyCondition(e.Expr)
	case *ast.LogicalOpExpr:
		return steadyCondition(e.Lhs)
	}
	return false
}

// steadyExpr reports whether e has no and, or in it that comes first: those begin
// with a jump when their left side is a constant.
func steadyExpr(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.TrueExpr, *ast.FalseExpr, *ast.NilExpr, *ast.NumberExpr, *ast.StringExpr, *ast.Comma3Expr,
		*ast.IdentExpr, *ast.FunctionExpr, *ast.TableExpr:
		return true
	case *ast.AttrGetExpr:
		return steadyExpr(e.Object) && steadyExpr(e.Key)
	case *ast.FuncCallExpr:
		if e.Receiver != nil {
			return steadyExpr(e.Receiver)
		}
		return steadyExpr(e.Func)
	case *ast.ArithmeticOpExpr:
		return steadyExpr(e.Lhs) && steadyExpr(e.Rhs)
	case *ast.RelationalOpExpr:
		return steadyExpr(e.Lhs) && steadyExpr(e.Rhs)
	case *ast.UnaryMinusOpExpr:
		return steadyExpr(e.Expr)
	case *ast.UnaryNotOpExpr:
		return steadyExpr(e.Expr)
	case *ast.UnaryLenOpExpr:
		return steadyExpr(e.Expr)
	}
	return false
}

// threeNames gives a for over an iterator the names that it lacks, unless what
// it goes over is one call. gopher-lua counts names where it should count the
// iterator's three values, and what is missing would not be nil but whatever
// was there: for k, v in next, t begins anywhere.
func threeNames(s *ast.GenericForStmt) {
	if len(s.Exprs) == 1 {
		if call, ok := s.Exprs[0].(*ast.FuncCallExpr); ok && !call.AdjustRet {
			return
		}
	}
	for len(s.Names) < 3 {
		s.Names = append(s.Names, "\x00unused")
	}
}

// count is what a function has in it, for what gopher-lua does wrong with
// locals that functions hold on to.
type count struct {
	functions, breaks, gotos int
}

// loop visits the body of a loop and returns what stands in its place. A break
// in a block of the body closes the body's locals and not the block's, unless
// a function holds one of the body's own: where that may matter, one does.
func (t *tree) loop(ss []ast.Stmt, at ast.PositionHolder) []ast.Stmt {
	before := t.count
	ss = t.stmts(ss)
	if t.count.functions == before.functions || t.count.breaks == before.breaks {
		return ss
	}
	const name = "\x00kept"
	kept := &ast.LocalAssignStmt{Names: []string{name}}
	id := &ast.IdentExpr{Value: name}
	ret := &ast.ReturnStmt{Exprs: []ast.Expr{id}}
	fn := &ast.FunctionExpr{ParList: &ast.ParList{}, Stmts: []ast.Stmt{ret}}
	keeper := &ast.LocalAssignStmt{Names: []string{"_"}, Exprs: []ast.Expr{fn}}
	block := &ast.DoBlockStmt{Stmts: []ast.Stmt{keeper}}
	for _, n := range []ast.PositionHolder{kept, id, ret, fn, keeper, block} {
		n.SetLine(at.Line())
		n.SetLastLine(at.Line())
	}
	return append([]ast.Stmt{kept, block}, ss...)
}

// function visits the body of a function that has so many parameters.
func (t *tree) function(ss []ast.Stmt, parameters int) []ast.Stmt {
	outer := t.count
	t.count = count{}
	t.depth++
	ss = t.stmts(ss)
	t.depth--
	if t.count.functions > 0 && t.count.gotos > 0 {
		t.gotos(ss, parameters)
	}
	outer.functions++
	t.count = outer
	return ss
}
