package remotewrite_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/google/go-cmp/cmp"
	"github.com/grafana/alloy/syntax"
	remoteapi "github.com/prometheus/client_golang/exp/api/remote"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"
	"github.com/prometheus/prometheus/tsdb/tsdbutil"
	"go.uber.org/goleak"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/clock/clocktest"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/journal"
	remotewrite "github.com/weir-run/weir/natives/prometheus/remote_write"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("WEIR_TEST_REMOTE_WRITE"); dir != "" {
		sendForever(dir, os.Getenv("WEIR_TEST_URL"))
		return
	}
	goleak.VerifyTestMain(m)
}

const t0 = 1735689600000 // 2025-01-01

func decode(t testing.TB, text string) *remotewrite.Arguments {
	t.Helper()
	var a remotewrite.Arguments
	if err := syntax.Unmarshal([]byte(text), &a); err != nil {
		t.Fatal(err)
	}
	return &a
}

// node is a running component. It uses the real clock unless the test sets
// another one.
type node struct {
	*componenttest.Node
	c    *remotewrite.Component
	stop func()

	replace func() // stop because a successor runs
}

func start(t testing.TB, n *componenttest.Node, c clock.Clock, text string) *node {
	t.Helper()
	o := n.Options()
	if c != nil {
		o.Clock = c
	}
	built, err := remotewrite.New(o, decode(t, text), n.Previous)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	done := make(chan error, 1)
	go func() { done <- built.Run(ctx) }()
	end := sync.OnceFunc(func() {
		if err := <-done; err != nil {
			t.Errorf("Run ended with %v", err)
		}
	})
	stop := func() { cancel(nil); end() }
	t.Cleanup(stop)
	return &node{n, built, stop, func() { cancel(component.ErrReplaced); end() }}
}

// startNew starts a component in a new storage directory.
func startNew(t testing.TB, text string) *node {
	t.Helper()
	return start(t, componenttest.New(t, "prometheus.remote_write.test"), clock.System{}, text)
}

func (n *node) accept(t testing.TB, bs ...*batch.Metrics) {
	t.Helper()
	for _, b := range bs {
		if err := n.c.ConsumeMetrics(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
}

// endpoint returns an endpoint whose requests time out after 5 minutes, unless more
// sets a timeout: samples that are sent again because the machine is busy would
// arrive twice.
func endpoint(url, more string) string {
	if !strings.Contains(more, "remote_timeout") {
		more = "remote_timeout = \"5m\"\n" + more
	}
	return fmt.Sprintf("endpoint {\n url = %q\n%s\n}\n", url, more)
}

// gauges returns a batch of n series at time t; values are their numbers.
func gauges(source uint64, n int, t int64) *batch.Metrics {
	b := &batch.Metrics{Source: source}
	for i := range n {
		b.Series = append(b.Series, series("m", "i", fmt.Sprint(i), "source", fmt.Sprint(source)))
		b.T = append(b.T, t)
		b.V = append(b.V, float64(i))
	}
	return b
}

func series(name string, pairs ...string) *batch.Series {
	return batch.FromLabels(labels.FromStrings(append([]string{"__name__", name}, pairs...)...))
}

func diff(t testing.TB, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestEveryBitArrives sends unusual values to a real Prometheus.
func TestEveryBitArrives(t *testing.T) {
	t.Run("1.0", func(t *testing.T) { everyBit(t, v1, "application/x-protobuf", "0.1.0") })
	t.Run("2.0", func(t *testing.T) {
		everyBit(t, v2, "application/x-protobuf;proto=io.prometheus.write.v2.Request", "2.0.0")
	})
}

const (
	v1 = remoteapi.WriteV1MessageType
	v2 = remoteapi.WriteV2MessageType
)

func everyBit(t *testing.T, message remoteapi.WriteMessageType, contentType, version string) {
	srv := newServerOf(t, 24*time.Hour, message)
	n := startNew(t, endpoint(srv.URL, fmt.Sprintf(`
		protobuf_message       = %q
		send_native_histograms = true
		queue_config { max_samples_per_send = 3 }`, message)))
	values := []float64{
		0, math.Copysign(0, -1), 1.5, math.Inf(1), math.Inf(-1), math.SmallestNonzeroFloat64, math.MaxFloat64,
		math.NaN(), math.Float64frombits(0x7ff8000000000001), math.Float64frombits(0x7ff80000deadbeef),
	}
	b := &batch.Metrics{Source: 1}
	add := func(s *batch.Series, at int64, v float64) int {
		b.Series, b.T, b.V = append(b.Series, s), append(b.T, at), append(b.V, v)
		return len(b.T) - 1
	}
	for i, v := range values {
		add(series("value", "i", fmt.Sprint(i), "empty", "", "utf8", "grüße\n\"\\"), t0, v)
	}
	add(batch.FromLabels(labels.FromStrings("__name__", "my.utf8 name", "a b", strings.Repeat("x", 5000))), t0, 1)
	stale := series("stale")
	add(stale, t0, 7)
	add(stale, t0+1000, batch.Stale())
	withExemplars := series("with_exemplars")
	b.Exemplars = append(b.Exemplars,
		batch.Exemplar{Row: add(withExemplars, t0, 1), Labels: []batch.Label{{Name: "trace_id", Value: "a"}}, Value: 0.5, T: t0 - 10, HasT: true},
		batch.Exemplar{Row: add(withExemplars, t0+1000, 2), Labels: []batch.Label{{Name: "trace_id", Value: "b"}}, Value: 0.25})
	ints, floats := series("int_histogram"), series("float_histogram")
	for i := range 3 {
		h := tsdbutil.GenerateTestHistogram(int64(i))
		b.Histograms = append(b.Histograms, batch.Histogram{Row: add(ints, t0+int64(i)*1000, h.Sum), Int: h})
	}
	f := tsdbutil.GenerateTestFloatHistogram(1)
	b.Histograms = append(b.Histograms, batch.Histogram{Row: add(floats, t0, f.Sum), Float: f})
	if message == remoteapi.WriteV2MessageType { // 1.0 does not support it
		custom := tsdbutil.GenerateTestCustomBucketsHistogram(1)
		b.Histograms = append(b.Histograms, batch.Histogram{Row: add(series("custom_histogram"), t0, custom.Sum), Int: custom})
	}
	add(ints, t0+9000, batch.Stale())

	n.accept(t, b)
	srv.wait(t, func() bool { return srv.sent() == b.Len() })

	want := rows(b)
	// Prometheus stores the marker of a histogram as a histogram.
	for i, r := range want {
		if strings.HasPrefix(r, `{__name__="int_histogram"} 1735689609000`) {
			want[i] = `{__name__="int_histogram"} 1735689609000 ` + (&histogram.Histogram{Sum: batch.Stale()}).String()
		}
	}
	slices.Sort(want)
	diff(t, want, srv.samples(t))

	q, err := srv.db.ExemplarQuerier(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	es, err := q.Select(0, math.MaxInt64, []*labels.Matcher{labels.MustNewMatcher(labels.MatchEqual, "__name__", "with_exemplars")})
	if err != nil || len(es) != 1 {
		t.Fatalf("got exemplars %v, %v", es, err)
	}
	diff(t, `[{{trace_id="a"} 0.5 1735689599990 true} {{trace_id="b"} 0.25 1735689601000 true}]`, fmt.Sprint(es[0].Exemplars))
	diff(t, "{} => 12 @[1735689600500]", srv.query(t, `count({__name__=~"value|stale|my.*"})`, t0+500))
	diff(t, "", srv.query(t, "stale", t0+1500))

	for _, r := range srv.received() {
		if len(r.message.Timeseries) > 3 {
			t.Errorf("a request has %d samples", len(r.message.Timeseries))
		}
		h := r.header
		diff(t, []string{"snappy", contentType, version, "weir/test"}, []string{
			h.Get("Content-Encoding"), h.Get("Content-Type"), h.Get("X-Prometheus-Remote-Write-Version"), h.Get("User-Agent"),
		})
	}
}

func TestDisabledKindsAreLeftOut(t *testing.T) {
	srv := newServer(t)
	n := startNew(t, endpoint(srv.URL, "send_exemplars = false"))
	h := tsdbutil.GenerateTestHistogram(1)
	n.accept(t, &batch.Metrics{
		Series: []*batch.Series{series("a"), series("h")}, T: []int64{t0, t0}, V: []float64{1, h.Sum},
		Histograms: []batch.Histogram{{Row: 1, Int: h}},
		Exemplars:  []batch.Exemplar{{Row: 0, Labels: []batch.Label{{Name: "a", Value: "b"}}, Value: 1}},
	})
	srv.wait(t, func() bool { return srv.sent() == 1 })
	if ts := srv.received()[0].message.Timeseries[0]; len(ts.Exemplars) != 0 || len(ts.Samples) != 1 {
		t.Errorf("got %v", ts)
	}
	n.stop()
	diff(t, map[string]uint64{"native_histogram": 1}, n.Stats.Dropped())
}

func TestLabels(t *testing.T) {
	srv := newServer(t)
	n := startNew(t, `external_labels = { zone = "z1", a = "ext" }`+"\n"+endpoint(srv.URL, `
		write_relabel_config {
			source_labels = ["__name__"]
			regex         = "drop_.*"
			action        = "drop"
		}
		write_relabel_config {
			source_labels = ["zone"]
			regex         = "z(.*)"
			target_label  = "zone_number"
		}`))
	b := &batch.Metrics{
		Series: []*batch.Series{series("x", "m", "1"), series("drop_me"), series("y", "zone", "own", "a", "own")},
		T:      []int64{t0, t0, t0}, V: []float64{1, 2, 3},
	}
	n.accept(t, b, &batch.Metrics{Series: b.Series, T: []int64{t0 + 1, t0 + 1, t0 + 1}, V: b.V})
	srv.wait(t, func() bool { return srv.sent() == 4 })
	var want []string
	for at := int64(t0); at < t0+2; at++ {
		want = append(want,
			row(`{__name__="x", a="ext", m="1", zone="z1", zone_number="1"}`, at, 1),
			row(`{__name__="y", a="own", zone="own"}`, at, 3))
	}
	slices.Sort(want)
	diff(t, want, srv.samples(t))
	n.stop()
	diff(t, map[string]uint64{"write_relabel": 2}, n.Stats.Dropped())
}

func TestMetadata(t *testing.T) {
	srv := newServer(t)
	fake := clocktest.New(time.UnixMilli(t0))
	n := start(t, componenttest.New(t, "prometheus.remote_write.test"), fake, endpoint(srv.URL, "metadata_config { send_interval = \"30s\" }"))
	var b batch.Metrics
	meta := func(typ model.MetricType, help string) *batch.Metadata {
		return &batch.Metadata{Type: typ, Help: help, Unit: "u"}
	}
	h, g := meta("histogram", "H."), meta("gauge", "G.")
	for _, s := range []struct {
		name string
		m    *batch.Metadata
	}{{"h_bucket", h}, {"h_sum", h}, {"h_count", h}, {"g", g}, {"also_g", g}, {"c_total", meta("counter", "C.")}, {"none", nil}} {
		x := series(s.name)
		if s.m != nil {
			x.SetMeta(s.m)
		}
		b.Series, b.T, b.V = append(b.Series, x), append(b.T, t0), append(b.V, 1)
	}
	done := make(chan error, 1)
	go func() { done <- n.c.ConsumeMetrics(t.Context(), &b) }()
	stop := advance(fake)
	defer stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	var got *prompb.WriteRequest
	srv.wait(t, func() bool {
		for _, r := range srv.received() {
			if len(r.message.Metadata) > 0 {
				got = r.message
			}
		}
		return got != nil
	})
	diff(t, []prompb.MetricMetadata{
		{Type: prompb.MetricMetadata_GAUGE, MetricFamilyName: "also_g", Help: "G.", Unit: "u"},
		{Type: prompb.MetricMetadata_COUNTER, MetricFamilyName: "c_total", Help: "C.", Unit: "u"},
		{Type: prompb.MetricMetadata_GAUGE, MetricFamilyName: "g", Help: "G.", Unit: "u"},
		{Type: prompb.MetricMetadata_HISTOGRAM, MetricFamilyName: "h", Help: "H.", Unit: "u"},
	}, got.Metadata)
}

// advance advances a fake clock as long as a timer is set.
func advance(c *clocktest.Fake) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		// Requests take real time. Without a pause, the journal's max_age may
		// pass in the meantime.
		pace := time.NewTicker(100 * time.Microsecond)
		defer pace.Stop()
		for c.WaitTimers(ctx, 1) == nil && ctx.Err() == nil {
			<-pace.C
			c.Advance(20 * time.Millisecond)
		}
	})
	return func() { cancel(); wg.Wait() }
}

// timers is a clock that reports the timers that are set.
type timers struct {
	*clocktest.Fake
	armed chan time.Duration
}

func (c timers) NewTimer(d time.Duration) clock.Timer {
	t := c.Fake.NewTimer(d)
	c.record(d)
	return timer{t, c}
}

func (c timers) record(d time.Duration) {
	select {
	case c.armed <- d:
	default:
	}
}

type timer struct {
	clock.Timer
	c timers
}

func (t timer) Reset(d time.Duration) bool {
	was := t.Timer.Reset(d)
	t.c.record(d)
	return was
}

// waitFor waits until a timer with duration d was set.
func (c timers) waitFor(t testing.TB, d time.Duration) {
	t.Helper()
	c.waitWithin(t, d, d)
}

// waitWithin waits for a timer with a duration from least to most and returns the
// duration.
func (c timers) waitWithin(t testing.TB, least, most time.Duration) time.Duration {
	t.Helper()
	timeout := time.NewTimer(time.Minute)
	defer timeout.Stop()
	var seen []time.Duration
	for {
		select {
		case got := <-c.armed:
			if least <= got && got <= most {
				return got
			}
			seen = append(seen, got)
		case <-timeout.C:
			t.Fatalf("no timer of %s to %s was armed, but %v", least, most, seen)
		}
	}
}

func TestRetry(t *testing.T) {
	srv := newServer(t)
	var well atomic.Bool
	c := timers{clocktest.New(time.UnixMilli(t0)), make(chan time.Duration, 1000)}
	srv.setFault(func(w http.ResponseWriter, _ *http.Request, n int) bool {
		switch n {
		case 1:
			w.Header().Set("Retry-After", "17")
			w.WriteHeader(429)
		case 2:
			theirs := c.Now().Add(-time.Hour).UTC() // the clock of the endpoint differs
			w.Header().Set("Date", theirs.Format(http.TimeFormat))
			w.Header().Set("Retry-After", theirs.Add(23*time.Second).Format(http.TimeFormat))
			w.WriteHeader(503)
		default:
			if well.Load() {
				return false
			}
			w.WriteHeader(500)
		}
		return true
	})
	n := start(t, componenttest.New(t, "prometheus.remote_write.test"), c,
		endpoint(srv.URL, `queue_config { max_samples_per_send = 3
		min_backoff = "110ms"
		max_backoff = "700ms" }`))
	b := gauges(1, 3, t0)
	n.accept(t, b) // fills a block, so it does not wait
	// Jitter makes each interval slightly longer, by at most max_backoff. The
	// delay that the endpoint requested counts as the previous interval.
	c.Advance(c.waitWithin(t, 17*time.Second, 17*time.Second+70*time.Millisecond))
	c.Advance(c.waitWithin(t, 23*time.Second, 23*time.Second+70*time.Millisecond))
	c.Advance(c.waitWithin(t, 630*time.Millisecond, 700*time.Millisecond))
	c.waitWithin(t, 630*time.Millisecond, 700*time.Millisecond)
	// By now, the endpoint has failed for more than 30 s. watch checks this every
	// 5 s while it sleeps.
	stop := advance(c.Fake)
	defer stop()
	n.Wait(t, func() bool {
		h := n.Health()
		return h.State == component.Unhealthy && strings.Contains(h.Message, "500")
	})
	well.Store(true)
	srv.wait(t, func() bool { return srv.count(t) == 3 })
	diff(t, rows(b), srv.samples(t))
	reqs := srv.received()
	for i, r := range reqs {
		if string(r.raw) != string(reqs[0].raw) {
			t.Errorf("request %d has other bytes", i)
		}
		want := ""
		if i > 0 {
			want = fmt.Sprint(i)
		}
		diff(t, want, r.header.Get("Retry-Attempt"))
	}
	n.Wait(t, func() bool { return n.Health().State == component.Healthy })
	n.metric(t, "weir_remote_write_samples_retried_total", "", float64(3*(len(reqs)-1)))
	n.metric(t, "weir_remote_write_samples_sent_total", "", 3)
}

// metric compares the sum of all series of a metric that contain the text label.
func (n *node) metric(t testing.TB, name, label string, want float64) {
	t.Helper()
	fams, err := n.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := 0.0
	for _, f := range fams {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.Metric {
			if strings.Contains(fmt.Sprint(m.Label), label) {
				got += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	if got != want {
		t.Errorf("%s{%s} is %v, want %v", name, label, got, want)
	}
}

func TestRejectedBlocksAreDropped(t *testing.T) {
	// f answers the first request with status and checks which samples arrive.
	f := func(status int, more string, dropped bool) {
		t.Helper()
		srv := newServer(t)
		srv.setFault(func(w http.ResponseWriter, _ *http.Request, n int) bool {
			if n == 1 {
				http.Error(w, "on purpose", status)
			}
			return n == 1
		})
		n := startNew(t, endpoint(srv.URL, "queue_config { max_samples_per_send = 2\n"+more+" }"))
		first, second := gauges(1, 2, t0), gauges(1, 2, t0+1000)
		n.accept(t, first, second)
		want := rows(first, second)
		if dropped {
			want = rows(second)
		}
		srv.wait(t, func() bool { return srv.count(t) == len(want) })
		diff(t, want, srv.samples(t))
		n.stop()
		if dropped {
			diff(t, map[string]uint64{"rejected": 2}, n.Stats.Dropped())
		}
	}
	f(400, "", true)
	f(401, "", true)
	f(404, "", true)
	f(413, "", true)
	f(429, "retry_on_http_429 = false", true)
	f(429, "", false)
	f(500, "", false)
	f(502, "", false)
	f(503, "", false)
}

// TestRedirects: a redirect that keeps the method and the host is followed. For
// other redirects, a client sends a GET request without a body; whatever the
// response, nothing arrived.
func TestRedirects(t *testing.T) {
	f := func(status int, follow, arrives, another bool) {
		t.Helper()
		srv := newServer(t)
		front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/elsewhere" {
				srv.Config.Handler.ServeHTTP(w, r)
				return
			}
			to := "/elsewhere?token=hunter2"
			if another {
				to = srv.URL + to
			}
			http.Redirect(w, r, to, status)
		}))
		defer front.Close()
		config := func(url string) string {
			return endpoint(url, fmt.Sprintf("name = \"x\"\nfollow_redirects = %t", follow))
		}
		n := startNew(t, config(front.URL))
		n.accept(t, gauges(1, 2, t0))
		if !arrives {
			n.Wait(t, func() bool { return strings.Contains(n.Logs(), "cannot send") })
			says := "redirects to " + front.URL + "/elsewhere?…"
			if another {
				says = "redirects to another host, " + strings.TrimPrefix(srv.URL, "http://")
			}
			if log := n.Logs(); !strings.Contains(log, says) || strings.Contains(log, "hunter2") {
				t.Errorf("%d: the log says:\n%s", status, log)
			}
			if err := n.c.Update(decode(t, config(srv.URL))); err != nil {
				t.Fatal(err)
			}
		}
		srv.wait(t, func() bool { return srv.count(t) == 2 })
		n.stop()
		diff(t, map[string]uint64{}, n.Stats.Dropped())
	}
	f(http.StatusTemporaryRedirect, true, true, false)
	f(http.StatusPermanentRedirect, true, true, false)
	f(http.StatusMovedPermanently, true, false, false)
	f(http.StatusFound, true, false, false)
	f(http.StatusPermanentRedirect, false, false, false)
	f(http.StatusTemporaryRedirect, true, false, true)
	f(http.StatusPermanentRedirect, true, false, true)
}

func TestDeadEndpointHoldsUpNobody(t *testing.T) {
	alive, hung := newServer(t), newServer(t)
	const dead = "http://127.0.0.1:1" // a port that is never open
	release := make(chan struct{})
	hung.setFault(func(http.ResponseWriter, *http.Request, int) bool { <-release; return true })
	n := startNew(t, endpoint(alive.URL, "")+endpoint(dead, "")+endpoint(hung.URL, ""))
	var bs []*batch.Metrics
	for i := range 10 {
		bs = append(bs, gauges(uint64(i), 10, t0+int64(i)))
	}
	n.accept(t, bs...)
	alive.wait(t, func() bool { return alive.count(t) == 100 })
	diff(t, rows(bs...), alive.samples(t))
	n.metric(t, "weir_remote_write_samples_pending", dead, 100)
	n.metric(t, "weir_remote_write_samples_pending", hung.URL, 100)
	close(release)
}

func TestBacklogIsSentAfterARestart(t *testing.T) {
	srv := newServer(t)
	srv.answer(503)
	home := componenttest.New(t, "prometheus.remote_write.test")
	text := endpoint(srv.URL, "")
	var bs []*batch.Metrics
	for round := range 3 {
		n := start(t, home, clock.System{}, text)
		var wg sync.WaitGroup
		for i := range 20 {
			b := gauges(uint64(i), 5, t0+int64(round)*1000)
			bs = append(bs, b)
			wg.Go(func() { n.accept(t, b) })
		}
		wg.Wait()
		n.stop()
		home.Registry = prometheus.NewRegistry()
	}
	srv.heal()
	start(t, home, clock.System{}, text)
	srv.wait(t, func() bool { return srv.count(t) == 300 })
	diff(t, rows(bs...), srv.samples(t))
	checkOrder(t, srv)
}

// TestBacklogOfAnotherTenant: if a node is replaced by one that sends to the same
// URL for another tenant, as items of a foreach do, the new node does not get the
// backlog. A node that sends for the same tenant gets it.
func TestBacklogOfAnotherTenant(t *testing.T) {
	f := func(a, b string) {
		t.Helper()
		srv := newServer(t)
		srv.answer(503)
		home := componenttest.New(t, "prometheus.remote_write.a")
		on := func(id, settings string) *node {
			n := componenttest.New(t, "prometheus.remote_write."+id)
			n.StoragePath = home.StoragePath
			return start(t, n, clock.System{}, endpoint(srv.URL, settings))
		}
		n := start(t, home, clock.System{}, endpoint(srv.URL, a))
		backlog := gauges(1, 3, t0)
		n.accept(t, backlog)
		n.stop()
		srv.heal()
		n = on("b", b)
		own := gauges(2, 2, t0+1)
		n.accept(t, own)
		srv.wait(t, func() bool { return srv.count(t) >= 2 })
		n.stop() // sends the samples that wait
		diff(t, rows(own), srv.samples(t))
		on("c", a)
		srv.wait(t, func() bool { return srv.count(t) == 5 })
		diff(t, rows(own, backlog), srv.samples(t))
	}
	f(`headers = { "X-Scope-OrgID" = "a" }`, `headers = { "X-Scope-OrgID" = "b" }`)
	f(`http_headers = { "X-Scope-OrgID" = ["a"] }`, `http_headers = { "X-Scope-OrgID" = ["b"] }`)
	f("basic_auth {\n username = \"a\"\n password = \"x\"\n }", "basic_auth {\n username = \"b\"\n password = \"x\"\n }")
	f(`bearer_token = "a"`, `bearer_token = "b"`)
	f("", `bearer_token = "b"`)
}

// checkOrder fails if the samples of a series arrived out of order.
func checkOrder(t testing.TB, srv *server) {
	t.Helper()
	last := map[string]int64{}
	for _, r := range srv.received() {
		for _, ts := range r.message.Timeseries {
			k := fmt.Sprint(ts.Labels)
			for _, s := range ts.Samples {
				if s.Timestamp < last[k] {
					t.Fatalf("%s: %d after %d", k, s.Timestamp, last[k])
				}
				last[k] = s.Timestamp
			}
		}
	}
}

func TestShutdownWritesOpenBlocksAtOnce(t *testing.T) {
	srv := newServer(t)
	srv.answer(503)
	home := componenttest.New(t, "prometheus.remote_write.test")
	fake := timers{clocktest.New(time.UnixMilli(t0)), make(chan time.Duration, 1000)} // the deadline never passes
	n := start(t, home, fake, endpoint(srv.URL, ""))
	b := gauges(1, 5, t0)
	done := make(chan error, 1)
	go func() { done <- n.c.ConsumeMetrics(t.Context(), b) }()
	fake.waitFor(t, 100*time.Millisecond)
	n.stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	home.Registry = prometheus.NewRegistry()
	srv.heal()
	start(t, home, fake, endpoint(srv.URL, ""))
	srv.wait(t, func() bool { return srv.count(t) == 5 })
}

// TestOneEndpointRefuses: the journal of one endpoint is full, and the retry goes
// only to that endpoint.
func TestOneEndpointRefuses(t *testing.T) {
	good, bad := newServer(t), newServer(t)
	bad.answer(503)
	n := startNew(t, endpoint(good.URL, "")+endpoint(bad.URL, "")+"journal { max_size = \"1MiB\" }")
	var bs []*batch.Metrics
	var partial *flow.Partial
	for i := 0; partial == nil; i++ {
		b := gauges(1, 2000, t0+int64(i)*1000)
		bs = append(bs, b)
		for j := range b.V { // random values, which do not compress
			b.V[j] = math.Float64frombits(uint64(j*i+1) * 0x9e3779b97f4a7c15 >> 2)
		}
		// Not before the other endpoint has it, even if the machine is busy.
		ctx, cancel := context.WithCancelCause(t.Context())
		returned := make(chan bool)
		var wg sync.WaitGroup
		wg.Go(func() {
			defer cancel(context.DeadlineExceeded)
			select {
			case <-returned:
			case <-time.After(2 * time.Second):
				good.wait(t, func() bool { return good.sent() >= 2000*len(bs) })
			}
		})
		err := n.c.ConsumeMetrics(ctx, b)
		close(returned)
		wg.Wait()
		if err != nil && !errors.As(err, &partial) {
			t.Fatal(err)
		}
	}
	diff(t, []string{"prometheus.remote_write.test/" + bad.URL}, partial.Refused())
	if !errors.Is(partial, context.DeadlineExceeded) {
		t.Errorf("got %v", partial)
	}
	refused := bad.sent()
	bad.heal()
	if err := partial.Retry(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := 2000 * len(bs)
	good.wait(t, func() bool { return good.sent() >= want })
	bad.wait(t, func() bool { return bad.sent() >= refused+want && bad.count(t) == want })
	if n := good.sent(); n != want {
		t.Errorf("the endpoint that accepted got %d samples, want %d", n, want)
	}
	diff(t, rows(bs...), good.samples(t))
	diff(t, rows(bs...), bad.samples(t))
	checkOrder(t, bad)
}

func TestUpdate(t *testing.T) {
	one, two, three := newServer(t), newServer(t), newServer(t)
	one.answer(503)
	text := func(url, more string) string {
		return fmt.Sprintf("endpoint {\n name = \"prod\"\n url = %q\n %s\n}\n", url, more)
	}
	n := startNew(t, text(one.URL, "")+endpoint(three.URL, ""))
	update := func(text string) {
		t.Helper()
		if err := n.c.Update(decode(t, text)); err != nil {
			t.Fatal(err)
		}
	}
	before := gauges(1, 5, t0)
	n.accept(t, before)
	one.wait(t, func() bool { return len(one.received()) > 2 })

	// Another URL and new credentials with the same name keep the backlog. Labels
	// change from the next sample on.
	update(text(two.URL, `basic_auth {
		username = "me"
		password = "secret"
	}`) + endpoint(three.URL, "") + `external_labels = { e = "x" }`)
	two.wait(t, func() bool { return two.count(t) == 5 })
	diff(t, rows(before), two.samples(t))
	if user := two.received()[0].header.Get("Authorization"); !strings.HasPrefix(user, "Basic ") {
		t.Errorf("got Authorization %q", user)
	}
	n.accept(t, gauges(1, 1, t0+1))
	two.wait(t, func() bool { return two.count(t) == 6 })
	diff(t, `{__name__="m", e="x", i="0", source="1"} => 0 @[1735689600001]`, two.query(t, `m{e="x"}`, t0+1))

	// An endpoint that is removed receives nothing more. Batches that it refused
	// are not refused for the other endpoints.
	three.wait(t, func() bool { return three.sent() == 6 })
	came := three.sent()
	update(text(two.URL, ""))
	n.accept(t, gauges(1, 1, t0+2))
	two.wait(t, func() bool { return two.count(t) == 7 })
	if three.sent() != came {
		t.Error("the endpoint that was removed got more")
	}
	// The endpoint returns with its journal.
	update(text(two.URL, "") + endpoint(three.URL, ""))
	n.accept(t, gauges(1, 1, t0+3))
	three.wait(t, func() bool { return three.sent() == came+1 })

	// Invalid arguments change nothing.
	bad := decode(t, text(two.URL, "")+endpoint(three.URL, ""))
	bad.Endpoints[0].Client.TLSConfig.CAFile = filepath.Join(t.TempDir(), "missing")
	if err := n.c.Update(bad); err == nil {
		t.Error("no error for a CA file that is missing")
	}
	n.accept(t, gauges(1, 1, t0+4))
	three.wait(t, func() bool { return three.sent() == came+2 })
}

// TestHandOver replaces a component under load, as the engine does after a
// failure. The successor waits for the journal, and no sample is lost.
func TestHandOver(t *testing.T) {
	srv := newServer(t)
	home := componenttest.New(t, "prometheus.remote_write.test")
	text := endpoint(srv.URL, "")
	old := start(t, home, clock.System{}, text)
	gate := flow.NewReceiver(home.ID, batch.SignalMetrics, nil, nil)
	gate.Set(old.c)
	var bs []*batch.Metrics
	var mu sync.Mutex
	var wg sync.WaitGroup
	for src := range uint64(4) {
		wg.Go(func() {
			for i := range 20 {
				b := gauges(src, 3, t0+int64(i))
				if err := gate.ConsumeMetrics(t.Context(), b); err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				bs = append(bs, b)
				mu.Unlock()
			}
		})
	}
	srv.wait(t, func() bool { return srv.sent() > 20 })
	home.Previous = old.c
	home.Registry = prometheus.NewRegistry()
	next := start(t, home, clock.System{}, text)
	<-gate.Set(next.c)
	old.replace()
	wg.Wait()
	srv.wait(t, func() bool { return srv.count(t) == 240 })
	diff(t, rows(bs...), srv.samples(t))
	if n := srv.sent(); n != 240 {
		t.Errorf("%d samples were sent, want 240", n)
	}
	checkOrder(t, srv)
}

func TestSampleAgeLimit(t *testing.T) {
	srv := newServer(t)
	c := timers{clocktest.New(time.UnixMilli(t0)), make(chan time.Duration, 1000)}
	srv.answer(503)
	n := start(t, componenttest.New(t, "prometheus.remote_write.test"), c, endpoint(srv.URL, `queue_config { max_samples_per_send = 3
		sample_age_limit = "1m"
		min_backoff = "31s"
		max_backoff = "31s" }`))
	b := gauges(1, 3, t0)
	b.T[0] = t0 - 45_000
	b.T[2] = t0 - 50_000
	n.accept(t, b)
	d := c.waitWithin(t, 31*time.Second, 34100*time.Millisecond)
	srv.heal()
	c.Advance(d)
	srv.wait(t, func() bool { return srv.count(t) == 1 })
	diff(t, rows(b.Rows([]int{1})), srv.samples(t))
	n.accept(t, gauges(1, 3, t0-100_000)) // all samples are too old
	c.Advance(31 * time.Second)
	n.accept(t, gauges(1, 3, t0+60_000))
	srv.wait(t, func() bool { return srv.count(t) == 4 })
	n.stop()
	diff(t, map[string]uint64{"too_old": 5}, n.Stats.Dropped())
}

func TestMaxAge(t *testing.T) {
	srv := newServer(t)
	srv.answer(503)
	c := timers{clocktest.New(time.UnixMilli(t0)), make(chan time.Duration, 1000)}
	n := start(t, componenttest.New(t, "prometheus.remote_write.test"), c, endpoint(srv.URL, `queue_config { max_samples_per_send = 3
		min_backoff = "40m"
		max_backoff = "40m" }`)+`wal { max_keepalive_time = "1h" }`)
	n.accept(t, gauges(1, 3, t0))
	c.Advance(c.waitWithin(t, 40*time.Minute, 44*time.Minute))
	d := c.waitWithin(t, 40*time.Minute, 44*time.Minute)
	srv.heal()
	c.Advance(d)
	n.accept(t, gauges(1, 3, t0+1))
	srv.wait(t, func() bool { return srv.count(t) == 3 })
	diff(t, rows(gauges(1, 3, t0+1)), srv.samples(t))
	n.metric(t, "weir_remote_write_samples_dropped_total", "max_age", 3)
}

func TestNoEndpoint(t *testing.T) {
	n := startNew(t, "")
	n.accept(t, gauges(1, 3, t0))
	diff(t, map[string]uint64{"no_endpoint": 3}, n.Stats.Dropped())
}

func TestDebugInfoHasNoSecrets(t *testing.T) {
	srv := newServer(t)
	srv.answer(503)
	n := startNew(t, endpoint(strings.Replace(srv.URL, "http://", "http://user:hunter2@", 1)+"/?key=hunter2", ""))
	n.accept(t, gauges(1, 3, t0))
	srv.wait(t, func() bool { return len(srv.received()) > 1 })
	text, err := json.Marshal(n.c.DebugInfo())
	if err != nil {
		t.Fatal(err)
	}
	if s := string(text) + n.Logs(); strings.Contains(s, "hunter2") || !strings.Contains(s, `"pending_samples":3`) || !strings.Contains(s, "503") {
		t.Errorf("got %s", s)
	}
	infos, err := journal.List(filepath.Join(n.StoragePath, "journal"))
	if err != nil || len(infos) != 1 || strings.Contains(fmt.Sprint(infos), "hunter2") {
		t.Errorf("got %+v, %v", infos, err)
	}
	if err := testutil.CollectAndCompare(n.Registry, strings.NewReader(""), "no_such_metric"); err != nil {
		t.Error(err)
	}
	problems, err := testutil.GatherAndLint(n.Registry)
	if err != nil || len(problems) > 0 {
		t.Errorf("metrics: %v, %v", problems, err)
	}
}

// TestBatchesShareBlocks sends small batches of many sources through one shard.
func TestBatchesShareBlocks(t *testing.T) {
	srv := newServer(t)
	c := timers{clocktest.New(time.UnixMilli(t0)), make(chan time.Duration, 1000)}
	n := start(t, componenttest.New(t, "prometheus.remote_write.test"), c,
		endpoint(srv.URL, "queue_config {\n max_shards = 1\n max_samples_per_send = 10\n capacity = 30 }"))
	var bs []*batch.Metrics
	var wg sync.WaitGroup
	for i := range 7 {
		b := gauges(uint64(i), 5, t0)
		bs = append(bs, b)
		wg.Go(func() { n.accept(t, b) })
	}
	// Two batches fill a block, which is written immediately; the last one waits.
	srv.wait(t, func() bool { return srv.sent() == 30 })
	c.waitFor(t, 100*time.Millisecond)
	stop := advance(c.Fake)
	defer stop()
	wg.Wait()
	srv.wait(t, func() bool { return srv.sent() == 35 })
	diff(t, rows(bs...), srv.samples(t))
	if n := len(srv.received()); n != 4 {
		t.Errorf("%d requests for 35 samples in blocks of 10", n)
	}
	// A batch that is larger than a block is divided among several blocks and
	// arrives complete.
	big := gauges(9, 34, t0+1)
	n.accept(t, big)
	srv.wait(t, func() bool { return srv.sent() == 69 })
	diff(t, rows(append(bs, big)...), srv.samples(t))
}

func TestJournalThatCannotBeOpened(t *testing.T) {
	srv := newServer(t)
	home := componenttest.New(t, "prometheus.remote_write.test")
	blocker := filepath.Join(home.StoragePath, "journal")
	if err := os.WriteFile(blocker, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c := timers{clocktest.New(time.UnixMilli(t0)), make(chan time.Duration, 1000)}
	n := start(t, home, c, endpoint(srv.URL, "queue_config { max_samples_per_send = 5 }"))
	n.Wait(t, func() bool {
		h := n.Health()
		return h.State == component.Unhealthy && strings.Contains(h.Message, "journal")
	})
	done := make(chan error, 1)
	b := gauges(1, 5, t0)
	go func() { done <- n.c.ConsumeMetrics(t.Context(), b) }()
	if err := os.Remove(blocker); err != nil {
		t.Fatal(err)
	}
	stop := advance(c.Fake)
	defer stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	srv.wait(t, func() bool { return srv.count(t) == 5 })
	n.Wait(t, func() bool { return n.Health().State == component.Healthy })
}

// TestEndpointsThatLookAlike checks that URLs that differ only in hidden parts
// are distinguished in the metrics, because a registry drops duplicates.
func TestEndpointsThatLookAlike(t *testing.T) {
	a, b := newServer(t), newServer(t)
	n := startNew(t, endpoint(a.URL+"/?tenant=a", "")+endpoint(a.URL+"/?tenant=b", "")+endpoint(b.URL, ""))
	fams, err := n.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, f := range fams {
		got[f.GetName()] = len(f.Metric)
	}
	if n := got["weir_remote_write_samples_sent_total"]; n != 3 {
		t.Errorf("%d endpoints in the metrics, want 3", n)
	}
	// Every reason is exposed before the first sample is dropped.
	if n := got["weir_remote_write_samples_dropped_total"]; n != 3*18 {
		t.Errorf("%d reasons of 3 endpoints, want 18 each", n)
	}
}

// TestHeadersOfTheUser checks that the user's headers take precedence where Alloy
// allows it.
func TestHeadersOfTheUser(t *testing.T) {
	srv := newServer(t)
	n := startNew(t, endpoint(srv.URL, `headers = { "Authorization" = "Token x", "User-Agent" = "me/1", "X-Scope-OrgID" = "t" }`))
	n.accept(t, gauges(1, 1, t0))
	srv.wait(t, func() bool { return srv.count(t) == 1 })
	h := srv.received()[0].header
	diff(t, []string{"Token x", "me/1", "t"}, []string{h.Get("Authorization"), h.Get("User-Agent"), h.Get("X-Scope-OrgID")})
}

// TestLargeRowsMakeSmallBlocks: receivers refuse requests above a size, so the
// size of a block in bytes is limited too.
func TestLargeRowsMakeSmallBlocks(t *testing.T) {
	srv := newServerOf(t, time.Hour, v1, v2)
	for i, message := range []string{"", asV2, `header_from_label { label = "source" }`} {
		n := startNew(t, endpoint(srv.URL, message))
		b := gauges(uint64(i), 40, t0+int64(i))
		for row := range b.Series {
			b.Series[row] = series("m", "row", fmt.Sprint(row), "source", "x", "large", strings.Repeat(string(rune('0'+row)), 1<<20))
		}
		n.accept(t, b)
		srv.wait(t, func() bool { return srv.sent() == 40*(i+1) })
		n.stop()
	}
	for i, r := range srv.received() {
		if raw, err := snappy.DecodedLen(r.raw); err != nil || raw > 10<<20 {
			t.Errorf("request %d has %d bytes (%v)", i, raw, err)
		}
	}
}

// TestOrphansAreListed checks that a backlog without an endpoint is reported.
func TestOrphansAreListed(t *testing.T) {
	gone, srv := newServer(t), newServer(t)
	gone.answer(503)
	c := clocktest.New(time.UnixMilli(t0))
	node := componenttest.New(t, "prometheus.remote_write.test")
	n := start(t, node, c, endpoint(gone.URL, "")+endpoint(srv.URL, ""))
	// advance advances the clock until done returns true, because timers may not
	// be set yet.
	advance := func(step time.Duration, done func() bool) {
		t.Helper()
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for range 20_000 {
			if done() {
				return
			}
			<-tick.C
			c.Advance(step)
		}
		t.Fatalf("it did not happen:\n%s", n.Logs())
	}
	accepted := make(chan error, 1)
	go func() { accepted <- n.c.ConsumeMetrics(t.Context(), gauges(1, 3, t0)) }()
	advance(10*time.Millisecond, func() bool { return len(accepted) == 1 })
	if err := <-accepted; err != nil {
		t.Fatal(err)
	}
	if err := n.c.Update(decode(t, endpoint(srv.URL, ""))); err != nil {
		t.Fatal(err)
	}
	advance(time.Second, func() bool {
		return strings.Contains(n.Logs(), "not configured: it is kept until its age limit") && strings.Contains(n.Logs(), gone.URL)
	})
	if got := strings.Count(n.Logs(), "it is kept until its age limit"); got != 1 {
		t.Errorf("told %d times, want once:\n%s", got, n.Logs())
	}
}
