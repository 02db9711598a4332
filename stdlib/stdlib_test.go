package stdlib_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/stdlib"
)

func module(t testing.TB, name string) *scripting.Module {
	for _, m := range stdlib.Modules() {
		if m.Name == name {
			return m
		}
	}
	t.Fatalf("no module %s", name)
	return nil
}

func call(t testing.TB, fn string, args ...scripting.Value) (scripting.Value, error) {
	t.Helper()
	mod, name, _ := strings.Cut(fn, ".")
	f, ok := module(t, mod).Func(name)
	if !ok {
		t.Fatalf("no function %s", fn)
	}
	return f.Call(nil, args)
}

// plain converts a value to types that cmp and encoding/json support.
func plain(v scripting.Value) any {
	switch v := v.(type) {
	case *scripting.List:
		out := []any{}
		for _, i := range v.Items {
			out = append(out, plain(i))
		}
		return out
	case *scripting.Map:
		out := map[string]any{}
		for _, k := range v.Keys() {
			x, _ := v.Get(k)
			out[k] = plain(x)
		}
		return out
	case *scripting.Object:
		return v.Type.String(v.Data)
	}
	if v == scripting.Null {
		return "<null>"
	}
	return v
}

// luaKeywords cannot be names of functions.
var luaKeywords = map[string]bool{
	"and": true, "break": true, "do": true, "else": true, "elseif": true, "end": true, "false": true, "for": true,
	"function": true, "goto": true, "if": true, "in": true, "local": true, "nil": true, "not": true, "or": true,
	"repeat": true, "return": true, "then": true, "true": true, "until": true, "while": true,
}

// TestTable: everything that a script can call is documented and has a correct
// example.
func TestTable(t *testing.T) {
	check := func(where string, m *scripting.Module, f scripting.Function) {
		t.Helper()
		if f.Doc == "" || f.Result.Doc == "" || len(f.Examples) == 0 || f.Fn == nil {
			t.Errorf("%s: Doc, Result.Doc, Examples or Fn is missing", where)
		}
		if luaKeywords[f.Name] {
			t.Errorf("%s: Lua scripts cannot call it, because %s is a keyword of Lua: use another name", where, f.Name)
		}
		for _, p := range f.Params {
			if p.Name == "" || p.Doc == "" || p.Kind == scripting.KindObject && p.Type == nil {
				t.Errorf("%s: Name, Doc or Type of parameter %q is missing", where, p.Name)
			}
		}
		failing := false
		for _, e := range f.Examples {
			var self *scripting.Object
			if e.Self != nil && strings.Contains(where, ":") {
				typ := m.Types[0]
				maker, _ := m.Func(typ.New)
				v, err := maker.Call(nil, append([]scripting.Value(nil), e.Self...))
				if err != nil {
					t.Fatalf("%s: cannot make its object: %v", where, err)
				}
				self = v.(*scripting.Object)
			}
			got, err := f.Call(self, append([]scripting.Value(nil), e.Args...))
			if e.Err != "" {
				failing = true
				if err == nil || !strings.Contains(err.Error(), e.Err) {
					t.Errorf("%s(%v): got error %v, want %q", where, e.Args, err, e.Err)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s(%v): %v", where, e.Args, err)
				continue
			}
			if diff := cmp.Diff(plain(e.Want), plain(got)); diff != "" {
				t.Errorf("%s(%v) (-want +got):\n%s", where, e.Args, diff)
			}
		}
		if failing && !f.Result.Fails {
			t.Errorf("%s: an example ends in an error, but Result.Fails is false: set it to true", where)
		}
	}
	for _, m := range stdlib.Modules() {
		if m.Name == "" || m.Doc == "" || len(m.Funcs) == 0 {
			t.Errorf("module %q lacks a name, a doc or functions", m.Name)
		}
		for _, c := range m.Consts {
			if c.Name == "" || c.Doc == "" || c.Value == nil {
				t.Errorf("%s: constant %q lacks a name, a doc or a value", m.Name, c.Name)
			}
		}
		for _, f := range m.Funcs {
			check(m.Name+"."+f.Name, m, f)
		}
		for _, typ := range m.Types {
			if typ.Doc == "" || typ.String == nil || typ.New == "" {
				t.Errorf("type %s lacks a doc, a text form or a maker", typ.Name)
			}
			for _, f := range typ.Methods {
				check(typ.Name+":"+f.Name, m, f)
			}
		}
	}
}

func TestArguments(t *testing.T) {
	f := func(fn, want string, args ...scripting.Value) {
		t.Helper()
		_, err := call(t, fn, args...)
		if _, ok := err.(*scripting.ArgError); !ok || !strings.Contains(err.Error(), want) {
			t.Errorf("%s%v: got error %v, want a wrong argument: %q", fn, args, err, want)
		}
	}
	f("re.match", "argument pattern is missing; it is a string")
	f("re.match", "argument s must be a string, not a number", "a", 1.0)
	f("re.match", "argument s must be a string, not a null", "a", scripting.Null)
	f("re.match", "it takes 2 arguments, not 3", "a", "b", "c")
	f("re.split", "argument max must be a whole number", "a", "b", 1.5)
	f("re.split", "argument max must be a whole number", "a", "b", 9.3e18)
	f("time.format", "must be a int, not a list", &scripting.List{})
	f("json.array", "must be a list, not a map", func() *scripting.Map { m := scripting.NewMap(); m.Set("a", true); return m }())
	f("json.decode", "is longer than", strings.Repeat(" ", scripting.MaxString+1))

	if _, err := call(t, "re.split", ",", "a,b", 2.0); err != nil {
		t.Errorf("a whole float is no int: %v", err)
	}
	if v, err := call(t, "json.array", scripting.NewMap()); err != nil || len(v.(*scripting.List).Items) != 0 {
		t.Errorf("an empty map is no empty list: %v, %v", v, err)
	}
}

func TestRe(t *testing.T) {
	fails := func(fn, want string, args ...scripting.Value) {
		t.Helper()
		if _, err := call(t, fn, args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want %q", fn, err, want)
		}
	}
	fails("re.compile", "the limit is 8192", strings.Repeat("a", 9000))
	fails("re.compile", `cannot compile pattern "(?=x)": invalid or unsupported Perl syntax`, "(?=x)")
	for _, fn := range []string{"re.match", "re.find", "re.split"} {
		fails(fn, "at most 4185 bytes", "(a?){1000}b", strings.Repeat("a", 1<<20))
	}
	fails("re.replace", "at most 4185 bytes", "(a?){1000}b", strings.Repeat("a", 1<<20), "")
	fails("re.replace", "more than 100000 matches", "a", strings.Repeat("a", 100_001), "$0$0")
	fails("re.replace", "longer than 8388608 bytes", ".+", strings.Repeat("a", 1<<20), strings.Repeat("$0", 9))
	fails("re.replace", "longer than 8388608 bytes", "a", strings.Repeat("a", 90_000), strings.Repeat("b", 100))
	fails("re.replace", "longer than 8388608 bytes", "^b", "b"+strings.Repeat("a", 3<<20), strings.Repeat("b", 6<<20))
	fails("re.split", "more than 100000 parts", ",", strings.Repeat(",", 100_001))
	fails("re.split", "cannot split into 0 parts", ",", "a", int64(0))

	// Both ways of replacing have the same result.
	for _, in := range []string{"", "a", "/1/22/x", "ä1ö"} {
		for _, p := range []string{`\d+`, ``, `^/`, `\b`} {
			one, err1 := call(t, "re.replace", p, in, "<>")
			two, err2 := call(t, "re.replace", p, in, "<${none}>")
			if err1 != nil || err2 != nil || one != two {
				t.Errorf("%q in %q: %q, %v and %q, %v", p, in, one, err1, two, err2)
			}
		}
	}

	// More patterns than the cache can hold.
	for i := range 2500 {
		p := strings.Repeat("a", i%1500)
		if v, err := call(t, "re.match", "^"+p+"$", p); err != nil || v != true {
			t.Fatalf("pattern %d: %v, %v", i, v, err)
		}
	}
}

func TestJSONRoundTrip(t *testing.T) {
	f := func(in string) {
		t.Helper()
		v, err := call(t, "json.decode", in)
		if err != nil {
			t.Errorf("%s: %v", in, err)
			return
		}
		out, err := call(t, "json.encode", v)
		if err != nil || out != in {
			t.Errorf("got %v, %v, want %s", out, err, in)
		}
	}
	f(`null`)
	f(`[]`)
	f(`{}`)
	f(`{"z":null,"a":[],"m":{},"b":[null,[[]]]}`)
	f(`9223372036854775807`)
	f(`-9223372036854775808`)
	f(`[1,1.5,-0,1e+21,true,false,""]`)
	f(`"<a href=\"x\">&\u0001\n ä \u2028"`)
	f(strings.Repeat("[", 100) + strings.Repeat("]", 100))

	fails := func(fn, want string, args ...scripting.Value) {
		t.Helper()
		if _, err := call(t, fn, args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want %q", fn, err, want)
		}
	}
	fails("json.decode", "unexpected end", ``)
	fails("json.decode", "unexpected end", `[1`)
	fails("json.decode", "cannot decode JSON: invalid character", `{a:1}`)
	fails("json.decode", "invalid character", `[1,]`)
	fails("json.decode", "invalid character", `[1 2]`)
	fails("json.decode", "unexpected data after the value", `1]`)
	fails("json.decode", "number 1e999 is out of range", `1e999`)
	fails("json.decode", "more than 100 levels", strings.Repeat("[", 101)+strings.Repeat("]", 101))
	fails("json.decode", "more than 100 levels", strings.Repeat("[", 1_000_000))
	fails("json.decode", "more than 500000 values", "["+strings.Repeat("0,", 500_000)+"0]")

	cycle := &scripting.List{}
	cycle.Items = []scripting.Value{cycle}
	fails("json.encode", "more than 100 levels", cycle)
	fails("json.encode", "NaN has no JSON form", nan())
	fails("json.encode", "a function has no JSON form", scripting.Callback(nil))
	big := &scripting.List{Items: []scripting.Value{strings.Repeat("x", 5<<20), strings.Repeat("x", 5<<20)}}
	fails("json.encode", "longer than 8388608 bytes", big)
	wide := &scripting.List{}
	for range 200_000 {
		wide.Items = append(wide.Items, &scripting.List{Items: []scripting.Value{int64(1)}})
	}
	fails("json.encode", "longer than 8388608 bytes", wide, strings.Repeat(" ", 16))
	fails("json.encode", "indent must have at most 16 spaces", wide, "x")
	re, _ := call(t, "re.compile", "a")
	fails("json.encode", "a re.Pattern has no JSON form", re)
}

func nan() float64 { z := 0.0; return z / z }

func isNumbers(a, b any) bool { return number(a) && number(b) }

func number(v any) bool {
	switch v.(type) {
	case int64, float64:
		return true
	}
	return false
}

func equalNumbers(a, b any) bool {
	float := func(v any) float64 {
		if i, ok := v.(int64); ok {
			return float64(i)
		}
		return v.(float64)
	}
	return a == b || float(a) == float(b)
}

func FuzzJSON(f *testing.F) {
	for _, s := range []string{`{"a":[1,2.5,null,{}],"a":3}`, `"\ud800"`, `1e5`, `-0.0`, "\"\xff\""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, err := call(t, "json.decode", s)
		if (err == nil) != json.Valid([]byte(s)) && err != nil &&
			!strings.Contains(err.Error(), "out of range") && !strings.Contains(err.Error(), "more than") {
			t.Fatalf("%q: %v, but encoding/json takes it", s, err)
		}
		if err != nil {
			return
		}
		if !json.Valid([]byte(s)) {
			t.Fatalf("%q decoded, but encoding/json refuses it", s)
		}
		out, err := call(t, "json.encode", v)
		if err != nil {
			t.Fatalf("%q: %v", s, err)
		}
		again, err := call(t, "json.decode", out)
		if err != nil {
			t.Fatalf("%q became %q: %v", s, out, err)
		}
		// 1e5 becomes the integer 100000: there is only one type of number.
		if diff := cmp.Diff(plain(v), plain(again), cmp.FilterValues(isNumbers, cmp.Comparer(equalNumbers))); diff != "" {
			t.Fatalf("%q (-first +second):\n%s", s, diff)
		}
	})
}
