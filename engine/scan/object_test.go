package scan

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// way reads "a.b.0" as steps; numbers are elements.
func way(path string) (w []Step) {
	for _, n := range strings.Split(path, ".") {
		if i, err := strconv.Atoi(n); err == nil {
			w = append(w, Step{Index: i})
			continue
		}
		w = append(w, Step{Name: n, Index: -1})
	}
	return w
}

func object(s string, ways ...[]Step) ([]Value, bool) {
	var o Object
	for i, w := range ways {
		o.Add(w, i)
	}
	out := make([]Value, len(ways))
	ok := o.Find(s, out)
	return out, ok
}

func TestObject(t *testing.T) {
	f := func(text, paths, want string) {
		t.Helper()
		var ways [][]Step
		for _, p := range strings.Fields(paths) {
			ways = append(ways, way(p))
		}
		values, ok := object(text, ways...)
		var got []string
		for _, v := range values {
			if v.Kind == Missing {
				got = append(got, "-")
				continue
			}
			got = append(got, v.String())
		}
		s := strings.Join(got, " ")
		if !ok {
			s = "no"
		}
		if s != want {
			t.Errorf("%s at %s: got %s, want %s", text, paths, s, want)
		}
	}

	f(`{"level":"info","n":12,"ok":true,"no":null,"deep":{"a":[1,2]}}`, "level n ok no deep deep.a.1 gone", `1:info 2:12 3:true - 4:{"a":[1,2]} 2:2 -`)
	f(` { "a" : "x" , "b" : [ 1 , "two" , { "c" : "d" } ] } `, "b.2.c a b.1 b.3", `1:d 1:x 1:two -`)
	f(`{"a":1,"a":2}`, "a a", `2:2 2:2`) // the last counts, for all who ask
	f(`{"a":{"b":1},"a":{"c":2}}`, "a.b a.c", `- 2:2`)
	f(`{"a":{"b":1},"a":3}`, "a.b a", `- 2:3`)
	f(`{"a\u0062":"\u00e9\n\"\\\/\ud83d\ude00 12345678"}`, "ab", "1:é\n\"\\/😀 12345678")
	f(`{}`, "a", "-")
	f(` null `, "a", "-")
	f(`{"a":[],"b":{}}`, "a a.0 b", "4:[] - 4:{}")
	f(`{"0":1}`, "0", "-") // an element is no member

	// Text that is not JSON has no values.
	for _, text := range []string{
		``, ` `, `[]`, `"a"`, `1`, `nul`, `null 1`, `{"a":1`, `{"a"`, `{"a":`, `{"a":"x`, `{"a":tru}`, `{"a":01}`, `{"a":1.}`, `{"a":1}}`, `{"a":1} x`,
		`{"a":1,}`, `{,"a":1}`, `{"a" 1}`, `{"a":1 "b":2}`, `{"a":{"b" 1}}`, `{"a":[1,]}`, `{"a":[1 2]}`, `{"a":[1`, `{a:1}`, `{"a":"\x"}`, `{"a":"\u12g4"}`, `{"a":"\`,
		"{\"a\":\"1\t2\"}", "{\"a\":\"123456789\n\"}", `{"\x":1}`, `{"b":"\u1"}`,
	} {
		f(text, "a", "no")
	}
	f(`{"x":`+strings.Repeat("[", 9000)+strings.Repeat("]", 9000)+`,"a":1}`, "a", "2:1")
	f(`{"x":`+strings.Repeat("[", 20000)+strings.Repeat("]", 20000)+`,"a":1}`, "a", "no")
}

// FuzzObject compares what is found with what encoding/json decodes, of all ways
// there are and some that there are not, and what is an object.
func FuzzObject(f *testing.F) {
	for _, s := range []string{
		`{"a":{"b":[1,"x",null,true]},"c":"\u00e9"}`, `{"a":"\\\"","b":-0.0e-3}`, `{"é":{"é":" "}} `, `{"a":{"a":{"a":1}},"b":2}`,
		`{"a":1,"a":{"b":2},"a":{"c":3}}`, `null`, `{"a":[{"0":1}]}`, `{"msg":"a longer text with \t and more than eight","n":1e400}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var m map[string]json.RawMessage
		want := json.Unmarshal([]byte(s), &m) == nil
		if _, got := object(s); got != want {
			t.Fatalf("%q: got %v, want %v", s, got, want)
		}
		if !want || !utf8.ValidString(s) || strings.Contains(s, `\ud`) || strings.Contains(s, `\uD`) {
			return
		}
		var v any
		d := json.NewDecoder(strings.NewReader(s))
		d.UseNumber()
		if d.Decode(&v) != nil {
			t.Fatal("not decoded")
		}
		ways := [][]Step{way("a"), way("a.b"), way("c.0"), way("gone")}
		ways = appendWays(ways, v, nil)
		rng := rand.New(rand.NewPCG(1, uint64(len(s))))
		for len(ways) > 0 {
			n := min(len(ways), 1+rng.IntN(8))
			got, _ := object(s, ways[:n]...)
			for i, w := range ways[:n] {
				want, there := walk(v, w)
				if got[i].Kind == Raw && !json.Valid([]byte(got[i].Text)) || !sameJSON(got[i], want, there) && !twice(s) {
					t.Fatalf("%q at %v: got %v, want %v", s, w, got[i], want)
				}
			}
			ways = ways[n:]
		}
	})
}

// appendWays appends the ways to all that is in a decoded value.
func appendWays(to [][]Step, v any, at []Step) [][]Step {
	if len(at) > 5 {
		return to
	}
	add := func(s Step, sub any) {
		w := append(slices.Clone(at), s)
		to = appendWays(append(to, w), sub, w)
	}
	switch x := v.(type) {
	case map[string]any:
		for k, sub := range x {
			add(Step{Name: k, Index: -1}, sub)
		}
	case []any:
		for i, sub := range x {
			add(Step{Index: i}, sub)
		}
	}
	return to
}

func walk(v any, w []Step) (any, bool) {
	for _, s := range w {
		switch x := v.(type) {
		case map[string]any:
			sub, ok := x[s.Name]
			if !ok || s.Index >= 0 {
				return nil, false
			}
			v = sub
		case []any:
			if s.Index < 0 || s.Index >= len(x) {
				return nil, false
			}
			v = x[s.Index]
		default:
			return nil, false
		}
	}
	return v, true
}

func BenchmarkObject(b *testing.B) {
	const line = `{"ts":"2025-01-01T00:00:00.000000001Z","level":"info","msg":"request done","method":"GET","path":"/api/v1/users/17","status":200,"duration_ms":12.5,"user":{"id":17,"name":"anna"},"trace_id":"4bf92f3577b34da6"}`
	var o Object
	for i, p := range []string{"level", "msg", "status"} {
		o.Add(way(p), i)
	}
	b.ReportAllocs()
	b.SetBytes(int64(len(line)))
	var out [3]Value
	for b.Loop() {
		out = [3]Value{}
		if !o.Find(line, out[:]) {
			b.Fatal("no object")
		}
	}
}

func TestMembers(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		var got []string
		ok := Members(text, func(n string, v Value) { got = append(got, n+"="+v.String()) })
		s := strings.Join(got, " ")
		if !ok {
			s = "no"
		}
		if s != want {
			t.Errorf("%s: got %s, want %s", text, s, want)
		}
	}
	f(` { "a" : 1 , "b\n" : [ 1 , {} ] , "c":"x\"y","d":null,"a":true } `, "a=2:1 b\n=4:[ 1 , {} ] c=1:x\"y d=0: a=3:true")
	f(`{}`, "")
	f(`null`, "")
	f(``, "no")
	f(`{"a":1`, "no")
	f(`{"a":1} x`, "no")
	f(`[1]`, "no")
	f(`nullx`, "no")
}
