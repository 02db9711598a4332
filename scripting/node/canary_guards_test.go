package node

import (
	"strings"
	"testing"
)

// TestCanaryGuards holds which figures of two versions the guards let pass.
func TestCanaryGuards(t *testing.T) {
	var inProgress figures // calls of the running version
	f := func(name string, stable, candidate figures, series int, last bool, want string) {
		t.Helper()
		counts := func(f, inProgress figures) *Component {
			c := &Component{report: &reporter{}}
			c.counts.calls.Store(f.Calls + inProgress.Calls)
			c.counts.doneCalls.Store(f.Calls)
			c.counts.failed.Store(f.Failed)
			c.counts.records.Store(f.In + inProgress.In)
			c.counts.doneRecords.Store(f.In)
			c.counts.dropped.Store(f.Dropped)
			c.counts.nanos.Store(f.Nanos)
			return c
		}
		cn := &canary{stable: counts(stable, inProgress), inner: counts(candidate, figures{}), series: map[uint64]bool{}}
		cn.settings.SetToDefault()
		for i := range series {
			cn.series[uint64(i)] = true
		}
		err := cn.check(last)
		if err == nil != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", name, err, want)
		}
	}
	const errors, drops, slow = "script.canary.max_errors = 0.01", "script.canary.max_drop_increase = 0.5", "script.canary.max_slowdown = 4"
	f("nothing yet", figures{}, figures{}, 0, true, "")
	f("as good", figures{Calls: 100, In: 1e6, Nanos: 1e9}, figures{Calls: 100, In: 1e5, Nanos: 1e8}, 50, true, "")

	f("fails", figures{Calls: 100, In: 1e6}, figures{Calls: 1, Failed: 1, In: 1}, 1, false, errors)
	f("fails as before", figures{Calls: 100, Failed: 50, In: 1e6}, figures{Calls: 100, Failed: 51, In: 1e5}, 1, true, "")
	f("fails more than before", figures{Calls: 100, Failed: 50, In: 1e6}, figures{Calls: 100, Failed: 52, In: 1e5}, 1, true, errors)

	f("drops all", figures{Calls: 9, In: 1000}, figures{Calls: 9, In: 100, Dropped: 100}, 5, false, drops)
	f("drops all of few", figures{Calls: 9, In: 1000}, figures{Calls: 9, In: 99, Dropped: 99}, 5, false, "")
	f("drops all of few at the end", figures{Calls: 9, In: 1000}, figures{Calls: 9, In: 99, Dropped: 99}, 5, true, drops)
	f("drops half", figures{Calls: 9, In: 1000}, figures{Calls: 9, In: 1000, Dropped: 500}, 5, true, "")
	f("has two series that are dropped anyway", figures{Calls: 9, In: 1000, Dropped: 200}, figures{Calls: 9, In: 100, Dropped: 100}, 2, true, "")
	f("drops many series more", figures{Calls: 9, In: 1000, Dropped: 200}, figures{Calls: 9, In: 1000, Dropped: 1000}, 200, true, drops)

	f("is slow", figures{Calls: 10, In: 1e4, Nanos: 1e7}, figures{Calls: 10, In: 1e4, Nanos: 5e7}, 5, false, slow)
	f("is slow in few records", figures{Calls: 10, In: 1e4, Nanos: 1e7}, figures{Calls: 10, In: 999, Nanos: 5e7}, 5, true, "")
	f("is slow in small calls", figures{Calls: 10, In: 1e4, Nanos: 1e7}, figures{Calls: 1000, In: 1e4, Nanos: 2e8}, 5, true, "")
	inProgress = figures{Calls: 10, In: 1e5}
	f("fails as before, while calls are in progress", figures{Calls: 1, Failed: 1, In: 10}, figures{Calls: 1, Failed: 1, In: 10}, 1, false, "")
	f("drops as before, while calls are in progress", figures{Calls: 10, In: 1e4, Dropped: 1e4}, figures{Calls: 10, In: 1e4, Dropped: 1e4}, 9, true, "")
	f("is as slow as before, while calls are in progress", figures{Calls: 10, In: 1e4, Nanos: 1e9}, figures{Calls: 10, In: 1e4, Nanos: 1e9}, 9, true, "")
	inProgress = figures{}
	f("nothing to compare with", figures{}, figures{Calls: 10, In: 1e4, Nanos: 1e12}, 5, true, "")
}
