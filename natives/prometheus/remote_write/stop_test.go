package remotewrite_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/clock/clocktest"
	"github.com/weir-run/weir/engine/component/componenttest"
)

// TestStopSendsWhatIsThere: the last accepted samples are sent before Run
// returns, if the endpoint accepts them.
func TestStopSendsWhatIsThere(t *testing.T) {
	srv := newServer(t)
	hold := make(chan bool)
	srv.setFault(func(http.ResponseWriter, *http.Request, int) bool { <-hold; return false })
	// The time limit of the shutdown never passes.
	n := start(t, componenttest.New(t, "prometheus.remote_write.test"), clocktest.New(time.UnixMilli(t0)),
		endpoint(srv.URL, "queue_config { max_samples_per_send = 10 }"))
	var sent []*batch.Metrics
	for source := range uint64(5) { // several shards, several blocks in each
		for i := range int64(3) {
			b := gauges(source, 10, t0+i*1000)
			n.accept(t, b)
			sent = append(sent, b)
		}
	}
	stopped := make(chan bool)
	go func() { n.stop(); close(stopped) }()
	close(hold)
	<-stopped
	diff(t, rows(sent...), srv.samples(t))
}

// TestStopDoesNotInsist: samples that the endpoint refuses are left for the next
// start, without a second attempt.
func TestStopDoesNotInsist(t *testing.T) {
	srv := newServer(t)
	srv.answer(http.StatusServiceUnavailable)
	n := startNew(t, endpoint(srv.URL, `queue_config { min_backoff = "1h"
 max_backoff = "1h" }`))
	n.accept(t, gauges(1, 3, t0))
	srv.wait(t, func() bool { return len(srv.received()) == 1 })
	n.stop()
	if got := len(srv.received()); got != 1 {
		t.Errorf("%d requests, want 1", got)
	}
	srv.heal()
	n.Registry = prometheus.NewRegistry()
	again := start(t, n.Node, clock.System{}, endpoint(srv.URL, ""))
	srv.wait(t, func() bool { return srv.count(t) == 3 })
	again.stop()
}
