package stdlib_test

import (
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weir-run/weir/scripting"
)

func TestYAML(t *testing.T) {
	f := func(in string, want any) {
		t.Helper()
		if diff := cmp.Diff(want, plain(must(t, "yaml.decode", in)), cmpopts.EquateNaNs()); diff != "" {
			t.Errorf("%q (-want +got):\n%s", in, diff)
		}
	}
	f("", "<null>")
	f("# nothing\n", "<null>")
	f("9223372036854775807", int64(math.MaxInt64))
	f("18446744073709551616", 18446744073709551616.0)
	f("[0x1f, 0o17, 1_000, -3, .5, 1e3, .inf, .nan]",
		[]any{int64(31), int64(15), int64(1000), int64(-3), 0.5, 1000.0, math.Inf(1), math.NaN()})
	f("[yes, 'true', !!str 5, 2001-01-01, ~]", []any{"yes", "true", "5", "2001-01-01", "<null>"})
	f("1: a\ntrue: b\nnull: c", map[string]any{"1": "a", "true": "b", "null": "c"})
	f("!!binary /+8=", "\xff\xef")
	f("a: |\n  one\n  two\nb: >-\n  one\n  two\n", map[string]any{"a": "one\ntwo\n", "b": "one two"})
	f("- &x {a: 1, b: 1}\n- {<<: *x, b: 2}\n- {b: 2, <<: [{b: 3, c: 3}, *x]}\n", []any{
		map[string]any{"a": int64(1), "b": int64(1)},
		map[string]any{"a": int64(1), "b": int64(2)},
		map[string]any{"a": int64(1), "b": int64(2), "c": int64(3)},
	})
	if m := must(t, "yaml.decode", "z: 1\na: 2\nm: 3").(*scripting.Map); !cmp.Equal(m.Keys(), []string{"z", "a", "m"}) {
		t.Errorf("keys are %v", m.Keys())
	}

	fails := func(in, want string) {
		t.Helper()
		v, err := call(t, "yaml.decode", in)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: got %v and error %v, want %q", in, v, err, want)
		}
	}
	fails("a: [1", "cannot decode YAML: line 1: did not find expected ',' or ']'")
	fails("a:\n\t- 1", "line 2: found character that cannot start any token")
	fails("a: 1\na: 2", `line 2: duplicate key "a"`)
	fails("[a]: 1", "line 1: a key must be a string")
	fails("a: &x [*x]", "line 1: alias *x refers to a value that contains it")
	fails("a: &x {b: {<<: *x}}", "line 1: << refers to a mapping that contains it")
	fails("<<: 1", "<< takes a mapping")
	fails("a: *b", "unknown anchor 'b' referenced")
	fails("a: !Ref b", "line 1: cannot use the tag !Ref")
	fails("a: !!int b", `line 1: "b" is not a valid !!int`)
	fails("a: 1\n---\nb: 1", "line 2: there is more than one document")
	fails(strings.Repeat("[", 101)+strings.Repeat("]", 101), "more than 100 levels")
	fails(strings.Repeat("[", 1<<19), "exceeded max depth")
	fails(strings.Repeat(" ", 1<<20+1), "longer than 1048576 bytes")
	fails("["+strings.Repeat("0,", 500_000)+"]", "more than 500000 values")
	// Ten levels of ten aliases: ten billion values.
	var laughs strings.Builder
	laughs.WriteString("a0: &a0 [lol]\n")
	for i := 1; i < 10; i++ {
		prev := "*a" + string(rune('0'+i-1))
		laughs.WriteString("a" + string(rune('0'+i)) + ": &a" + string(rune('0'+i)) + " [" + strings.Repeat(prev+",", 9) + prev + "]\n")
	}
	fails(laughs.String(), "more than 500000 values")
	// The same with merge keys, each of which results in one key.
	laughs.Reset()
	laughs.WriteString("a0: &a0 {x: 1}\n")
	for i := 1; i < 10; i++ {
		prev := "*a" + string(rune('0'+i-1))
		laughs.WriteString("a" + string(rune('0'+i)) + ": &a" + string(rune('0'+i)) + " {<<: [" + strings.Repeat(prev+",", 9) + prev + "]}\n")
	}
	fails(laughs.String(), "more than 500000 values")
	fails(strings.Replace(laughs.String(), "{x: 1}", "{}", 1), "more than 500000 values")
}

func TestEncodeYAML(t *testing.T) {
	f := func(v scripting.Value, want string) {
		t.Helper()
		if got := must(t, "yaml.encode", v); got != want {
			t.Errorf("%v: got %q, want %q", plain(v), got, want)
		}
	}
	f(nil, "null\n")
	f(list("yes", "1", "", "a: b", "true", "~", "<<", " x"), "- \"yes\"\n- \"1\"\n- \"\"\n- 'a: b'\n- \"true\"\n- \"~\"\n- \"<<\"\n- ' x'\n")
	f(list(1.0, 1e21, math.NaN(), math.Inf(-1)), "- 1.0\n- 1e+21\n- .nan\n- -.inf\n")
	f(mapOf("a", list(), "b", mapOf(), "c", "x\ny\n"), "a: []\nb: {}\nc: |\n  x\n  y\n")

	fails := func(v scripting.Value, want string) {
		t.Helper()
		if _, err := call(t, "yaml.encode", v); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want %q", err, want)
		}
	}
	cycle := &scripting.List{}
	cycle.Items = []scripting.Value{cycle}
	fails(cycle, "more than 100 levels")
	fails(list(strings.Repeat("x", 5<<20), strings.Repeat("x", 5<<20)), "longer than 8388608 bytes")
	fails(scripting.Callback(nil), "a function has no YAML form")
}

func list(vs ...scripting.Value) *scripting.List { return &scripting.List{Items: vs} }

func FuzzYAML(f *testing.F) {
	for _, s := range []string{"a: [1, 2.5, null, {}]\nb: |\n  x\n", "- &x {a: 1}\n- {<<: *x}\n", "!!binary /+8=", "? a\n: b\n", "'\\x00'", "a: .nan"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, err := call(t, "yaml.decode", s)
		if err != nil {
			return
		}
		roundTripYAML(t, v)
	})
}

// FuzzYAMLText: every text is read back unchanged.
func FuzzYAMLText(f *testing.F) {
	for _, s := range []string{"", "\x00", "\xff", "\u0085 \u2028", "\ufeffa", "a\r\nb", "\t", "# x", "- a", "1e3", "0x", "=", "<<", "2001-01-01"} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, key, s string) {
		if !utf8.ValidString(key) {
			key = "key"
		}
		roundTripYAML(t, mapOf(key, list(s, mapOf("x", s))))
	})
}

func roundTripYAML(t *testing.T, v scripting.Value) {
	t.Helper()
	out, err := call(t, "yaml.encode", v)
	if err != nil {
		t.Fatalf("%#v: %v", plain(v), err)
	}
	again, err := call(t, "yaml.decode", out)
	if err != nil {
		if strings.Contains(err.Error(), "longer than") {
			return
		}
		t.Fatalf("%q: %v", out, err)
	}
	if diff := cmp.Diff(plain(v), plain(again), cmpopts.EquateNaNs()); diff != "" {
		t.Fatalf("%q (-first +second):\n%s", out, diff)
	}
}
