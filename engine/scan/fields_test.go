package scan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

func (v Value) String() string { return fmt.Sprintf("%d:%s", v.Kind, v.Text) }

// find returns what is at paths in JSON text.
func find(s string, paths ...string) []Value {
	var j Fields
	for i, p := range paths {
		path, _ := CutPath(p)
		j.Add(path, i)
	}
	out := make([]Value, len(paths))
	j.Find(s, out)
	return out
}

func TestJSONFields(t *testing.T) {
	f := func(text, paths, want string) {
		t.Helper()
		var got []string
		for _, v := range find(text, strings.Fields(paths)...) {
			if v.Kind == Missing {
				got = append(got, "-")
				continue
			}
			got = append(got, v.String())
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%s at %s: got %s, want %s", text, paths, s, want)
		}
	}

	f(`{"level":"info","n":12,"ok":true,"no":null,"deep":{"a":[1,2]}}`, "level n ok no deep gone", `1:info 2:12 3:true - 4:{"a":[1,2]} -`)
	f(` { "a" : "x" , "b" : [ 1 , "two" , { "c" : "d" } ] } `, "b.2.c a b.1 b.3", `1:d 1:x 1:two -`)
	f(`{"a":{"b":1},"a.b":2}`, `a.b a\.b`, `2:1 2:2`)
	f(`{"a":{"b":1,"c":{"d":"x"}},"z":1}`, "a.c.d a z", `1:x 4:{"b":1,"c":{"d":"x"}} 2:1`)
	f(`{"a":1,"a":2}`, "a", `2:1`) // the first counts
	f(`{"a\u0062":"\u00e9\n\"\\\/\ud83d\ude00"}`, "ab", "1:é\n\"\\/😀")
	f(`{"a":"\ud83d x","b":"\udc00"}`, "a b", "1:\ufffd x 1:\ufffd")
	f(`{"a":-0,"b":-12,"c":1.5e3,"d":12345678901234567890}`, "a b c d", `2:-0 2:-12 2:1.5e3 2:12345678901234567890`)
	f(`{"a":"}","b":"\\","c":"\"","d":1}`, "d", "2:1")
	f(`{"a":"","b":{}}`, "a b b.c", "1: 4:{} -")
	f(`[1,[2,3],{"a":4}]`, "0 1.1 2.a 3", "2:1 2:3 2:4 -")

	// Text that is not JSON has no values, or only those before the error.
	f(``, "a", "-")
	f(`level=info`, "level", "-")
	f(`"a"`, "a", "-")
	f(`{"a":1`, "a", "2:1")
	f(`{"a"`, "a", "-")
	f(`{"a":`, "a", "-")
	f(`{"a":"x`, "a", "-")
	f(`{"a":tru,"b":1`, "a b", "- 2:1")
	f(`{"a":01,"b":1.,"c":-,"d":1e}`, "a b c d", "- - - -")
	f(`{"a":{"b":1`, "a.b a", "2:1 -")
	f(strings.Repeat(`{"a":`, 100_000), strings.Repeat("a.", 15)+"a", "-")
	f(`{"x":`+strings.Repeat("[", 100_000)+strings.Repeat("]", 100_000)+`,"a":1}`, "a", "2:1")
}

func TestExact(t *testing.T) {
	f := func(text string, want bool) {
		t.Helper()
		if v := find(`{"a":`+text+`}`, "a")[0]; v.Exact() != want {
			t.Errorf("%s: exact is %v", text, !want)
		}
	}
	f("1", true)
	f("9007199254740992", true)
	f("9007199254740993", false)
	f("-9007199254740993", false)
	f("9223372036854775807", false)
	f("18446744073709551615", false)
	f("0.1", true)
	f("1e400", true)
}

// same reports whether a Value is what encoding/json has.
func sameJSON(v Value, want any, there bool) bool {
	switch w := want.(type) {
	case nil:
		return v.Kind == Missing
	case string:
		return v.Kind == Text && v.Text == w
	case bool:
		return v.Kind == Bool && v.Text == strconv.FormatBool(w)
	case json.Number:
		f, _ := strconv.ParseFloat(string(w), 64)
		return v.Kind == Number && v.Text == string(w) && math.Float64bits(v.Num) == math.Float64bits(f)
	default:
		if v.Kind != Raw || !there {
			return false
		}
		var again any
		d := json.NewDecoder(strings.NewReader(v.Text))
		d.UseNumber()
		return d.Decode(&again) == nil && fmt.Sprint(again) == fmt.Sprint(want)
	}
}

// at is what a decoded value has at a path.
func at(v any, path Path) (any, bool) {
	for _, name := range path {
		switch x := v.(type) {
		case map[string]any:
			var ok bool
			if v, ok = x[name]; !ok {
				return nil, false
			}
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(x) {
				return nil, false
			}
			v = x[i]
		default:
			return nil, false
		}
	}
	return v, true
}

// FuzzJSONFields compares what is found with what encoding/json decodes, of all
// paths there are and some that there are not.
func FuzzJSONFields(f *testing.F) {
	for _, s := range []string{`{"a":{"b":[1,"x",null,true]},"c":"\u00e9"}`, `[{"":1},[]]`, `{"a":"\\\"","b":-0.0e-3}`, `{"é":{"é":" "}} `, `{"a":{"a":{"a":1}},"b":2}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		paths := []string{"a", "b", "a.b", "c.0", "1", "gone"}
		_ = find(s, paths...) // whatever it is, it ends
		if !json.Valid([]byte(s)) || !utf8.ValidString(s) || strings.Contains(s, `\u`) && strings.Contains(s, `\ud`) {
			return
		}
		var v any
		d := json.NewDecoder(bytes.NewReader([]byte(s)))
		d.UseNumber()
		if d.Decode(&v) != nil || twice(s) {
			return
		}
		for p := range allPaths(v, "", 0) {
			paths = append(paths, p)
		}
		slices.Sort(paths)
		paths = slices.Compact(paths)
		rng := rand.New(rand.NewPCG(1, uint64(len(s))))
		for len(paths) > 0 {
			n := min(len(paths), 1+rng.IntN(32))
			for i, got := range find(s, paths[:n]...) {
				path, _ := CutPath(paths[i])
				want, there := at(v, path)
				if !sameJSON(got, want, there) {
					t.Fatalf("%q at %q: got %v, want %v", s, paths[i], got, want)
				}
			}
			paths = paths[n:]
		}
	})
}

// twice reports whether some object has a name twice, which decoders read
// differently.
func twice(s string) bool {
	var names []map[string]bool
	d := json.NewDecoder(strings.NewReader(s))
	var wantKey []bool
	for {
		tok, err := d.Token()
		if err != nil {
			return false
		}
		top := len(wantKey) - 1
		if top >= 0 && wantKey[top] {
			if key, ok := tok.(string); ok && names[top] != nil {
				if names[top][key] {
					return true
				}
				names[top][key] = true
				wantKey[top] = false
				continue
			}
		}
		switch tok {
		case json.Delim('{'):
			names, wantKey = append(names, map[string]bool{}), append(wantKey, true)
			continue
		case json.Delim('['):
			names, wantKey = append(names, nil), append(wantKey, false)
			continue
		case json.Delim('}'), json.Delim(']'):
			names, wantKey = names[:top], wantKey[:top]
			top--
		}
		if top >= 0 && names[top] != nil {
			wantKey[top] = true
		}
	}
}

// allPaths are the paths of a decoded value, up to some depth.
func allPaths(v any, prefix string, depth int) map[string]bool {
	out := map[string]bool{}
	add := func(name string, sub any) {
		p := prefix + strings.NewReplacer(`\`, `\\`, ".", `\.`).Replace(name)
		out[p] = true
		if depth < 5 {
			for q := range allPaths(sub, p+".", depth+1) {
				out[q] = true
			}
		}
	}
	switch x := v.(type) {
	case map[string]any:
		for k, sub := range x {
			add(k, sub)
		}
	case []any:
		for i, sub := range x {
			add(strconv.Itoa(i), sub)
		}
	}
	return out
}

func TestLogfmtFields(t *testing.T) {
	f := func(line, keys, want string) {
		t.Helper()
		var l Logfmt
		names := strings.Fields(keys)
		for i, k := range names {
			l.Add(k, i)
		}
		out := make([]Value, len(names))
		l.Find(line, out)
		var got []string
		for _, v := range out {
			if v.Kind == Missing {
				got = append(got, "-")
				continue
			}
			got = append(got, "["+v.Text+"]")
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%s, %s: got %s, want %s", line, keys, s, want)
		}
	}

	f(`level=info msg="it \"runs\"\n" n=1`, "level msg n gone", "[info] [it \"runs\"\n] [1] -")
	f("  a=1\tb=2  ", "b a", "[2] [1]")
	f(`flag a=`, "flag a", "[] []")
	f(`a=1 a=2`, "a", "[1]")
	f(`a=b=c`, "a", "[b=c]")
	f(`a="x"b=2`, "a b", "[x] [2]")
	f(`a="open`, "a", "-")
	f(`=x a=1`, "a", "[1]")
	f(``, "a", "-")
	f(`msg="a=2" a=1`, "a", "[1]")
	f(`2025-01-01 INFO started a=1`, "a INFO", "[1] []")
}

func FuzzLogfmtFields(f *testing.F) {
	f.Add(`a=1 b="x y" c`)
	f.Fuzz(func(t *testing.T, s string) {
		var l Logfmt
		l.Add("a", 0)
		l.Add("b", 1)
		out := make([]Value, 2)
		l.Find(s, out) // it ends
		for _, v := range out {
			if len(v.Text) > 3*len(s) {
				t.Fatalf("%q: %q", s, v.Text)
			}
		}
	})
}
