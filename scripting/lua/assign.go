package lua

import "github.com/yuin/gopher-lua/ast"

// gopher-lua 1.1.2 compiles a call of which one value is assigned to the last
// parameter of a function so that the function called takes the parameter's
// place before its arguments are read: s = (s:gsub("a", "b")), and s = s .. "x",
// which is a call here. Calls that may return several values are compiled
// otherwise, and so is local.

// assigned returns what stands in an assignment's place.
func assigned(s *ast.AssignStmt) ast.Stmt {
	for i := range min(len(s.Lhs), len(s.Rhs)) {
		call, ok := s.Rhs[i].(*ast.FuncCallExpr)
		if _, isName := s.Lhs[i].(*ast.IdentExpr); !ok || !isName {
			continue
		}
		switch last := i == len(s.Rhs)-1; {
		case last && len(s.Lhs) == len(s.Rhs):
			call.AdjustRet = false // one is taken
		case !last || call.AdjustRet:
			return viaLocals(s)
		}
	}
	return s
}

// viaLocals returns do local (1), (2) = …; a, b = (1), (2) end.
func viaLocals(s *ast.AssignStmt) ast.Stmt {
	in := &ast.LocalAssignStmt{Exprs: s.Rhs}
	out := &ast.AssignStmt{Lhs: s.Lhs}
	for i := range s.Lhs {
		name := "(" + string(rune('1'+i)) + ")" // no name that a script can write
		e := &ast.IdentExpr{Value: name}
		e.SetLine(s.Line())
		in.Names, out.Rhs = append(in.Names, name), append(out.Rhs, e)
	}
	d := &ast.DoBlockStmt{Stmts: []ast.Stmt{in, out}}
	for _, st := range []ast.Stmt{in, out, d} {
		st.SetLine(s.Line())
		st.SetLastLine(s.LastLine())
	}
	return d
}
