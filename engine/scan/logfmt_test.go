package scan

import (
	"strings"
	"testing"

	"github.com/go-logfmt/logfmt"
	"github.com/google/go-cmp/cmp"
)

func pairs(s string) (out []string) {
	if !Pairs(s, func(k, v string) { out = append(out, k+"="+v) }) {
		out = append(out, "!")
	}
	return out
}

func TestPairs(t *testing.T) {
	f := func(in string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, pairs(in)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", in, diff)
		}
	}
	f(``)
	f(`level=info msg="it \"runs\"" n=1`, "level=info", `msg=it "runs"`, "n=1")
	f("a=1\nb=2\tc", "a=1", "b=2", "c=")
	f(`a= b=""`, "a=", "b=")
	f(`a=1 a=2`, "a=1", "a=2")
	f(`a="x"b=2`, "a=x", "b=2")
	f(`a=1 b=c=d`, "a=1", "!")
	f(`a=1 =b`, "a=1", "!")
	f(`a"b=1`, "!")
	f(`a="open`, "!")
	f(`a="\x"`, "!")
	f("a=\"x\ny\"", "!")
}

// FuzzPairs compares with the decoder that Alloy uses.
func FuzzPairs(f *testing.F) {
	for _, s := range []string{`a=1 b="x y" c`, "a=\"\\u00e9\\n\" é=1\nb", "a=\xff \xff=1", "a=\"\\t\x01\"", "a=\"\xff\\n\""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if strings.Contains(s, `\u`) && strings.Contains(strings.ToLower(s), `\ud`) || len(s) > 10_000 {
			return // halves of pairs
		}
		var want []string
		d := logfmt.NewDecoder(strings.NewReader(s))
		for d.ScanRecord() {
			for d.ScanKeyval() {
				want = append(want, string(d.Key())+"="+string(d.Value()))
			}
		}
		if d.Err() != nil {
			want = append(want, "!")
		}
		if diff := cmp.Diff(want, pairs(s)); diff != "" {
			t.Fatalf("%q (-want +got):\n%s", s, diff)
		}
	})
}
