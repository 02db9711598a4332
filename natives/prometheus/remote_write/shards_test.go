package remotewrite_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/clock/clocktest"
	"github.com/weir-run/weir/engine/component/componenttest"
)

// queue returns the number of shards in use and the number of pending blocks.
func (n *node) queue(t testing.TB) (shards, blocks int) {
	t.Helper()
	var info struct {
		Endpoints []struct {
			Shards  int
			Pending int `json:"pending_blocks"`
		}
	}
	b, err := json.Marshal(n.c.DebugInfo())
	if err == nil {
		err = json.Unmarshal(b, &info)
	}
	if err != nil || len(info.Endpoints) != 1 {
		t.Fatalf("got %s, %v", b, err)
	}
	return info.Endpoints[0].Shards, info.Endpoints[0].Pending
}

// order is an endpoint that records the times of the samples of each series in
// the order of arrival.
type order struct {
	down atomic.Bool // it answers 503

	mu   sync.Mutex
	came map[string][]int64
}

func (o *order) readRequests(srv *server) {
	o.came = map[string][]int64{}
	srv.setFault(func(w http.ResponseWriter, _ *http.Request, n int) bool {
		if o.down.Load() {
			w.WriteHeader(503)
			return true
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		for _, ts := range srv.request(n - 1).message.Timeseries {
			for _, s := range ts.Samples {
				o.came[fmt.Sprint(ts.Labels)] = append(o.came[fmt.Sprint(ts.Labels)], s.Timestamp)
			}
		}
		w.WriteHeader(204)
		return true
	})
}

// inOrder fails the test unless each series has the samples 0 to n-1.
func (o *order) inOrder(t *testing.T, series, n int) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.came) != series {
		t.Errorf("%d series came, want %d", len(o.came), series)
	}
	for name, came := range o.came {
		for i, at := range came {
			if at != t0+int64(i) || len(came) != n {
				t.Errorf("sample %d of %d of %s is number %d of %d", i, len(came), name, at-t0, n)
				return
			}
		}
	}
}

// TestShardsFollowTheEndpoint: one shard is used while the endpoint keeps up,
// more while it does not, and one again after it has kept up for a long time. The
// samples of each series always arrive in order.
func TestShardsFollowTheEndpoint(t *testing.T) {
	f := func(more string, least, most int) {
		t.Helper()
		const sources, each = 16, 10
		srv := newServer(t)
		var o order
		o.readRequests(srv)
		fake := clocktest.New(time.UnixMilli(t0))
		n := start(t, componenttest.New(t, "prometheus.remote_write.test"), fake, endpoint(srv.URL, fmt.Sprintf(`
			queue_config {
				max_samples_per_send = %d
				min_backoff = "10ms"
				max_backoff = "10ms"
				%s
			}`, each, more)))
		var batches [sources]*batch.Metrics
		for i := range batches {
			batches[i] = gauges(uint64(i), each, 0)
		}
		sent := 0
		send := func() { // sends one batch of each source concurrently
			t.Helper()
			var wg sync.WaitGroup
			for _, b := range batches {
				b := &batch.Metrics{Source: b.Source, Series: b.Series, V: b.V}
				for range each {
					b.T = append(b.T, t0+int64(sent))
				}
				wg.Go(func() { n.accept(t, b) })
			}
			wg.Wait()
			sent++
		}
		pace := time.NewTicker(time.Millisecond)
		defer pace.Stop()
		timeout := time.NewTimer(time.Minute) // the machine may be busy
		defer timeout.Stop()
		wait := func(what string, ok func() bool) {
			t.Helper()
			for !ok() {
				select {
				case <-pace.C:
				case <-timeout.C:
					shards, blocks := n.queue(t)
					t.Fatalf("%s did not happen: %d shards are used, %d blocks are pending after %d rounds", what, shards, blocks, sent)
				}
			}
		}
		idle := func() bool { _, blocks := n.queue(t); return blocks == 0 }
		uses := func(want int) bool { shards, _ := n.queue(t); return shards == want }

		for range 5 {
			send()
			wait("the end of a round", idle)
			fake.Advance(5 * time.Second)
		}
		if got, _ := n.queue(t); got != least {
			t.Errorf("%d shards are used by an endpoint that keeps up, want %d", got, least)
		}
		o.down.Store(true)
		wait("the use of more shards", func() bool {
			fake.Advance(time.Second)
			send()
			return uses(most)
		})
		send()
		o.down.Store(false)
		stop := advance(fake) // for the retries
		wait("the end of the backlog", idle)
		stop()
		wait("the use of fewer shards", func() bool {
			fake.Advance(61 * time.Second)
			send()
			wait("the end of a round", idle)
			return uses(least)
		})
		send()
		wait("the end of the last round", idle)
		o.inOrder(t, sources*each, sent)
	}
	f("", 1, 8)
	f("max_shards = 3", 1, 3)
	f("min_shards = 2\nmax_shards = 6", 2, 6)
	f("min_shards = 4\nmax_shards = 2", 4, 4)
}

// TestOpenBlocksBeforeShardsChange: the samples gathered in a shard are written
// before their source moves to another shard.
func TestOpenBlocksBeforeShardsChange(t *testing.T) {
	srv := newServer(t)
	c := timers{clocktest.New(time.UnixMilli(t0)), make(chan time.Duration, 1000)}
	n := start(t, componenttest.New(t, "prometheus.remote_write.test"), c, endpoint(srv.URL, ""))
	done := make(chan error, 1)
	go func() { done <- n.c.ConsumeMetrics(t.Context(), gauges(1, 3, t0)) }()
	c.waitFor(t, 100*time.Millisecond) // the timer of its deadline, which does not fire
	n.c.UseShards(2)
	if err := <-done; err != nil {
		t.Error(err)
	}
}
