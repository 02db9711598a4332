package scrape_test

import (
	"testing"

	"github.com/weir-run/weir/engine/flow/flowtest"
)

// TestReportMarkersThatWereRefused: extra metrics whose markers come late are
// the same, unreleased series when they are switched on again.
func TestReportMarkersThatWereRefused(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		tg := n.target("one:80", "a 1\n")
		c := n.build(t, list(tg)+"extra_metrics = true")
		stop := n.Run(t, c)
		defer stop()
		extra := func(on string) {
			t.Helper()
			if err := c.Update(n.args(t, list(tg)+"extra_metrics = "+on)); err != nil {
				t.Fatal(err)
			}
		}
		n.wait(t, 2)
		n.sink.Refuse(flowtest.ErrRefused)
		extra("false")
		until(t, n, func() bool { return n.Stats.Dropped()["refused"] > 0 })
		n.sink.Refuse(nil)
		have := len(n.wait(t, 4))
		extra("true")
		last := n.wait(t, have+2)[have+1]
		if last.Len() != 9 {
			t.Errorf("got %d samples, want a and 8 of the report", last.Len())
		}
		for _, s := range last.Series {
			if s.Released() {
				t.Errorf("series %s is in use and released", s)
			}
		}
	})
}
