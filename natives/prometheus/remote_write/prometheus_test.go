package remotewrite_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang/snappy"
	remoteapi "github.com/prometheus/client_golang/exp/api/remote"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage/remote"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"github.com/weir-run/weir/engine/batch"
)

// server is a real Prometheus write handler with a real TSDB, which can simulate
// faults.
type server struct {
	*httptest.Server
	db *tsdb.DB

	writing sync.Mutex // the TSDB has a data race when postings are read while they grow

	mu       sync.Mutex
	requests []request
	unique   map[string]bool                                          // samples that were received
	fault    func(w http.ResponseWriter, r *http.Request, n int) bool // returns true if it has answered request n itself
	arrived  chan struct{}                                            // closed and replaced after every request
}

// request is a received request, with or without a fault.
type request struct {
	header  http.Header
	message *prompb.WriteRequest // for 2.0, it contains only the series and samples
	v2      *writev2.Request     // nil for 1.0
	raw     []byte
}

// newServer returns a server of remote write 1.0.
func newServer(t testing.TB) *server {
	t.Helper()
	return newServerOf(t, 24*time.Hour, remoteapi.WriteV1MessageType)
}

// newServerOf returns a server that supports some messages and accepts
// out-of-order samples within a window.
func newServerOf(t testing.TB, window time.Duration, accepts ...remoteapi.WriteMessageType) *server {
	t.Helper()
	o := tsdb.DefaultOptions()
	o.OutOfOrderTimeWindow = window.Milliseconds()
	o.EnableExemplarStorage, o.MaxExemplars = true, 1000
	db, err := tsdb.Open(t.TempDir(), slog.New(slog.DiscardHandler), nil, o, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &server{db: db, arrived: make(chan struct{})}
	write := remote.NewWriteHandler(slog.New(slog.DiscardHandler), prometheus.NewRegistry(), db,
		accepts, true, false, false)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client closed the connection
		}
		got := request{header: r.Header.Clone(), raw: body}
		if err := got.decode(); err != nil {
			t.Errorf("cannot decode request: %v", err)
			http.Error(w, "", http.StatusBadRequest)
			return
		}
		s.mu.Lock()
		s.requests = append(s.requests, got)
		if s.unique != nil {
			for i := range got.message.Timeseries {
				ts := &got.message.Timeseries[i]
				s.unique[fmt.Sprint(ts.Labels, ts.Samples)] = true
			}
		}
		n, fault := len(s.requests), s.fault
		s.mu.Unlock()
		if fault == nil || !fault(w, r, n) {
			r.Body = io.NopCloser(bytes.NewReader(body))
			s.writing.Lock()
			write.ServeHTTP(w, r)
			s.writing.Unlock()
		}
		s.mu.Lock()
		close(s.arrived)
		s.arrived = make(chan struct{})
		s.mu.Unlock()
	}))
	t.Cleanup(func() {
		s.Close()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func (r *request) decode() error {
	raw, err := snappy.Decode(nil, r.raw)
	if err != nil {
		return err
	}
	r.message = new(prompb.WriteRequest)
	if !strings.Contains(r.header.Get("Content-Type"), "v2") {
		return r.message.Unmarshal(raw)
	}
	r.v2 = new(writev2.Request)
	if err := r.v2.Unmarshal(raw); err != nil {
		return err
	}
	b := labels.NewScratchBuilder(0)
	for _, ts := range r.v2.Timeseries {
		ls, err := ts.ToLabels(&b, r.v2.Symbols)
		if err != nil {
			return err
		}
		out := prompb.TimeSeries{Labels: prompb.FromLabels(ls, nil)}
		for _, s := range ts.Samples {
			out.Samples = append(out.Samples, prompb.Sample{Value: s.Value, Timestamp: s.Timestamp})
		}
		r.message.Timeseries = append(r.message.Timeseries, out)
	}
	return nil
}

func (s *server) setFault(f func(w http.ResponseWriter, r *http.Request, n int) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

// answer makes the server answer every request with a status.
func (s *server) answer(status int) {
	s.setFault(func(w http.ResponseWriter, _ *http.Request, _ int) bool {
		http.Error(w, "on purpose", status)
		return true
	})
}

func (s *server) heal() { s.setFault(nil) }

func (s *server) request(i int) request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests[i]
}

func (s *server) received() []request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// wait waits until ok returns true. It calls ok after every request.
func (s *server) wait(t testing.TB, ok func() bool) {
	t.Helper()
	timeout := time.NewTimer(5 * time.Minute) // the machine may be busy
	defer timeout.Stop()
	for {
		s.mu.Lock()
		arrived := s.arrived
		s.mu.Unlock()
		if ok() {
			return
		}
		select {
		case <-arrived:
		case <-timeout.C:
			t.Fatalf("what was waited for did not arrive; %d requests came", len(s.received()))
		}
	}
}

// samples returns all samples in the TSDB in text form, sorted, with values as
// bits.
func (s *server) samples(t testing.TB) []string {
	t.Helper()
	s.writing.Lock()
	defer s.writing.Unlock()
	q, err := s.db.Querier(math.MinInt64, math.MaxInt64)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	set := q.Select(context.Background(), true, nil, labels.MustNewMatcher(labels.MatchRegexp, "__name__", ".+"))
	var out []string
	for set.Next() {
		it := set.At().Iterator(nil)
		for typ := it.Next(); typ != chunkenc.ValNone; typ = it.Next() {
			switch typ {
			case chunkenc.ValFloat:
				at, v := it.At()
				out = append(out, row(set.At().Labels().String(), at, v))
			case chunkenc.ValHistogram:
				at, h := it.AtHistogram(nil)
				out = append(out, fmt.Sprintf("%s %d %s", set.At().Labels(), at, h))
			case chunkenc.ValFloatHistogram:
				at, h := it.AtFloatHistogram(nil)
				out = append(out, fmt.Sprintf("%s %d float %s", set.At().Labels(), at, h))
			}
		}
		if it.Err() != nil {
			t.Fatal(it.Err())
		}
	}
	if set.Err() != nil {
		t.Fatal(set.Err())
	}
	slices.Sort(out)
	return out
}

func row(series string, t int64, v float64) string {
	return fmt.Sprintf("%s %d %#016x", series, t, math.Float64bits(v))
}

// rows returns the result of samples after the batches have arrived.
func rows(bs ...*batch.Metrics) []string {
	var out []string
	for _, b := range bs {
		hs := map[int]batch.Histogram{}
		for _, h := range b.Histograms {
			hs[h.Row] = h
		}
		for i, s := range b.Series {
			l := s.PromLabels().String()
			switch h := hs[i]; {
			case h.Int != nil:
				out = append(out, fmt.Sprintf("%s %d %s", l, b.T[i], h.Int))
			case h.Float != nil:
				out = append(out, fmt.Sprintf("%s %d float %s", l, b.T[i], h.Float))
			default:
				out = append(out, row(l, b.T[i], b.V[i]))
			}
		}
	}
	slices.Sort(out)
	return out
}

// query returns the result of an instant query in text.
func (s *server) query(t testing.TB, expr string, ms int64) string {
	t.Helper()
	s.writing.Lock()
	defer s.writing.Unlock()
	engine := promql.NewEngine(promql.EngineOpts{
		MaxSamples: 1e7, Timeout: time.Minute, LookbackDelta: 5 * time.Minute, Parser: parser.NewParser(parser.Options{}),
	})
	defer engine.Close()
	q, err := engine.NewInstantQuery(context.Background(), s.db, nil, expr, time.UnixMilli(ms))
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	res := q.Exec(context.Background())
	if res.Err != nil {
		t.Fatal(res.Err)
	}
	return strings.TrimSpace(res.String())
}

// count returns the number of samples in the TSDB.
func (s *server) count(t testing.TB) int { return len(s.samples(t)) }

// sent returns the number of samples in all requests, including repetitions.
func (s *server) sent() (n int) {
	for _, r := range s.received() {
		n += len(r.message.Timeseries)
	}
	return n
}
