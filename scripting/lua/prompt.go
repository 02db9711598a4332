package lua

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/scripting"
)

var _ scripting.Prompter = (*vm)(nil)

// prompt is what a VM has for statements that a person types. They run in an
// environment of their own: a name is looked up in it, then among the variables of the
// component's file, then among the globals.
type prompt struct {
	env    *lua.LTable
	locals map[string]*lua.Upvalue // variables of the component's file
}

// openPrompt makes the environment of statements.
func (v *vm) openPrompt() {
	// The program belongs to all VMs, and statements add files to it.
	p := v.prog
	v.prog = &program{
		files: maps.Clone(p.files), main: p.main, modules: maps.Clone(p.modules), data: maps.Clone(p.data),
		stdlib: p.stdlib, def: p.def, probe: p.probe, covered: p.covered, env: p.env,
	}
	L := v.L
	q := &prompt{env: L.CreateTable(0, 8), locals: map[string]*lua.Upvalue{}}
	v.prompt = q
	for _, fn := range v.hooks.all {
		q.collect(fn, p.main.file.Name)
	}
	q.env.RawSetString("_G", q.env)
	mt := L.CreateTable(0, 2)
	mt.RawSetString("__index", L.NewFunction(func(L *lua.LState) int {
		name := L.Get(2).String()
		if u := q.locals[name]; u != nil {
			L.Push(u.Value())
		} else {
			L.Push(v.library.env.RawGetString(name))
		}
		return 1
	}))
	mt.RawSetString("__newindex", L.NewFunction(func(L *lua.LState) int {
		if u := q.locals[L.Get(2).String()]; u != nil {
			u.SetValue(L.Get(3))
		} else {
			q.env.RawSet(L.Get(2), L.Get(3))
		}
		return 0
	}))
	mt.RawSetString("__metatable", lua.LFalse)
	q.env.Metatable = mt
}

// collect adds the variables of a file that a function uses, and those that functions
// in them use.
func (q *prompt) collect(fn *lua.LFunction, file string) {
	if fn.IsG || fn.Proto.SourceName != file {
		return
	}
	for i, u := range fn.Upvalues {
		name := fn.Proto.DbgUpvalues[i]
		if q.locals[name] != nil {
			continue
		}
		q.locals[name] = u
		switch x := u.Value().(type) {
		case *lua.LFunction:
			q.collect(x, file)
		case *lua.LTable:
			for _, member := range entries(x) {
				if f, ok := member.(*lua.LFunction); ok {
					q.collect(f, file)
				}
			}
		}
	}
}

// Eval evaluates a statement.
func (v *vm) Eval(ctx context.Context, s *scripting.Statement) (string, error) {
	if v.prompt == nil {
		v.openPrompt()
	}
	c, err := v.compileStatement(s.File)
	if err != nil {
		return "", err
	}
	v.bindStatement(s)
	defer v.call.leave()
	v.budget.clock.setting = ", the limit is --time"
	var shown string
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		v.budget.stop.Store(true)
		close(stopped)
	})
	err = v.runFunction(v.L.NewFunction(func(L *lua.LState) int {
		fn := L.NewFunctionFromProto(c.proto)
		fn.Env = v.prompt.env
		L.Push(fn)
		L.Call(0, lua.MultRet)
		w := &shower{v: v, L: L}
		for i := 1; i <= L.GetTop(); i++ {
			if i > 1 {
				w.b.WriteString("\t")
			}
			w.value(L.Get(i), "")
		}
		shown = w.text()
		return 0
	}), 0)
	if !stop() {
		<-stopped
	}
	return shown, err
}

// bindStatement enters the call of a statement.
func (v *vm) bindStatement(s *scripting.Statement) {
	env := v.prompt.env
	v.call.enter(inHook, "")
	v.call.metrics, v.call.logs = s.Metrics, s.Logs
	v.call.outMetrics, v.call.outLogs = v.call.params.Metrics, v.call.params.Logs
	env.RawSetString("ctx", v.args.ctx.metrics)
	switch {
	case s.Metrics != nil:
		if v.prog.def.Sends&batch.SignalMetrics != 0 {
			v.call.outMetrics = s.Metrics
		}
		env.RawSetString("batch", v.args.batch)
	case s.Logs != nil:
		if v.prog.def.Sends&batch.SignalLogs != 0 {
			v.call.outLogs = s.Logs
		}
		env.RawSetString("batch", v.args.logBatch)
	}
}

// compileStatement compiles a statement, as an expression if it is one, and the modules
// that it requires.
func (v *vm) compileStatement(f scripting.File) (*chunk, error) {
	expression := f
	expression.Text = "return " + f.Text
	c, err := compile(expression, plainFile, nil)
	if err != nil {
		unended := isUnended(f, expression.Text)
		if c, err = compile(f, plainFile, persist); err != nil {
			if unended || isUnended(f, f.Text) {
				return nil, fmt.Errorf("%w: %w", scripting.ErrIncomplete, err)
			}
			return nil, err
		}
	}
	c.file.Text = f.Text
	p := v.prog
	p.files[f.Name] = c
	var errs []error
	p.require(c, p.env, &errs)
	return c, errors.Join(errs...)
}

// isUnended reports whether a text ends inside of a statement.
func isUnended(f scripting.File, text string) bool {
	_, err := parse.Parse(strings.NewReader(text), f.Name)
	e, ok := errors.AsType[*parse.Error](err)
	return ok && (e.Pos.Line == parse.EOF || e.Message == "unterminated multiline string" || e.Message == "unterminated multiline comment")
}

// persist turns the local variables of a statement into variables of the prompt, which
// later statements see.
func persist(_ scripting.File, stmts []ast.Stmt) []ast.Stmt {
	for i, s := range stmts {
		local, ok := s.(*ast.LocalAssignStmt)
		if !ok {
			continue
		}
		assign := &ast.AssignStmt{Rhs: local.Exprs}
		for _, name := range local.Names {
			ident := &ast.IdentExpr{Value: name}
			ident.SetLine(local.Line())
			ident.SetLastLine(local.Line())
			assign.Lhs = append(assign.Lhs, ident)
		}
		if len(assign.Rhs) == 0 {
			none := &ast.NilExpr{}
			none.SetLine(local.Line())
			none.SetLastLine(local.Line())
			assign.Rhs = []ast.Expr{none}
		}
		assign.SetLine(local.Line())
		assign.SetLastLine(local.LastLine())
		stmts[i] = assign
	}
	return stmts
}

// Complete returns names and members for the word at the end of a statement.
func (v *vm) Complete(s *scripting.Statement) (out []string) {
	if v.prompt == nil {
		v.openPrompt()
	}
	path, typed := scripting.WordsAt(s.File.Text, ".:")
	v.bindStatement(s)
	defer v.call.leave()
	// Under the handler: reading a member may fail.
	_ = v.runFunction(v.L.NewFunction(func(L *lua.LState) int {
		var x lua.LValue = v.prompt.env
		for _, name := range path {
			x = v.member(L, x, name)
		}
		for _, name := range v.members(x) {
			if strings.HasPrefix(name, typed) {
				out = append(out, name)
			}
		}
		return 0
	}), 0)
	slices.Sort(out)
	return slices.Compact(out)
}

// member returns a member of a value of which members knows the names.
func (v *vm) member(L *lua.LState, x lua.LValue, name string) lua.LValue {
	if slices.Contains(v.members(x), name) {
		return L.GetField(x, name)
	}
	return lua.LNil
}

// members returns the names of the members of a value, in any order.
func (v *vm) members(x lua.LValue) (names []string) {
	table := func(t *lua.LTable) {
		for k := range entries(v.readOnly.real(t)) {
			if s, ok := k.(lua.LString); ok && identifier(string(s)) {
				names = append(names, string(s))
			}
		}
	}
	switch x := x.(type) {
	case *lua.LTable:
		table(x)
		if x == v.prompt.env {
			names = slices.AppendSeq(names, maps.Keys(v.prompt.locals))
			table(v.library.env)
		}
	case lua.LString:
		if str, ok := v.library.env.RawGetString("string").(*lua.LTable); ok {
			table(str)
		}
	case *lua.LUserData:
		if t := typeOf(x); t != nil && x.Metatable != v.values.mt.labels {
			for _, f := range t.Fields {
				names = append(names, f.Name)
			}
			for _, m := range t.Methods {
				names = append(names, m.Name)
			}
		}
		if l, ok := x.Value.(labelled); ok && x.Metatable == v.values.mt.labels {
			for name := range l.all(v.L) {
				if identifier(name) {
					names = append(names, name)
				}
			}
		}
	}
	return names
}
