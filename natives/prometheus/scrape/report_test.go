package scrape_test

import (
	"strings"
	"testing"

	"github.com/weir-run/weir/engine/flow/flowtest"
)

// TestReportMarkersThatWereRefused: if the markers of extra metrics are sent
// late, and the metrics are enabled again, they use the same, unreleased series.
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

// TestTimeoutThatIsNotWritten: the default timeout is not longer than the
// interval.
func TestTimeoutThatIsNotWritten(t *testing.T) {
	f := func(interval string, want float64) {
		t.Helper()
		bubble(t, func(t *testing.T, n *node) {
			tg := n.target("one:80", "a 1\n")
			c := n.build(t, strings.Replace(list(tg), "10s", interval, 1)+"extra_metrics = true")
			defer n.Run(t, c)()
			b := n.wait(t, 1)[0]
			for i, s := range b.Series {
				if s.Name() == "scrape_timeout_seconds" && b.V[i] != want {
					t.Errorf("with an interval of %s the timeout is %v s, want %v", interval, b.V[i], want)
				}
			}
		})
	}
	f("2s", 2)
	f("10s", 10)
	f("1m", 10)
}
