package js

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/dop251/goja"

	"github.com/weir-run/weir/scripting"
)

// spy is a function that records its calls, with the API of vitest.
type spy struct {
	fn    *goja.Object
	name  string
	do    goja.Value   // the implementation; nil: returns undefined
	first goja.Value   // the original implementation
	once  []goja.Value // implementations of the next calls
	calls []*spyCall
	back  func() // restores the replaced function; may be nil
}

// spyCall is one call. As in vitest, its arguments are not copied.
type spyCall struct {
	this   goja.Value
	args   []goja.Value
	how    string // return or throw; incomplete during the call
	result goja.Value
}

// returnedEqual reports whether the call returned a value equal to want.
func (c *spyCall) returnedEqual(t *test, want goja.Value) bool {
	return c.how == "return" && t.equal(c.result, want, equality{})
}

func (s *spy) label() string {
	if s.name != "" {
		return s.name
	}
	return "spy"
}

// returned returns the calls that returned.
func (s *spy) returned() (out []*spyCall) {
	for _, c := range s.calls {
		if c.how == "return" {
			out = append(out, c)
		}
	}
	return out
}

// maxSpyCalls is the maximum number of recorded calls per spy.
const maxSpyCalls = 10_000

// openSpies creates vi.
func (t *test) openSpies() *goja.Object {
	v := t.v
	t.spyProto = v.rt.NewObject()
	v.must(t.spyProto.SetPrototype(v.rt.GlobalObject().Get("Function").(*goja.Object).Get("prototype").(*goja.Object)))
	for i := range t.api.Spy {
		name := scripting.CamelCase(t.api.Spy[i].Name)
		do, ok := spyMethods[name]
		if !ok {
			panic("BUG: a spy has no " + name)
		}
		v.method(t.spyProto, name, func(call goja.FunctionCall) goja.Value {
			s := t.spyOf(call.This, name)
			if out := do(t, s, call.Argument(0)); out != nil {
				return out
			}
			return s.fn
		})
	}
	get := v.function1("mock", func(call goja.FunctionCall) goja.Value { return t.mock(t.spyOf(call.This, "mock")) })
	v.must(t.spyProto.DefineAccessorProperty("mock", get, nil, goja.FLAG_FALSE, goja.FLAG_FALSE))
	vi := v.rt.NewObject()
	var names []string
	for i := range t.api.Spies.Funcs {
		name := scripting.CamelCase(t.api.Spies.Funcs[i].Name)
		names = append(names, name)
		do, ok := viFuncs[name]
		if !ok {
			panic("BUG: vi has no " + name)
		}
		v.method(vi, name, func(call goja.FunctionCall) goja.Value { return do(t, call) })
	}
	return v.freeze(t.guarded(vi, "vi.", names))
}

// viFuncs are the functions of vi, by their names in scripting/scripttest.
var viFuncs = map[string]func(t *test, call goja.FunctionCall) goja.Value{
	"fn": func(t *test, call goja.FunctionCall) goja.Value {
		do := call.Argument(0)
		if !goja.IsUndefined(do) && !isFunction(do) {
			t.v.raise(fmt.Errorf("cannot make a spy of %s: write vi.fn() or vi.fn((x) => …)", kindOf(do)))
		}
		return t.newSpy(do).fn
	},
	"spyOn": func(t *test, call goja.FunctionCall) goja.Value {
		return t.spyOn(objectOf(call.Argument(0)), call.Argument(1).String()).fn
	},
	"mocked": func(_ *test, call goja.FunctionCall) goja.Value { return call.Argument(0) },
	"isMockFunction": func(t *test, call goja.FunctionCall) goja.Value {
		return t.v.rt.ToValue(t.spies[objectOf(call.Argument(0))] != nil)
	},
	"clearAllMocks":   allSpies(func(s *spy) { s.calls = nil }),
	"resetAllMocks":   allSpies((*spy).reset),
	"restoreAllMocks": allSpies((*spy).putBack),
}

func allSpies(do func(*spy)) func(*test, goja.FunctionCall) goja.Value {
	return func(t *test, call goja.FunctionCall) goja.Value {
		for _, s := range t.spies {
			do(s)
		}
		return call.This
	}
}

func (s *spy) reset() { s.calls, s.once, s.do = nil, nil, s.first }

func (s *spy) putBack() {
	if s.back != nil {
		s.back()
		s.back = nil
	}
}

// spyMethods are the methods of a spy. If a method returns nil, the result is
// the spy.
var spyMethods = map[string]func(t *test, s *spy, x goja.Value) goja.Value{
	"mockClear":   func(_ *test, s *spy, _ goja.Value) goja.Value { s.calls = nil; return nil },
	"mockReset":   func(_ *test, s *spy, _ goja.Value) goja.Value { s.reset(); return nil },
	"mockRestore": func(_ *test, s *spy, _ goja.Value) goja.Value { s.reset(); s.putBack(); return nil },
	"mockName":    func(_ *test, s *spy, x goja.Value) goja.Value { s.name = x.String(); return nil },
	"getMockName": func(t *test, s *spy, _ goja.Value) goja.Value { return t.v.rt.ToValue(s.label()) },
	"getMockImplementation": func(_ *test, s *spy, _ goja.Value) goja.Value {
		return orUndefined(s.do)
	},
	"mockImplementation":     func(t *test, s *spy, x goja.Value) goja.Value { s.do = t.function(x); return nil },
	"mockImplementationOnce": func(t *test, s *spy, x goja.Value) goja.Value { s.once = append(s.once, t.function(x)); return nil },
	"mockReturnValue":        func(t *test, s *spy, x goja.Value) goja.Value { s.do = t.always(x, nil); return nil },
	"mockReturnValueOnce":    func(t *test, s *spy, x goja.Value) goja.Value { s.once = append(s.once, t.always(x, nil)); return nil },
	"mockResolvedValue":      func(t *test, s *spy, x goja.Value) goja.Value { s.do = t.always(x, t.resolved); return nil },
	"mockResolvedValueOnce": func(t *test, s *spy, x goja.Value) goja.Value {
		s.once = append(s.once, t.always(x, t.resolved))
		return nil
	},
	"mockRejectedValue": func(t *test, s *spy, x goja.Value) goja.Value { s.do = t.always(x, t.rejected); return nil },
	"mockRejectedValueOnce": func(t *test, s *spy, x goja.Value) goja.Value {
		s.once = append(s.once, t.always(x, t.rejected))
		return nil
	},
}

func (t *test) function(x goja.Value) goja.Value {
	if !isFunction(x) {
		t.v.raise(fmt.Errorf("cannot call %s in place of a function", kindOf(x)))
	}
	return x
}

// always returns a function that returns as(x).
func (t *test) always(x goja.Value, as func(goja.Value) goja.Value) goja.Value {
	return t.v.function1("", func(goja.FunctionCall) goja.Value {
		if as != nil {
			return as(x)
		}
		return x
	})
}

func (t *test) resolved(x goja.Value) goja.Value { return t.v.waited(x, nil) }

func (t *test) rejected(x goja.Value) goja.Value {
	p, _, reject := t.v.rt.NewPromise()
	t.v.must(reject(x))
	return t.v.rt.ToValue(p)
}

// newSpy creates a spy for a function, or without an implementation.
func (t *test) newSpy(do goja.Value) *spy {
	if do != nil && goja.IsUndefined(do) {
		do = nil
	}
	s := &spy{do: do, first: do}
	s.fn = t.v.function1("spy", func(call goja.FunctionCall) goja.Value { return t.callSpy(s, call) })
	t.v.must(s.fn.SetPrototype(t.spyProto))
	t.spies[s.fn] = s
	if t.inside {
		t.made = append(t.made, s)
	}
	return s
}

// spyOn replaces an object's function with a spy.
func (t *test) spyOn(o *goja.Object, name string) *spy {
	if o == nil {
		t.v.raise(errors.New("cannot put a spy into this: write vi.spyOn(object, \"name\")"))
	}
	was := orUndefined(o.Get(name))
	if s := t.spies[objectOf(was)]; s != nil {
		return s
	}
	if !isFunction(was) {
		t.v.raise(fmt.Errorf("cannot put a spy in place of %s: it is %s and no function", name, kindOf(was)))
	}
	s := t.newSpy(was)
	s.name = name
	own := t.has(o, name)
	if err := o.Set(name, s.fn); err != nil || o.Get(name) != goja.Value(s.fn) {
		t.v.raise(fmt.Errorf("cannot put a spy in place of %s: the object is read-only, as what a module exports by name is; export an object that has the function", name))
	}
	s.back = func() {
		if own {
			_ = o.Set(name, was) // it was writable before
		} else {
			_ = o.Delete(name)
		}
	}
	return s
}

// callSpy records the call and passes it on.
func (t *test) callSpy(s *spy, call goja.FunctionCall) goja.Value {
	if len(s.calls) >= maxSpyCalls {
		t.v.raise(fmt.Errorf("cannot note more than %d calls of a spy", maxSpyCalls))
	}
	t.v.must(t.v.budget.charge(int64(len(call.Arguments)) + 4))
	c := &spyCall{this: call.This, args: append([]goja.Value(nil), call.Arguments...), how: "incomplete", result: goja.Undefined()}
	s.calls = append(s.calls, c)
	do := s.do
	if len(s.once) > 0 {
		do, s.once = s.once[0], s.once[1:]
	}
	if do == nil {
		c.how = "return"
		return c.result
	}
	fn, _ := goja.AssertFunction(do)
	out, err := fn(call.This, call.Arguments...)
	if err != nil {
		if ex, ok := err.(*goja.Exception); ok {
			c.how, c.result = "throw", ex.Value()
		}
		t.v.raise(err)
	}
	c.how, c.result = "return", out
	return out
}

// spyOf returns the spy of a function.
func (t *test) spyOf(x goja.Value, what string) *spy {
	s := t.spies[objectOf(x)]
	if s == nil {
		t.v.raise(fmt.Errorf("cannot use %s on %s: it is no spy; make one with vi.fn() or vi.spyOn(object, \"name\")", what, kindOf(x)))
	}
	return s
}

// mock returns the property mock of a spy, which describes its calls.
func (t *test) mock(s *spy) goja.Value {
	v := t.v
	list := func(n int, item func(i int) goja.Value) *goja.Object {
		items := make([]any, n)
		for i := range items {
			items[i] = item(i)
		}
		return v.rt.NewArray(items...)
	}
	args := func(i int) goja.Value {
		return list(len(s.calls[i].args), func(j int) goja.Value { return s.calls[i].args[j] })
	}
	o := v.rt.NewObject()
	v.put(o, "calls", list(len(s.calls), args))
	v.put(o, "results", list(len(s.calls), func(i int) goja.Value {
		r := v.rt.NewObject()
		v.put(r, "type", v.rt.ToValue(s.calls[i].how))
		v.put(r, "value", s.calls[i].result)
		return r
	}))
	v.put(o, "contexts", list(len(s.calls), func(i int) goja.Value { return s.calls[i].this }))
	last := goja.Undefined()
	if n := len(s.calls); n > 0 {
		last = args(n - 1)
	}
	v.put(o, "lastCall", last)
	return t.guarded(o, "mock.", o.Keys())
}

// called returns a matcher for the calls of a spy.
func called(rest string, holds func(t *test, s *spy, a []goja.Value) bool) matcher {
	return func(t *test, x goja.Value, a []goja.Value) verdict {
		s := t.spyOf(x, "a matcher of calls")
		ok := holds(t, s, a)
		d := verdict{ok: ok, rest: rest}
		if len(a) > 0 {
			d.rest += " " + t.showArgs(a)
		}
		d.rest += t.callsText(s)
		return d
	}
}

func times(a []goja.Value) int { return int(argument(a, 0).ToInteger()) }

func (t *test) sameArgs(c *spyCall, want []goja.Value) bool {
	if len(c.args) != len(want) {
		return false
	}
	for i := range want {
		if !t.equal(c.args[i], want[i], equality{}) {
			return false
		}
	}
	return true
}

func (t *test) showArgs(args []goja.Value) string {
	parts := make([]string, len(args))
	for i, a := range args {
		parts[i] = t.showFlat(a)
	}
	return "(" + strings.Join(parts, ", ") + ")"
}

// maxCallsShown is the maximum number of calls of a spy in a message.
const maxCallsShown = 10

func (t *test) callsText(s *spy) string {
	if len(s.calls) == 0 {
		return "; it was not called"
	}
	var b strings.Builder
	for i, c := range s.calls {
		if i == maxCallsShown {
			fmt.Fprintf(&b, "\n  … and %d more", len(s.calls)-i)
			break
		}
		b.WriteString("\n  call " + strconv.Itoa(i+1) + ": " + t.showArgs(c.args))
		switch c.how {
		case "throw":
			b.WriteString(" threw " + t.showFlat(c.result))
		case "return":
			if !goja.IsUndefined(c.result) {
				b.WriteString(" returned " + t.showFlat(c.result))
			}
		}
	}
	return b.String()
}
