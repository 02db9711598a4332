package process

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/jmespath-community/go-jmespath"

	"github.com/weir-run/weir/engine/scan"
)

func TestCutJMESPath(t *testing.T) {
	f := func(expr string, want ...scan.Step) {
		t.Helper()
		got, ok := cutJMESPath(expr)
		if ok != (want != nil) || ok && len(got) != len(want) {
			t.Fatalf("%s: got %v, %v", expr, got, ok)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("%s: got %v, want %v", expr, got, want)
			}
		}
	}
	name := func(n string) scan.Step { return scan.Step{Name: n, Index: -1} }
	f(`a`, name("a"))
	f(`a.b_2."c d"[3].e`, name("a"), name("b_2"), name("c d"), scan.Step{Index: 3}, name("e"))
	for _, more := range []string{``, `a.`, `.a`, `a[-1]`, `a[*]`, `a[0`, `a[+1]`, `a[1:2]`, `a || b`, `length(a)`, "`1`", `@`, `a.*`, `"a\n"`, `1a`, `a-b`, `[0]`, `a."b`, `a[]`, `a b`, ` a`} {
		f(more)
	}
}

// FuzzJSONExpressions compares the result of the scan with the result of JMESPath
// on the decoded line.
func FuzzJSONExpressions(f *testing.F) {
	for _, s := range []struct{ expr, in string }{
		{`a`, `{"a":1}`}, {`a.b[0]."c d"`, `{"a":{"b":[{"c d":"x"}]}}`}, {`a[1]`, `{"a":[1,"two"]}`}, {`a`, `{"a":{"b":[1.5e3,null]}}`},
		{`"a"`, `{"a":null}`}, {`let`, `{"let":true}`}, {`a.b`, `{"a":"text"}`}, {`a[0]`, `{"a":{"0":1}}`}, {`in`, `{"in":false}`}, {`a`, `null`},
	} {
		f.Add(s.expr, s.in)
	}
	f.Fuzz(func(t *testing.T, expr, in string) {
		way, ok := cutJMESPath(expr)
		e, err := jmespath.Compile(expr)
		if !ok || err != nil || !utf8.ValidString(in) || strings.Contains(strings.ToLower(in), `\ud`) || !utf8.ValidString(expr) {
			return
		}
		var o scan.Object
		o.Add(way, 0)
		out := make([]scan.Value, 1)
		found := o.Find(in, out)
		var object map[string]any
		err = json.Unmarshal([]byte(in), &object)
		if found != (err == nil) && !strings.Contains(err.Error(), "cannot unmarshal number") {
			t.Fatalf("%q: got %v, want %v", in, found, err)
		}
		if !found || err != nil {
			return
		}
		v, err := e.Search(object)
		if err != nil {
			return
		}
		got, want := fromJSON(out[0]), fromSearch(v)
		switch {
		case got == want:
		case got.kind == number && want.kind == number: // the scan keeps all digits of integers
			x, _ := got.num()
			y, _ := want.num()
			if x != y {
				t.Fatalf("%q of %q: got %v, want %v", expr, in, got, want)
			}
		case got.kind == text && want.kind == text: // JSON with another order of members
			var x, y any
			if json.Unmarshal([]byte(got.text), &x) != nil || json.Unmarshal([]byte(want.text), &y) != nil {
				t.Fatalf("%q of %q: got %v, want %v", expr, in, got, want)
			}
			a, _ := json.Marshal(x)
			b, _ := json.Marshal(y)
			if string(a) != string(b) {
				t.Fatalf("%q of %q: got %s, want %s", expr, in, a, b)
			}
		default:
			t.Fatalf("%q of %q: got %v, want %v", expr, in, got, want)
		}
	})
}
