package api_test

import (
	"bytes"
	"compress/flate"
	"compress/zlib"
	"context"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	lokipush "github.com/grafana/loki/pkg/push"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/flow/flowtest"
	"github.com/weir-run/weir/engine/rule"
	"github.com/weir-run/weir/natives/loki/source/api"
)

const jsonBody = `{"streams": [{"stream": {"app": "a"}, "values": [["1", "one"], ["2", "two \"q\" \u00e9\n", {"trace": "t"}]]}]}`

func TestForms(t *testing.T) {
	deflated := func(w io.WriteCloser, buf *bytes.Buffer) []byte {
		if _, err := io.WriteString(w, jsonBody); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return buf.Bytes()
	}
	var raw, withHeader bytes.Buffer
	fw, err := flate.NewWriter(&raw, 1)
	if err != nil {
		t.Fatal(err)
	}
	s := stream(`{app="a"}`, "one", "two \"q\" é\n")
	s.Entries[1].StructuredMetadata = lokipush.LabelsAdapter{{Name: "trace", Value: "t"}}
	pb := body(t, s)
	want := []string{`{app="a"} one`, "{app=\"a\"} two \"q\" é\n trace=t"}
	f := func(name, path string, body []byte, headers ...string) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			r := start(t, func(a *api.Arguments) { a.UseIncomingTimestamp = true })
			r.want(r.post(path, body, headers...), 204, "")
			r.lines(want...)
			for _, b := range r.sink.Logs() {
				for i, at := range b.T {
					if at != int64(i+1) {
						t.Errorf("line %d has time %d", i, at)
					}
				}
			}
		})
	}
	f("protobuf", pushPath, pb, ctype, "application/x-protobuf")
	f("protobuf without headers", "/api/v1/push", pb)
	f("protobuf that says it is snappy", pushPath, pb, ctype, "application/x-protobuf", encoding, "snappy")
	f("protobuf in gzip", pushPath, gzipped(t, pb), encoding, "gzip")
	f("JSON", pushPath, []byte(jsonBody), ctype, "application/json; charset=utf-8")
	f("JSON in gzip", pushPath, gzipped(t, []byte(jsonBody)), ctype, asJSON, encoding, "gzip")
	f("JSON in deflate", pushPath, deflated(fw, &raw), ctype, asJSON, encoding, "deflate")
	f("JSON in deflate with a header", pushPath, deflated(zlib.NewWriter(&withHeader), &withHeader), ctype, asJSON, encoding, "deflate")
}

func TestRaw(t *testing.T) {
	r := start(t, func(a *api.Arguments) { a.Labels = map[string]string{"job": "raw"} })
	r.want(r.post("/loki/api/v1/raw", []byte("one\r\n\n two\nthree")), 204, "")
	r.lines(`{job="raw"} one`, `{job="raw"}  two`, `{job="raw"} three`)
	r.want(r.post("/api/v1/raw", gzipped(t, []byte("four\n")), encoding, "gzip", tenant, "t1"), 204, "")
	r.lines(`{__tenant_id__="t1",job="raw"} four`, `{job="raw"} one`, `{job="raw"}  two`, `{job="raw"} three`)
}

func TestTimes(t *testing.T) {
	r := start(t, nil)
	for range 2 {
		r.want(r.post(pushPath, body(t, stream(`{app="a"}`, "x", "x"), stream(`{app="b"}`, "x"))), 204, "")
	}
	seen := map[int64]bool{}
	for _, b := range r.sink.Logs() {
		for _, at := range b.T {
			if seen[at] || at < r.Clock.Now().UnixNano() || at > r.Clock.Now().UnixNano()+10 {
				t.Errorf("two lines have time %d, or it is not now", at)
			}
			seen[at] = true
		}
	}
	if len(seen) != 6 {
		t.Errorf("%d times, want 6: an equal body of another push is no repetition", len(seen))
	}
}

func TestLabels(t *testing.T) {
	rule1 := new(rule.Rule)
	rule1.SetToDefault()
	rule1.SourceLabels, rule1.TargetLabel = []string{"__secret"}, "shown"
	rule2 := new(rule.Rule)
	rule2.SetToDefault()
	rule2.SourceLabels, rule2.Action, rule2.Regex = []string{"app"}, "drop", "gone"
	r := start(t, func(a *api.Arguments) {
		a.Labels = map[string]string{"via": "weir"}
		a.RelabelRules = rule.Rules{rule1, rule2}
	})
	r.want(r.post(pushPath, body(t, stream(`{__secret="s", via="other"}`, "one"), stream(`{app="gone"}`, "two")), tenant, "acme"), 204, "")
	r.lines(`{__tenant_id__="acme",shown="s",via="weir"} one`)
	if got := r.Stats.DroppedLines()["relabel"]; got != 1 {
		t.Errorf("%d lines were dropped by rules, want 1", got)
	}
	first := r.sink.Logs()[0].Stream[0]
	r.want(r.post(pushPath, body(t, stream(`{via="x",__secret="s"}`, "one")), tenant, "acme"), 204, "")
	if again := r.sink.Logs()[1].Stream[0]; again != first {
		t.Error("a stream that came again is another handle")
	}
	r.want(r.post(pushPath, body(t, stream(`{a="b"}`, "x")), tenant, "a|b"), 400, "one tenant")

	a := *r.args
	a.Labels = nil
	if err := r.c.(component.Updater).Update(&a); err != nil {
		t.Fatal(err)
	}
	r.want(r.post(pushPath, body(t, stream(`{a="b"}`, "after"))), 204, "")
	if got := r.sink.Logs()[2].Stream[0].String(); got != `{a="b"}` {
		t.Errorf("after new arguments the stream is %s", got)
	}
}

func TestBadRequests(t *testing.T) {
	r := start(t, func(a *api.Arguments) { a.MaxSize = 1000 })
	f := func(status int, says, path string, body []byte, headers ...string) {
		t.Helper()
		r.want(r.post(path, body, headers...), status, says)
	}
	f(404, "lines are posted to /loki/api/v1/push", "/other", nil)
	f(404, "OTLP is not taken here", "/otlp/v1/logs", nil)
	f(415, "text/plain", pushPath, nil, ctype, "text/plain")
	f(415, "br", pushPath, nil, encoding, "br")
	f(400, "cannot decompress", pushPath, []byte("no snappy"))
	f(400, "cannot decompress", pushPath, []byte("no gzip"), encoding, "gzip", ctype, asJSON)
	f(413, "max_send_message_size", pushPath, bytes.Repeat([]byte("x"), 1001))
	f(413, "max_send_message_size", pushPath, body(t, stream(`{a="b"}`, strings.Repeat("x", 2000))))
	f(413, "max_send_message_size", pushPath, gzipped(t, bytes.Repeat([]byte(" "), 2000)), encoding, "gzip", ctype, asJSON)
	f(400, "at byte 12: want a list", pushPath, []byte(`{"streams": 1}`), ctype, asJSON)
	f(400, "Unix nanoseconds", pushPath, []byte(`{"streams": [{"stream": {"a": "b"}, "values": [["x", "l"]]}]}`), ctype, asJSON)
	if n := len(r.sink.Logs()); n != 0 {
		t.Errorf("%d batches came of requests that are no good", n)
	}
	// The valid streams of a request are accepted.
	f(400, `cannot parse labels "{bad"`, pushPath, body(t, stream(`{a="1"}`, "one"), stream(`{bad`, "x", "y"), stream(`{}`, "z"), stream(`{a="2"}`, "two")))
	r.lines(`{a="1"} one`, `{a="2"} two`)
	if got := r.Stats.DroppedLines()["invalid_labels"]; got != 3 {
		t.Errorf("%d lines of bad streams were counted, want 3", got)
	}
	req, err := http.NewRequest(http.MethodGet, r.url+pushPath, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.want(do(t, req), 405, "want POST")
	req.URL.Path = "/ready"
	r.want(do(t, req), 200, "ready")
}

// keeper accepts lines and keeps them until it is asked to flush.
type keeper struct {
	holds   chan *batch.Hold
	flushes chan struct{}
}

func (k *keeper) ConsumeLogs(_ context.Context, b *batch.Logs) error {
	k.holds <- b.Ack.Hold(func() { k.flushes <- struct{}{} })
	return nil
}

func TestAnswerWaitsForAck(t *testing.T) {
	k := &keeper{make(chan *batch.Hold, 1), make(chan struct{}, 1)}
	to := flow.NewReceiver("keeper", batch.SignalLogs, nil, nil)
	to.Set(k)
	r := start(t, func(a *api.Arguments) { a.ForwardTo = []*flow.Receiver{to} })
	done := make(chan answer, 1)
	go func() { done <- r.post(pushPath, body(t, stream(`{a="b"}`, "held"))) }()
	h := <-k.holds
	<-k.flushes // something waits for the lines, so the keeper is asked to flush
	select {
	case a := <-done:
		t.Errorf("answered %d while the line was kept in memory", a.status)
	default:
	}
	h.Release()
	r.want(<-done, 204, "")
}

func TestLateReceivers(t *testing.T) {
	r := start(t, nil)
	r.sink.Refuse(flowtest.ErrRefused)
	done := make(chan answer, 1)
	go func() { done <- r.post(pushPath, body(t, stream(`{a="b"}`, "late"))) }()
	a := r.advanceUntil(done, time.Second)
	r.want(a, 503, "not accepted within")
	if a.header.Get("Retry-After") == "" {
		t.Error("the answer has no Retry-After")
	}
	r.sink.Refuse(nil)
}

// gate is a receiver that blocks until it is opened.
type gate struct {
	to     *flowtest.Sink
	called chan struct{} // capacity 1
	open   chan struct{}
}

func (g *gate) ConsumeLogs(ctx context.Context, b *batch.Logs) error {
	select {
	case g.called <- struct{}{}:
	default:
	}
	select {
	case <-g.open:
		return g.to.ConsumeLogs(ctx, b)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func TestRetryIsSentOnce(t *testing.T) {
	for _, incoming := range []bool{false, true} {
		g := &gate{to: flowtest.NewSink("sink"), called: make(chan struct{}, 1), open: make(chan struct{})}
		to := flow.NewReceiver("gate", batch.SignalLogs, nil, nil)
		to.Set(g)
		r := start(t, func(a *api.Arguments) {
			a.ForwardTo = []*flow.Receiver{to}
			a.UseIncomingTimestamp = incoming
		})
		r.sink = g.to
		b := body(t, stream(`{a="b"}`, "late"))
		ctx, cancel := context.WithCancel(context.Background())
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url+pushPath, bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			if resp, err := client.Do(req); err == nil {
				resp.Body.Close()
				t.Errorf("answered %d while nobody had accepted it", resp.StatusCode)
			}
		}()
		<-g.called
		cancel()
		<-gone
		for r.c.(component.Debugger).DebugInfo().(api.Info).Requests > 0 { // until the server has noticed
			runtime.Gosched()
		}
		done := make(chan answer, 1)
		go func() { done <- r.post(pushPath, b) }()
		for r.c.(component.Debugger).DebugInfo().(api.Info).Requests == 0 {
			runtime.Gosched()
		}
		close(g.open)
		r.want(<-done, 204, "")
		r.lines(`{a="b"} late`)
	}
}

// advanceUntil advances the clock in steps until there is a response.
func (r *receiver) advanceUntil(done <-chan answer, step time.Duration) answer {
	for {
		select {
		case a := <-done:
			return a
		default:
			r.Clock.Advance(step)
			runtime.Gosched()
		}
	}
}

func TestTooMany(t *testing.T) {
	k := &keeper{make(chan *batch.Hold, 1), make(chan struct{}, 1)}
	to := flow.NewReceiver("keeper", batch.SignalLogs, nil, nil)
	to.Set(k)
	r := start(t, func(a *api.Arguments) {
		a.ForwardTo = []*flow.Receiver{to}
		a.Limits.MaxRequests = 1
	})
	done := make(chan answer, 1)
	go func() { done <- r.post(pushPath, body(t, stream(`{a="b"}`, "held"))) }()
	h := <-k.holds
	a := r.post(pushPath, body(t, stream(`{a="c"}`, "one too many")))
	r.want(a, 429, "max_requests is 1")
	if a.header.Get("Retry-After") == "" {
		t.Error("the answer has no Retry-After")
	}
	h.Release()
	r.want(<-done, 204, "")
}

func TestStop(t *testing.T) {
	k := &keeper{make(chan *batch.Hold, 1), make(chan struct{}, 1)}
	to := flow.NewReceiver("keeper", batch.SignalLogs, nil, nil)
	to.Set(k)
	r := start(t, func(a *api.Arguments) { a.ForwardTo = []*flow.Receiver{to} })
	done := make(chan answer, 1)
	go func() { done <- r.post(pushPath, body(t, stream(`{a="b"}`, "held"))) }()
	<-k.holds
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		r.stop()
	}()
	r.want(r.advanceUntil(done, time.Second), 503, "")
	<-stopped
}
