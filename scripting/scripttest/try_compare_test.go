package scripttest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/weir-run/weir/engine/batch"
)

// TestCompareTrial: records that came out are paired with those that went in.
func TestCompareTrial(t *testing.T) {
	records := func(text string) []trialRecord {
		t.Helper()
		o := &output{}
		if m, err := batch.ParseText(text, batch.TextOptions{}); err == nil {
			o.batches = []*batch.Metrics{m}
		} else if l, err := batch.ParseLogsText(text, batch.TextOptions{}); err == nil {
			o.logs = []*batch.Logs{l}
		} else {
			t.Fatal(err)
		}
		return o.trialRecords()
	}
	f := func(what, in, out string, want Trial) {
		t.Helper()
		var got Trial
		got.compare(records(in), records(out))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	f("equal, in another order", "a 1\nb 2\n", "b 2\na 1\n", Trial{Kept: 2})
	f("one of two equal records is dropped", "a 1\na 1\n", "a 1\n", Trial{Kept: 1, Dropped: []string{"a 1"}})
	f("a value", "a{x=\"1\"} 1\n", "a{x=\"1\"} 2\n", Trial{Changed: []Change{{"a{x=\"1\"} 1", []FieldChange{{"value", "1", "2"}}}}})
	f("labels", "a{x=\"1\",y=\"2\"} 1\n", "a{x=\"3\",z=\"4\"} 1\n", Trial{Changed: []Change{{"a{x=\"1\",y=\"2\"} 1",
		[]FieldChange{{"label x", "1", "3"}, {"label y", "2", ""}, {"label z", "", "4"}}}}})
	f("the name and the value", "ms{job=\"a\",x=\"1\",y=\"2\"} 1000\n", "seconds{job=\"a\",x=\"1\",y=\"2\",z=\"3\"} 1\n", Trial{Changed: []Change{{"ms{job=\"a\",x=\"1\",y=\"2\"} 1000",
		[]FieldChange{{"name", "ms", "seconds"}, {"value", "1000", "1"}, {"label z", "", "3"}}}}})
	f("labels of the target alone", "a{instance=\"i\",job=\"j\"} 1\n", "b{instance=\"i\",job=\"j\"} 2\n",
		Trial{Dropped: []string{"a{instance=\"i\",job=\"j\"} 1"}, Added: []string{"b{instance=\"i\",job=\"j\"} 2"}})
	f("metadata", "# TYPE a gauge\na 1\n", "# TYPE a counter\na 1\n", Trial{Changed: []Change{{"a 1", []FieldChange{{"type", "gauge", "counter"}}}}})
	f("another series with the same value is no change", "a{x=\"1\",y=\"2\"} 1\n", "b{z=\"3\"} 1\n",
		Trial{Dropped: []string{"a{x=\"1\",y=\"2\"} 1"}, Added: []string{"b{z=\"3\"} 1"}})
	f("the most similar record", "a{x=\"1\",y=\"1\"} 1\na{x=\"2\",y=\"2\"} 2\n", "a{x=\"2\",y=\"3\"} 2\n",
		Trial{Changed: []Change{{"a{x=\"2\",y=\"2\"} 2", []FieldChange{{"label y", "2", "3"}}}}, Dropped: []string{"a{x=\"1\",y=\"1\"} 1"}})
	f("lines", "{app=\"a\"} password=1 user=x\n{app=\"a\"} other\n", "{app=\"a\"} password=* user=x\n",
		Trial{Changed: []Change{{"{app=\"a\"} password=1 user=x", []FieldChange{{"line", "password=1 user=x", "password=* user=x"}}}}, Dropped: []string{"{app=\"a\"} other"}})
	f("a line in the same stream", "{app=\"a\"} 0 request took 1\n", "{app=\"a\"} x\n",
		Trial{Changed: []Change{{"{app=\"a\"} 0 request took 1", []FieldChange{{"line", "0 request took 1", "x"}}}}})
	f("a line without labels", "{} 0 request took 1\n", "{} x\n",
		Trial{Changed: []Change{{"{} 0 request took 1", []FieldChange{{"line", "0 request took 1", "x"}}}}})
	f("metadata of lines", "{app=\"a\"} x\n", "{app=\"a\"} {id=\"1\"} x\n", Trial{Changed: []Change{{"{app=\"a\"} x", []FieldChange{{"metadata id", "", "1"}}}}})
}
