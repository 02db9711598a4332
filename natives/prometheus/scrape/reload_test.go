package scrape_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// TestUpdateKeepsState: targets keep their series, their place in the interval, their
// connection and the component's counters when the timeout, the interval or another
// target changes. Only the target that changes ends and begins.
func TestUpdateKeepsState(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		one, two := n.target("one:80", "one 1\n"), n.target("two:80", "two 1\n")
		text := list(one, two)
		c := n.build(t, text)
		stop := n.Run(t, c)
		n.wait(t, 6)
		countMetrics := func() int {
			count, err := testutil.GatherAndCount(n.Registry)
			if err != nil {
				t.Fatal(err)
			}
			return count
		}
		metrics, dials := countMetrics(), n.dials.Load()
		// scraped returns the times of the scrapes since batch from, by metric.
		scraped := func(from int) map[string][]int64 {
			times := map[string][]int64{}
			for _, b := range n.sink.Batches()[from:] {
				name := strings.Fields(values(b)[0])[0]
				if strings.HasSuffix(strings.Join(values(b), ","), "stale") {
					name += " ends"
				}
				times[name] = append(times[name], millis(b))
			}
			return times
		}
		update := func(text string) (from int) {
			t.Helper()
			if err := c.Update(n.args(t, text)); err != nil {
				t.Fatal(err)
			}
			from = len(n.sink.Batches())
			n.wait(t, from+7)
			return from
		}
		before := scraped(0)
		place := func(name string, interval int64, times map[string][]int64) {
			t.Helper()
			for _, at := range times[name][1:] { // the first may still be as before
				if at%interval != before[name][2]%interval && interval == 10_000 {
					t.Errorf("%s is scraped at %d, which is another place than that of %d", name, at, before[name][2])
				}
			}
			for i := 2; i < len(times[name]); i++ {
				if gap := times[name][i] - times[name][i-1]; gap != interval {
					t.Errorf("%s: %d ms between two scrapes, want %d", name, gap, interval)
				}
			}
		}
		unchanged := func(what string, times map[string][]int64) {
			t.Helper()
			if len(times) != 2 {
				t.Errorf("after %s: got %v, want scrapes of one and two without an end", what, times)
			}
			if got := n.dials.Load(); got != dials {
				t.Errorf("after %s: %d connections were made, %d before", what, got, dials)
			}
			if got := countMetrics(); got != metrics {
				t.Errorf("after %s: the component has %d metrics, and had %d before", what, got, metrics)
			}
		}

		times := scraped(update(text + "scrape_timeout = \"3s\""))
		unchanged("another timeout", times)
		place("one", 10_000, times)
		place("two", 10_000, times)
		times = scraped(update(strings.Replace(text, "10s", "20s", 1)))
		unchanged("another interval", times)
		place("one", 20_000, times)
		place("two", 20_000, times)

		update(text)
		times = scraped(update(strings.Replace(text, `{ __address__ = "two:80" }`, `{ __address__ = "two:80", x = "y" }`, 1)))
		if len(times["one ends"]) > 0 || len(times["two ends"]) != 1 {
			t.Errorf("after another label of two: got %v, want an end of two only", times)
		}
		place("one", 10_000, times)
		if got := n.dials.Load(); got != dials {
			t.Errorf("%d connections were made, %d before", got, dials)
		}
		stop()
	})
}
