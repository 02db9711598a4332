package stdlib_test

import (
	"math"
	"strings"
	"testing"

	"github.com/go-logfmt/logfmt"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weir-run/weir/scripting"
)

func must(t testing.TB, fn string, args ...scripting.Value) scripting.Value {
	t.Helper()
	v, err := call(t, fn, args...)
	if err != nil {
		t.Fatalf("%s%v: %v", fn, args, err)
	}
	return v
}

func mapOf(kv ...scripting.Value) *scripting.Map {
	m := scripting.NewMap()
	for i := 0; i < len(kv); i += 2 {
		m.Set(kv[i].(string), kv[i+1])
	}
	return m
}

// TestBounds: no function creates more than 8 MiB from a few bytes.
func TestBounds(t *testing.T) {
	f := func(fn, want string, args ...scripting.Value) {
		t.Helper()
		v, err := call(t, fn, args...)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %.40v and error %v, want %q", fn, v, err, want)
		}
	}
	long := strings.Repeat("ab", 3<<20)
	f("text.replace", "longer than", long, "a", "xyz")
	f("text.pad_left", "longer than", "a", int64(1<<40))
	f("text.pad_right", "longer than", "a", int64(5<<20), "ää")
	f("text.split", "more than 100000", long, "b")
	f("text.split", "into 0 parts", "a", "b", int64(0))
	f("text.fields", "more than 100000", strings.Repeat("a ", 100_001))
	f("text.template", "longer than", strings.Repeat("{a}", 10), mapOf("a", strings.Repeat("x", 1<<20)))
	f("text.valid", "longer than", strings.Repeat("\xff", 1<<20), strings.Repeat("x", 10))
	f("base64.encode", "longer than", strings.Repeat("x", 7<<20))
	f("prom.parse", "more than 100000", strings.Repeat("a 1\n", 100_001))
	f("logfmt.encode", "longer than", mapOf("a", long, "b", long))
}

func TestText(t *testing.T) {
	f := func(want scripting.Value, fn string, args ...scripting.Value) {
		t.Helper()
		if got := must(t, fn, args...); got != want {
			t.Errorf("%s%v: got %v, want %v", fn, args, got, want)
		}
	}
	f("abcab", "text.pad_left", "ab", int64(5), "abc")
	f("", "text.truncate", "abc", int64(-1))
	f("ab", "text.truncate", "abcd", int64(2), "....")
	f("a\tb", "text.trim", "\u00a0a\tb\u0085")
	f("n=null ", "text.template", "n={n}{z} ", mapOf("n", "null", "z", scripting.Null))
	f(int64(0), "text.count", "abc", "")
	f("_a", "text.label_name", ":a")
}

func TestMath(t *testing.T) {
	f := func(want float64, fn string, args ...scripting.Value) {
		t.Helper()
		got, _ := must(t, fn, args...).(float64)
		if !cmp.Equal(got, want, cmpopts.EquateNaNs()) {
			t.Errorf("%s%v: got %v, want %v", fn, args, got, want)
		}
	}
	inf, nan := math.Inf(1), math.NaN()
	numbers := func(xs ...float64) *scripting.List {
		l := &scripting.List{}
		for _, x := range xs {
			l.Items = append(l.Items, x)
		}
		return l
	}
	f(1e300, "math.round", 1e300, int64(10))
	f(inf, "math.round", inf, int64(2))
	f(nan, "math.round", nan)
	f(0.0, "math.round", 1.0, int64(-2))
	f(nan, "math.sign", nan)
	f(nan, "math.clamp", nan, 0.0, 1.0)
	f(1, "math.sum", numbers(1e100, 1, -1e100))
	f(inf, "math.sum", numbers(inf, 1))
	f(nan, "math.sum", numbers(inf, -inf))
	f(inf, "math.sum", numbers(1e308, 1e308))
	f(5, "math.quantile", 1.0, numbers(5))
	f(inf, "math.max", numbers(1, inf))
	if got := must(t, "math.is_nan", nan); got != true {
		t.Errorf("is_nan(NaN): got %v", got)
	}
	if got := must(t, "math.is_finite", inf); got != false {
		t.Errorf("is_finite(inf): got %v", got)
	}
}

// TestSecretKey: a secret can only be used as the key of a hash.
func TestSecretKey(t *testing.T) {
	if _, err := call(t, "hash.sha256", scripting.Secret{}); err == nil || !strings.Contains(err.Error(), "must be a string") {
		t.Errorf("got error %v: a secret must not be hashed without a key, short ones can be guessed", err)
	}
	if got, want := must(t, "hash.hmac", "sha256", scripting.Secret{}, "s"), must(t, "hash.hmac", "sha256", "", "s"); got != want {
		t.Errorf("got %v with an empty secret, want %v", got, want)
	}
	if _, err := call(t, "hash.hmac", "sha256", 1.0, "s"); err == nil || !strings.Contains(err.Error(), "must be a string or a secret") {
		t.Errorf("got error %v", err)
	}
}

func TestProm(t *testing.T) {
	const om = `# HELP lat Latency.
# TYPE lat histogram
# UNIT lat seconds
lat_bucket{le="+Inf"} 3 # {trace_id="a"} 0.5 1.5
lat_count 3
other NaN
# EOF
`
	want := []any{
		map[string]any{"name": "lat_bucket", "labels": map[string]any{"le": "+Inf"}, "value": 3.0, "type": "histogram", "help": "Latency.",
			"exemplar": map[string]any{"labels": map[string]any{"trace_id": "a"}, "value": 0.5, "time": int64(1500)}},
		map[string]any{"name": "lat_count", "labels": map[string]any{}, "value": 3.0, "type": "histogram", "help": "Latency."},
		map[string]any{"name": "other", "labels": map[string]any{}, "value": math.NaN()},
	}
	if _, err := call(t, "prom.parse", om); err == nil {
		t.Error("OpenMetrics wants the unit in the name, and it was accepted")
	}
	got := plain(must(t, "prom.parse", strings.ReplaceAll(om, "# UNIT lat seconds\n", "")))
	if diff := cmp.Diff(want, got, cmpopts.EquateNaNs()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	const classic = `# TYPE lat summary
lat{quantile="0.5"} +Inf
lat_sum 1e+20
lat_count 3
a{x="1"} -Inf
a{x="2"} NaN 1500
`
	mixed := "lat_count 3\n" // the lines of a family stay together
	samples := must(t, "prom.parse", mixed+classic).(*scripting.List)
	if out := must(t, "prom.format", samples); !strings.Contains(out.(string), classic) {
		t.Errorf("got\n%s\nwant\n%s in it", out, classic)
	}
	f := func(want string, sample scripting.Value) {
		t.Helper()
		if _, err := call(t, "prom.format", &scripting.List{Items: []scripting.Value{sample}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want %q", err, want)
		}
	}
	f("must be a table", "a 1")
	f("its name must be text", mapOf("name", int64(1), "value", 1.0))
	f("its labels must be a table", mapOf("name", "a", "value", 1.0, "labels", "x"))
	f("cannot use label name", mapOf("name", "a", "value", 1.0, "labels", mapOf("a-b", "c")))
	f("cannot use label x", mapOf("name", "a", "value", 1.0, "labels", mapOf("x", mapOf())))
	f("its time must be whole", mapOf("name", "a", "value", 1.0, "time", 1.5))
	f("cannot use type", mapOf("name", "a", "value", 1.0, "type", "stateset"))
}

// FuzzProm: parsing, writing and parsing again gives the same result.
func FuzzProm(f *testing.F) {
	f.Add("# HELP a b\\nc\n# TYPE a counter\na{x=\"\\\"\"} 1 5\nb NaN\n")
	f.Add("# TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_sum 2\nh_count 1\n")
	f.Add("a_total 1 # {a=\"b\"} 1\n# EOF")
	f.Fuzz(func(t *testing.T, s string) {
		first, err := call(t, "prom.parse", s)
		if err != nil {
			return
		}
		text, err := call(t, "prom.format", first)
		if err != nil {
			return // names and types that the classic format does not support
		}
		second, err := call(t, "prom.parse", text)
		if err != nil {
			t.Fatalf("cannot parse what was written: %v\n%s", err, text)
		}
		values := func(v scripting.Value) map[string][]float64 {
			out := map[string][]float64{}
			for _, i := range v.(*scripting.List).Items {
				m := plain(i).(map[string]any)
				name := m["name"].(string)
				out[name] = append(out[name], m["value"].(float64))
			}
			return out
		}
		if diff := cmp.Diff(values(first), values(second), cmpopts.EquateNaNs(), cmpopts.SortSlices(func(a, b float64) bool { return a < b })); diff != "" {
			t.Errorf("(-first +second):\n%s", diff)
		}
	})
}

func TestLogfmtDecode(t *testing.T) {
	f := func(line string, want ...any) {
		t.Helper()
		m := map[string]any{}
		for i := 0; i < len(want); i += 2 {
			m[want[i].(string)] = want[i+1]
		}
		got, err := call(t, "logfmt.decode", line)
		if err != nil {
			t.Errorf("%q: %v", line, err)
		} else if diff := cmp.Diff(m, plain(got)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", line, diff)
		}
	}
	f("a= b=\"\" c", "a", "", "b", "", "c", "")
	f("a=1 a=2 a", "a", "1")
	f("url=/x?a=b&c=\"d\" n=1", "url", `/x?a=b&c="d"`, "n", "1")
	f(`a="x"b=2`, "a", "x", "b", "2")
	f(" a=1\tb=2\nc=3\r\n", "a", "1", "b", "2", "c", "3")
	f("a=\"x\ny\"", "a", "x\ny")
	f(`a="\"\\\/\n\x1b\u00e4"`, "a", "\"\\/\n\x1bä")
	f("é=\xff", "é", "\xff")
	f(`a=\n`, "a", `\n`)

	fails := func(line, want string) {
		t.Helper()
		if _, err := call(t, "logfmt.decode", line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got error %v, want %q", line, err, want)
		}
	}
	fails("a=1 =2", "a value without a key at byte 5")
	fails("a=1 b\"c=2", "a quote in a key at byte 6")
	fails(`a=1 b="c`, "unterminated quote at byte 7")
	fails(`a=1 b="c\"`, "unterminated quote at byte 7")
	fails(`a=1 b="\q"`, "in the value at byte 7")
}

// FuzzLogfmt: decoding, encoding and decoding again gives the same result, except
// for bytes that are not UTF-8, for which logfmt has no escape.
func FuzzLogfmt(f *testing.F) {
	f.Add(`level=warn msg="disk \"full\"" retry n=1`)
	f.Add("a=\"\\u00e4\\\\\" b=\xff")
	f.Add("a=\"x\ny\"")
	f.Fuzz(func(t *testing.T, s string) {
		first, err := call(t, "logfmt.decode", s)
		if err != nil {
			return
		}
		line, err := call(t, "logfmt.encode", first)
		if err != nil {
			return // a key that is not UTF-8
		}
		second, err := call(t, "logfmt.decode", line)
		if err != nil {
			t.Fatalf("cannot decode %q: %v", line, err)
		}
		valid := cmp.Transformer("", func(s string) []rune { return []rune(s) })
		if diff := cmp.Diff(plain(first), plain(second), valid); diff != "" {
			t.Errorf("%q (-first +second):\n%s", line, diff)
		}
	})
}

// FuzzText: no text makes a function panic, and the size of results is limited.
func FuzzText(f *testing.F) {
	f.Add("a{b}c", "b", int64(3))
	f.Add("\xff{{", "", int64(-1))
	f.Fuzz(func(t *testing.T, s, other string, n int64) {
		for _, fn := range []string{"trim", "trim_prefix", "split", "contains", "count", "starts_with"} {
			_, _ = call(t, "text."+fn, s, other)
		}
		for _, v := range []scripting.Value{s, other} {
			_, _ = call(t, "text.replace", s, other, v)
			_, _ = call(t, "text.pad_left", s, min(n, 1000), v)
			_, _ = call(t, "text.truncate", s, n, v)
		}
		_, _ = call(t, "text.template", s, mapOf(other, n))
		_, _ = call(t, "base64.decode", s)
		_, _ = call(t, "uuid.parse", s)
	})
}

// TestTrimManyCharacters would take too long if each character of the text were
// searched in the characters to remove.
func TestTrimManyCharacters(t *testing.T) {
	chars := strings.Repeat("é", 1<<19) + "a"
	for _, fn := range []string{"text.trim", "text.trim_left", "text.trim_right"} {
		got, err := call(t, fn, strings.Repeat("a", 1<<20), chars)
		if got != "" || err != nil {
			t.Errorf("%s: got %.20q, %v", fn, got, err)
		}
	}
}

// TestLogfmtEncode: other decoders can read the output of logfmt.encode.
func TestLogfmtEncode(t *testing.T) {
	f := func(value, want string) {
		t.Helper()
		got, err := call(t, "logfmt.encode", mapOf("k", value))
		if err != nil || got != "k="+want {
			t.Errorf("%q: got %v, %v, want k=%s", value, got, err, want)
			return
		}
		d := logfmt.NewDecoder(strings.NewReader(got.(string)))
		if !d.ScanRecord() || !d.ScanKeyval() {
			t.Errorf("%q: go-logfmt refuses %s: %v", value, got, d.Err())
			return
		}
		if read := string(d.Value()); read != strings.ToValidUTF8(value, "\ufffd") || d.ScanKeyval() || d.Err() != nil {
			t.Errorf("%q: go-logfmt reads %q of %s", value, read, got)
		}
		back, err := call(t, "logfmt.decode", got)
		if m, ok := plain(back).(map[string]any); err != nil || !ok || m["k"] != strings.ToValidUTF8(value, "\ufffd") {
			t.Errorf("%q: logfmt.decode reads %v, %v of %s", value, back, err, got)
		}
	}
	f("plain", "plain")
	f("", `""`)
	f("a b", `"a b"`)
	f("a=b", `"a=b"`)
	f(`say "hi"`, `"say \"hi\""`)
	f(`c:\temp`, `"c:\\temp"`)
	f("a\nb\tc\rd", `"a\nb\tc\rd"`)
	f("\a", `"\u0007"`)
	f("\b\f\v", `"\u0008\u000c\u000b"`)
	f("\x00\x1b[1m", `"\u0000\u001b[1m"`)
	f("a \x7f", "\"a \x7f\"")
	f("é \U0001F39B", "\"é \U0001F39B\"")
	f("a \u200b", "\"a \u200b\"")
	f("a \u2028", "\"a \u2028\"")
	f("a \U000E0001", "\"a \U000E0001\"")
	f("a\xffb", `"a\ufffdb"`)
}
