package remotewrite_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/engine/flow"
)

// TestFullDisk fills a real file system: batches are refused but not lost. They
// are accepted again when there is space.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("cannot mount a tmpfs: %v", err)
	}
	defer syscall.Unmount(dir, 0)
	srv := newServer(t)
	srv.answer(503)
	home := componenttest.New(t, "prometheus.remote_write.test")
	home.StoragePath = dir
	n := start(t, home, clock.System{}, endpoint(srv.URL, "queue_config { max_samples_per_send = 500 }"))
	defer n.stop() // before the unmount

	first := gauges(1, 500, t0)
	gate := flow.NewReceiver(home.ID, batch.SignalMetrics, home.Stats, nil)
	gate.Set(n.c)
	if err := gate.ConsumeMetrics(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	ballast := filepath.Join(dir, "ballast")
	f, err := os.Create(ballast)
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	f.Close()
	var refused []*batch.Metrics
	accepted := []*batch.Metrics{first}
	for i := range int64(20) {
		b := gauges(1, 500, t0+1+i)
		err := gate.ConsumeMetrics(t.Context(), b)
		switch {
		case err == nil:
			accepted = append(accepted, b) // the last page had space
		case errors.Is(err, syscall.ENOSPC):
			refused = append(refused, b)
		default:
			t.Fatal(err)
		}
	}
	if len(refused) < 15 {
		t.Fatalf("only %d of 20 batches were refused by a full disk", len(refused))
	}
	// The health shows the reason and the path; refused batches do not count as
	// received.
	home.Wait(t, func() bool {
		h := n.Health()
		return h.State == component.Unhealthy && strings.Contains(h.Message, "no space left on device") && strings.Contains(h.Message, dir+"/journal/")
	})
	if !strings.Contains(home.Logs(), "cannot write the journal; what comes is refused until it can be written") || !strings.Contains(home.Logs(), ".seg: no space left on device") {
		t.Errorf("the log does not tell why the journal is not written:\n%s", home.Logs())
	}
	in := uint64(len(accepted) * 500)
	if got := home.Stats.In.Load(); got != in {
		t.Errorf("%d samples came in, want %d", got, in)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	for _, b := range refused {
		if err := gate.ConsumeMetrics(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	home.Wait(t, func() bool { return !strings.Contains(n.Health().Message, "no space left") })
	srv.heal()
	all := append(accepted, refused...)
	srv.wait(t, func() bool { return srv.count(t) >= 500*len(all) })
	diff(t, rows(all...), srv.samples(t))
	n.metric(t, "weir_remote_write_samples_dropped_total", "", 0)
}
