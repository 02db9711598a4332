package remotewrite_test

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/component/componenttest"
)

// TestBacklog: samples in the journal count as waiting, and as out when the
// endpoint has accepted them. After a restart, they count as waiting, but not as
// in.
func TestBacklog(t *testing.T) {
	srv := newServer(t)
	srv.answer(503)
	home := componenttest.New(t, "prometheus.remote_write.test")
	text := endpoint(srv.URL, "")
	n := start(t, home, clock.System{}, text)
	figures := func(waiting int64, out uint64) {
		t.Helper()
		b := n.c.Backlog()
		if !b.Journal || b.Samples != waiting || b.Lines != 0 || home.Stats.Out.Load() != out {
			t.Errorf("got %+v, %d out; want %d waiting, %d out", b, home.Stats.Out.Load(), waiting, out)
		}
	}
	figures(0, 0)
	n.accept(t, gauges(1, 20, t0), gauges(2, 10, t0))
	srv.wait(t, func() bool { return len(srv.received()) > 2 })
	figures(30, 0)
	n.stop()

	home.Registry = prometheus.NewRegistry()
	n = start(t, home, clock.System{}, text)
	home.Wait(t, func() bool { return n.c.Backlog().Samples == 30 }) // wait until the journal is open
	srv.heal()
	n.accept(t, gauges(1, 5, t0+1000))
	home.Wait(t, func() bool { return n.c.Backlog().Samples == 0 })
	figures(0, 35)
	if len(home.Stats.Dropped()) > 0 {
		t.Errorf("dropped %v", home.Stats.Dropped())
	}
}
