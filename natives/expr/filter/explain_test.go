package filter_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/flow/flowtest"
	"github.com/weir-run/weir/natives/expr/internal/clause"
)

// Explain names the expression for records that it drops, and counts nothing.
func TestExplain(t *testing.T) {
	f := func(kind string, src clause.Predicate, in flow.Batches, want ...component.Step) {
		t.Helper()
		n := componenttest.New(t, "expr.filter.f")
		c := build(t, n, arguments(flowtest.NewSink("sink").Receiver(), kind, src))
		got, err := c.(component.Explainer).Explain(t.Context(), in)
		if err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", kind, src, diff)
		}
		if n.Stats.Dropped()["filter"] != 0 {
			t.Errorf("%s %s: counted as dropped", kind, src)
		}
	}
	metrics := func(text string) flow.Batches { return flow.Batches{Metrics: []*batch.Metrics{parse(t, text)}} }
	lines := func(text string) flow.Batches { return flow.Batches{Logs: []*batch.Logs{parseLines(t, text)}} }
	step := func(kind, src string) component.Step { return component.Step{Kind: kind, Detail: src} }
	f("drop", `labels.job == "a"`, metrics("up{job=\"a\"} 1"), step("drop", `labels.job == "a"`))
	f("drop", `labels.job == "a"`, metrics("up{job=\"b\"} 1"))
	f("drop", `value > 0`, metrics("up 1"), step("drop", `value > 0`))
	f("drop", `value > 0`, metrics("up stale"))
	f("keep", `value > 0`, metrics("up 0"), step("keep", `value > 0`))
	f("keep", `float(labels.job) > 0`, metrics("up{job=\"a\"} 0")) // it fails
	f("drop", `line contains "x"`, lines("{a=\"b\"} axb\n"), step("drop", `line contains "x"`))
	f("drop", `line contains "x"`, lines("{a=\"b\"} ab\n"))
	f("drop", `line contains "x"`, metrics("up 1"))
}
