//go:build !nologql

package process

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	loki "github.com/grafana/loki/v3/pkg/logql/log/pattern"
	"github.com/prometheus/common/model"
)

// FuzzPattern compares errors and results with Loki's own patterns.
func FuzzPattern(f *testing.F) {
	for _, s := range []struct{ pattern, in string }{
		{"foo <foo> bar", "foo buzz bar"},
		{"foo <foo> bar<fuzz>", "foo buzz bar"},
		{"<foo>foo <bar> bar", "foo buzz bar"},
		{"<foo> bar<fuzz>", " bar"},
		{"<path>?<_>", "/api/plugins/status"},
		{`<ip> <userid> <user> [<_>] "<method> <path> <_>" <status> <size>`, `127.0.0.1 user-identifier frank [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326`},
		{"<_> <a>", " x"},
		{"<_>", "x"},
		{"<a><b>", "x"},
		{"<1a> <a>", "<1a> x"},
		{"<<a>>", "<x>"},
		{"é<a>é", "éxé"},
		{"<a> <a>", "x"},
		{"", ""},
		{"<_><a>", "x"},
		{"a<b", "a<b"},
	} {
		f.Add(s.pattern, s.in)
	}
	f.Fuzz(func(t *testing.T, expr, in string) {
		if strings.ContainsRune(expr, 0) || !utf8.ValidString(expr) {
			return // Loki's lexer treats it as the end of the text
		}
		want, werr := loki.New(expr)
		got, err := parsePattern(expr)
		if (err == nil) != (werr == nil) {
			t.Fatalf("%q: got %v, want %v", expr, err, werr)
		}
		if err != nil {
			return
		}
		for _, n := range want.Names() {
			if !model.LegacyValidation.IsValidLabelName(n) {
				t.Fatalf("%q has %q", expr, n)
			}
		}
		var texts []string
		for _, v := range got.find(in, nil) {
			texts = append(texts, v.text)
		}
		var wants []string
		for _, m := range want.Matches([]byte(in)) {
			wants = append(wants, string(m))
		}
		if diff := cmp.Diff(wants, texts); diff != "" {
			t.Fatalf("%q in %q (-want +got):\n%s", expr, in, diff)
		}
	})
}
