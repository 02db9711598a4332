package js

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/dop251/goja"

	"github.com/weir-run/weir/scripting"
)

// expects contains the data that the expectations of a test file share.
type expects struct {
	value  *goja.Symbol                   // key of the value that an expectation checks
	what   *goja.Symbol                   // key of the message of an expectation
	protos map[way]*goja.Object           // prototypes of expectations
	likes  map[*goja.Object]*like         // asymmetric matchers
	count  int                            // of the current test
	wanted func(count int) (string, bool) // nil: any number
}

// way is how an expectation checks its value.
type way struct {
	negated bool
	settled string // resolves, rejects, or "" for the value itself
}

// verdict is the result of a matcher.
type verdict struct {
	ok bool
	// rest completes the sentence "expected x to …".
	rest string
	// want and got are shown as a difference by lines if a sentence is not enough.
	want, got string
	// err is the complete error of a check by the host.
	err error
}

// openExpect creates expect.
func (t *test) openExpect() *goja.Object {
	v := t.v
	t.value, t.what = goja.NewSymbol("value"), goja.NewSymbol("message")
	t.protos = map[way]*goja.Object{}
	for _, negated := range []bool{false, true} {
		for _, settled := range []string{"", "resolves", "rejects"} {
			t.protos[way{negated, settled}] = v.rt.NewObject()
		}
	}
	for w, p := range t.protos {
		t.openExpectation(w, p)
	}
	expect := v.function1("expect", func(call goja.FunctionCall) goja.Value {
		return t.expectation(way{}, call.Argument(0), labelOf(call.Argument(1)))
	})
	not := v.rt.NewObject()
	names := []string{"not"}
	for i := range t.api.Expect {
		name := scripting.CamelCase(t.api.Expect[i].Name)
		names = append(names, name)
		if alike, ok := alikes[name]; ok {
			v.method(expect, name, func(call goja.FunctionCall) goja.Value { return t.newAsymmetric(name, alike, false, call.Arguments) })
			v.method(not, name, func(call goja.FunctionCall) goja.Value { return t.newAsymmetric(name, alike, true, call.Arguments) })
			continue
		}
		do := counted[name]
		v.method(expect, name, func(call goja.FunctionCall) goja.Value {
			do(t, call)
			return goja.Undefined()
		})
	}
	v.put(expect, "not", t.guarded(not, "expect.not.", names))
	return t.guarded(expect, "expect.", names)
}

// openExpectation creates the prototype of expectations for one way.
func (t *test) openExpectation(w way, p *goja.Object) {
	v := t.v
	var names []string
	for i := range t.api.Matchers {
		name := scripting.CamelCase(t.api.Matchers[i].Name)
		names = append(names, name)
		check, ok := matchers[name]
		if !ok {
			panic("BUG: there is no matcher " + name)
		}
		v.method(p, name, func(call goja.FunctionCall) goja.Value {
			x, what := t.subjectOf(call.This, name)
			t.count++
			if w.negated && name == "toMatchSnapshot" {
				v.raise(errors.New("cannot negate toMatchSnapshot"))
			}
			if w.settled != "" {
				return t.checkPromise(w, name, what, check, x, call.Arguments)
			}
			v.must(t.failureOf(w, what, x, check(t, x, call.Arguments)))
			return goja.Undefined()
		})
	}
	turn := func(name string, to way) {
		names = append(names, name)
		get := v.function1(name, func(call goja.FunctionCall) goja.Value {
			x, what := t.subjectOf(call.This, name)
			return t.expectation(to, x, what)
		})
		v.must(p.DefineAccessorProperty(name, get, nil, goja.FLAG_FALSE, goja.FLAG_FALSE))
	}
	turn("not", way{!w.negated, w.settled})
	if w.settled == "" {
		turn("resolves", way{w.negated, "resolves"})
		turn("rejects", way{w.negated, "rejects"})
	}
	t.guarded(p, "", names)
}

// guarded makes reading an unknown name of an API object an error with a hint.
func (t *test) guarded(o *goja.Object, prefix string, names []string) *goja.Object {
	return t.v.guard(o, func(name string) error {
		if hint := t.api.Unknown(prefix+name, names); hint != "" {
			return fmt.Errorf("there is no %s here: %s", prefix+name, hint)
		}
		return fmt.Errorf("there is no %s here: there is %s", prefix+name, strings.Join(names, ", "))
	})
}

// labelOf returns the message of expect(x, message), or "".
func labelOf(x goja.Value) string {
	if absentValue(x) {
		return ""
	}
	return x.String()
}

// expectation returns the result of expect(x, what).
func (t *test) expectation(w way, x goja.Value, what string) goja.Value {
	o := t.v.rt.NewObject()
	t.v.must(o.SetPrototype(t.protos[w]))
	t.v.must(o.SetSymbol(t.value, x))
	if what != "" {
		t.v.must(o.SetSymbol(t.what, what))
	}
	return o
}

// subjectOf returns the value that an expectation checks, and its message.
func (t *test) subjectOf(this goja.Value, name string) (x goja.Value, what string) {
	o := objectOf(this)
	if o == nil || o.GetSymbol(t.value) == nil {
		t.v.raise(fmt.Errorf("cannot call %s without an expectation: write expect(x).%s", name, name))
	}
	if m := o.GetSymbol(t.what); m != nil {
		what = m.String()
	}
	return o.GetSymbol(t.value), what
}

// fail returns the error of a failed expectation with a message.
func (t *test) fail(what, msg, want, got string) error {
	if what != "" {
		msg = what + ": " + msg
	}
	return t.api.Fail(msg, want, got)
}

// failureOf returns the error for a verdict, or nil if it did not fail.
func (t *test) failureOf(w way, what string, x goja.Value, d verdict) error {
	if d.ok != w.negated {
		return nil
	}
	if d.err != nil {
		if what != "" {
			return fmt.Errorf("%s: %w", what, d.err)
		}
		return d.err
	}
	not := ""
	if w.negated {
		not = "not "
		d.want, d.got = "", ""
	}
	return t.fail(what, fmt.Sprintf("expected %s %sto %s", t.subject(x), not, d.rest), d.want, d.got)
}

// subject formats a value for the beginning of a sentence.
func (t *test) subject(x goja.Value) string {
	if s := t.showFlat(x); len(s) <= maxFlat && !strings.Contains(s, "\n") {
		return s
	}
	return kindOf(x)
}

// checkPromise checks the result of a promise.
func (t *test) checkPromise(w way, name, what string, check matcher, x goja.Value, args []goja.Value) goja.Value {
	v := t.v
	args = slices.Clone(args) // for the same reason as in newAsymmetric
	if call, ok := goja.AssertFunction(x); ok && w.settled == "rejects" {
		out, err := call(goja.Undefined())
		v.must(err)
		x = out
	}
	p := objectOf(x)
	if promiseOf(x) == nil {
		v.raise(fmt.Errorf("cannot use %s: it takes a promise, not %s", w.settled, kindOf(x)))
	}
	// The test is not on the stack when the promise is settled.
	at, line, col := v.callerPosition()
	say := func(err error) goja.Value {
		if err != nil && at != nil {
			e := at.file.Error(line, "", err)
			e.Col = col
			err = e
		}
		v.must(err)
		return goja.Undefined()
	}
	good := v.function1("", func(call goja.FunctionCall) goja.Value {
		got := call.Argument(0)
		if w.settled == "rejects" {
			return say(t.fail(what, "expected the promise to be rejected, it gave "+t.subject(got), "", ""))
		}
		return say(t.failureOf(w, what, got, check(t, got, args)))
	})
	bad := v.function1("", func(call goja.FunctionCall) goja.Value {
		why := call.Argument(0)
		switch {
		case w.settled == "resolves":
			return say(t.fail(what, "expected the promise to give a value, it was rejected: "+v.message(why), "", ""))
		case name == "toThrow" || name == "toThrowError":
			return say(t.failureOf(w, what, why, t.threw(why, args)))
		}
		return say(t.failureOf(w, what, why, check(t, why, args)))
	})
	return t.call(p, "then", good, bad)
}

// counted are the functions of expect that set the expected number of
// expectations.
var counted = map[string]func(t *test, call goja.FunctionCall){
	"assertions": func(t *test, call goja.FunctionCall) {
		want := int(call.Argument(0).ToInteger())
		t.wanted = func(n int) (string, bool) {
			return fmt.Sprintf("expected %d expectations to be checked, there were %d", want, n), n == want
		}
	},
	"hasAssertions": func(t *test, _ goja.FunctionCall) {
		t.wanted = func(n int) (string, bool) { return "expected an expectation to be checked, there was none", n > 0 }
	},
	"unreachable": func(t *test, call goja.FunctionCall) {
		msg := "this line must not be reached"
		if m := call.Argument(0); !goja.IsUndefined(m) {
			msg += ": " + m.String()
		}
		t.v.raise(t.api.Fail(msg, "", ""))
	},
}

// checked returns an error if the test made fewer or more checks than
// announced.
func (t *test) checked() error {
	if t.wanted == nil {
		return nil
	}
	if msg, ok := t.wanted(t.count); !ok {
		return t.api.Fail(msg, "", "")
	}
	return nil
}

// like is an asymmetric matcher, which matches values in comparisons.
type like struct {
	name    string
	negated bool
	of      string // the text of its argument
	is      func(x goja.Value) bool
}

// String returns the text for failures.
func (l *like) String() string {
	name := strings.ToUpper(l.name[:1]) + l.name[1:]
	if l.negated {
		name = "Not" + name
	}
	if l.of == "" {
		return name
	}
	return name + "<" + l.of + ">"
}

// newAsymmetric creates the object of an asymmetric matcher.
func (t *test) newAsymmetric(name string, build func(t *test, a []goja.Value) func(goja.Value) bool, negated bool, args []goja.Value) goja.Value {
	args = slices.Clone(args) // goja reuses its arguments after the call
	o := t.v.rt.NewObject()
	l := &like{name: name, negated: negated, is: build(t, args)}
	parts := []string{}
	for _, a := range args {
		if fn := objectOf(a); fn != nil && name == "any" {
			parts = append(parts, fn.Get("name").String())
			continue
		}
		parts = append(parts, t.showFlat(a))
	}
	l.of = strings.Join(parts, ", ")
	t.likes[o] = l
	return o
}

// argument returns the argument at an index, or undefined if it does not exist.
func argument(a []goja.Value, i int) goja.Value {
	if i < len(a) {
		return a[i]
	}
	return goja.Undefined()
}

// alikes create the functions of asymmetric matchers.
var alikes = map[string]func(t *test, a []goja.Value) func(goja.Value) bool{
	"anything": func(*test, []goja.Value) func(goja.Value) bool {
		return func(x goja.Value) bool { return !goja.IsUndefined(x) && !goja.IsNull(x) }
	},
	"any": func(t *test, a []goja.Value) func(goja.Value) bool {
		class := objectOf(argument(a, 0))
		if class == nil {
			t.v.raise(errors.New("cannot use expect.any without a class: write expect.any(Number)"))
		}
		return func(x goja.Value) bool { return t.madeBy(x, class) }
	},
	"objectContaining": func(t *test, a []goja.Value) func(goja.Value) bool {
		return func(x goja.Value) bool {
			o, want := objectOf(x), objectOf(argument(a, 0))
			if o == nil || want == nil {
				return false
			}
			for _, k := range want.Keys() {
				if o.Get(k) == nil || !t.equal(o.Get(k), want.Get(k), equality{}) {
					return false
				}
			}
			return true
		}
	},
	"arrayContaining": func(t *test, a []goja.Value) func(goja.Value) bool {
		return func(x goja.Value) bool {
			items, ok := t.items(x)
			want, _ := t.items(argument(a, 0))
			for _, w := range want {
				ok = ok && t.anyMatches(items, func(i goja.Value) bool { return t.equal(i, w, equality{}) })
			}
			return ok
		}
	},
	"stringContaining": func(t *test, a []goja.Value) func(goja.Value) bool {
		return func(x goja.Value) bool {
			return goja.IsString(x) && strings.Contains(x.String(), argument(a, 0).String())
		}
	},
	"stringMatching": func(t *test, a []goja.Value) func(goja.Value) bool {
		return func(x goja.Value) bool { return goja.IsString(x) && t.matches(argument(a, 0), x) }
	},
	"closeTo": func(t *test, a []goja.Value) func(goja.Value) bool {
		return func(x goja.Value) bool { return goja.IsNumber(x) && t.isClose(x, a) }
	},
}

// madeBy reports whether a value is an instance of a class. A primitive value
// is an instance of the class that boxes it.
func (t *test) madeBy(x goja.Value, class *goja.Object) bool {
	kinds := map[string]bool{
		"String": goja.IsString(x), "Number": goja.IsNumber(x), "BigInt": goja.IsBigInt(x),
		"Boolean": isBoolean(x), "Symbol": isSymbol(x),
		"Function": isFunction(x), "Object": objectOf(x) != nil,
	}
	if name := class.Get("name"); name != nil && kinds[name.String()] && class == objectOf(t.v.rt.GlobalObject().Get(name.String())) {
		return true
	}
	return t.v.rt.InstanceOf(x, class)
}

func isSymbol(x goja.Value) bool { _, ok := x.(*goja.Symbol); return ok }

// items returns the elements of an array or an iterable.
func (t *test) items(x goja.Value) (out []goja.Value, ok bool) {
	o := objectOf(x)
	if o == nil || o.ClassName() != "Array" && o.GetSymbol(goja.SymIterator) == nil {
		return nil, false
	}
	t.v.rt.ForOf(o, func(x goja.Value) bool {
		t.v.must(t.v.budget.charge(1))
		out = append(out, x)
		return true
	})
	return out, true
}

func (t *test) anyMatches(items []goja.Value, holds func(goja.Value) bool) bool {
	for _, i := range items {
		if holds(i) {
			return true
		}
	}
	return false
}

// matches reports whether a string contains a substring, or matches a regular
// expression.
func (t *test) matches(pattern, text goja.Value) bool {
	if o := objectOf(pattern); o != nil && o.ClassName() == "RegExp" {
		t.v.must(o.Set("lastIndex", 0))
		return t.call(o, "test", text).ToBoolean()
	}
	return strings.Contains(text.String(), pattern.String())
}

// exactNumber returns a number or a BigInt for an exact comparison.
func exactNumber(x goja.Value) (*big.Float, bool) {
	switch n := primitive(x).(type) {
	case int64:
		return new(big.Float).SetInt64(n), true
	case float64:
		if n != n {
			return nil, false
		}
		return big.NewFloat(n), true
	case *big.Int:
		return new(big.Float).SetPrec(uint(max(n.BitLen(), 64))).SetInt(n), true
	}
	return nil, false
}
