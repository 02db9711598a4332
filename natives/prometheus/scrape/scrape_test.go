package scrape_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/grafana/alloy/syntax"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/flow/flowtest"
	"github.com/weir-run/weir/engine/service"
	"github.com/weir-run/weir/natives/prometheus/scrape"
)

// node is a prometheus.scrape.test node in a synctest bubble. It sends to sink
// and reaches its targets in memory.
type node struct {
	*componenttest.Node
	sink  *flowtest.Sink
	conns chan net.Conn
	dials atomic.Int32
	hosts map[string]http.Handler
	clock clock.Clock // nil for the clock of the bubble
}

const memory = "weir.internal:12345"

// bubble runs f with a node.
func bubble(t *testing.T, f func(t *testing.T, n *node)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := &node{
			Node: componenttest.New(t, "prometheus.scrape.test"), sink: flowtest.NewSink("sink"),
			conns: make(chan net.Conn), hosts: map[string]http.Handler{},
		}
		n.Services["http"] = service.HTTPData{MemoryAddress: memory, DialContext: n.dial}
		srv := &http.Server{Handler: n}
		go srv.Serve(n)
		t.Cleanup(func() { srv.Close(); synctest.Wait() })
		f(t, n)
	})
}

// Accept, Close and Addr implement net.Listener.
func (n *node) Accept() (net.Conn, error) {
	if c, ok := <-n.conns; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (n *node) Close() error   { close(n.conns); return nil }
func (n *node) Addr() net.Addr { return &net.TCPAddr{} }

func (n *node) dial(context.Context, string, string) (net.Conn, error) {
	n.dials.Add(1)
	ours, theirs := net.Pipe()
	n.conns <- theirs
	return ours, nil
}

// ServeHTTP forwards requests to the targets as a proxy.
func (n *node) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n.hosts[r.Host].ServeHTTP(w, r)
}

func decode(t *testing.T, text string, to ...*flow.Receiver) *scrape.Arguments {
	t.Helper()
	a := new(scrape.Arguments)
	if err := syntax.Unmarshal([]byte(text+"\nforward_to = []"), a); err != nil {
		t.Fatal(err)
	}
	a.ForwardTo = to
	return a
}

func (n *node) args(t *testing.T, text string) *scrape.Arguments {
	t.Helper()
	if !strings.Contains(text, memory) {
		text += fmt.Sprintf("\nproxy_url = %q", "http://"+memory)
	}
	return decode(t, text, n.sink.Receiver())
}

func (n *node) newScrape(t *testing.T, a *scrape.Arguments) *scrape.Component {
	t.Helper()
	o := n.Options()
	o.Clock = clock.System{}
	if n.clock != nil {
		o.Clock = n.clock
	}
	c, err := scrape.Registration().Build(o, a, n.Previous)
	if err != nil {
		t.Fatal(err)
	}
	return c.(*scrape.Component)
}

func (n *node) build(t *testing.T, text string) *scrape.Component {
	t.Helper()
	return n.newScrape(t, n.args(t, text))
}

// wait returns the batches when there are at least k.
func (n *node) wait(t *testing.T, k int) []*batch.Metrics {
	t.Helper()
	until(t, n, func() bool { return len(n.sink.Batches()) >= k })
	return n.sink.Batches()[:k]
}

// until waits, in the time of the bubble, until ok returns true.
func until(t *testing.T, n *node, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Hour); !ok(); {
		if time.Now().After(end) {
			t.Fatalf("waited in vain\n%s", n.Logs())
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
	}
}

// target is a server with a changeable body.
type target struct {
	host string
	mu   sync.Mutex
	body string
	seen []*http.Request
}

func (n *node) target(host, body string) *target {
	tg := &target{host: host, body: body}
	n.hosts[host] = tg
	return tg
}

func (tg *target) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	tg.mu.Lock()
	defer tg.mu.Unlock()
	tg.seen = append(tg.seen, r)
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	fmt.Fprint(w, tg.body)
}

func (tg *target) setBody(body string) {
	tg.mu.Lock()
	defer tg.mu.Unlock()
	tg.body = body
}

func list(tgs ...*target) string {
	var maps []string
	for _, tg := range tgs {
		maps = append(maps, fmt.Sprintf("{ __address__ = %q }", tg.host))
	}
	return "scrape_interval = \"10s\"\ntargets = [" + strings.Join(maps, ", ") + "]\n"
}

// values formats a batch without its report, one sample per line.
func values(b *batch.Metrics) (out []string) {
	for i, s := range b.Series {
		if name := s.Name(); name == "up" || strings.HasPrefix(name, "scrape_") {
			continue
		}
		v := fmt.Sprint(b.V[i])
		if batch.IsStale(b.V[i]) {
			v = "stale"
		}
		out = append(out, s.Name()+" "+v)
	}
	return out
}

// up returns the value of up in a batch.
func up(b *batch.Metrics) string {
	for i, s := range b.Series {
		if s.Name() == "up" {
			if batch.IsStale(b.V[i]) {
				return "stale"
			}
			return fmt.Sprint(b.V[i])
		}
	}
	return "missing"
}

func millis(b *batch.Metrics) int64 { return b.T[len(b.T)-1] }

func diff(t *testing.T, what string, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got)\n%s", what, d)
	}
}

// The series of a target end when its node is removed, but not when weir stops.
func TestScheduleAndEnd(t *testing.T) {
	t.Run("removed", func(t *testing.T) { testScheduleAndEnd(t, component.ErrRemoved) })
	t.Run("weir stops", func(t *testing.T) { testScheduleAndEnd(t, nil) })
}

func testScheduleAndEnd(t *testing.T, cause error) {
	bubble(t, func(t *testing.T, n *node) {
		tg := n.target("one:80", "a 1\nb 2\n")
		start := time.Now().UnixMilli()
		end := n.Start(t, n.build(t, list(tg)))
		bs := n.wait(t, 4)
		if first := millis(bs[0]) - start; first < 0 || first > 1000 {
			t.Errorf("first scrape is %d ms after the start", first)
		}
		if gap := millis(bs[1]) - millis(bs[0]); gap < 5000 || gap > 15000 {
			t.Errorf("second scrape is %d ms after the first", gap)
		}
		for i := 2; i < 4; i++ {
			if gap := millis(bs[i]) - millis(bs[i-1]); gap != 10000 {
				t.Errorf("scrape %d is %d ms after the previous one", i+1, gap)
			}
		}
		end(cause)
		all := n.sink.Batches()
		last := all[len(all)-1]
		if cause == component.ErrRemoved {
			diff(t, "last batch", []string{"a stale", "b stale"}, values(last))
			diff(t, "up", "stale", up(last))
		} else {
			diff(t, "last batch", []string{"a 1", "b 2"}, values(last))
			diff(t, "up", "1", up(last))
		}
		if millis(last) <= millis(all[len(all)-2]) {
			t.Errorf("markers are not after the last scrape")
		}
		for i, b := range all {
			if b.Source != all[0].Source {
				t.Errorf("batch %d has another source", i)
			}
			for j, s := range b.Series {
				if !s.Released() {
					t.Errorf("series %s of row %d is not released", s, j)
				}
			}
		}
		if got, want := tg.seen[0].UserAgent(), "weir/test"; got != want {
			t.Errorf("user agent %q, want %q", got, want)
		}
	})
}

func TestHandlesStay(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		tg := n.target("one:80", "a 1\nb 2\n")
		stop := n.Run(t, n.build(t, list(tg)))
		defer stop()
		n.wait(t, 3)
		tg.setBody("b 3\na 1\n")
		n.wait(t, 4)
		tg.setBody("b 3\n")
		bs := n.wait(t, len(n.sink.Batches())+2)
		byName := map[string]*batch.Series{}
		for _, b := range bs {
			for _, s := range b.Series {
				if was := byName[s.Name()]; was != nil && was != s {
					t.Errorf("%s has two handles", s)
				}
				byName[s.Name()] = s
			}
		}
		if !byName["a"].Released() {
			t.Error("a is gone, but not released")
		}
		if byName["b"].Released() {
			t.Error("b is there, but released")
		}
	})
}

func TestRefused(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		tg := n.target("one:80", "a 1\n")
		c := n.build(t, list(tg))
		stop := n.Run(t, c)
		defer stop()
		n.wait(t, 2)
		n.sink.Refuse(flowtest.ErrRefused)
		tg.setBody("b 1\n")
		have := len(n.sink.Batches())
		// Two scrapes are refused until the next one is due.
		until(t, n, func() bool { return n.Stats.Dropped()["refused"] >= 14 })
		n.sink.Refuse(nil)
		bs := n.wait(t, have+1)
		diff(t, "batch after those that were dropped", []string{"b 1", "a stale"}, values(bs[have]))
		bs = n.wait(t, have+2)
		diff(t, "batch after that", []string{"b 1"}, values(bs[have+1]))
		for _, b := range bs[have-1:] {
			for i := range b.T[1:] {
				if b.T[i] != b.T[0] {
					t.Errorf("batch has several times")
				}
			}
		}
		if !strings.Contains(n.Logs(), "batch was dropped") {
			t.Errorf("no word about dropped batches in the log")
		}
	})
}

func TestMarkersThatWereRefused(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		tg := n.target("one:80", "a 1\n")
		stop := n.Run(t, n.build(t, list(tg)))
		defer stop()
		n.wait(t, 2)
		n.sink.Refuse(flowtest.ErrRefused)
		tg.setBody("!\n")
		until(t, n, func() bool { return n.Stats.Dropped()["refused"] > 0 })
		n.sink.Refuse(nil)
		bs := n.wait(t, 3)
		diff(t, "the first batch that is accepted", []string{"a stale"}, values(bs[2]))
		diff(t, "the one after", []string(nil), values(n.wait(t, 4)[3]))
		tg.setBody("a 2\n")
		until(t, n, func() bool { return len(values(n.sink.Last())) > 0 })
		last := n.sink.Last()
		diff(t, "back again", []string{"a 2"}, values(last))
		if last.Series[0] != bs[0].Series[0] || last.Series[0].Released() {
			t.Error("a has another handle, or one that was released")
		}
	})
}

func TestUpdateOfSampleLimit(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		tg := n.target("one:80", "a 1\nb 2\n")
		c := n.build(t, list(tg))
		stop := n.Run(t, c)
		defer stop()
		n.wait(t, 3)
		if err := c.Update(n.args(t, list(tg)+"sample_limit = 1")); err != nil {
			t.Fatal(err)
		}
		bs := n.wait(t, 5)
		diff(t, "up", "0", up(bs[3]))
		diff(t, "up", "0", up(bs[4]))
		// As in Prometheus, series that were read before the limit was reached
		// are not stale yet.
		diff(t, "samples", []string{"b stale"}, values(bs[3]))
		diff(t, "samples", []string(nil), values(bs[4]))
		if err := c.Update(n.args(t, list(tg))); err != nil {
			t.Fatal(err)
		}
		diff(t, "samples", []string{"a 1", "b 2"}, values(n.wait(t, 6)[5]))
	})
}

func TestExtraMetricsSwitchedOff(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		tg := n.target("one:80", "a 1\n")
		c := n.build(t, list(tg)+"extra_metrics = true")
		stop := n.Run(t, c)
		defer stop()
		n.wait(t, 3)
		if err := c.Update(n.args(t, list(tg))); err != nil {
			t.Fatal(err)
		}
		bs := n.wait(t, 5)
		stale := 0
		for _, v := range bs[3].V {
			if batch.IsStale(v) {
				stale++
			}
		}
		diff(t, "rows", []int{9, 9, 9, 9, 6}, []int{bs[0].Len(), bs[1].Len(), bs[2].Len(), bs[3].Len(), bs[4].Len()})
		diff(t, "markers", 3, stale)
	})
}

// blocked accepts a batch and blocks the caller.
type blocked struct{ entered chan struct{} }

func (b *blocked) ConsumeMetrics(ctx context.Context, _ *batch.Metrics) error {
	b.entered <- struct{}{}
	<-ctx.Done()
	return context.Cause(ctx)
}

func TestReceiverThatBlocks(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		tg := n.target("one:80", "a 1\n")
		b := &blocked{entered: make(chan struct{}, 100)}
		recv := flow.NewReceiver("blocked", batch.SignalMetrics, nil, nil)
		recv.Set(b)
		a := n.args(t, list(tg))
		a.ForwardTo = []*flow.Receiver{recv}
		stop := n.Run(t, n.newScrape(t, a))
		<-b.entered
		first := time.Now()
		<-b.entered // the time at which the next scrape was due
		if gap := time.Since(first); gap < 5*time.Second || gap > 15*time.Second {
			t.Errorf("the next batch came after %v", gap)
		}
		begin := time.Now()
		stop() // the batch in flight has its grace
		if took := time.Since(begin); took > 6*time.Second {
			t.Errorf("stopping took %v", took)
		}
	})
}

// flaky refuses every second call.
type flaky struct {
	*flowtest.Sink
	mu    sync.Mutex
	calls int
}

func (f *flaky) ConsumeMetrics(ctx context.Context, b *batch.Metrics) error {
	f.mu.Lock()
	f.calls++
	odd := f.calls%2 == 1
	f.mu.Unlock()
	if odd {
		return errors.New("not now")
	}
	return f.Sink.ConsumeMetrics(ctx, b)
}

func TestRetriesOnlyWhoRefused(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		tg := n.target("one:80", "a 1\n")
		f := &flaky{Sink: flowtest.NewSink("flaky")}
		f.Receiver().Set(f)
		a := n.args(t, list(tg))
		a.ForwardTo = append(a.ForwardTo, f.Receiver())
		stop := n.Run(t, n.newScrape(t, a))
		n.wait(t, 4)
		until(t, n, func() bool { return len(f.Batches()) >= 4 })
		stop()
		steady, shaky := n.sink.Batches(), f.Batches()
		diff(t, "number of batches", len(steady), len(shaky))
		for i := range shaky {
			if &steady[i].V[0] != &shaky[i].V[0] { // each receiver gets its own batch, but the columns are shared
				t.Errorf("batch %d differs", i)
			}
		}
		diff(t, "drops", map[string]uint64{}, n.Stats.Dropped())
	})
}

func TestUpdate(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		one, two, three := n.target("one:80", "one 1\n"), n.target("two:80", "two 1\n"), n.target("three:80", "three 1\n")
		c := n.build(t, list(one, two))
		stop := n.Run(t, c)
		n.wait(t, 6)
		if err := c.Update(n.args(t, list(one, three))); err != nil {
			t.Fatal(err)
		}
		n.wait(t, 12)
		stop()
		per := map[uint64][]string{}
		times := map[uint64][]int64{}
		for _, b := range n.sink.Batches() {
			per[b.Source] = append(per[b.Source], strings.Join(values(b), ","))
			times[b.Source] = append(times[b.Source], millis(b))
		}
		var names []string
		for src, vs := range per {
			name := strings.Fields(vs[0])[0]
			names = append(names, name)
			for i, v := range vs {
				// Only the removed target ends.
				if ends := name == "two" && i == len(vs)-1; ends != strings.HasSuffix(v, "stale") {
					t.Errorf("%s: batch %d of %d is %q", name, i+1, len(vs), v)
				}
			}
			if name == "one" { // it continued
				for i := 2; i < len(vs); i++ {
					if gap := times[src][i] - times[src][i-1]; gap != 10000 {
						t.Errorf("one: scrape %d is %d ms after the previous one", i+1, gap)
					}
				}
			}
		}
		slices.Sort(names)
		diff(t, "targets", []string{"one", "three", "two"}, names)
	})
}

func TestUpdateThatChangesLabels(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		tg := n.target("one:80", "a{job=\"x\"} 1\nb 2\n")
		c := n.build(t, list(tg))
		stop := n.Run(t, c)
		defer stop()
		before := n.wait(t, 3)[2]
		if err := c.Update(n.args(t, strings.Replace(list(tg), "10s", "5s", 1)+"scrape_timeout = \"4s\"\nhonor_labels = true")); err != nil {
			t.Fatal(err)
		}
		after := n.wait(t, 4)[3]
		diff(t, "samples", []string{"a 1", "b 2", "a stale"}, values(after))
		if before.Series[1] != after.Series[1] {
			t.Error("b has the same labels and another handle")
		}
		if before.Series[0] != after.Series[2] {
			t.Error("a's marker has another handle")
		}
		next := n.wait(t, 6)
		if gap := millis(next[5]) - millis(next[4]); gap != 5000 {
			t.Errorf("scrapes are %d ms apart, want the new interval", gap)
		}
	})
}

func TestTakeOver(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		tg, other := n.target("one:80", "a 1\n"), n.target("two:80", "b 1\n")
		first := n.build(t, list(tg, other))
		ctx, cancel := context.WithCancelCause(t.Context())
		done := make(chan error, 1)
		go func() { done <- first.Run(ctx) }()
		n.wait(t, 6)

		n.Previous, n.Registry = first, prometheus.NewRegistry()
		second := n.build(t, list(tg))
		cancel(component.ErrReplaced)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		have := n.sink.Batches()
		stop := n.Run(t, second)
		n.wait(t, len(have)+4)
		stop()

		markers := map[string]int{}
		var as []*batch.Metrics
		for _, b := range n.sink.Batches() {
			for _, v := range values(b) {
				if strings.HasSuffix(v, "stale") {
					markers[v]++
				}
				if v == "a 1" {
					as = append(as, b)
				}
			}
		}
		diff(t, "markers", map[string]int{"b stale": 1}, markers) // a was handed over, and weir stopped while it was scraped
		for i := 2; i < len(as); i++ {
			if as[i].Series[0] != as[0].Series[0] || as[i].Source != as[0].Source {
				t.Errorf("scrape %d of a has another handle or source", i+1)
			}
			if gap := millis(as[i]) - millis(as[i-1]); gap != 10000 {
				t.Errorf("scrape %d of a is %d ms after the previous one", i+1, gap)
			}
		}
	})
}

func TestMemory(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		tg := n.target("one:80", "a 1\n")
		n.hosts[memory] = tg
		stop := n.Run(t, n.build(t, `targets = [{ __address__ = "weir.internal:12345", __metrics_path__ = "/own" }]`))
		defer stop()
		diff(t, "samples", []string{"a 1"}, values(n.wait(t, 1)[0]))
		if got := tg.seen[0].URL.Path; got != "/own" {
			t.Errorf("path %q", got)
		}
	})
}

func TestFaults(t *testing.T) {
	endless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for i := 0; r.Context().Err() == nil; i++ {
			fmt.Fprintf(w, "a%d 1\n", i)
		}
	}))
	t.Cleanup(endless.Close)
	silent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(silent.Close)
	trickle := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "a 1\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(trickle.Close)
	serve := func(body string) string {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, body) }))
		t.Cleanup(srv.Close)
		return srv.URL
	}
	missing := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(missing.Close)

	f := func(url, args, outcome, message string) {
		interval, timeout := "6s", "6s" // more than a busy machine needs
		if outcome == "timeout" {
			interval, timeout = "200ms", "150ms"
		}
		t.Run(outcome, func(t *testing.T) {
			t.Parallel() // they mostly wait
			n, sink := componenttest.New(t, "prometheus.scrape.test"), flowtest.NewSink("sink")
			n.Services["http"] = service.HTTPData{}
			o := n.Options()
			o.Clock = clock.System{}
			c, err := scrape.Registration().Build(o, decode(t, fmt.Sprintf(`
			targets         = [{ __address__ = %q }]
			scrape_interval = %q
			scrape_timeout  = %q
			%s`, strings.TrimPrefix(url, "http://"), interval, timeout, args), sink.Receiver()), nil)
			if err != nil {
				t.Fatal(err)
			}
			stop := n.Run(t, c)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			bs, err := sink.Wait(ctx, 2)
			if err != nil {
				t.Fatal(err)
			}
			explained := c.(component.TargetExplainer).ExplainTarget(map[string]string{"__address__": strings.TrimPrefix(url, "http://")})
			stop()
			explains(t, explained, outcome, message)
			wantUp := "0"
			if outcome == "ok" {
				wantUp = "1"
			}
			diff(t, url+" up", []string{wantUp, wantUp}, []string{up(bs[0]), up(bs[1])})
			if got := testutil.ToFloat64(outcomes(t, n).WithLabelValues(outcome)); got < 2 {
				t.Errorf("%s: %v scrapes of outcome %s", url, got, outcome)
			}
			if !strings.Contains(n.Logs(), message) {
				t.Errorf("%s: no %q in the log\n%s", url, message, n.Logs())
			}
			if strings.Count(n.Logs(), "scrape failed") > 1 {
				t.Errorf("%s: the failure is logged at every scrape", url)
			}
		})
	}
	f(serve("a 1\n"), "", "ok", "")
	f(endless.URL, `body_size_limit = "10KB"`, "body_size_limit", "body size limit exceeded")
	f(silent.URL, "", "timeout", "scrape timeout")
	f(trickle.URL, "", "timeout", "scrape timeout")
	f("http://127.0.0.1:1", "", "request_failed", "refused")
	f(serve("!\n"), "", "invalid_body", "cannot parse the body")
	f(missing.URL, "", "bad_status", "404 Not Found")
	f(serve("a 1\n"), "label_limit = 1", "label_limit", "label_limit is 1")
	f(serve("a 1\nb 1\n"), "sample_limit = 1", "sample_limit", "sample limit exceeded")
}

// explains checks that a target is up or down, with the limit that its scrape exceeded.
func explains(t *testing.T, got component.TargetResult, outcome, message string) {
	t.Helper()
	want := "down"
	if outcome == "ok" {
		want, message = "up", "returned 1 samples"
	}
	text := got.Reason
	for _, s := range got.Steps {
		text += fmt.Sprintf("; %s %s: %s", s.Kind, s.Name, s.Detail)
	}
	if got.Result != want || !strings.Contains(text, message) {
		t.Errorf("got %s: %s", got.Result, text)
	}
	if limit := strings.HasSuffix(outcome, "_limit"); limit != strings.Contains(text, "; limit "+outcome+": ") {
		t.Errorf("%s: got the steps %s", outcome, text)
	}
}

// outcomes reads the node's counters into a vector.
func outcomes(t *testing.T, n *componenttest.Node) *prometheus.CounterVec {
	t.Helper()
	out := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "x"}, []string{"outcome"})
	families, err := n.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != "weir_scrape_scrapes_total" {
			continue
		}
		for _, m := range f.Metric {
			for _, l := range m.Label {
				if l.GetName() == "outcome" {
					out.WithLabelValues(l.GetValue()).Add(m.Counter.GetValue())
				}
			}
		}
	}
	return out
}

func TestFailureLog(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.hosts["one:80"] = http.NotFoundHandler()
		path := filepath.Join(t.TempDir(), "failures.json")
		args := fmt.Sprintf("targets = [{ __address__ = \"one:80\" }]\nscrape_failure_log_file = %q\n", path)
		c := n.build(t, args)
		if _, err := os.Stat(path); err == nil {
			t.Error("Build has made the file")
		}
		stop := n.Run(t, c)
		n.wait(t, 1)
		if err := c.Update(n.args(t, args+"sample_limit = 5")); err != nil {
			t.Fatal(err)
		}
		n.wait(t, 2)
		stop()
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		ls := strings.Split(strings.TrimSpace(string(data)), "\n")
		if len(ls) < 2 {
			t.Fatalf("failure log is %q", data)
		}
		for _, l := range ls {
			var got map[string]any
			if err := json.Unmarshal([]byte(l), &got); err != nil {
				t.Fatal(err)
			}
			diff(t, "line", []any{"server returned HTTP status 404 Not Found", "http://one:80/metrics", "prometheus.scrape.test"}, []any{got["msg"], got["target"], got["job_name"]})
		}
	})
}

func TestDebugInfo(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		tg := n.target("one:80", "a 1\n")
		n.hosts["down:80"] = http.NotFoundHandler()
		c := n.build(t, `targets = [{ __address__ = "one:80", job = "j" }, { __address__ = "down:80" }, { __address__ = "a/b" }]`)
		stop := n.Run(t, c)
		defer stop()
		n.wait(t, 2)
		info := c.DebugInfo().(scrape.Info)
		byHealth := map[string]scrape.TargetInfo{}
		for _, ti := range info.Targets {
			byHealth[ti.Health] = ti
		}
		diff(t, "labels", map[string]string{"job": "j", "instance": tg.host}, byHealth["up"].Labels)
		diff(t, "url", "http://one:80/metrics", byHealth["up"].URL)
		diff(t, "samples", 1, byHealth["up"].Samples)
		if byHealth["up"].LastScrape.IsZero() {
			t.Error("no time")
		}
		if !strings.Contains(byHealth["down"].Error, "404") {
			t.Errorf("error is %q", byHealth["down"].Error)
		}
		if len(info.Invalid) != 1 || !strings.Contains(info.Invalid[0], "a/b") {
			t.Errorf("invalid targets are %q", info.Invalid)
		}
		if h := n.Health(); h.State != component.Healthy || !strings.Contains(h.Message, "scraping 2 targets, 1 cannot be") {
			t.Errorf("health is %+v", h)
		}
		if _, err := json.Marshal(info); err != nil {
			t.Error(err)
		}
	})
}

func TestArguments(t *testing.T) {
	f := func(text string, want ...string) {
		t.Helper()
		var a scrape.Arguments
		err := syntax.Unmarshal([]byte("targets = []\nforward_to = []\n"+text), &a)
		if len(want) == 0 {
			if err != nil {
				t.Errorf("%s: %v", text, err)
			}
			return
		}
		for _, w := range want {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("%s: got %v, want %q", text, err, w)
			}
		}
	}
	f("")
	f(`body_size_limit = "10MB"`)
	f("body_size_limit = 1000")
	f(`scrape_protocols = ["PrometheusProto"]` + "\nscrape_native_histograms = true")
	f("clustering {\nenabled = false\n}")
	f("bearer_token = \"x\"\ntls_config {\ninsecure_skip_verify = true\n}")

	f(`scrape_interval = "5s"`)
	f("scrape_interval = \"5s\"\nscrape_timeout = \"10s\"", "scrape_timeout (10s) must not be greater than scrape_interval (5s)")
	f(`scrape_interval = "0s"`, "scrape_interval must be greater than 0")
	f(`scrape_timeout = "0s"`, "scrape_timeout must be greater than 0")
	f(`body_size_limit = "10 potatoes"`, "as a size")
	f(`scheme = "ftp"`, `scheme must be "http" or "https"`)
	f(`scrape_protocols = []`, "must not be empty")
	f(`scrape_protocols = ["Text"]`, `unknown protocol "Text"`)
	f(`scrape_protocols = ["OpenMetricsText2.0.0"]`, "OpenMetricsText2.0.0 is not supported yet")
	f(`scrape_protocols = ["PrometheusProto", "PrometheusProto"]`, "appears twice")
	f(`scrape_protocols = ["PrometheusText0.0.4"]`+"\nscrape_native_histograms = true", "needs PrometheusProto")
	f(`scrape_protocols = ["PrometheusText0.0.4"]`+"\nenable_protobuf_negotiation = true", "at most one of")
	f(`scrape_fallback_protocol = "x"`, "scrape_fallback_protocol: unknown protocol")
	f(`metric_name_validation_scheme = "x"`, "metric_name_validation_scheme must be")
	f(`metric_name_escaping_scheme = "allow-utf-8"`, "needs metric_name_validation_scheme")
	f(`metric_name_escaping_scheme = "x"`, "metric_name_escaping_scheme must be")
	f("clustering {\nenabled = true\n}", "clustering: enabled = true is not supported: instances of weir do not distribute targets among themselves\n")
	f("bearer_token = \"x\"\nbasic_auth {\n}", "at most one of basic_auth")
	f("scrape_timeout = \"2m\"\nscheme = \"x\"", "scrape_timeout", "scheme must be")
}
