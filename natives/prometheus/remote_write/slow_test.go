package remotewrite_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/component/componenttest"
	remotewrite "github.com/weir-run/weir/natives/prometheus/remote_write"
)

// slow is an endpoint that takes some time for each response. It does not use the
// network, so that tests can use the clock of a synctest bubble.
type slow struct {
	t       *testing.T
	latency time.Duration

	mu       sync.Mutex
	down     bool                  // it answers 503
	judge    func(rows []sent) int // returns the status of the response; nil means 200
	inflight int                   // number of current requests
	most     int                   // maximum of inflight
	busy     map[string]bool       // the series in current requests
	last     map[string]int64      // by series, the last timestamp
	accepted []acceptance          // requests
	total    int                   // samples accepted
	headers  map[string]int        // accepted samples by X-Scope-OrgID
}

// sent is a sample in a request.
type sent struct {
	series string
	t      int64
}

type acceptance struct {
	at      time.Time
	samples int
}

func newSlow(t *testing.T, latency time.Duration) *slow {
	return &slow{t: t, latency: latency, busy: map[string]bool{}, last: map[string]int64{}, headers: map[string]int{}}
}

func (s *slow) set(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}

// RoundTrip implements http.RoundTripper.
func (s *slow) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	got := request{header: r.Header, raw: body}
	if err := got.decode(); err != nil {
		s.t.Errorf("cannot decode a request: %v", err)
	}
	var rows []sent
	series := map[string]bool{}
	s.mu.Lock()
	for _, ts := range got.message.Timeseries {
		name := ""
		for _, l := range ts.Labels {
			name += l.Name + "=" + l.Value + " "
		}
		for _, sample := range ts.Samples {
			rows = append(rows, sent{name, sample.Timestamp})
		}
		if !series[name] && s.busy[name] {
			s.t.Errorf("two requests with series %s are in flight", name)
		}
		series[name] = true
	}
	for name := range series {
		s.busy[name] = true
	}
	s.inflight++
	s.most = max(s.most, s.inflight)
	wait := s.latency
	if s.down {
		wait = time.Millisecond
	}
	s.mu.Unlock()
	failed := clock.Sleep(r.Context(), clock.System{}, wait)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inflight--
	for name := range series {
		delete(s.busy, name)
	}
	if failed != nil {
		return nil, failed
	}
	status := 200
	if s.down {
		status = 503
	} else if s.judge != nil {
		status = s.judge(rows)
	}
	header := http.Header{}
	if status == 200 {
		for _, row := range rows {
			if row.t < s.last[row.series] {
				s.t.Errorf("series %s: %d after %d", row.series, row.t, s.last[row.series])
			}
			s.last[row.series] = row.t
		}
		s.total += len(rows)
		s.accepted = append(s.accepted, acceptance{time.Now(), len(rows)})
		s.headers[r.Header.Get("X-Scope-OrgID")] += len(rows)
		header.Set("X-Prometheus-Remote-Write-Samples-Written", fmt.Sprint(len(rows)))
		header.Set("X-Prometheus-Remote-Write-Histograms-Written", "0")
		header.Set("X-Prometheus-Remote-Write-Exemplars-Written", "0")
	}
	return &http.Response{StatusCode: status, Status: http.StatusText(status), Header: header, Body: io.NopCloser(bytes.NewReader(nil)), Request: r}, nil
}

func (s *slow) requests() []acceptance {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.accepted)
}

// atOnce returns the maximum number of concurrent requests.
func (s *slow) atOnce() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.most
}

func (s *slow) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total
}

// rate returns the samples per second in the middle of the time since sample
// from: between a tenth and nine tenths of the samples.
func (s *slow) rate(from int) float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	low, high := from+(s.total-from)/10, from+(s.total-from)*9/10
	n, samples := 0, 0
	var began, ended time.Time
	for _, a := range s.accepted {
		n += a.samples
		if began.IsZero() {
			if n >= low {
				began = a.at
			}
		} else if n <= high {
			samples += a.samples
			ended = a.at
		}
	}
	return float64(samples) / ended.Sub(began).Seconds()
}

// startSlow runs a component that sends to s.
func startSlow(t *testing.T, n *componenttest.Node, s *slow, text string) *node {
	t.Helper()
	o := n.Options()
	o.Clock = clock.System{}
	built, err := remotewrite.New(o, decode(t, endpoint("http://slow/", text)), nil)
	if err != nil {
		t.Fatal(err)
	}
	built.SetTransport(s)
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	go func() { done <- built.Run(ctx) }()
	end := sync.OnceFunc(func() {
		cancel(nil)
		if err := <-done; err != nil {
			t.Errorf("Run ended with %v", err)
		}
	})
	t.Cleanup(end)
	return &node{n, built, end, nil}
}

// scrape sends a batch of each source every second for the given number of
// seconds.
func scrape(t *testing.T, n *node, batches []*batch.Metrics, seconds int) {
	t.Helper()
	for range seconds {
		var wg sync.WaitGroup
		for _, b := range batches {
			for i := range b.T {
				b.T[i] = time.Now().UnixMilli()
			}
			copied := &batch.Metrics{Source: b.Source, Series: b.Series, V: b.V, T: slices.Clone(b.T)}
			wg.Go(func() { n.accept(t, copied) })
		}
		wg.Wait()
		next := time.Now().Truncate(time.Second).Add(time.Second)
		_ = clock.Sleep(t.Context(), clock.System{}, time.Until(next))
	}
}

func (n *node) pending(t *testing.T) int {
	t.Helper()
	_, blocks := n.queue(t)
	return blocks
}

// drain waits until nothing is pending, for at most the given number of seconds.
func drain(t *testing.T, n *node, seconds int) {
	t.Helper()
	for range seconds * 10 {
		if n.pending(t) == 0 {
			return
		}
		_ = clock.Sleep(t.Context(), clock.System{}, 100*time.Millisecond)
	}
	t.Fatalf("%d blocks are pending after %d s", n.pending(t), seconds)
}

// TestSlowEndpointKeepsUp runs a few targets against an endpoint that takes 1.5 s
// for each response: the journal must not grow, and requests must be full.
func TestSlowEndpointKeepsUp(t *testing.T) {
	f := func(config string, sizes ...int) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			s := newSlow(t, 1500*time.Millisecond)
			n := startSlow(t, componenttest.New(t, "prometheus.remote_write.test"), s, config+"queue_config {\n max_samples_per_send = 200\n }\n")
			var batches []*batch.Metrics
			perSecond := 0
			for i, size := range sizes {
				batches = append(batches, gauges(uint64(i), size, 0))
				perSecond += size
			}
			scrape(t, n, batches, 20) // time to adapt
			scrape(t, n, batches, 60)
			if waiting := 80*perSecond - s.count(); waiting > 5*perSecond {
				t.Errorf("%v: %d samples are waiting, which is more than those of 5 s", sizes, waiting)
			}
			if most := s.atOnce(); most > 8 {
				t.Errorf("%v: %d requests were in flight at once", sizes, most)
			}
			if mean := s.count() / len(s.requests()); mean < min(100, perSecond*2/3) {
				t.Errorf("%v: requests have %d samples in the mean", sizes, mean)
			}
			drain(t, n, 10)
			if s.count() != 80*perSecond {
				t.Errorf("%d samples arrived, want %d", s.count(), 80*perSecond)
			}
			n.stop()
		})
	}
	f("", 200, 200, 200)
	f(asV2, 200, 200, 200)
	f("", 800)
	f("", 10, 10, 10)
}

// TestBacklogDrainsAtFullRate creates a backlog, mostly in one shard, and checks
// that it drains at nearly the rate that the endpoint supports. The measured time
// contains at most 36 rounds of requests, and a round with idle requests costs 3
// %.
func TestBacklogDrainsAtFullRate(t *testing.T) {
	f := func(shards, sources, each, seconds int, restart bool, config string) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			s := newSlow(t, 1500*time.Millisecond)
			s.set(true)
			home := componenttest.New(t, "prometheus.remote_write.test")
			config := fmt.Sprintf("queue_config {\n max_shards = %d\n max_samples_per_send = 200\n }\n", shards) + config
			n := startSlow(t, home, s, config)
			var batches []*batch.Metrics
			for i := range sources {
				batches = append(batches, gauges(uint64(i), each, 0))
			}
			scrape(t, n, batches, seconds)
			if restart {
				n.stop()
				home.Registry = prometheus.NewRegistry()
				n = startSlow(t, home, s, config)
				for n.pending(t) == 0 { // the journal is not open yet
					_ = clock.Sleep(t.Context(), clock.System{}, time.Millisecond)
				}
			}
			s.set(false)
			drain(t, n, 600)
			if want := sources * each * seconds; s.count() != want {
				t.Errorf("%d samples arrived, want %d", s.count(), want)
			}
			possible := float64(shards) * 200 / 1.5
			if got := s.rate(0); got < 0.85*possible {
				t.Errorf("%d sources, %q: the backlog drained at %.0f samples/s; the endpoint can take %.0f", sources, config, got, possible)
			}
			if most := s.atOnce(); most > shards {
				t.Errorf("%d requests were in flight at once", most)
			}
			n.stop()
		})
	}
	f(8, 1, 1000, 60, false, "")
	f(8, 3, 333, 60, true, "")
	f(8, 1, 1000, 60, false, asV2)
	f(20, 2, 1500, 60, false, "")
}

// TestPoisonedBlock: an endpoint rejects every request that contains a certain
// series. Only its block may be lost, whether requests consist of whole blocks or
// of parts of them.
func TestPoisonedBlock(t *testing.T) {
	f := func(latency time.Duration, each int) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			s := newSlow(t, latency)
			s.set(true)
			const poison = "__name__=m i=poison source=0 "
			s.judge = func(rows []sent) int {
				if slices.ContainsFunc(rows, func(r sent) bool { return r.series == poison }) {
					return 400
				}
				return 200
			}
			n := startSlow(t, componenttest.New(t, "prometheus.remote_write.test"), s, "queue_config {\n max_samples_per_send = 200\n }\n")
			clean := gauges(0, each, 0)
			scrape(t, n, []*batch.Metrics{clean}, 10)
			bad := gauges(0, 5, 0)
			bad.Series[2] = series("m", "i", "poison", "source", "0")
			scrape(t, n, []*batch.Metrics{bad}, 1)
			scrape(t, n, []*batch.Metrics{clean}, 10)
			s.set(false)
			drain(t, n, 100)
			lost := 20*each + 5 - s.count() // from the block
			if lost < 1 || lost > 5 {
				t.Errorf("%d samples are missing", lost)
			}
			n.metric(t, "weir_remote_write_samples_dropped_total", "rejected", float64(lost))
			n.metric(t, "weir_remote_write_samples_sent_total", "", float64(s.count()))
			n.stop()
		})
	}
	f(5*time.Millisecond, 50)
	f(1500*time.Millisecond, 300)
}

// TestBatchSendDeadline checks that samples wait for a full request as long as
// batch_send_deadline specifies, and that nothing waits when weir stops.
func TestBatchSendDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlow(t, time.Millisecond)
		n := startSlow(t, componenttest.New(t, "prometheus.remote_write.test"), s, "queue_config {\n batch_send_deadline = \"5s\"\n max_samples_per_send = 100\n }\n")
		began := time.Now()
		scrape(t, n, []*batch.Metrics{gauges(1, 10, 0), gauges(2, 10, 0)}, 9)
		_ = clock.Sleep(t.Context(), clock.System{}, time.Minute)
		// The first request is full when all samples except the last 80 have
		// arrived.
		accepted := s.requests()
		if len(accepted) != 2 || accepted[0].samples != 100 || accepted[1].samples != 80 {
			t.Fatalf("got %v", accepted)
		}
		if took := accepted[0].at.Sub(began); took < 4*time.Second || took > 5*time.Second {
			t.Errorf("the full request was sent after %s", took)
		}
		if took := accepted[1].at.Sub(began); took < 9900*time.Millisecond || took > 10200*time.Millisecond {
			t.Errorf("the other request was sent after %s", took)
		}
		n.accept(t, gauges(1, 10, time.Now().UnixMilli()))
		stopped := time.Now()
		n.stop()
		if took := time.Since(stopped); took > time.Second || s.count() != 190 {
			t.Errorf("%d samples arrived, and to stop took %s", s.count(), took)
		}
	})
	// By default, nothing waits longer than the journal write takes.
	synctest.Test(t, func(t *testing.T) {
		s := newSlow(t, time.Millisecond)
		n := startSlow(t, componenttest.New(t, "prometheus.remote_write.test"), s, "")
		began := time.Now()
		n.accept(t, gauges(1, 10, began.UnixMilli()))
		_ = clock.Sleep(t.Context(), clock.System{}, time.Minute)
		if accepted := s.requests(); len(accepted) != 1 || accepted[0].at.Sub(began) > 200*time.Millisecond {
			t.Errorf("got %v after %s", accepted, began)
		}
		n.stop()
	})
}

// TestTenantsOfSlowEndpoint checks that requests of several tenants are in flight
// concurrently, and that a tenant that is asked to wait does not delay other
// shards.
func TestTenantsOfSlowEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const tenants, each = 40, 20
		s := newSlow(t, 1500*time.Millisecond)
		n := startSlow(t, componenttest.New(t, "prometheus.remote_write.test"), s, "header_from_label {\n label = \"tenant\"\n }\n")
		var b batch.Metrics
		for i := range tenants * each {
			b.Series = append(b.Series, series("m", "i", fmt.Sprint(i), "tenant", fmt.Sprint("t", i%tenants)))
			b.T = append(b.T, 0)
			b.V = append(b.V, 1)
		}
		scrape(t, n, []*batch.Metrics{&b}, 60)
		drain(t, n, 60)
		for i := range tenants {
			s.mu.Lock()
			got := s.headers[fmt.Sprint("t", i)]
			s.mu.Unlock()
			if got != 60*each {
				t.Errorf("%d samples of tenant %d arrived, want %d", got, i, 60*each)
			}
		}
		if most := s.atOnce(); most > 8 {
			t.Errorf("%d requests were in flight at once", most)
		}
		n.stop()
	})
}
