package js

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dop251/goja"

	"github.com/weir-run/weir/scripting"
)

// paused is a VM before a statement, for a debugger.
type paused struct {
	v        *vm
	stack    []goja.StackFrame // of the script, the innermost first
	latest   []latest          // by function on the stack, the outermost first
	programs map[string]*goja.Program
}

// latest is the last statement of a function that began.
type latest struct {
	mark   *mark
	access goja.Value // see accessor
}

var _ scripting.Paused = (*paused)(nil)

const (
	// evaluateTime is the time limit for code that a debugger runs.
	evaluateTime = time.Second
	// maxPrograms is the maximum number of compiled expressions.
	maxPrograms = 100
)

// atStatement is debugGlobal.
func (p *paused) atStatement(call goja.FunctionCall) goja.Value {
	v := p.v
	if v.aside {
		return goja.Undefined()
	}
	p.stack = v.rt.CaptureCallStack(0, p.stack[:0])
	p.stack = slices.DeleteFunc(p.stack, func(f goja.StackFrame) bool { return v.prog.files[f.SrcName()] == nil })
	now := latest{&v.prog.marks[call.Argument(0).ToInteger()], call.Argument(1)}
	// The functions below are calling this one. All functions above have returned.
	n := len(p.stack)
	for len(p.latest) < n {
		p.latest = append(p.latest, latest{})
	}
	clear(p.latest[n:])
	p.latest = p.latest[:n]
	p.latest[n-1] = now
	if err := v.prog.debug.At(now.mark.DebugStatement, p); err != nil {
		_ = v.budget.stopCall(err) // the script ends when it continues
	}
	return goja.Undefined()
}

// Wait calls fn; its time does not count.
func (p *paused) Wait(fn func()) {
	b := &p.v.budget
	entered := b.entered
	if b.pause() == nil {
		fn()
	}
	b.resume()
	b.entered = entered // evaluated code may have paused in the meantime
}

// Depth returns the number of the script's functions on the stack.
func (p *paused) Depth() int { return len(p.stack) }

// at returns the statement that a frame executes, or nil if it is not known, because
// the function has not begun its first statement.
func (p *paused) at(frame int) *latest {
	x := &p.latest[len(p.stack)-1-frame]
	f := &p.stack[frame]
	line := f.Position().Line
	if x.mark == nil || x.mark.File != f.SrcName() || x.mark.depth > 1 && (line < x.mark.from || line > x.mark.to) {
		return nil
	}
	return x
}

// Stack returns the functions of the script on the stack.
func (p *paused) Stack() (out []scripting.Frame) {
	for i := range p.stack {
		f := &p.stack[i]
		x := scripting.Frame{File: f.SrcName(), Line: f.Position().Line, Func: f.FuncName()}
		at := p.at(i)
		if i == 0 && at != nil {
			x.Line = at.mark.Line
		}
		switch {
		case at != nil && at.mark.depth == 1:
			x.Func = "file"
		case x.Func != "" && x.Func != "<anonymous>":
		case i == len(p.stack)-1 && p.v.hook != "":
			x.Func = p.v.hook
		default:
			x.Func = "function"
		}
		out = append(out, x)
	}
	return out
}

// found is a variable that a frame can access.
type found struct {
	*variable
	n int // for the accessor
}

// visible returns the innermost variable of each name.
func (l *latest) visible() (out []found) {
	if l == nil {
		return nil
	}
	last := map[string]int{}
	for i, x := range l.mark.variables {
		last[x.name] = i
	}
	for i := range l.mark.variables {
		if x := &l.mark.variables[i]; last[x.name] == i {
			out = append(out, found{x, i})
		}
	}
	return out
}

// get returns a variable, and false if it is not initialised yet.
func (l *latest) get(n int) (goja.Value, bool) {
	access, _ := goja.AssertFunction(l.access)
	x, err := access(goja.Undefined(), engine.ToValue(n))
	switch err.(type) {
	case nil:
		return x, true
	case *goja.Exception:
		return nil, false
	}
	panic(err) // a limit
}

// this returns the value of this.
func (l *latest) this() goja.Value {
	x, ok := l.get(len(l.mark.variables))
	if !ok { // in a constructor, before super
		return goja.Undefined()
	}
	return x
}

// Scopes returns the variables of a frame.
func (p *paused) Scopes(frame int) []scripting.Scope {
	l := p.at(frame)
	scope := func(name string, in func(depth int) bool) scripting.Scope {
		return scripting.Scope{Name: name, Variables: func() []scripting.Variable {
			return p.list(func(add func(scripting.Variable)) {
				for _, f := range l.visible() {
					if !in(f.depth) {
						continue
					}
					if x, ok := l.get(f.n); ok {
						add(p.show(f.name, x))
					}
				}
				if l != nil && in(l.mark.depth) {
					if x := l.this(); !goja.IsUndefined(x) {
						add(p.show("this", x))
					}
				}
			})
		}}
	}
	own := 1
	if l != nil {
		own = l.mark.depth
	}
	return []scripting.Scope{
		scope("Locals", func(depth int) bool { return depth == own }),
		scope("Closure", func(depth int) bool { return depth > 1 && depth < own }),
		scope("File", func(depth int) bool { return depth <= 1 && depth < own }),
	}
}

// aside calls fn, which runs code of the debugger.
func (p *paused) aside(fn func() error) (err error) {
	v := p.v
	defer func(before bool, rejected []*goja.Promise) { v.aside, v.rejected = before, rejected }(v.aside, slices.Clone(v.rejected))
	v.aside = true
	v.budget.aside(evaluateTime, func() {
		err = v.try(fn)
		if stopped := v.budget.err(); stopped != nil {
			err = stopped
		}
	})
	switch e := err.(type) {
	case *goja.Exception:
		return v.reason(e.Value())
	case *goja.StackOverflowError:
		return errors.New("the calls nest too deep")
	}
	return err
}

// list returns the variables that fn adds.
func (p *paused) list(fn func(add func(scripting.Variable))) (out []scripting.Variable) {
	err := p.aside(func() error {
		fn(func(x scripting.Variable) { out = append(out, x) })
		return nil
	})
	if err != nil {
		out = append(out, scripting.Variable{Name: "…", Value: "error: " + err.Error()})
	}
	return out
}

// Evaluate compiles code as a function of the variables that it may name. It writes
// assignments to them back.
func (p *paused) Evaluate(frame int, code string) (out scripting.Variable, err error) {
	named := map[string]bool{}
	for _, name := range identifiers.FindAllString(code, -1) {
		named[name] = true
	}
	l := p.at(frame)
	err = p.aside(func() error {
		var vars []found
		var names []string
		var args []goja.Value
		this := goja.Undefined()
		if l != nil {
			this = l.this()
		}
		for _, f := range l.visible() {
			if !named[f.name] {
				continue
			}
			if x, ok := l.get(f.n); ok {
				vars, names, args = append(vars, f), append(names, f.name), append(args, x)
			}
		}
		prog, err := p.compile(p.stack[frame].SrcName(), code, names)
		if err != nil {
			return err
		}
		results, err := p.run(prog, this, args)
		if err != nil {
			return err
		}
		for i, f := range vars {
			if y := results[i+1]; !y.SameAs(args[i]) {
				if err := l.set(f, y); err != nil {
					return err
				}
			}
		}
		out = p.show("", results[0])
		return nil
	})
	return out, err
}

func (l *latest) set(f found, x goja.Value) error {
	if f.imported {
		return fmt.Errorf("cannot assign to %s: it is imported", f.name)
	}
	access, _ := goja.AssertFunction(l.access)
	_, err := access(goja.Undefined(), engine.ToValue(f.n), engine.ToValue(true), x)
	return err
}

// evaluated is the beginning of the name of the file that evaluated code is.
const evaluated = "evaluate"

// compile compiles an expression, or statements, to a program that sets exports.f to
// a function of the variables. The function returns a list with the value of the
// expression and those of the variables. code is in the language of a file.
func (p *paused) compile(file, code string, names []string) (*goja.Program, error) {
	list := strings.Join(names, ", ")
	key := list + ": " + code
	if prog := p.programs[key]; prog != nil {
		return prog, nil
	}
	_, ext, _ := cutLast(file, ".")
	parse := func(format string) (*chunk, error) {
		return p.v.prog.parse(scripting.File{Name: evaluated + "." + ext, Text: fmt.Sprintf(format, list, code, strings.Join(append([]string{""}, names...), ", "))})
	}
	c, err := parse("exports.f = function (%s) { return [(%s\n)%s] }")
	if err != nil {
		var other error
		if c, other = parse("exports.f = function (%s) { %s\n; return [undefined%s] }"); other != nil {
			return nil, firstError(err)
		}
	}
	prog, err := goja.CompileAST(c.tree, true)
	if err != nil {
		return nil, firstError(c.syntaxError(err))
	}
	if len(p.programs) >= maxPrograms {
		clear(p.programs)
	}
	p.programs[key] = prog
	return prog, nil
}

// firstError returns the first error of compiling evaluated code, without its
// position.
func firstError(err error) error {
	if e, ok := errors.AsType[*scripting.Error](err); ok {
		return e.Err
	}
	return err
}

// run runs the function of a program that compile returned.
func (p *paused) run(prog *goja.Program, this goja.Value, args []goja.Value) ([]goja.Value, error) {
	rt := p.v.rt
	wrapper, err := rt.RunProgram(prog)
	if err != nil {
		return nil, err
	}
	exports := rt.NewObject()
	open, _ := goja.AssertFunction(wrapper)
	if _, err := open(goja.Undefined(), exports); err != nil {
		return nil, err
	}
	fn, ok := goja.AssertFunction(exports.Get("f"))
	if !ok {
		return nil, errNotExpression
	}
	got, err := fn(this, args...)
	if err != nil {
		return nil, err
	}
	o, ok := got.(*goja.Object)
	if !ok || o.ClassName() != "Array" || p.v.sandbox.lengthOf(o) != int64(len(args)+1) {
		return nil, errNotExpression
	}
	out := make([]goja.Value, len(args)+1)
	for i := range out {
		out[i] = orUndefined(o.Get(strconv.Itoa(i)))
	}
	return out, nil
}

var errNotExpression = errors.New("write one expression, or statements without return")
