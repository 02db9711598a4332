package js

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/dop251/goja"

	"github.com/weir-run/weir/scripting"
)

// testModule is the module from which a test file imports the test API.
const testModule = "weir/test"

// test contains the additional data in the VM of a test file.
type test struct {
	v   *vm
	api *scripting.TestAPI
	expects
	spies    map[*goja.Object]*spy
	spyProto *goja.Object
	made     []*spy // in the running test
	inside   bool   // a test is running
	depth    int    // depth of calls from the host to functions of the file
	hasOwn   goja.Callable
}

var (
	_ scripting.Tester = (*Language)(nil)
	_ scripting.TestVM = (*test)(nil)
)

// Words returns the vocabulary of vitest.
func (*Language) Words() scripting.TestWords { return scripting.Vitest }

// NewTest compiles a test file.
func (*Language) NewTest(f scripting.File, env scripting.Env, api *scripting.TestAPI) (scripting.TestVM, error) {
	t := &test{api: api, spies: map[*goja.Object]*spy{}}
	t.likes = map[*goja.Object]*like{}
	p, err := read(f, env, t, `await in a test: it("…", async () => { … })`)
	if err != nil {
		return nil, err
	}
	p.def = &scripting.Definition{}
	v := p.newVM(scripting.Host{Log: func(_ slog.Level, pos, msg string, fields []any) {
		for i := 0; i+1 < len(fields); i += 2 {
			msg += fmt.Sprintf(" %v=%v", fields[i], fields[i+1])
		}
		api.Print(pos, msg)
	}})
	v.hook = ""
	return t, nil
}

// open creates the globals of a test file, which it may also import.
func (t *test) open(v *vm) {
	t.v, v.test = v, t
	v.budget.start(loadTime, 0) // objects that the host creates are charged
	t.hasOwn, _ = goja.AssertFunction(v.rt.GlobalObject().Get("Object").(*goja.Object).Get("hasOwn"))
	m := v.rt.NewObject()
	for i := range t.api.Globals {
		if f := &t.api.Globals[i]; !strings.Contains(f.Name, ".") {
			v.put(m, scripting.CamelCase(f.Name), t.global(f))
		}
	}
	v.put(m, "expect", t.openExpect())
	v.put(m, "vi", t.openSpies())
	for _, table := range t.api.Tables {
		v.put(m, table.Name, v.bind(table))
	}
	global := v.rt.GlobalObject()
	for _, name := range m.Keys() {
		v.must(global.DefineDataProperty(name, m.Get(name), goja.FLAG_FALSE, goja.FLAG_FALSE, goja.FLAG_TRUE))
	}
	for i := range t.api.Weir.Funcs {
		f := t.api.Weir.Funcs[i].Camel()
		v.method(m, f.Name, func(call goja.FunctionCall) goja.Value { return v.callFunction(f.Name, f, nil, call.Arguments) })
	}
	v.libs[testModule] = v.freeze(t.guarded(m, "", m.Keys()))
}

// global creates a function such as it, with its sub-functions such as it.skip.
func (t *test) global(f *scripting.Function) *goja.Object {
	v, name := t.v, scripting.CamelCase(f.Name)
	own := v.function1(name, func(call goja.FunctionCall) goja.Value {
		return v.callFunction(name, f, nil, t.declared(call.Arguments))
	})
	var parts []string
	for i := range t.api.Globals {
		part := &t.api.Globals[i]
		short, ok := strings.CutPrefix(part.Name, f.Name+".")
		if !ok {
			continue
		}
		parts = append(parts, short)
		do := func(call goja.FunctionCall) goja.Value {
			return v.callFunction(part.Name, part, nil, t.declared(call.Arguments))
		}
		if part.Fn == nil {
			do = func(call goja.FunctionCall) goja.Value { return t.each(f, call) }
		}
		v.method(own, short, do)
	}
	if len(parts) > 0 {
		t.guarded(own, name+".", parts)
	}
	return own
}

// declared returns the arguments of it and similar functions. In vitest,
// options may come before or after the function.
func (t *test) declared(args []goja.Value) []goja.Value {
	for _, a := range args[min(1, len(args)):] {
		if o := objectOf(a); o != nil && !isFunction(o) && o.ClassName() == "Object" && boxed(o) == nil {
			t.v.raise(fmt.Errorf("cannot use options of a test: its limit of script time is that of all tests; leave them out, or write it.skip, it.only"))
		}
	}
	return args
}

// Load runs the file.
func (t *test) Load(limit time.Duration) error {
	v := t.v
	t.start(limit)
	v.hook = hookLoad
	defer func() { v.hook = "" }()
	_, err := t.calls(func() (goja.Value, error) { return v.module(v.prog.main) })
	return err
}

// Call runs a function of the file.
func (t *test) Call(fn scripting.Callback, limit time.Duration) error {
	t.start(limit)
	t.inside = true
	_, err := fn()
	t.v.ran()
	return err
}

// callback lets the host call a function of the test, now or later, and waits
// for the promise of an async function. Its error is an *scripting.Error with
// the line in the function.
func (t *test) callback(fn *goja.Object) scripting.Callback {
	call, _ := goja.AssertFunction(fn)
	return func(args ...scripting.Value) (scripting.Value, error) {
		return t.calls(func() (goja.Value, error) {
			in := make([]goja.Value, len(args))
			for i, a := range args {
				in[i] = t.v.fromGo(a)
			}
			return call(goja.Undefined(), in...)
		})
	}
}

// calls runs fn, which runs the test. The result in Go is nil if it cannot be
// converted; callers that need no result ignore it.
func (t *test) calls(fn func() (goja.Value, error)) (out scripting.Value, err error) {
	v := t.v
	if t.depth == 0 {
		v.rejected = nil
	}
	t.depth++
	var got goja.Value
	err = v.try(func() (err error) {
		if got, err = fn(); err != nil {
			return err
		}
		got, err = v.awaitPromise(got)
		return err
	})
	t.depth--
	if err == nil && t.depth == 0 {
		err = v.unheard()
	}
	if err == nil {
		err = v.budget.err()
	}
	if err != nil {
		return nil, v.scriptError(err)
	}
	if o := objectOf(got); o != nil && isFunction(o) {
		return nil, nil
	}
	if err := v.try(func() (err error) { out, err = v.toGo(got); return err }); err != nil {
		return nil, nil
	}
	return out, nil
}

// Used returns the CPU time of the last call.
func (t *test) Used() time.Duration { return t.v.budget.used() }

// pause stops the test's time while a component under test runs, which has its
// own limits, until the returned function is called.
func (t *test) pause() (resume func()) {
	b := &t.v.budget
	entered := b.entered
	if entered == 0 {
		return func() {}
	}
	_ = b.pause() // a stopped test ends when it continues
	return func() {
		b.resume()
		b.entered = entered // a mock may have paused in the meantime
	}
}

func (t *test) start(limit time.Duration) {
	t.v.budget.start(limit, 0)
	t.v.budget.setting = ", the limit of a test"
}

// Pos returns the position of the test's current call of the host.
func (t *test) Pos() (file string, line int) {
	c, line, _ := t.v.callerPosition()
	if c == nil {
		return t.v.prog.main.file.Name, 0
	}
	return c.file.Name, line
}

// Match matches a regular expression.
func (t *test) Match(pattern, text string) (ok bool, err error) {
	err = t.v.try(func() error {
		re, err := t.v.rt.New(t.v.rt.GlobalObject().Get("RegExp"), t.v.rt.ToValue(pattern))
		if err == nil {
			ok = t.matches(re, t.v.rt.ToValue(text))
		}
		return err
	})
	return ok, err
}

// Broken reports whether a limit stopped the VM.
func (t *test) Broken() bool { return t.v.broken }

// EndTest restores the functions that spies replaced, and removes the spies.
func (t *test) EndTest() error {
	for i := len(t.made) - 1; i >= 0; i-- {
		t.made[i].putBack()
		delete(t.spies, t.made[i].fn)
	}
	err := t.checked()
	t.made, t.inside, t.count, t.wanted = nil, false, 0, nil
	return err
}
