package receivehttp_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/flow/flowtest"
	receivehttp "github.com/weir-run/weir/natives/prometheus/receive_http"
)

func wantRows(t *testing.T, s *flowtest.Sink, want ...string) {
	t.Helper()
	if d := gocmp.Diff(want, rows(s.Batches())); d != "" {
		t.Errorf("rows (-want +got):\n%s", d)
	}
}

// outcome returns the number of requests with an outcome.
func (r *receiver) outcome(name string) float64 {
	r.t.Helper()
	fams, err := r.Registry.Gather()
	if err != nil {
		r.t.Fatal(err)
	}
	for _, f := range fams {
		if f.GetName() != "weir_receive_http_requests_total" {
			continue
		}
		for _, m := range f.Metric {
			for _, l := range m.Label {
				if l.GetName() == "outcome" && l.GetValue() == name {
					return m.Counter.GetValue()
				}
			}
		}
	}
	r.t.Fatalf("no outcome %s", name)
	return 0
}

func TestNegotiation(t *testing.T) {
	sink := flowtest.NewSink("sink")
	r := start(t, func(a *receivehttp.Arguments) { a.AcceptedMessages = []string{v1} }, sink.Receiver())
	f := func(edit func(*http.Request), status int, says string) http.Header {
		t.Helper()
		req := r.request(v1, one(t, "a", 1, 1))
		edit(req)
		a := do(t, req)
		if a.status != status || !strings.Contains(a.body, says) {
			t.Errorf("got %d %q, want %d and %q", a.status, a.body, status, says)
		}
		return a.header
	}
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	f(func(*http.Request) {}, 204, "")
	f(func(r *http.Request) { r.Header.Del("Content-Type") }, 204, "")
	f(func(r *http.Request) { r.Header.Del("Content-Encoding") }, 204, "")
	f(header("Content-Type", "application/x-protobuf"), 204, "")
	f(header("Content-Type", "text/plain"), 415, "application/x-protobuf")
	f(header("Content-Type", "application/x-protobuf;proto=a.b"), 415, "a.b")
	h := f(header("Content-Type", "application/x-protobuf;proto="+v2), 415, "accepted_remote_write_protobuf_messages")
	if got := h.Get("Accept"); got != "application/x-protobuf;proto="+v1 {
		t.Errorf("Accept is %q", got)
	}
	h = f(header("Content-Encoding", "zstd"), 415, `"zstd"`)
	if got := h.Get("Accept-Encoding"); got != "snappy" {
		t.Errorf("Accept-Encoding is %q", got)
	}
	h = f(func(r *http.Request) { r.Method = http.MethodGet }, 405, "posted")
	if got := h.Get("Allow"); got != "POST" {
		t.Errorf("Allow is %q", got)
	}
	f(func(r *http.Request) { r.URL.Path = "/api/v1/write" }, 404, "/api/v1/metrics/write")
	if got := r.outcome("unsupported"); got != 6 {
		t.Errorf("%v counted as unsupported, want 6", got)
	}
	r.update(func(a *receivehttp.Arguments) { a.AcceptedMessages = []string{v2} })
	if a := r.post(v2, v2Body(t, nil, series("__name__=b", sample(1, 1)))); a.status != 204 {
		t.Errorf("after the update: %d %s", a.status, a.body)
	}
	r.want(415, one(t, "a", 1, 1))
}

func TestBodies(t *testing.T) {
	sink := flowtest.NewSink("sink")
	r := start(t, func(a *receivehttp.Arguments) { a.Limits.MaxBodySize = 1000 }, sink.Receiver())
	raw := func(b string, edit func(*http.Request)) answer {
		req := r.request(v1, nil)
		req.Body, req.ContentLength = io.NopCloser(strings.NewReader(b)), int64(len(b))
		if edit != nil {
			edit(req)
		}
		return do(t, req)
	}
	f := func(a answer, status int, says string) {
		t.Helper()
		if a.status != status || !strings.Contains(a.body, says) {
			t.Errorf("got %d %q, want %d and %q", a.status, a.body, status, says)
		}
	}
	f(raw("not snappy", nil), 400, "decompress")
	f(raw("", nil), 400, "decompress")
	f(raw("\xff\xff\xff\xff\x0f", nil), 400, "max_body_size") // claims to have 4 GiB
	f(raw(strings.Repeat("x", 1001), nil), 413, "max_body_size")
	chunked := func(r *http.Request) { r.ContentLength = -1 }
	f(raw(strings.Repeat("x", 1001), chunked), 413, "max_body_size")
	f(r.post(v1, make([]byte, 1001)), 400, "max_body_size")
	f(r.post(v1, []byte("no message")), 400, "cannot read a prometheus.WriteRequest")
	if got := sink.Batches(); len(got) != 0 {
		t.Errorf("got %v", rows(got))
	}
	ok := r.request(v1, one(t, "a", 1, 1))
	ok.ContentLength = -1
	f(do(t, ok), 204, "")
	if got := r.info().InflightBytes; got != 0 {
		t.Errorf("%d bytes are still reserved", got)
	}
}

func TestLimits(t *testing.T) {
	sink := flowtest.NewSink("sink")
	good := series("__name__=good", sample(1, 1))
	f := func(edit func(*receivehttp.Limits), says, reason string, bad prompb.TimeSeries) {
		t.Helper()
		sink := flowtest.NewSink("sink")
		r := start(t, func(a *receivehttp.Arguments) { edit(&a.Limits) }, sink.Receiver())
		a := r.want(400, body(t, good, bad))
		if !strings.Contains(a.body, says) || !strings.Contains(a.body, "bad") {
			t.Errorf("got %q, want the series and %q", a.body, says)
		}
		wantRows(t, sink, "[{__name__ good}] @1 0x3ff0000000000000")
		if got := r.Stats.Dropped()[reason]; got != 1 {
			t.Errorf("dropped %v, want 1 for %s", r.Stats.Dropped(), reason)
		}
	}
	f(func(l *receivehttp.Limits) { l.LabelLimit = 2 }, "label_limit is 2", "label_limit", series("__name__=bad a=1 b=2", sample(1, 1)))
	f(func(l *receivehttp.Limits) { l.LabelNameLengthLimit = 8 }, "label_name_length_limit is 8", "label_limit", series("__name__=bad toolonganame=1", sample(1, 1)))
	f(func(l *receivehttp.Limits) { l.LabelValueLengthLimit = 8 }, "label_value_length_limit is 8", "label_limit", series("__name__=bad a=123456789", sample(1, 1)))
	f(func(l *receivehttp.Limits) { l.MaxSeriesSize = 300 }, "max_series_size (300)", "series_limit", series("__name__=bad", sample(1, 1)))
	f(func(l *receivehttp.Limits) { l.SeriesLimit = 1 }, "series_limit (1)", "series_limit", series("__name__=bad", sample(1, 1)))

	r := start(t, func(a *receivehttp.Arguments) { a.Limits.SampleLimit = 2 }, sink.Receiver())
	r.want(204, body(t, series("__name__=a", sample(1, 1), sample(2, 2))))
	if a := r.want(400, body(t, series("__name__=a", sample(1, 1), sample(2, 2), sample(3, 3)))); !strings.Contains(a.body, "sample_limit (2)") {
		t.Errorf("got %q", a.body)
	}

	// A known series is checked again after the limits change.
	r.want(204, body(t, series("__name__=bad a=1 b=2", sample(5, 1))))
	r.update(func(a *receivehttp.Arguments) { a.Limits.LabelLimit = 2 })
	r.want(400, body(t, series("__name__=bad a=1 b=2", sample(6, 1))))
}

func TestRate(t *testing.T) {
	sink := flowtest.NewSink("sink")
	r := start(t, func(a *receivehttp.Arguments) { a.Limits.MaxSampleRate = 1 }, sink.Receiver())
	var many []prompb.Sample
	for i := range 14 {
		many = append(many, sample(int64(i), 1))
	}
	r.want(204, body(t, series("__name__=a", many...))) // more than the burst of 10
	a := r.want(429, one(t, "a", 20, 1))
	if got := a.header.Get("Retry-After"); got != "5" {
		t.Errorf("Retry-After is %q, want 5: four too many, and one to come", got)
	}
	r.Clock.Advance(5 * time.Second)
	r.want(204, one(t, "a", 20, 1))
	r.want(429, one(t, "a", 21, 1))
}

// gate blocks until it receives the result to return.
type gate struct {
	entered chan *batch.Metrics
	answer  chan error
}

func newGate() *gate { return &gate{make(chan *batch.Metrics, 100), make(chan error)} }

func (g *gate) ConsumeMetrics(ctx context.Context, b *batch.Metrics) error {
	g.entered <- b
	select {
	case err := <-g.answer:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (g *gate) receiver(name string) *flow.Receiver {
	r := flow.NewReceiver(name, batch.SignalMetrics, nil, nil)
	r.Set(g)
	return r
}

// timers waits until the clock has n timers: one of the component for each
// second, and those of the requests.
func (r *receiver) timers(n int) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := r.Clock.WaitTimers(ctx, n); err != nil {
		r.t.Fatalf("%d timers: %v", n, err)
	}
}

// TestAnswersWhenAccepted: the response follows that of the receiver. A receiver
// that takes too long causes a 503, and the repeated request is not sent twice.
func TestAnswersWhenAccepted(t *testing.T) {
	g, quick := newGate(), flowtest.NewSink("quick")
	r := start(t, nil, g.receiver("slow"), quick.Receiver())
	answers := make(chan answer, 1)
	b := one(t, "a", 1, 1)
	go func() { answers <- r.post(v1, b) }()
	<-g.entered
	r.timers(2)
	r.Clock.Advance(9 * time.Second)
	select {
	case a := <-answers:
		t.Fatalf("answered %v before the receiver did", a)
	default:
	}
	r.timers(2)
	r.Clock.Advance(time.Second)
	a := <-answers
	if a.status != 503 || a.header.Get("Retry-After") != "1" || !strings.Contains(a.body, "not accepted within 10s") {
		t.Errorf("got %v", a)
	}

	go func() { answers <- r.post(v1, b) }()
	r.timers(2)
	g.answer <- nil
	if a := <-answers; a.status != 204 {
		t.Errorf("the repetition got %v", a)
	}
	wantRows(t, quick, "[{__name__ a}] @1 0x3ff0000000000000")
	if len(g.entered) != 0 {
		t.Error("it was sent to the slow receiver again")
	}
	// After the response, the same body is a new request.
	go func() { answers <- r.post(v1, b) }()
	<-g.entered
	g.answer <- nil
	<-answers
	if got := len(quick.Batches()); got != 2 {
		t.Errorf("got %d batches, want 2", got)
	}
	if got := r.info(); got.InflightBytes != 0 || got.Requests != 0 {
		t.Errorf("still in flight: %+v", got)
	}
}

// TestAcceptedUnheard: a client disconnects, the samples are then accepted, and
// the client repeats the request.
func TestAcceptedUnheard(t *testing.T) {
	g := newGate()
	r := start(t, nil, g.receiver("slow"))
	b := one(t, "a", 1, 1)
	ctx, cancel := context.WithCancel(t.Context())
	req := r.request(v1, b).WithContext(ctx)
	left := make(chan error)
	go func() {
		resp, err := client.Do(req)
		if err == nil {
			resp.Body.Close()
		}
		left <- err
	}()
	<-g.entered
	cancel()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	eventually(t, func() bool { return r.outcome("client_gone") == 1 })
	g.answer <- nil
	eventually(t, func() bool { return r.info().InflightBytes == 0 })
	r.want(204, b)
	if len(g.entered) != 0 {
		t.Error("what was accepted was sent again")
	}
}

// eventually waits until ok returns true because of another goroutine.
func eventually(t *testing.T, ok func() bool) {
	t.Helper()
	deadline := time.NewTimer(time.Minute)
	defer deadline.Stop()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatal("it did not happen within a minute")
		}
	}
}

// TestRefusal: a receiver that refuses a batch gets it again, and the other one
// does not.
func TestRefusal(t *testing.T) {
	refuses, takes := flowtest.NewSink("refuses"), flowtest.NewSink("takes")
	refuses.Refuse(flowtest.ErrRefused)
	r := start(t, nil, sinks(refuses, takes)...)
	answers := make(chan answer, 1)
	go func() { answers <- r.post(v1, one(t, "a", 1, 1)) }()
	r.timers(3) // the component's timer, that of the request and that of the shard
	refuses.Refuse(nil)
	r.Clock.Advance(20 * time.Millisecond)
	if a := <-answers; a.status != 204 {
		t.Errorf("got %v", a)
	}
	for _, s := range []*flowtest.Sink{refuses, takes} {
		wantRows(t, s, "[{__name__ a}] @1 0x3ff0000000000000")
	}
}

// TestReceiverGone: a batch that was refused by a receiver which then left the
// graph is not waited for, and the client sends it to the new receiver.
func TestReceiverGone(t *testing.T) {
	old, next := flowtest.NewSink("old"), flowtest.NewSink("next")
	r := start(t, nil, old.Receiver())
	<-old.Receiver().Stop()
	b := one(t, "a", 1, 1)
	if a := r.want(503, b); !strings.Contains(a.body, "receiver is stopped") {
		t.Errorf("got %v", a)
	}
	r.update(func(a *receivehttp.Arguments) { a.ForwardTo = sinks(next) })
	r.want(204, b)
	wantRows(t, next, "[{__name__ a}] @1 0x3ff0000000000000")
}

// TestRedirected: if forward_to changes, a batch that hangs in the old receiver
// is sent to the new one.
func TestRedirected(t *testing.T) {
	g, next := newGate(), flowtest.NewSink("next")
	r := start(t, nil, g.receiver("hangs"))
	b := one(t, "a", 1, 1)
	answers := make(chan answer, 1)
	go func() { answers <- r.post(v1, b) }()
	<-g.entered
	r.update(func(a *receivehttp.Arguments) { a.ForwardTo = sinks(next) })
	r.timers(2)
	r.Clock.Advance(time.Second)
	r.timers(2)
	r.Clock.Advance(time.Second)
	if a := <-answers; a.status != 503 || !strings.Contains(a.body, "forward_to has changed") {
		t.Errorf("got %v", a)
	}
	r.want(204, b)
	wantRows(t, next, "[{__name__ a}] @1 0x3ff0000000000000")
}

// TestAbandoned: a body whose client does not repeat the request is dropped.
func TestAbandoned(t *testing.T) {
	g := newGate()
	r := start(t, nil, g.receiver("hangs"))
	answers := make(chan answer, 2)
	for i := range 2 { // one in flight, one waiting
		go func() { answers <- r.post(v1, one(t, "a", int64(i), 1)) }()
	}
	<-g.entered
	r.timers(3)
	r.Clock.Advance(10 * time.Second)
	for range 2 {
		if a := <-answers; a.status != 503 {
			t.Errorf("got %v", a)
		}
	}
	eventually(t, func() bool { return r.info().Requests == 0 })
	if r.info().InflightBytes == 0 {
		t.Error("given up at once")
	}
	for range 62 {
		r.timers(1)
		r.Clock.Advance(time.Second)
	}
	eventually(t, func() bool { return r.info().InflightBytes == 0 })
}

// TestStop: waiting requests are answered within seconds when weir stops.
func TestStop(t *testing.T) {
	g := newGate()
	r := start(t, nil, g.receiver("hangs"))
	answers := make(chan answer, 1)
	go func() { answers <- r.post(v1, one(t, "a", 1, 1)) }()
	<-g.entered
	r.timers(2)
	stopped := make(chan struct{})
	go func() { r.stop(); close(stopped) }()
	r.timers(4) // including those of bodies that have not arrived
	r.Clock.Advance(3 * time.Second)
	if a := <-answers; a.status != 503 || !strings.Contains(a.body, "stopping") {
		t.Errorf("got %v", a)
	}
	<-stopped
	if a := r.info().Address; a != "" {
		t.Errorf("it listens on %s still", a)
	}
}

// TestBusy: requests above the limits of memory and number are refused
// temporarily, and memory is released.
func TestBusy(t *testing.T) {
	g := newGate()
	r := start(t, func(a *receivehttp.Arguments) {
		a.Limits.MaxBodySize, a.Limits.MaxInflightSize, a.Limits.MaxRequests = 128<<10, 500<<10, 2
	}, g.receiver("hangs"))
	answers := make(chan answer, 2)
	go func() { answers <- r.post(v1, one(t, "a", 1, 1)) }()
	<-g.entered
	r.timers(2) // both timers: the memory for decoding was released
	go func() { answers <- r.post(v1, one(t, "a", 2, 1)) }()
	r.timers(3)
	a := r.want(503, one(t, "a", 3, 1))
	if !strings.Contains(a.body, "max_requests is 2") || a.header.Get("Retry-After") != "5" {
		t.Errorf("got %v", a)
	}
	g.answer <- nil
	<-g.entered
	g.answer <- nil
	<-answers
	<-answers

	// A sample takes two bytes of the body and 64 bytes of memory.
	bomb := func(samples int) []byte {
		ts := []byte(strings.Repeat("\x12\x00", samples))
		return append(binary.AppendUvarint([]byte{0x0a}, uint64(len(ts))), ts...)
	}
	if a := r.post(v1, bomb(36864)); a.status != 400 || !strings.Contains(a.body, "max_inflight_size") {
		t.Errorf("got %v", a) // it exceeds the limit
	}
	go func() { answers <- r.post(v1, body(t, series("__name__=a", make([]prompb.Sample, 4000)...))) }() // 256 KiB
	<-g.entered
	if a := r.post(v1, bomb(4000)); a.status != 503 || !strings.Contains(a.body, "bytes of requests are in flight, max_inflight_size is 512000") {
		t.Errorf("got %v", a)
	}
	g.answer <- nil
	<-answers
	if got := r.info().InflightBytes; got != 0 {
		t.Errorf("%d bytes are still reserved", got)
	}
	if got := r.outcome("busy"); got != 2 {
		t.Errorf("%v counted as busy", got)
	}
}

// TestOrder: whatever arrives concurrently, the samples of a series arrive in the
// order in which they were sent, with one Source and one batch at a time.
func TestOrder(t *testing.T) {
	const clients, each, perRequest = 8, 30, 20
	var mu sync.Mutex
	last := map[string]int64{}
	source := map[string]uint64{}
	busy := map[uint64]bool{}
	rcv := flow.NewReceiver("sink", batch.SignalMetrics, nil, nil)
	rcv.Set(consumer(func(b *batch.Metrics) {
		mu.Lock()
		if busy[b.Source] {
			t.Error("two batches of one Source at a time")
		}
		busy[b.Source] = true
		mu.Unlock()
		defer func() { mu.Lock(); defer mu.Unlock(); busy[b.Source] = false }()
		mu.Lock()
		defer mu.Unlock()
		for i, s := range b.Series {
			if b.T[i] <= last[s.Name()] {
				t.Errorf("%s: %d after %d", s.Name(), b.T[i], last[s.Name()])
			}
			last[s.Name()] = b.T[i]
			if src := source[s.Name()]; src != 0 && src != b.Source {
				t.Errorf("%s has two Sources", s.Name())
			}
			source[s.Name()] = b.Source
		}
	}))
	r := start(t, nil, rcv)
	var wg sync.WaitGroup
	for c := range clients {
		wg.Go(func() {
			for n := range each {
				var ts []prompb.TimeSeries
				for s := range perRequest {
					ts = append(ts, series("__name__=c"+strconv.Itoa(c)+"_"+strconv.Itoa(s), sample(int64(n+1), 1)))
				}
				if a := r.post(v1, body(t, ts...)); a.status != 204 {
					t.Errorf("got %v", a)
				}
			}
		})
	}
	wg.Wait()
	for name, at := range last {
		if at != each {
			t.Errorf("%s ended at %d", name, at)
		}
	}
	sources := map[uint64]bool{}
	for _, s := range source {
		sources[s] = true
	}
	if len(last) != clients*perRequest || len(sources) != 8 {
		t.Errorf("%d series over %d shards", len(last), len(sources))
	}
}

type consumer func(*batch.Metrics)

func (c consumer) ConsumeMetrics(_ context.Context, b *batch.Metrics) error { c(b); return nil }

func TestMetadata(t *testing.T) {
	sink := flowtest.NewSink("sink")
	r := start(t, nil, sink.Receiver())
	meta := func(name string) batch.Metadata {
		t.Helper()
		bs := sink.Batches()
		for i := len(bs) - 1; i >= 0; i-- {
			for _, s := range bs[i].Series {
				if s.Name() == name {
					if m := s.Meta(); m != nil {
						return *m
					}
					return batch.Metadata{}
				}
			}
		}
		t.Fatalf("no series %s", name)
		return batch.Metadata{}
	}
	want := func(name string, m batch.Metadata) {
		t.Helper()
		if d := gocmp.Diff(m, meta(name)); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
	// 2.0: with the series.
	with := func(typ writev2.Metadata_MetricType, help string) []byte {
		return v2Body(t, func(req *writev2.Request) {
			req.Symbols = append(req.Symbols, help, "bytes")
			n := uint32(len(req.Symbols))
			req.Timeseries[0].Metadata = writev2.Metadata{Type: typ, HelpRef: n - 2, UnitRef: n - 1}
		}, series("__name__=a_total", sample(1, 1)))
	}
	r.post(v2, with(writev2.Metadata_METRIC_TYPE_COUNTER, "Counts."))
	want("a_total", batch.Metadata{Type: model.MetricTypeCounter, Help: "Counts.", Unit: "bytes"})
	r.post(v2, with(writev2.Metadata_METRIC_TYPE_GAUGE, "No."))
	want("a_total", batch.Metadata{Type: model.MetricTypeGauge, Help: "No.", Unit: "bytes"})

	// 1.0: separate from the series, before and after.
	r.want(204, one(t, "h_seconds_bucket", 1, 1))
	want("h_seconds_bucket", batch.Metadata{})
	r.want(204, marshal(t, &prompb.WriteRequest{Metadata: []prompb.MetricMetadata{
		{Type: prompb.MetricMetadata_HISTOGRAM, MetricFamilyName: "h_seconds", Help: "Took.", Unit: "seconds"},
		{Type: prompb.MetricMetadata_COUNTER, MetricFamilyName: "c", Help: "C."},
	}}))
	want("h_seconds_bucket", batch.Metadata{Type: model.MetricTypeHistogram, Help: "Took.", Unit: "seconds"})
	r.want(204, one(t, "c_total", 1, 1))
	want("c_total", batch.Metadata{Type: model.MetricTypeCounter, Help: "C."})

	off := start(t, func(a *receivehttp.Arguments) { a.AppendMetadata = false }, sink.Receiver())
	off.post(v2, with(writev2.Metadata_METRIC_TYPE_COUNTER, "Counts."))
	want("a_total", batch.Metadata{})
}

// TestMetadataBomb: a reference of one byte expands to a long help text, and 1.0
// may send any number of families.
func TestMetadataBomb(t *testing.T) {
	sink := flowtest.NewSink("sink")
	r := start(t, nil, sink.Receiver())
	var many []prompb.TimeSeries
	for i := range 100 {
		many = append(many, series("__name__=m"+strconv.Itoa(i), sample(1, 1)))
	}
	long := strings.Repeat("x", 1<<20)
	r.post(v2, v2Body(t, func(req *writev2.Request) {
		req.Symbols = append(req.Symbols, long, "a", "b")
		n := uint32(len(req.Symbols))
		for i := range req.Timeseries {
			req.Timeseries[i].Metadata = writev2.Metadata{HelpRef: n - 3, UnitRef: n - 2 + uint32(i%2)}
		}
	}, many...))
	helps, metas := map[*byte]bool{}, map[*batch.Metadata]bool{}
	for _, b := range sink.Batches() {
		for _, s := range b.Series {
			helps[unsafe.StringData(s.Meta().Help)], metas[s.Meta()] = true, true
		}
	}
	if len(helps) != 1 || len(metas) != 2 {
		t.Errorf("100 series of one help text and two units have %d texts, %d metadata", len(helps), len(metas))
	}

	for i := range 70 {
		r.want(204, marshal(t, &prompb.WriteRequest{Metadata: []prompb.MetricMetadata{{MetricFamilyName: "f" + strconv.Itoa(i), Help: long}}}))
	}
	for name, want := range map[string]bool{"f0": true, "f69": false} {
		r.want(204, one(t, name, 1, 1))
		bs := sink.Batches()
		if has := bs[len(bs)-1].Series[0].Meta() != nil; has != want {
			t.Errorf("%s: metadata %t", name, has)
		}
	}
}

func TestTypeAndUnitLabels(t *testing.T) {
	sink := flowtest.NewSink("sink")
	r := start(t, func(a *receivehttp.Arguments) { a.EnableTypeAndUnitLabels = true }, sink.Receiver())
	for range 2 {
		r.post(v2, v2Body(t, func(req *writev2.Request) {
			req.Symbols = append(req.Symbols, "bytes")
			req.Timeseries[0].Metadata = writev2.Metadata{Type: writev2.Metadata_METRIC_TYPE_COUNTER, UnitRef: uint32(len(req.Symbols) - 1)}
		}, series("__name__=a __type__=gauge job=x", sample(1, 1)), series("__name__=b __type__=gauge", sample(1, 1))))
	}
	row := "[{__name__ a} {__type__ counter} {__unit__ bytes} {job x}] @1 0x3ff0000000000000"
	other := "[{__name__ b} {__type__ gauge}] @1 0x3ff0000000000000"
	wantRows(t, sink, row, row, other, other)
	if got := r.info().Series; got != 2 {
		t.Errorf("%d series are known, want 2", got)
	}
}

func TestStarts(t *testing.T) {
	sink := flowtest.NewSink("sink")
	r := start(t, nil, sink.Receiver())
	hist := corpus()["int histogram"][0]
	r.post(v2, v2Body(t, func(req *writev2.Request) {
		req.Timeseries[0].Samples[1].StartTimestamp = 7
		req.Timeseries[1].Histograms[0].StartTimestamp = 5
	}, series("__name__=a", sample(10, 1), sample(20, 1)), hist))
	got := rows(sink.Batches())
	if len(got) != 3 || strings.Contains(got[0], "st@") || !strings.HasSuffix(got[1], "st@7") || !strings.HasSuffix(got[2], "st@5") {
		t.Errorf("got %q", got)
	}
}

// TestExemplarsAlone: Prometheus sends exemplars as series without samples.
func TestExemplarsAlone(t *testing.T) {
	exemplar := func(name, trace string, at int64) prompb.TimeSeries {
		ts := series("__name__=" + name)
		ts.Exemplars = []prompb.Exemplar{{Labels: []prompb.Label{{Name: "trace_id", Value: trace}}, Value: 1, Timestamp: at}}
		return ts
	}
	for _, message := range []string{v1, v2} {
		sink := flowtest.NewSink("sink")
		r := start(t, nil, sink.Receiver())
		post := func(ts ...prompb.TimeSeries) {
			t.Helper()
			b := body(t, ts...)
			if message == v2 {
				b = v2Body(t, nil, ts...)
			}
			if a := r.post(message, b); a.status != 204 {
				t.Errorf("got %v", a)
			}
		}
		// In the request with a sample.
		post(series("__name__=a", sample(1, 1)), exemplar("a", "x", 1))
		wantRows(t, sink, "[{__name__ a}] @1 0x3ff0000000000000", "[{__name__ a}] exemplar [{trace_id x}] 1@1")
		// After the request: with the next sample.
		post(exemplar("a", "z", 3), exemplar("a", "y", 2))
		if got := len(sink.Batches()); got != 1 {
			t.Errorf("%d batches, want none without a sample", got)
		}
		post(series("__name__=a", sample(4, 1)))
		wantRows(t, sink, "[{__name__ a}] @1 0x3ff0000000000000", "[{__name__ a}] @4 0x3ff0000000000000",
			"[{__name__ a}] exemplar [{trace_id x}] 1@1", "[{__name__ a}] exemplar [{trace_id y}] 1@2", "[{__name__ a}] exemplar [{trace_id z}] 1@3")
		// Only for a limited time.
		post(exemplar("a", "old", 5))
		for range 302 {
			r.timers(1)
			r.Clock.Advance(time.Second)
		}
		eventually(t, func() bool {
			n, err := testutil.GatherAndCount(r.Registry, "weir_receive_http_exemplars_dropped_total")
			return err == nil && n == 3 && strings.Contains(metricsText(t, r), `reason="no_sample"} 1`)
		})
	}
}

func metricsText(t *testing.T, r *receiver) string {
	fams, err := r.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, f := range fams {
		if _, err := expfmt.MetricFamilyToText(&b, f); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// TestSameHandles: a series has the same handle in every request, in any order of
// its labels, until it has not been received for 15 minutes.
func TestSameHandles(t *testing.T) {
	sink := flowtest.NewSink("sink")
	r := start(t, nil, sink.Receiver())
	r.want(204, body(t, series("__name__=a x=1 y=2", sample(1, 1))))
	r.want(204, body(t, series("y=2 x=1 __name__=a", sample(2, 1))))
	r.post(v2, v2Body(t, nil, series("__name__=a x=1 y=2", sample(3, 1))))
	bs := sink.Batches()
	if bs[0].Series[0] != bs[1].Series[0] || bs[0].Series[0] != bs[2].Series[0] {
		t.Error("one series has several handles")
	}
	r.Clock.Advance(16 * time.Minute)
	r.want(204, body(t, series("__name__=a x=1 y=2", sample(4, 1))))
	if s := sink.Last().Series[0]; s == bs[0].Series[0] || !bs[0].Series[0].Released() {
		t.Error("a series that was away for long has its old handle")
	}
	r.stop()
	if s := sink.Last().Series[0]; !s.Released() {
		t.Error("a handle outlives the component")
	}
}

func TestArguments(t *testing.T) {
	f := func(edit func(*receivehttp.Arguments), want string) {
		t.Helper()
		a := receivehttp.Registration().NewArgs().(*receivehttp.Arguments)
		edit(a)
		err := errors.Join(a.Validate(), a.Limits.Validate())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	f(func(a *receivehttp.Arguments) { a.AcceptedMessages = nil }, "must not be empty")
	f(func(a *receivehttp.Arguments) { a.AcceptedMessages = []string{"x"} }, `unknown message "x"`)
	f(func(a *receivehttp.Arguments) { a.Limits.MaxBodySize = 0 }, "max_body_size is 0 bytes")
	f(func(a *receivehttp.Arguments) { a.Limits.MaxInflightSize = 1 }, "at least twice max_body_size")
	f(func(a *receivehttp.Arguments) { a.Limits.MaxRequests = 0 }, "max_requests")
	f(func(a *receivehttp.Arguments) { a.Limits.MaxWait = -1 }, "max_wait")
	f(func(a *receivehttp.Arguments) { a.Limits.SampleLimit = -1 }, "sample_limit is -1")
	f(func(a *receivehttp.Arguments) { a.Server.GracefulShutdownTimeout = -1 }, "graceful_shutdown_timeout")
}

// TestStaleness: a marker is forwarded with the same bits.
func TestStaleness(t *testing.T) {
	sink := flowtest.NewSink("sink")
	r := start(t, nil, sink.Receiver())
	r.want(204, one(t, "a", 1, math.Float64frombits(batch.StaleNaN)))
	if v := sink.Last().V[0]; !batch.IsStale(v) {
		t.Errorf("got %#x", math.Float64bits(v))
	}
}

// TestSlowClient: a body that does not arrive in time or completely only costs
// its connection.
func TestSlowClient(t *testing.T) {
	half := func(r *receiver) net.Conn {
		c, err := net.Dial("tcp", r.info().Address)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, "POST /api/v1/metrics/write HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf"); err != nil {
			t.Fatal(err)
		}
		return c
	}
	r := start(t, nil, flowtest.NewSink("sink").Receiver())
	half(r).Close()
	eventually(t, func() bool { return r.outcome("client_gone") == 1 })

	// f returns an error if not even the header was read in time.
	f := func(timeout time.Duration) error {
		r = start(t, func(a *receivehttp.Arguments) { a.Server.HTTP.ReadTimeout = timeout }, flowtest.NewSink("sink").Receiver())
		slow := half(r)
		defer slow.Close()
		resp, err := http.ReadResponse(bufio.NewReader(slow), nil)
		if err != nil {
			return err
		}
		if b, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != 408 || !strings.Contains(string(b), "server_read_timeout") {
			t.Errorf("got %d %s, %v", resp.StatusCode, b, err)
		}
		return nil
	}
	timeout := 50 * time.Millisecond
	err := f(timeout)
	for ; err != nil && timeout < 20*time.Second; err = f(timeout) { // the machine may be busy
		timeout *= 2
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := r.info(); got.InflightBytes != 0 || got.Requests != 0 {
		t.Errorf("still in flight: %+v", got)
	}
}

// TestPanic: a panic while decoding a request only affects that request.
func TestPanic(t *testing.T) {
	r := start(t, nil, flowtest.NewSink("sink").Receiver())
	mend := receivehttp.Break(r.c)
	r.want(500, one(t, "a", 2, 1))
	mend()
	if !strings.Contains(r.Logs(), "BUG") || r.outcome("panic") != 1 {
		t.Errorf("got the log %s", r.Logs())
	}
	r.want(204, one(t, "a", 3, 1))
	if got := r.info(); got.InflightBytes != 0 || got.Requests != 0 {
		t.Errorf("still in flight: %+v", got)
	}
}

// TestSymbolBomb: references of a few bytes expand to long symbols.
func TestSymbolBomb(t *testing.T) {
	sink := flowtest.NewSink("sink")
	r := start(t, func(a *receivehttp.Arguments) {
		noLabelLimits(a)
		a.Limits.MaxBodySize, a.Limits.MaxInflightSize = 2<<20, 16<<20
	}, sink.Receiver())
	long := strings.Repeat("x", 900<<10)
	good := series("__name__=good", sample(1, 1))
	a := r.post(v2, v2Body(t, func(req *writev2.Request) {
		req.Symbols = append(req.Symbols, long)
		for range 100_000 {
			req.Timeseries[1].LabelsRefs = append(req.Timeseries[1].LabelsRefs, 1, uint32(len(req.Symbols)-1))
		}
		x := writev2.Exemplar{LabelsRefs: req.Timeseries[1].LabelsRefs}
		req.Timeseries[0].Exemplars = append(req.Timeseries[0].Exemplars, x)
	}, good, series("__name__=bad", sample(1, 1))))
	if a.status != 400 || !strings.Contains(a.body, "take more than 1048576 bytes") {
		t.Errorf("got %d %.300s", a.status, a.body)
	}
	wantRows(t, sink, "[{__name__ good}] @1 0x3ff0000000000000")

	var many []prompb.TimeSeries
	for i := range 100 {
		many = append(many, series("__name__=m"+strconv.Itoa(i)+" long="+long, sample(1, 1)))
	}
	if a := r.post(v2, v2Body(t, nil, many...)); a.status != 400 || !strings.Contains(a.body, "max_inflight_size") {
		t.Errorf("got %d %.300s", a.status, a.body)
	}
	if got := r.info(); got.InflightBytes != 0 || got.Series > 20 {
		t.Errorf("%+v", got)
	}
}
