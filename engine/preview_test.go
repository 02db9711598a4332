package engine_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/service"
)

// TestPreviewReload: a preview has the nodes that a reload would change, and why, and
// changes nothing.
func TestPreviewReload(t *testing.T) {
	bubble(t, func(l *harness) {
		v := triedVersions(l)
		v.save(v.version("1", nil))
		l.start(`test.sink "a" { }
test.uvalue "u" { value = "1" }
test.value "v" { number = 1 }
test.value "same" { value = test.uvalue.u.value }
test.value "gone" { }
test.source "s" { forward_to = [test.sink.a.receiver] }`)
		l.takeEvents()
		v.save(v.version("2", errTrial))
		l.write(`test.sink "a" { }
test.uvalue "u" {
  value  = "2"
  number = 2
}
test.value "v" { number = 2 }
test.value "same" { value = test.uvalue.u.value }
test.value "new" { }
test.source "s" { forward_to = [test.sink.a.receiver] }`)
		got, err := l.e.PreviewReload(context.Background(), "")
		if err != nil {
			t.Fatal(err)
		}
		want := service.Preview{Nodes: []service.PreviewNode{
			{ID: "test.sink.a", Action: "rebuilt", From: "1", To: "2", Why: "version 1 → 2"},
			{ID: "test.uvalue.u", Action: "updated", Why: "arguments changed: value, number"},
			{ID: "test.value.v", Action: "rebuilt", Why: "arguments changed: number"},
			{ID: "test.value.same", Action: "unknown", Why: "it follows the exports of test.uvalue.u"},
			{ID: "test.value.new", Action: "added", Why: "its block is new: " + l.config + ":8"},
			{ID: "test.value.gone", Action: "removed", Why: "its block is gone: " + l.config + ":5"},
		}, Untouched: 1}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the preview (-want +got):\n%s", diff)
		}
		l.wantEvents("")
		v.wantRuns(t, "1")
		if n := len(l.e.Reloads()); n != 1 {
			t.Errorf("there are %d records, want that of the start", n)
		}
		l.write(`test.nothing "a" { }`)
		if _, err := l.e.PreviewReload(context.Background(), ""); err == nil {
			t.Error("a config with a mistake was previewed")
		}
	})
}
