package lua

import (
	"errors"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
)

// gopher-lua 1.1.2 has a goto close all locals of its function, which cuts
// functions off from the locals they hold on to, where it should close those
// that the jump leaves. How many locals there are at a label is known from the
// tree; the instruction is put right after compiling. It is found by its line:
// each goto gets one that no file has.

// firstGoto is the line of a file's first goto while it is compiled.
const firstGoto = 1 << 24

// jump is a goto.
type jump struct {
	line   int
	locals int // at its label
}

// scope is a block: how many locals there are at its labels.
type scope struct {
	outer  *scope
	labels map[string]int
}

// gotos finds where the gotos of a function lead; locals are its parameters.
func (t *tree) gotos(ss []ast.Stmt, locals int) {
	type found struct {
		stmt *ast.GotoStmt
		in   *scope
	}
	var all []found
	var block func(ss []ast.Stmt, outer *scope, before, locals int, until bool)
	block = func(ss []ast.Stmt, outer *scope, before, locals int, until bool) {
		in := &scope{outer, map[string]int{}}
		end := len(ss) // of what labels do not end
		for end > 0 && !until {
			if _, ok := ss[end-1].(*ast.LabelStmt); !ok {
				break
			}
			end--
		}
		for i, s := range ss {
			switch s := s.(type) {
			case *ast.LocalAssignStmt:
				locals += len(s.Names)
			case *ast.LabelStmt:
				if in.labels[s.Name] = locals; i >= end {
					in.labels[s.Name] = before // the block's locals have ended
				}
			case *ast.GotoStmt:
				all = append(all, found{s, in})
			case *ast.DoBlockStmt:
				block(s.Stmts, in, locals, locals, false)
			case *ast.WhileStmt:
				block(s.Stmts, in, locals, locals, false)
			case *ast.RepeatStmt:
				block(s.Stmts, in, locals, locals, true)
			case *ast.NumberForStmt:
				block(s.Stmts, in, locals, locals+4, false) // three are hidden
			case *ast.GenericForStmt:
				block(s.Stmts, in, locals, locals+3+len(s.Names), false)
			case *ast.IfStmt:
				for s != nil {
					block(s.Then, in, locals, locals, false)
					next, ok := (*ast.IfStmt)(nil), false
					if len(s.Else) == 1 {
						next, ok = s.Else[0].(*ast.IfStmt)
					}
					if !ok {
						block(s.Else, in, locals, locals, false)
					}
					s = next
				}
			}
		}
	}
	block(ss, nil, 0, locals, false)
	for _, f := range all {
		for in := f.in; in != nil; in = in.outer {
			if n, ok := in.labels[f.stmt.Label]; ok {
				t.jumps = append(t.jumps, jump{f.stmt.Line(), n})
				f.stmt.SetLine(firstGoto + len(t.jumps) - 1)
				break
			}
		}
	}
}

// parameters is how many locals a function has at its start.
func parameters(f *ast.FunctionExpr, method bool) int {
	n := len(f.ParList.Names)
	if method {
		n++
	}
	if f.ParList.HasVargs {
		n++ // arg
	}
	return n
}

// closeGotos has every goto close what it leaves, and gives it its line.
func (t *tree) closeGotos(p *lua.FunctionProto) {
	for pc, line := range p.DbgSourcePositions {
		if line < firstGoto {
			continue
		}
		j := t.jumps[line-firstGoto]
		p.DbgSourcePositions[pc] = j.line
		if int(p.Code[pc]>>26) == lua.OP_CLOSE {
			p.Code[pc] = p.Code[pc]&^(0xff<<18) | uint32(j.locals)<<18
		}
	}
	for _, sub := range p.FunctionPrototypes {
		t.closeGotos(sub)
	}
}

// mapLines is an error of the compiler with the lines that it meant.
func (t *tree) mapLines(err error) error {
	e, ok := errors.AsType[*lua.CompileError](err)
	if !ok {
		return err
	}
	out := &lua.CompileError{Line: e.Line, Message: e.Message}
	for i, j := range t.jumps {
		out.Message = strings.ReplaceAll(out.Message, strconv.Itoa(firstGoto+i), strconv.Itoa(j.line))
	}
	return out
}
