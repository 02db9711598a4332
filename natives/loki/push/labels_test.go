package push_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/natives/loki/push"
)

func TestAppendLabels(t *testing.T) {
	f := func(want string, ls ...string) {
		t.Helper()
		s := batch.FromLabels(labels.FromStrings(ls...))
		defer s.Release()
		if got := string(push.AppendLabels(nil, s)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	f("{}")
	f(`{app="api", env="prod"}`, "env", "prod", "app", "api")
	f(`{a="b"}`, "a", "b", "__tenant_id__", "x", "__path__", "/var/log")
	f("{}", "__tenant_id__", "x")
	f(`{_a="b"}`, "_a", "b")
	f(`{a="\"\\\n\t`+"`'"+`é"}`, "a", "\"\\\n\t`'é")
	f(`{_="c", k8s_pod="b"}`, "k8s.pod", "b", "1", "c", "é", "d")
	f(`{a_b="there"}`, "a.b", "x", "a_b", "there", "a-b", "y")
	f(`{_tenant_id__="x"}`, "..tenant_id__", "x")
	f(`{a="x\ufffdy"}`, "a", "x\uFFFDy")
	f(`{a="\\\ufffd"}`, "a", `\`+"\uFFFD")
	f(`{a="\xff"}`, "a", "\xff")
}

func TestParseLabels(t *testing.T) {
	f := func(in string, want ...string) {
		t.Helper()
		got, err := push.ParseLabels(in, 0)
		if err != nil {
			t.Errorf("%s: %v", in, err)
			return
		}
		var text []string
		for _, l := range got {
			text = append(text, l.Name, l.Value)
		}
		if d := cmp.Diff(want, text); d != "" {
			t.Errorf("%s: -want +got\n%s", in, d)
		}
	}
	f(`{}`)
	f(` { } `)
	f(`{a="b"}`, "a", "b")
	f(`{b="2", a="1"}`, "a", "1", "b", "2")
	f("{ a = \"1\",\n\tb='2' # two\n, c=`3\\`,}", "a", "1", "b", "2", "c", `3\`)
	f(`{a="\"\\\n\x41\u00e9"}`, "a", "\"\\\nAé")
	f(`{a='\'"'}`, "a", `'"`)
	f(`{a="",b="1"}`, "b", "1")
	f(`{"k8s.pod"="x"}`, "k8s.pod", "x")
	f(`up{a="b"}`, "__name__", "up", "a", "b")
	f(`{"up",a="b"}`, "__name__", "up", "a", "b")
	f(`a:b`, "__name__", "a:b")

	bad := func(in, want string) {
		t.Helper()
		if _, err := push.ParseLabels(in, 0); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", in, err, want)
		}
	}
	bad("", `cannot parse labels "" at byte 0: want "{"`)
	bad("{", `cannot parse labels "{" at byte 1: want the name of a label`)
	bad("{a}", `cannot parse labels "{a}" at byte 2: want "="`)
	bad(`{a=b}`, `cannot parse labels "{a=b}" at byte 3: want a value in quotes`)
	bad(`{a="b}`, `cannot parse labels "{a=\"b}" at byte 3: the quotes are not closed`)
	bad(`{a="b"`, `cannot parse labels "{a=\"b\"" at byte 6: want "," or "}"`)
	bad(`{a="b"} x`, `cannot parse labels "{a=\"b\"} x" at byte 8: want nothing more`)
	bad(`{a="b",a="c"}`, `cannot use labels "{a=\"b\",a=\"c\"}": "a" appears twice`)
	bad(`{a=~"b"}`, `cannot parse labels "{a=~\"b\"}" at byte 3: want a value in quotes`)
}

// prometheusLabels parses labels like Loki.
func prometheusLabels(s string) (out []batch.Label, twice bool, err error) {
	ls, err := parser.NewParser(parser.Options{}).ParseMetric(s)
	if err != nil {
		return nil, false, err
	}
	if _, twice := ls.HasDuplicateLabelNames(); twice {
		return nil, true, nil
	}
	ls.Range(func(l labels.Label) {
		if l.Value != "" {
			out = append(out, batch.Label{Name: l.Name, Value: l.Value})
		}
	})
	return out, false, nil
}

// FuzzParseLabels: labels are parsed as in Loki, and all that Loki accepts is
// accepted.
func FuzzParseLabels(f *testing.F) {
	for _, s := range []string{
		`{}`, `{a="b"}`, `{b="2", a='1', c=` + "`3`" + `,}`, `{"x.y"="\"\\\n\x41\u00e9",}`, `up{a="b"}`, `{"up"}`, "{a=\"b\" # c\n}", `{a="\ufffd"}`, "{a=\"\uFFFD\"}",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := push.ParseLabels(s, 0)
		want, twice, promErr := prometheusLabels(s)
		if err != nil {
			if promErr == nil && !twice && strings.HasPrefix(s, "{") {
				t.Fatalf("%q: %v, but Loki reads %v", s, err, want)
			}
			return
		}
		if promErr != nil {
			t.Fatalf("%q is read as %v, but Loki says %v", s, got, promErr)
		}
		if d := cmp.Diff(want, got, cmp.Transformer("empty", func(ls []batch.Label) []batch.Label { return append([]batch.Label{}, ls...) })); d != "" {
			t.Fatalf("%q: %s", s, d)
		}
	})
}

// FuzzAppendLabels: Loki parses the written labels unchanged, except for invalid
// names.
func FuzzAppendLabels(f *testing.F) {
	f.Add("a", "b", "c.d", "é\n\"")
	f.Add("a", "\uFFFD", "b", "\xff\\")
	f.Fuzz(func(t *testing.T, name1, value1, name2, value2 string) {
		b := batch.Builder{}
		b.Set(name1, value1)
		b.Set(name2, value2)
		s := b.Series(nil)
		defer s.Release()
		var want []batch.Label
		same := true
		for n, v := range s.Labels() {
			same = same && model.LegacyValidation.IsValidLabelName(n)
			if !strings.HasPrefix(n, "__") {
				want = append(want, batch.Label{Name: n, Value: v})
			}
		}
		text := string(push.AppendLabels(nil, s))
		got, err := push.ParseLabels(text, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range got {
			if !model.LegacyValidation.IsValidLabelName(l.Name) || strings.HasPrefix(l.Name, "__") {
				t.Errorf("%s has the name %q", text, l.Name)
			}
		}
		if d := cmp.Diff(want, got, cmp.Transformer("empty", func(ls []batch.Label) []batch.Label { return append([]batch.Label{}, ls...) })); same && d != "" {
			t.Errorf("%s: %s", text, d)
		}
		if loki, _, err := prometheusLabels(text); err != nil || len(loki) != len(got) {
			t.Errorf("Loki reads %s as %v, %v", text, loki, err)
		}
	})
}
