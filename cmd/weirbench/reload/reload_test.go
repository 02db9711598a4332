package reload

import (
	"context"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/s2"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/prompb"

	"github.com/weir-run/weir/cmd/weirbench/logfiles"
	"github.com/weir-run/weir/cmd/weirbench/sink"
	"github.com/weir-run/weir/cmd/weirbench/target"
)

// fake stands for weir: it passes pushes on to the probe with a version.
type fake struct {
	t *testing.T
	p *probe

	mu      sync.Mutex
	version string
}

func (f *fake) set(version string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.version = version
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var request prompb.WriteRequest
	body, err := io.ReadAll(r.Body)
	if err == nil {
		body, err = s2.Decode(nil, body)
	}
	if err == nil {
		err = request.Unmarshal(body)
	}
	if err != nil || len(request.Timeseries) != 1 {
		f.t.Errorf("got %v, %v", request.Timeseries, err)
	}
	ts := &request.Timeseries[0]
	ts.Labels = append(ts.Labels, prompb.Label{Name: "version", Value: f.version})
	f.deliver(request)
}

func (f *fake) deliver(request prompb.WriteRequest) {
	raw, err := request.Marshal()
	if err != nil {
		f.t.Error(err)
	}
	w := httptest.NewRecorder()
	f.p.ServeHTTP(w, httptest.NewRequest("POST", "/", strings.NewReader(string(s2.EncodeSnappy(nil, raw)))))
	if w.Code != http.StatusNoContent {
		f.t.Errorf("the probe answers %d", w.Code)
	}
}

// TestProbe has versions arrive in data.
func TestProbe(t *testing.T) {
	p, err := newProbe()
	if err != nil {
		t.Fatal(err)
	}
	defer p.listener.Close()
	f := &fake{t: t, p: p, version: "1"}
	server := httptest.NewServer(f)
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := p.run(ctx, server.URL); err != nil {
			t.Error(err)
		}
	})
	await := func(version int) {
		t.Helper()
		if err := p.await(ctx, version); err != nil {
			t.Fatal(err)
		}
	}
	await(1)
	// The end of a series is no data of its version.
	f.deliver(prompb.WriteRequest{Timeseries: []prompb.TimeSeries{{
		Labels: []prompb.Label{{Name: "version", Value: "2"}}, Samples: []prompb.Sample{{Value: math.Float64frombits(value.StaleNaN)}},
	}}})
	p.mu.Lock()
	if _, ok := p.first["2"]; ok {
		t.Error("a staleness marker counts as data")
	}
	p.mu.Unlock()
	f.set("2")
	await(2)
	cancel()
	wg.Wait()
	if p.first["1"] != 0 || p.first["2"] < 1 {
		t.Errorf("first pushes: %v", p.first)
	}
	if err := p.await(ctx, 3); err == nil {
		t.Error("version 3 arrived")
	}
}

// TestProbeRefused pushes to a weir that refuses a push.
func TestProbeRefused(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no room", http.StatusServiceUnavailable)
	}))
	defer server.Close()
	p := &probe{client: server.Client()}
	if err := p.run(t.Context(), server.URL); err == nil || !strings.Contains(err.Error(), "503 Service Unavailable: no room") {
		t.Errorf("got %v", err)
	}
}

// TestSwaps computes times from pushes of 1 ms, every 2 ms; the pushes of the swap take
// longer.
func TestSwaps(t *testing.T) {
	began := time.Now()
	ms := func(n int) time.Time { return began.Add(time.Duration(n) * time.Millisecond) }
	p := &probe{first: map[string]int{"1": 0, "2": 50, "4": 60}}
	for n := range 60 {
		p.pushes = append(p.pushes, push{ms(2 * n), ms(2*n + 1)})
	}
	p.pushes[49].answered = ms(104)
	p.pushes[50] = push{ms(105), ms(108)}
	s := p.swaps(map[int]time.Time{2: ms(70), 3: ms(80), 4: ms(90)}) // version 3 never arrived, 4 has no answer
	if len(s.serving) != 1 || s.serving[0] != 38*time.Millisecond {
		t.Errorf("serving after %v", s.serving)
	}
	if len(s.waited) != 1 || s.waited[0] != 5*time.Millisecond {
		t.Errorf("waited %v", s.waited)
	}
	if len(s.usual) != 1 || s.usual[0] != 0 {
		t.Errorf("usually %v", s.usual)
	}
}

func TestQuantile(t *testing.T) {
	f := func(q float64, want time.Duration, values ...time.Duration) {
		t.Helper()
		if got := quantile(values, q); got != want {
			t.Errorf("got %d, want %d", got, want)
		}
	}
	f(0.5, 0)
	f(0.5, 2, 3, 1, 2)
	f(0.99, 3, 3, 1, 2)
	f(0, 1, 3, 1, 2)
}

// TestLoss has the endpoints miss a sample and a line.
func TestLoss(t *testing.T) {
	r := &run{o: Options{Series: 3}}
	var err error
	if r.targets, err = target.Listen(target.Options{Targets: 1, Series: 3, Sequences: 3, Format: target.Text, Gzip: target.GzipOff}); err != nil {
		t.Fatal(err)
	}
	if r.sink, err = sink.Listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	if r.logs, err = sink.Listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	if r.files, err = logfiles.New(logfiles.Options{Dir: t.TempDir(), Files: 1}); err != nil {
		t.Fatal(err)
	}
	defer r.files.Close()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	for _, serve := range []func(context.Context) error{r.targets.Serve, r.sink.Serve, r.logs.Serve} {
		wg.Go(func() { serve(ctx) })
	}
	resp, err := http.Get("http://" + r.targets.Addresses()[0] + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if err := r.files.Write(0, 7); err != nil {
		t.Fatal(err)
	}
	if samples, lines := r.missingSamples(), r.missingLines(); samples != 3 || lines != 7 {
		t.Errorf("%d samples and %d lines are missing", samples, lines)
	}
}

// TestTable prints rows; only a broken promise is an error.
func TestTable(t *testing.T) {
	var tab table
	var b strings.Builder
	tab.times("quick", time.Second, time.Millisecond)
	tab.times("slow", time.Second, 2*time.Second)
	tab.promise("kept", "0", "0", true)
	if err := tab.err(); err != nil {
		t.Error(err)
	}
	tab.promise("lost", "0", "1", false)
	if err := tab.err(); err == nil || err.Error() != "weir broke a promise about reloads: lost: 1, not 0" {
		t.Errorf("got %v", err)
	}
	tab.distribution("times", []time.Duration{4 * time.Second, 3 * time.Second, time.Second, 2 * time.Second})
	tab.write(&b)
	const want = `| metric | target | result | |
|---|---|---|---|
| quick | ≤ 1s | 1ms | met |
| slow | ≤ 1s | 2s | missed |
| kept | 0 | 0 | met |
| lost | 0 | 1 | BROKEN |

| distribution | times | min | p50 | p90 | p99 | max |
|---|---|---|---|---|---|---|
| times | 4 | 1s | 2s | 4s | 4s | 4s |
`
	if b.String() != want {
		t.Errorf("got\n%s", &b)
	}
}
