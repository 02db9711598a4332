package sink_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/google/go-cmp/cmp"
	remoteapi "github.com/prometheus/client_golang/exp/api/remote"
	config_util "github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"github.com/prometheus/prometheus/storage/remote"

	"github.com/weir-run/weir/cmd/weirbench/sink"
	"github.com/weir-run/weir/cmd/weirbench/target"
)

// endpoint is a sink and Prometheus's own client for it.
type endpoint struct {
	t    *testing.T
	url  string
	sink *sink.Server
	v1   remote.WriteClient
	v2   remote.WriteClient
}

func start(t *testing.T) *endpoint {
	t.Helper()
	s, err := sink.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	e := &endpoint{t: t, url: "http://" + s.Address(), sink: s}
	u, err := url.Parse(e.url + "/api/v1/write")
	if err != nil {
		t.Fatal(err)
	}
	client := func(msg remoteapi.WriteMessageType) remote.WriteClient {
		c, err := remote.NewWriteClient("test", &remote.ClientConfig{
			URL: &config_util.URL{URL: u}, Timeout: model.Duration(2 * time.Minute), WriteProtoMsg: msg, RetryOnRateLimit: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	e.v1, e.v2 = client(remoteapi.WriteV1MessageType), client(remoteapi.WriteV2MessageType)
	return e
}

// row is a sample to send.
type row struct {
	name, instance string
	v              float64
}

func seq(n int) row {
	return row{target.SequencePrefix + "0_total", "a:1", float64(target.SequenceBase + n)}
}

func messageV1(rows ...row) []byte {
	var req prompb.WriteRequest
	for _, r := range rows {
		req.Timeseries = append(req.Timeseries, prompb.TimeSeries{
			Labels:  []prompb.Label{{Name: "__name__", Value: r.name}, {Name: "instance", Value: r.instance}},
			Samples: []prompb.Sample{{Value: r.v, Timestamp: 1000}},
		})
	}
	b, err := req.Marshal()
	if err != nil {
		panic(err)
	}
	return snappy.Encode(nil, b)
}

func messageV2(rows ...row) []byte {
	st := writev2.NewSymbolTable()
	var req writev2.Request
	for _, r := range rows {
		refs := []uint32{st.Symbolize("__name__"), st.Symbolize(r.name), st.Symbolize("instance"), st.Symbolize(r.instance)}
		req.Timeseries = append(req.Timeseries, writev2.TimeSeries{LabelsRefs: refs, Samples: []writev2.Sample{{Value: r.v, Timestamp: 1000}}})
	}
	req.Symbols = st.Symbols()
	b, err := req.Marshal()
	if err != nil {
		panic(err)
	}
	return snappy.Encode(nil, b)
}

func (e *endpoint) send(rows ...row) error {
	_, err := e.v1.Store(context.Background(), messageV1(rows...), 0)
	return err
}

func (e *endpoint) mustSend(rows ...row) {
	e.t.Helper()
	if err := e.send(rows...); err != nil {
		e.t.Fatal(err)
	}
}

func (e *endpoint) command(method, path, body string) (int, string) {
	e.t.Helper()
	req, err := http.NewRequest(method, e.url+path, strings.NewReader(body))
	if err != nil {
		e.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		e.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		e.t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// stats requests the statistics.
func (e *endpoint) stats() (st sink.Stats) {
	e.t.Helper()
	_, body := e.command("GET", "/stats?detail=1", "")
	if err := json.Unmarshal([]byte(body), &st); err != nil {
		e.t.Fatal(err)
	}
	return st
}

func TestCounts(t *testing.T) {
	stale := math.Float64frombits(0x7ff0000000000002)
	rows := []row{{"up", "a:1", 1}, {"scrape_duration_seconds", "a:1", 1}, {"x", "a:1", math.NaN()}, {"x", "b:1", 4}, {"y", "a:1", stale}, {"upper", "a:1", 2}, seq(1)}
	want := sink.Stats{
		Requests: 2, Samples: 8, Report: 4, Stale: 2, Sequences: 1, Duplicates: 1, Repeats: 1,
		First: map[string]int{"a:1": 1}, Last: map[string]int{"a:1": 1},
	}
	f := func(version string, v2 int64, message []byte) {
		t.Helper()
		e := start(t)
		c := e.v1
		if version == "2.0" {
			c = e.v2
		}
		for range 2 {
			ws, err := c.Store(context.Background(), message, 0)
			if err != nil {
				t.Fatal(err)
			}
			if version == "2.0" && ws.Samples != len(rows) {
				t.Errorf("the answer says %d samples were written, not %d", ws.Samples, len(rows))
			}
		}
		raw, err := snappy.Decode(nil, message)
		if err != nil {
			t.Fatal(err)
		}
		want.V2, want.Bytes, want.Raw = v2, int64(2*len(message)), int64(2*len(raw))
		if d := cmp.Diff(want, e.stats()); d != "" {
			t.Errorf("remote write %s, -want +got:\n%s", version, d)
		}
		if d := cmp.Diff(want, e.sink.Stats(true)); d != "" {
			t.Errorf("Stats, -want +got:\n%s", d)
		}
		if status, _ := e.command("POST", "/reset", ""); status != 200 {
			t.Errorf("reset answers %d", status)
		}
		if d := cmp.Diff(sink.Stats{First: map[string]int{}, Last: map[string]int{}}, e.stats()); d != "" {
			t.Errorf("after a reset, -want +got:\n%s", d)
		}
	}
	f("1.0", 0, messageV1(rows...))
	f("2.0", 2, messageV2(rows...))
}

func TestHistograms(t *testing.T) {
	h := &histogram.Histogram{Count: 3, Sum: 4, Schema: 1, PositiveSpans: []histogram.Span{{Length: 1}}, PositiveBuckets: []int64{3}}
	e := start(t)
	b, err := (&prompb.WriteRequest{Timeseries: []prompb.TimeSeries{{
		Labels: []prompb.Label{{Name: "__name__", Value: "h"}}, Histograms: []prompb.Histogram{prompb.FromIntHistogram(7, h)},
		Exemplars: []prompb.Exemplar{{Value: 1}},
	}}, Metadata: []prompb.MetricMetadata{{MetricFamilyName: "h"}}}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.v1.Store(context.Background(), snappy.Encode(nil, b), 0); err != nil {
		t.Fatal(err)
	}
	st := writev2.NewSymbolTable()
	ts := writev2.TimeSeries{LabelsRefs: []uint32{st.Symbolize("__name__"), st.Symbolize("h")}, Histograms: []writev2.Histogram{writev2.FromIntHistogram(0, 7, h)}}
	if b, err = (&writev2.Request{Symbols: st.Symbols(), Timeseries: []writev2.TimeSeries{ts}}).Marshal(); err != nil {
		t.Fatal(err)
	}
	ws, err := e.v2.Store(context.Background(), snappy.Encode(nil, b), 0)
	if err != nil {
		t.Fatal(err)
	}
	if ws.Histograms != 1 || ws.Samples != 0 {
		t.Errorf("the answer says %+v", ws)
	}
	if st := e.stats(); st.Histograms != 2 || st.Samples != 2 {
		t.Errorf("got %+v", st)
	}
}

func TestSequences(t *testing.T) {
	f := func(numbers string, gaps, duplicates, reordered int64, first, last int) {
		t.Helper()
		e := start(t)
		for _, n := range strings.Fields(numbers) {
			var i int
			if _, err := fmt.Sscan(n, &i); err != nil {
				t.Fatal(err)
			}
			e.mustSend(seq(i))
		}
		st := e.stats()
		got := fmt.Sprintf("%d gaps, %d duplicates, %d reordered, %d to %d", st.Gaps, st.Duplicates, st.Reordered, st.First["a:1"], st.Last["a:1"])
		want := fmt.Sprintf("%d gaps, %d duplicates, %d reordered, %d to %d", gaps, duplicates, reordered, first, last)
		if got != want {
			t.Errorf("%s: got %s, want %s", numbers, got, want)
		}
	}
	f("1 2 3 4", 0, 0, 0, 1, 4)
	f("7 8 9", 0, 0, 0, 7, 9)
	// Missing numbers.
	f("1 2 4 5", 1, 0, 0, 1, 5)
	f("1 5", 3, 0, 0, 1, 5)
	// Duplicates.
	f("1 2 2 3", 0, 1, 0, 1, 3)
	f("1 2 3 1 2 3", 0, 3, 0, 1, 3)
	// Late numbers.
	f("1 3 2 4", 0, 0, 1, 1, 4)
	f("1 3 2 2 4", 0, 1, 1, 1, 4)
	f("1 5 3 6", 2, 0, 1, 1, 6)
	f("3 1 4", 1, 0, 1, 1, 4)
	f("3 1 2 4", 0, 0, 2, 1, 4)
}

func TestSequencesByInstance(t *testing.T) {
	e := start(t)
	other := func(name, instance string, n int) row {
		return row{target.SequencePrefix + name, instance, float64(target.SequenceBase + n)}
	}
	// The slower sequence of an instance counts.
	e.mustSend(other("0", "a:1", 1), other("1", "a:1", 2), other("0", "b:1", 1))
	e.mustSend(other("0", "a:1", 2), other("1", "a:1", 3), other("0", "b:1", 2))
	e.mustSend(other("0", "a:1", 3))
	st := e.stats()
	want := sink.Stats{Sequences: 3, First: map[string]int{"a:1": 2, "b:1": 1}, Last: map[string]int{"a:1": 3, "b:1": 2}}
	if d := cmp.Diff(want, sink.Stats{Sequences: st.Sequences, Gaps: st.Gaps, First: st.First, Last: st.Last}); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

func TestFaults(t *testing.T) {
	f := func(fault string, check func(e *endpoint, err error)) {
		t.Helper()
		e := start(t)
		if status, body := e.command("POST", "/faults", fault); status != 200 {
			t.Fatalf("%s answers %d %s", fault, status, body)
		}
		check(e, e.send(seq(1)))
		// The fault ends.
		if status, _ := e.command("DELETE", "/faults", ""); status != 200 {
			t.Fatalf("DELETE answers %d", status)
		}
		e.mustSend(seq(2))
	}
	recoverable := func(e *endpoint, err error, refused, samples int64) {
		t.Helper()
		if _, ok := errors.AsType[remote.RecoverableError](err); !ok {
			t.Errorf("got %v, want an error that Prometheus retries", err)
		}
		if st := e.stats(); st.Refused != refused || st.Samples != samples {
			t.Errorf("%d refused and %d samples, want %d and %d", st.Refused, st.Samples, refused, samples)
		}
	}
	f(`{"status": 500}`, func(e *endpoint, err error) { recoverable(e, err, 1, 0) })
	f(`{"status": 429, "retry_after": 7}`, func(e *endpoint, err error) { recoverable(e, err, 1, 0) })
	f(`{"status": 400}`, func(e *endpoint, err error) {
		if _, ok := errors.AsType[remote.RecoverableError](err); ok || err == nil {
			t.Errorf("got %v, want an error that Prometheus does not retry", err)
		}
	})
	f(`{"reset": true}`, func(e *endpoint, err error) { recoverable(e, err, 1, 0) })
	f(`{"half_close": true}`, func(e *endpoint, err error) { recoverable(e, err, 1, 0) })
	f(`{"half_close": true, "keep": true}`, func(e *endpoint, err error) { recoverable(e, err, 0, 1) })
	f(`{"reset": true, "keep": true}`, func(e *endpoint, err error) { recoverable(e, err, 0, 1) })
	f(`{"status": 503, "keep": true}`, func(e *endpoint, err error) {
		recoverable(e, err, 0, 1)
		e.command("DELETE", "/faults", "")
		e.mustSend(seq(1))
		if st := e.stats(); st.Duplicates != 1 {
			t.Errorf("%d duplicates of a sample that was kept and refused", st.Duplicates)
		}
	})
	f(`{"status": 500, "requests": 2}`, func(e *endpoint, err error) {
		recoverable(e, err, 1, 0)
		recoverable(e, e.send(seq(1)), 2, 0)
		e.mustSend(seq(1))
	})
	f(`{"status": 500, "for": "1ns"}`, func(e *endpoint, err error) {
		if err != nil {
			t.Errorf("a fault that is over still does something: %v", err)
		}
	})
}

func TestDelayEnds(t *testing.T) {
	e := start(t)
	e.command("POST", "/faults", `{"delay": "1h", "requests": 1}`)
	done := make(chan error, 2)
	for range 2 {
		go func() { done <- e.send(seq(1)) }()
	}
	// One of them is delayed, the other is not.
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if st := e.stats(); st.Samples != 1 {
		t.Errorf("%d samples while one request is delayed", st.Samples)
	}
	e.command("DELETE", "/faults", "")
	if err := <-done; err != nil {
		t.Errorf("the delayed request ends with %v", err)
	}
	if st := e.stats(); st.Samples != 2 {
		t.Errorf("%d samples, want 2", st.Samples)
	}
}

func TestRetryAfter(t *testing.T) {
	e := start(t)
	e.command("POST", "/faults", `{"status": 429, "retry_after": 7}`)
	resp, err := http.Post(e.url+"/api/v1/write", "application/x-protobuf", bytes.NewReader(messageV1(seq(1))))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 429 || resp.Header.Get("Retry-After") != "7" {
		t.Errorf("got status %d and Retry-After %q", resp.StatusCode, resp.Header.Get("Retry-After"))
	}
}

func TestBadFaults(t *testing.T) {
	e := start(t)
	f := func(fault, want string) {
		t.Helper()
		status, body := e.command("POST", "/faults", fault)
		if status != 400 || !strings.Contains(body, want) {
			t.Errorf("%s answers %d %q, want 400 and %q", fault, status, body, want)
		}
	}
	f(`{"status": 1}`, "status 1")
	f(`{"delay": "-1s"}`, "negative")
	f(`{"reset": true, "status": 500}`, "one of both")
	f(`{}`, "give status, delay, reset or half_close")
	f(`{"half_close": true, "status": 500}`, "one of both")
	f(`{"half_close": true, "reset": true}`, "one of both")
	f(`{"statuss": 500}`, "statuss")
	f(`{"delay": "soon"}`, "soon")
	f(`nothing`, "cannot read the fault")
}

func TestInvalidRequests(t *testing.T) {
	e := start(t)
	v1, v2 := "application/x-protobuf", "application/x-protobuf;proto=io.prometheus.write.v2.Request"
	invalid := int64(0)
	f := func(want int, contentType string, body []byte) {
		t.Helper()
		resp, err := http.Post(e.url+"/api/v1/write", contentType, bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%q as %s: got status %d, want %d", body, contentType, resp.StatusCode, want)
		}
		invalid++
		if got := e.stats().Invalid; got != invalid {
			t.Errorf("%d invalid requests were counted, want %d", got, invalid)
		}
	}
	f(400, v1, []byte("no snappy"))
	f(400, v1, []byte{0xff, 0xff, 0xff, 0xff, 0x0f}) // claims to have 4 GB
	f(400, v1, snappy.Encode(nil, []byte("\x0a\x7fshort")))
	f(400, v2, snappy.Encode(nil, []byte("\x2a\x04\x0a\x02\x05\x06"))) // references to symbols that do not exist
	f(400, v2, snappy.Encode(nil, []byte("\x2a\x03\x0a\x01\x05")))     // a name without a value
	f(400, v2, snappy.Encode(nil, []byte("\x2a\x02\x08\x05")))         // not packed
	f(415, "text/plain", nil)
	f(415, "application/x-protobuf;proto=other", nil)
}

func FuzzWrite(f *testing.F) {
	f.Add(messageV1(seq(1), row{"x", "y", 3}), false)
	f.Add(messageV2(seq(1), row{"x", "y", 3}), true)
	f.Fuzz(func(t *testing.T, message []byte, v2 bool) {
		s, err := sink.Listen("127.0.0.1:0")
		if err != nil {
			t.Skip(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		defer s.Serve(ctx) // closes the port
		r := httptest.NewRequest("POST", "/api/v1/write", bytes.NewReader(snappy.Encode(nil, message)))
		r.Header.Set("Content-Type", "application/x-protobuf")
		if v2 {
			r.Header.Set("Content-Type", "application/x-protobuf;proto=io.prometheus.write.v2.Request")
		}
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		// The sink may accept requests that Prometheus's own types cannot decode,
		// but it must accept all that they can decode.
		var unmarshal error
		if v2 {
			unmarshal = new(writev2.Request).Unmarshal(message)
		} else {
			unmarshal = new(prompb.WriteRequest).Unmarshal(message)
		}
		if w.Code == 500 || unmarshal == nil && w.Code/100 != 2 && !v2 {
			t.Fatalf("status %d %s; Prometheus says %v", w.Code, w.Body, unmarshal)
		}
	})
}
