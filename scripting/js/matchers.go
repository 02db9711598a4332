package js

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/dop251/goja"

	"github.com/weir-run/weir/scripting"
)

// matcher checks a value.
type matcher func(t *test, x goja.Value, a []goja.Value) verdict

// matchers are the matchers of expect(x), by their names in
// scripting/scripttest.
var matchers = map[string]matcher{
	"toBe": func(t *test, x goja.Value, a []goja.Value) verdict {
		want := argument(a, 0)
		d := t.difference(x.SameAs(want), "be", want, x)
		if !d.ok && d.want == d.got {
			d.rest = "be the very same value, not one that looks like it"
		}
		return d
	},
	"toEqual":       compared("equal", equality{}),
	"toStrictEqual": compared("strictly equal", equality{strict: true}),
	"toMatchObject": compared("match", equality{part: true}),
	"toBeTruthy":    newMatcher("be truthy", func(x goja.Value) bool { return x.ToBoolean() }),
	"toBeFalsy":     newMatcher("be falsy", func(x goja.Value) bool { return !x.ToBoolean() }),
	"toBeDefined":   newMatcher("be defined", func(x goja.Value) bool { return !goja.IsUndefined(x) }),
	"toBeUndefined": newMatcher("be undefined", goja.IsUndefined),
	"toBeNull":      newMatcher("be null", goja.IsNull),
	"toBeNullish":   newMatcher("be undefined or null", func(x goja.Value) bool { return goja.IsUndefined(x) || goja.IsNull(x) }),
	"toBeNaN":       newMatcher("be NaN", func(x goja.Value) bool { n, ok := primitive(x).(float64); return ok && math.IsNaN(n) }),
	"toBeTypeOf": func(_ *test, x goja.Value, a []goja.Value) verdict {
		return verdict{ok: typeOf(x) == argument(a, 0).String(), rest: "be of type " + argument(a, 0).String()}
	},
	"toBeInstanceOf":         instanceOf,
	"toBeOneOf":              oneOf,
	"toBeGreaterThan":        order("be greater than", func(c int) bool { return c > 0 }),
	"toBeGreaterThanOrEqual": order("be at least", func(c int) bool { return c >= 0 }),
	"toBeLessThan":           order("be less than", func(c int) bool { return c < 0 }),
	"toBeLessThanOrEqual":    order("be at most", func(c int) bool { return c <= 0 }),
	"toBeCloseTo": func(t *test, x goja.Value, a []goja.Value) verdict {
		if !goja.IsNumber(x) || !goja.IsNumber(argument(a, 0)) {
			t.v.raise(errors.New("cannot use toBeCloseTo on what is no number"))
		}
		return verdict{ok: t.isClose(x, a), rest: "be close to " + argument(a, 0).String()}
	},
	"toContain": contain, "toContainEqual": containEqual,
	"toHaveLength": haveLength, "toHaveProperty": haveProperty,
	"toMatch": match, "toSatisfy": satisfy, "toMatchSnapshot": matchSnapshot,
	"toThrow": throws, "toThrowError": throws,

	"toHaveBeenCalled":      called("have been called", func(_ *test, s *spy, _ []goja.Value) bool { return len(s.calls) > 0 }),
	"toHaveBeenCalledOnce":  called("have been called once", func(_ *test, s *spy, _ []goja.Value) bool { return len(s.calls) == 1 }),
	"toHaveBeenCalledTimes": called("have been called this often:", func(_ *test, s *spy, a []goja.Value) bool { return len(s.calls) == times(a) }),
	"toHaveBeenCalledWith": called("have been called with", func(t *test, s *spy, a []goja.Value) bool {
		return slices.ContainsFunc(s.calls, func(c *spyCall) bool { return t.sameArgs(c, a) })
	}),
	"toHaveBeenCalledExactlyOnceWith": called("have been called once, and with", func(t *test, s *spy, a []goja.Value) bool {
		return len(s.calls) == 1 && t.sameArgs(s.calls[0], a)
	}),
	"toHaveBeenLastCalledWith": called("have been called last with", func(t *test, s *spy, a []goja.Value) bool {
		return len(s.calls) > 0 && t.sameArgs(s.calls[len(s.calls)-1], a)
	}),
	"toHaveBeenNthCalledWith": called("have been called, in this call, with", func(t *test, s *spy, a []goja.Value) bool {
		n := times(a)
		return n > 0 && n <= len(s.calls) && t.sameArgs(s.calls[n-1], a[1:])
	}),
	"toHaveReturned":      called("have returned", func(_ *test, s *spy, _ []goja.Value) bool { return len(s.returned()) > 0 }),
	"toHaveReturnedTimes": called("have returned this often:", func(_ *test, s *spy, a []goja.Value) bool { return len(s.returned()) == times(a) }),
	"toHaveReturnedWith": called("have returned", func(t *test, s *spy, a []goja.Value) bool {
		return slices.ContainsFunc(s.returned(), func(c *spyCall) bool { return t.equal(c.result, argument(a, 0), equality{}) })
	}),
	"toHaveLastReturnedWith": called("have returned last", func(t *test, s *spy, a []goja.Value) bool {
		return len(s.calls) > 0 && s.calls[len(s.calls)-1].returnedEqual(t, argument(a, 0))
	}),
	"toHaveNthReturnedWith": called("have returned, from this call,", func(t *test, s *spy, a []goja.Value) bool {
		n := times(a)
		return n > 0 && n <= len(s.calls) && s.calls[n-1].returnedEqual(t, argument(a, 1))
	}),
}

func newMatcher(rest string, holds func(x goja.Value) bool) matcher {
	return func(_ *test, x goja.Value, _ []goja.Value) verdict { return verdict{ok: holds(x), rest: rest} }
}

// compared returns a matcher for equality. It shows a difference by lines.
func compared(rest string, e equality) matcher {
	return func(t *test, x goja.Value, a []goja.Value) verdict {
		want := argument(a, 0)
		if host(x) != nil && (host(want) != nil || goja.IsString(want)) {
			err := t.api.Same(plain(want), host(x))
			return verdict{ok: err == nil, rest: rest + " the other", err: err}
		}
		return t.difference(t.equal(x, want, e), rest, want, x)
	}
}

// host returns the host object of a script's value, or nil if there is none.
func host(x goja.Value) *scripting.Object {
	o, _ := boxed(x).(*scripting.Object)
	return o
}

// plain converts a string or a host object.
func plain(x goja.Value) scripting.Value {
	if h := host(x); h != nil {
		return h
	}
	return x.String()
}

// difference returns the verdict on two values that should be equal.
func (t *test) difference(ok bool, rest string, want, got goja.Value) verdict {
	if ok {
		return verdict{ok: true, rest: rest + " " + t.subject(want)}
	}
	w, g := t.show(want), t.show(got)
	if strings.Contains(w+g, "\n") {
		w, g = t.showDeep(want), t.showDeep(got)
		return verdict{rest: rest + " another", want: w, got: g}
	}
	return verdict{rest: rest + " " + w, want: w, got: g}
}

// order returns a matcher that compares numbers.
func order(rest string, holds func(cmp int) bool) matcher {
	return func(t *test, x goja.Value, a []goja.Value) verdict {
		d := verdict{rest: rest + " " + t.showFlat(argument(a, 0))}
		got, ok1 := exactNumber(x)
		want, ok2 := exactNumber(argument(a, 0))
		d.ok = ok1 && ok2 && holds(got.Cmp(want))
		return d
	}
}

// isClose reports whether a number is within half a unit of a decimal digit.
func (t *test) isClose(x goja.Value, a []goja.Value) bool {
	digits := 2.0
	if d := argument(a, 1); !goja.IsUndefined(d) {
		digits = d.ToFloat()
	}
	got, want := x.ToFloat(), argument(a, 0).ToFloat()
	return got == want || math.Abs(got-want) < math.Pow(10, -digits)/2
}

func contain(t *test, x goja.Value, a []goja.Value) verdict {
	item := argument(a, 0)
	d := verdict{rest: "contain " + t.subject(item)}
	if goja.IsString(x) {
		d.ok = goja.IsString(item) && strings.Contains(x.String(), item.String())
		return d
	}
	items, ok := t.items(x)
	if !ok {
		t.v.raise(fmt.Errorf("cannot look for an element in %s", kindOf(x)))
	}
	d.ok = t.anyMatches(items, func(i goja.Value) bool { return i.StrictEquals(item) || i.SameAs(item) })
	return d
}

func containEqual(t *test, x goja.Value, a []goja.Value) verdict {
	items, ok := t.items(x)
	if !ok {
		t.v.raise(fmt.Errorf("cannot look for an element in %s", kindOf(x)))
	}
	item := argument(a, 0)
	return verdict{ok: t.anyMatches(items, func(i goja.Value) bool { return t.equal(i, item, equality{}) }), rest: "contain what equals " + t.subject(item)}
}

func haveLength(t *test, x goja.Value, a []goja.Value) verdict {
	var n goja.Value
	if goja.IsString(x) || objectOf(x) != nil {
		n = x.ToObject(t.v.rt).Get("length")
	}
	if n == nil {
		t.v.raise(fmt.Errorf("cannot take the length of %s", kindOf(x)))
	}
	d := verdict{ok: n.SameAs(argument(a, 0)), rest: "have length " + argument(a, 0).String()}
	if !d.ok {
		d.rest += ", it has " + n.String()
	}
	return d
}

func haveProperty(t *test, x goja.Value, a []goja.Value) verdict {
	path, ok := t.items(argument(a, 0))
	if !ok {
		path = nil
		text := strings.NewReplacer("[", ".", "]", "").Replace(argument(a, 0).String())
		for key := range strings.SplitSeq(text, ".") {
			path = append(path, t.v.rt.ToValue(key))
		}
	}
	d := verdict{rest: "have the property " + t.showFlat(argument(a, 0))}
	at := x
	for _, key := range path {
		o := objectOf(at)
		if o == nil || o.Get(key.String()) == nil {
			return d
		}
		at = o.Get(key.String())
	}
	if len(a) < 2 {
		d.ok = true
		return d
	}
	return t.difference(t.equal(at, a[1], equality{}), d.rest+" with", a[1], at)
}

func match(t *test, x goja.Value, a []goja.Value) verdict {
	if !goja.IsString(x) {
		t.v.raise(fmt.Errorf("cannot match %s: toMatch takes a string", kindOf(x)))
	}
	return verdict{ok: t.matches(argument(a, 0), x), rest: "match " + t.show(argument(a, 0))}
}

func satisfy(t *test, x goja.Value, a []goja.Value) verdict {
	fn, ok := goja.AssertFunction(argument(a, 0))
	if !ok {
		t.v.raise(errors.New("cannot use toSatisfy without a function: write toSatisfy((x) => …)"))
	}
	out, err := fn(goja.Undefined(), x)
	t.v.must(err)
	return verdict{ok: out.ToBoolean(), rest: "satisfy the function"}
}

func oneOf(t *test, x goja.Value, a []goja.Value) verdict {
	items, ok := t.items(argument(a, 0))
	if !ok {
		t.v.raise(errors.New("cannot use toBeOneOf without a list"))
	}
	return verdict{ok: t.anyMatches(items, func(i goja.Value) bool { return t.equal(x, i, equality{}) }), rest: "be one of " + t.show(argument(a, 0))}
}

func instanceOf(t *test, x goja.Value, a []goja.Value) verdict {
	class := objectOf(argument(a, 0))
	if class == nil || !isFunction(class) {
		t.v.raise(errors.New("cannot use toBeInstanceOf without a class"))
	}
	return verdict{ok: t.v.rt.InstanceOf(x, class), rest: "be made by " + class.Get("name").String()}
}

// typeOf returns the result of typeof.
func typeOf(x goja.Value) string {
	switch {
	case goja.IsUndefined(x):
		return "undefined"
	case goja.IsString(x):
		return "string"
	case goja.IsNumber(x):
		return "number"
	case goja.IsBigInt(x):
		return "bigint"
	case isBoolean(x):
		return "boolean"
	case isSymbol(x):
		return "symbol"
	case isFunction(x):
		return "function"
	}
	return "object"
}

// throws calls a function and checks the error that it throws.
func throws(t *test, x goja.Value, a []goja.Value) verdict {
	fn, ok := goja.AssertFunction(x)
	if !ok {
		t.v.raise(fmt.Errorf("cannot look whether %s throws: write expect(() => …).toThrow()", kindOf(x)))
	}
	out, err := fn(goja.Undefined())
	if err == nil {
		d := t.threw(nil, a)
		if promiseOf(out) != nil {
			d.rest += ": it returned a promise; write await expect(…).rejects.toThrow()"
		}
		return d
	}
	ex, ok := err.(*goja.Exception)
	if !ok || t.v.budget.err() != nil {
		t.v.raise(err) // a limit, which must not be caught
	}
	return t.threw(ex.Value(), a)
}

// threw returns the verdict on a thrown value; nil means that nothing was
// thrown.
func (t *test) threw(thrown goja.Value, a []goja.Value) verdict {
	want := argument(a, 0)
	d := verdict{rest: "throw"}
	if thrown == nil {
		if !goja.IsUndefined(want) {
			d.rest += " " + t.subject(want) + ", it returned"
		}
		return d
	}
	msg := t.thrownMessage(thrown)
	said := func(ok bool, what string) verdict {
		d := verdict{ok: ok, rest: "throw " + what}
		if !ok {
			d.want, d.got = what, msg
		}
		return d
	}
	w := objectOf(want)
	switch {
	case goja.IsUndefined(want):
		return verdict{ok: true, rest: "throw, it threw " + strconv.Quote(msg)}
	case goja.IsString(want):
		return said(strings.Contains(msg, want.String()), want.String())
	case w == nil:
		t.v.raise(fmt.Errorf("cannot compare an error with %s: write a part of its message, a regular expression, a class or an error", kindOf(want)))
	case t.likes[w] != nil:
		return said(t.likes[w].is(thrown) != t.likes[w].negated, t.likes[w].String())
	case w.ClassName() == "RegExp":
		return said(t.matches(want, t.v.rt.ToValue(msg)), want.String())
	case isFunction(want):
		return said(t.v.rt.InstanceOf(thrown, w), "a "+w.Get("name").String())
	case w.ClassName() == "Error":
		return said(msg == t.thrownMessage(want), t.thrownMessage(want))
	}
	return t.difference(t.equal(thrown, want, equality{part: true}), "throw", want, thrown)
}

// thrownMessage returns the message of an error, without its name.
func (t *test) thrownMessage(x goja.Value) string {
	if o := objectOf(x); o != nil {
		if m := o.Get("message"); m != nil {
			return m.String()
		}
	}
	return orUndefined(x).String()
}

// matchSnapshot compares a value with the next snapshot of the test.
func matchSnapshot(t *test, x goja.Value, a []goja.Value) verdict {
	name := argument(a, 0)
	if !goja.IsUndefined(name) && !goja.IsString(name) {
		t.v.raise(fmt.Errorf("cannot use %s as the name of a snapshot: write expect(x).toMatchSnapshot(\"a name\")", kindOf(name)))
	}
	var got scripting.Value
	shown, label := "", ""
	switch {
	case goja.IsString(x):
		got = x.String()
	case host(x) != nil:
		got = host(x)
	default:
		shown = t.showAll(x)
	}
	if goja.IsString(name) {
		label = name.String()
	}
	err := t.api.Snapshot(got, shown, label)
	return verdict{ok: err == nil, rest: "match its snapshot", err: err}
}
