package lua

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/weir-run/weir/scripting"
)

// paused is a thread that waits for a debugger.
type paused struct {
	v      *vm
	L      *lua.LState
	frames []frame // nil: not known yet
}

// frame is a function of the script on the stack.
type frame struct {
	L  *lua.LState
	d  *lua.Debug
	fn *lua.LFunction
	at *mark
}

var _ scripting.Paused = (*paused)(nil)

// evaluateTime is the time limit for code that a debugger runs.
const evaluateTime = time.Second

// Wait calls fn; its time does not count.
func (p *paused) Wait(fn func()) {
	b := &p.v.budget
	b.clock.tick(time.Now())
	fn()
	b.resume()
}

// Depth returns the number of the script's functions on the stack.
func (p *paused) Depth() int { return len(p.all()) }

// all returns the frames of the thread and of those that resumed it.
func (p *paused) all() []frame {
	if p.frames != nil {
		return p.frames
	}
	for L := p.L; L != nil; L = L.Parent {
		for level := 0; ; level++ {
			d, ok := L.GetStack(level)
			if !ok {
				break
			}
			fn, register, ok := positionOf(L, d)
			if !ok {
				continue
			}
			f := frame{L: L, d: d, fn: fn}
			if _, x := L.GetLocal(d, register+1); x.Type() == lua.LTNumber {
				f.at = &p.v.prog.marks[int(x.(lua.LNumber))]
			}
			p.frames = append(p.frames, f)
		}
	}
	return p.frames
}

// Stack returns the frames with the lines that run.
func (p *paused) Stack() (out []scripting.Frame) {
	all := p.all()
	for i, f := range all {
		x := scripting.Frame{File: f.d.Source, Line: f.d.CurrentLine, Func: functionName(f.d)}
		if i == 0 && f.at != nil {
			x.Line = f.at.Line // a call of several lines has the line of its end
		}
		if i == len(all)-1 && p.v.call.hook != "" && p.v.call.stage != inEach {
			x.Func = p.v.call.hook
		}
		out = append(out, x)
	}
	return out
}

// variable is a local or an upvalue.
type variable struct {
	name  string
	value lua.LValue
	set   func(lua.LValue)
}

// locals returns the locals of a frame that are in scope, the innermost of each name.
func (f frame) locals() (out []variable) {
	if f.at == nil {
		return nil
	}
	last := map[string]int{}
	for i, l := range f.at.locals {
		last[l.name] = i
	}
	for i, l := range f.at.locals {
		if last[l.name] != i || !visible(l.name) {
			continue
		}
		_, x := f.L.GetLocal(f.d, l.register+1)
		out = append(out, variable{l.name, x, func(x lua.LValue) { f.L.SetLocal(f.d, l.register+1, x) }})
	}
	return out
}

func (f frame) upvalues() (out []variable) {
	for i := range f.fn.Upvalues {
		if name, x := f.L.GetUpvalue(f.fn, i+1); visible(name) {
			out = append(out, variable{name, x, func(x lua.LValue) { f.L.SetUpvalue(f.fn, i+1, x) }})
		}
	}
	return out
}

// Scopes returns the locals and the upvalues of a frame.
func (p *paused) Scopes(i int) []scripting.Scope {
	f := p.all()[i]
	scope := func(name string, list func() []variable) scripting.Scope {
		return scripting.Scope{Name: name, Variables: func() (out []scripting.Variable) {
			for _, x := range list() {
				out = append(out, p.show(x.name, x.value))
			}
			return out
		}}
	}
	return []scripting.Scope{scope("Locals", f.locals), scope("Upvalues", f.upvalues)}
}

// evaluated is the name of the file in errors of evaluated code.
const evaluated = "evaluate"

var identifiers = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*`)

// Evaluate compiles code as a function of the variables that it may name. It writes
// assignments to them back.
func (p *paused) Evaluate(i int, code string) (scripting.Variable, error) {
	named := map[string]bool{}
	for _, name := range identifiers.FindAllString(code, -1) {
		named[name] = true
	}
	var names []string
	var vars []variable
	f := p.all()[i]
	for _, x := range append(f.locals(), f.upvalues()...) {
		if named[x.name] {
			named[x.name] = false // a local hides an upvalue
			names, vars = append(names, x.name), append(vars, x)
		}
	}
	head := ""
	if len(names) > 0 {
		head = "local " + strings.Join(names, ",") + " = ...; "
	}
	compileCode := func(format string) (*chunk, error) {
		return compile(scripting.File{Name: evaluated, Text: fmt.Sprintf(format, head, code, strings.Join(append([]string{"nil"}, names...), ","))}, componentFile, nil)
	}
	c, err := compileCode("%sreturn (%s\n)%.0s")
	assigns := err != nil
	if assigns {
		var other error
		if c, other = compileCode("%s%s\nreturn %s"); other != nil {
			return scripting.Variable{}, evaluateError(other)
		}
	}
	args := make([]lua.LValue, len(vars))
	for i, x := range vars {
		args[i] = x.value
	}
	var out []lua.LValue
	err = p.run(p.v.L.NewFunctionFromProto(c.proto), args, &out)
	if err != nil {
		return scripting.Variable{}, err
	}
	if assigns {
		for i, x := range vars {
			if y := out[i+1]; y != x.value {
				x.set(y)
			}
		}
	}
	p.frames = nil
	return p.show("", out[0]), nil
}

// run calls a function and appends its results to out.
func (p *paused) run(fn *lua.LFunction, args []lua.LValue, out *[]lua.LValue) (err error) {
	v, L := p.v, p.L
	p.aside(func() {
		top := L.GetTop()
		L.Push(fn)
		for _, x := range args {
			L.Push(x)
		}
		if err = v.trap.try(L, len(args), lua.MultRet, nil); err == nil {
			for i := top + 1; i <= L.GetTop(); i++ {
				*out = append(*out, L.Get(i))
			}
		} else if v.budget.tripped != nil {
			err = v.budget.tripped
		}
		L.SetTop(top)
	})
	if err != nil {
		return v.evaluateError(err)
	}
	return nil
}

// aside calls fn, which runs code of the debugger.
func (p *paused) aside(fn func()) {
	defer func(before bool) { p.v.aside = before }(p.v.aside)
	p.v.aside = true
	p.v.budget.aside(evaluateTime, fn)
}

// evaluateError is an error of running evaluated code.
func (v *vm) evaluateError(err error) error {
	if api, ok := errors.AsType[*lua.ApiError](err); ok {
		text := tableOrText(v.errorValue(api.Object))
		return errors.New(strings.TrimSpace(strings.TrimPrefix(text, evaluated+":1:")))
	}
	return evaluateError(err)
}

func tableOrText(x lua.LValue) string {
	switch x := x.(type) {
	case *lua.LTable:
		return tableMessage(x)
	case nil:
		return "unknown error"
	}
	return x.String()
}

// evaluateError is the first error of compiling evaluated code.
func evaluateError(err error) error {
	if e, ok := errors.AsType[*scripting.Error](err); ok {
		return e.Err
	}
	return err
}

// show returns a value for people.
func (p *paused) show(name string, x lua.LValue) scripting.Variable {
	out := scripting.Variable{Name: name, Type: x.Type().String(), True: lua.LVAsBool(x)}
	switch x := x.(type) {
	case lua.LString:
		out.Value = scripting.ShowString(string(x))
	case lua.LNumber:
		out.Value = formatNumber(float64(x))
	case *lua.LTable:
		t := p.v.readOnly.real(x)
		n := 0
		for range entries(t) {
			n++
		}
		out.Value = fmt.Sprintf("table, %d entries", n)
		if n > 0 {
			out.Fields = func() []scripting.Variable { return p.fields(t) }
		}
	case *lua.LFunction:
		out.Value = "function"
		if !x.IsG {
			out.Value = fmt.Sprintf("function, %s:%d", x.Proto.SourceName, x.Proto.LineDefined)
		} else if known := p.v.library.names[x]; known != "" {
			out.Value = "function " + known
		}
	case *lua.LUserData:
		var text []lua.LValue
		err := p.run(p.L.NewFunction(p.v.tostringFn), []lua.LValue{x}, &text)
		if err == nil && len(text) == 1 {
			out.Value = text[0].String()
		} else {
			out.Value = "userdata"
		}
		out.Fields = p.rows(x)
	default:
		out.Value = x.String()
	}
	if len(out.Value) > 2*scripting.MaxShownValue {
		out.Value = strings.ToValidUTF8(out.Value[:scripting.MaxShownValue], "") + "…"
	}
	return out
}

// fields returns the entries of a table.
func (p *paused) fields(t *lua.LTable) (out []scripting.Variable) {
	n := 0
	for k, x := range entries(t) {
		if n++; n > scripting.MaxFields {
			continue
		}
		name := "[" + k.String() + "]"
		if s, ok := k.(lua.LString); ok {
			name = string(s)
		}
		out = append(out, p.show(name, x))
	}
	if n > scripting.MaxFields {
		out = append(out, scripting.MoreFields(n-scripting.MaxFields))
	}
	return out
}

// rows returns the records of a batch, which is an argument of a hook.
func (p *paused) rows(x *lua.LUserData) func() []scripting.Variable {
	v := p.v
	n, text := 0, func(int) string { return "" }
	switch {
	case x == v.args.batch && v.call.metrics != nil:
		n, text = v.call.metrics.Batch().Len(), v.call.metrics.RowText
	case x == v.args.logBatch && v.call.logs != nil:
		n, text = v.call.logs.Batch().Len(), v.call.logs.RowText
	}
	if n == 0 {
		return nil
	}
	return func() (out []scripting.Variable) {
		for i := range min(n, scripting.MaxFields) {
			out = append(out, scripting.Variable{Name: fmt.Sprintf("[%d]", i+1), Value: text(i), Type: "record"})
		}
		if n > scripting.MaxFields {
			out = append(out, scripting.MoreFields(n-scripting.MaxFields))
		}
		return out
	}
}
