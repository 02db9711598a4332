package scripting_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/scripting"
)

// TestArguments checks the declared structure of arguments.
func TestArguments(t *testing.T) {
	count := scripting.Param{Name: "count", Kind: scripting.KindInt, Optional: true}
	url := scripting.Param{Name: "url", Kind: scripting.KindString}
	var got []scripting.Value
	f := func(p scripting.Param, want string, args ...scripting.Value) {
		t.Helper()
		fn := scripting.Function{Name: "fn", Params: []scripting.Param{p}, Fn: func(a []scripting.Value) (scripting.Value, error) {
			got = a
			return nil, nil
		}}
		_, err := fn.Call(nil, args)
		switch {
		case want == "" && err != nil:
			t.Errorf("%v: %v", args, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%v: got %v, want %q", args, err, want)
		}
	}
	options := func(kv ...any) *scripting.Map {
		m := scripting.NewMap()
		for i := 0; i < len(kv); i += 2 {
			m.Set(kv[i].(string), kv[i+1])
		}
		return m
	}
	list := func(vs ...scripting.Value) *scripting.List { return &scripting.List{Items: vs} }

	// A table with known keys.
	table := scripting.Param{Name: "options", Kind: scripting.KindMap, Fields: []scripting.Param{url, count}}
	f(table, "", options("url", "x", "count", 2.0))
	if n, _ := got[0].(*scripting.Map).Get("count"); n != int64(2) {
		t.Errorf("got %v, want a whole number", n)
	}
	f(table, `argument options has no key "cuont": did you mean count?`, options("url", "x", "cuont", 2.0))
	f(table, `argument options has no key "nonsense": there is url, count`, options("nonsense", 1))
	f(table, `argument options is wrong at "count": it must be a whole number`, options("url", "x", "count", 1.5))
	f(table, `argument options lacks the key url, a string`, options("count", 1.0))
	f(table, `argument options lacks the key url`, list()) // {} in Lua
	// Elements.
	numbers := scripting.Param{Name: "ns", Kind: scripting.KindList, Of: &count}
	f(numbers, "", list(1.0, int64(2)))
	if diff := cmp.Diff(got, []scripting.Value{list(int64(1), int64(2))}); diff != "" {
		t.Error(diff)
	}
	f(numbers, `argument ns is wrong at 2: it must be a int, not a string`, list(1.0, "x"))
	texts := scripting.Param{Name: "m", Kind: scripting.KindMap, Of: &url}
	f(texts, "", options("a", "b"))
	f(texts, `argument m is wrong at "a": it must be a string, not a number`, options("a", 1.0))
	// Alternatives.
	either := scripting.Param{Name: "v", Kind: scripting.KindString, Or: []scripting.Param{{Kind: scripting.KindNumber}}}
	f(either, "", "x")
	f(either, "", 1.0)
	f(either, "argument v must be a string or number, not a bool", true)
	// The remaining arguments.
	rest := scripting.Param{Name: "more", Kind: scripting.KindString, Rest: true}
	f(rest, "")
	f(rest, "", "a", "b")
	if diff := cmp.Diff(got, []scripting.Value{list("a", "b")}); diff != "" {
		t.Error(diff)
	}
	f(rest, "argument more must be a string, not a number", "a", 1.0)
}
