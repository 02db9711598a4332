package set_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
)

// Explain returns an argument and the record after it for each change.
func TestExplain(t *testing.T) {
	f := func(body, in string, want ...string) {
		t.Helper()
		h := newHarness(t, body)
		var one flow.Batches
		if in[0] == '{' {
			b, err := batch.ParseLogsText(in, batch.TextOptions{T: 5})
			if err != nil {
				t.Fatal(err)
			}
			one.Logs = []*batch.Logs{b}
		} else {
			one.Metrics = []*batch.Metrics{h.parse(in)}
		}
		steps, err := h.c.(component.Explainer).Explain(t.Context(), one)
		if err != nil {
			t.Error(err)
		}
		var got []string
		for _, s := range steps {
			var after []byte
			for _, m := range s.After.Metrics {
				after = batch.AppendTextAt(after, m, 0)
			}
			for _, l := range s.After.Logs {
				after = batch.AppendLogsText(after, l)
			}
			got = append(got, s.Kind+" "+s.Name+" ("+s.Detail+"): "+string(after))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", body, diff)
		}
		if h.sink.Last() != nil {
			t.Error("it sends")
		}
	}
	f(`name = "name + \"_x\""`+"\n"+label("a", `"1"`)+label("b", `"2"`)+`value = "value * 2"`+"\n", `up{b="2"} 3`,
		"name  (name + \"_x\"): up_x{b=\"2\"} 3\n",
		"label a (\"1\"): up_x{a=\"1\",b=\"2\"} 3\n",
		"value  (value * 2): up_x{a=\"1\",b=\"2\"} 6\n")
	f(label("a", `string(value)`), `up 3`, "label a (string(value)): up{a=\"3\"} 3\n")
	f(label("a", `labels.a`), `up{a="1"} 3`)
	f(`value = "value / float(labels.a)"`, `up{a="no"} 3`) // it fails
	f(`line = "line + labels.a"`+"\nmeta \"m\" {\nvalue = \"line\"\n}\n", `{a="1"} x`,
		"meta m (line): {a=\"1\"} @1970-01-01T00:00:00.000000005Z {m=\"x\"} x\n",
		"line  (line + labels.a): {a=\"1\"} @1970-01-01T00:00:00.000000005Z {m=\"x\"} x1\n")
}
