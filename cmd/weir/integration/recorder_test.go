//go:build integration

package integration

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/snappy"
	"github.com/prometheus/prometheus/prompb"

	"github.com/weir-run/weir/engine/batch"
)

// listener is a test server that can simulate faults.
type listener struct {
	*httptest.Server

	mu       sync.Mutex
	requests int
	late     []string // samples that are older than an earlier one of their series and not duplicates
	// answer is called before a request is processed. If it returns true, it has
	// sent the response.
	answer func(request int, w http.ResponseWriter, r *http.Request) bool
}

func (l *listener) set(answer func(request int, w http.ResponseWriter, r *http.Request) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answer = answer
}

// body returns the body and number of a request. ok is false if the request needs
// no further processing.
func (l *listener) body(w http.ResponseWriter, req *http.Request) (body []byte, n int, ok bool) {
	l.mu.Lock()
	n, answer := l.requests, l.answer
	l.requests++
	l.mu.Unlock()
	if answer != nil && answer(n, w, req) {
		return nil, n, false
	}
	body, err := io.ReadAll(req.Body)
	return body, n, err == nil // false if the client disconnected
}

// tellLate fails the test if samples arrived out of order.
func (l *listener) tellLate(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, what := range l.late {
		if i == 5 {
			t.Errorf("and %d more", len(l.late)-i)
			break
		}
		t.Errorf("out of order: %s", what)
	}
}

// recorder is a remote write endpoint that records every sample in the order of
// arrival, so that a test detects errors that a database would hide.
type recorder struct {
	listener
	// text: it accepts batches in text form, as scripts send them, instead.
	text bool

	bySeries map[string]*recorded
	// reject returns true for requests to answer with 400. rejected are the
	// samples that were rejected and not accepted since.
	reject   func(request int) bool
	rejected map[rejectedSample]bool
}

// rejectedSample identifies a sample by its series and timestamp.
type rejectedSample struct {
	series string
	t      int64
}

// recorded is the data received for one series, without duplicates.
type recorded struct {
	labels map[string]string
	t      []int64
	v      []float64 // NaN for a staleness marker
	again  int       // number of duplicates
}

func startRecorder(t *testing.T) *recorder {
	r := &recorder{bySeries: map[string]*recorded{}, rejected: map[rejectedSample]bool{}}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *recorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, n, ok := r.body(w, req)
	if !ok {
		return
	}
	wr, err := r.decode(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	rejects := r.reject != nil && r.reject(n)
	var key strings.Builder
	for _, ts := range wr.Timeseries {
		key.Reset()
		for _, l := range ts.Labels {
			key.WriteString(l.Name)
			key.WriteByte(0xff)
			key.WriteString(l.Value)
			key.WriteByte(0xff)
		}
		for _, sample := range ts.Samples {
			if at := (rejectedSample{key.String(), sample.Timestamp}); rejects {
				r.rejected[at] = true
			} else {
				delete(r.rejected, at)
			}
		}
		if rejects {
			continue
		}
		s := r.bySeries[key.String()]
		if s == nil {
			s = &recorded{labels: map[string]string{}}
			for _, l := range ts.Labels {
				s.labels[l.Name] = l.Value
			}
			r.bySeries[key.String()] = s
		}
		for _, sample := range ts.Samples {
			if m := s.add(sample.Timestamp, sample.Value); m != "" {
				r.late = append(r.late, fmt.Sprintf("%v: %s", s.labels, m))
			}
		}
	}
	if rejects {
		http.Error(w, "no", http.StatusBadRequest)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// decode decodes the body of a request.
func (r *recorder) decode(body []byte) (*prompb.WriteRequest, error) {
	wr := &prompb.WriteRequest{}
	if !r.text {
		body, err := snappy.Decode(nil, body)
		if err == nil {
			err = wr.Unmarshal(body)
		}
		return wr, err
	}
	b, err := batch.ParseText(string(body), batch.TextOptions{})
	if err != nil {
		return nil, err
	}
	for i, s := range b.Series {
		ts := prompb.TimeSeries{Samples: []prompb.Sample{{Timestamp: b.T[i], Value: b.V[i]}}}
		for name, value := range s.Labels() {
			ts.Labels = append(ts.Labels, prompb.Label{Name: name, Value: value})
		}
		wr.Timeseries = append(wr.Timeseries, ts)
	}
	return wr, nil
}

func (s *recorded) add(t int64, v float64) (mistake string) {
	if batch.IsStale(v) {
		v = math.NaN()
	}
	n := len(s.t)
	if n == 0 || t > s.t[n-1] {
		s.t, s.v = append(s.t, t), append(s.v, v)
		return ""
	}
	for i := n - 1; i >= 0 && s.t[i] >= t; i-- {
		if s.t[i] == t && (s.v[i] == v || math.IsNaN(s.v[i]) && math.IsNaN(v)) {
			s.again++
			return ""
		}
	}
	return fmt.Sprintf("%v@%d comes after %v@%d", v, t, s.v[n-1], s.t[n-1])
}

// group returns the series with a name, by their labels except some.
func (r *recorder) group(name string, without ...string) map[string][]*recorded {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := map[string][]*recorded{}
	for _, s := range r.bySeries {
		if s.labels["__name__"] == name {
			k := series{Metric: s.labels}.key(without...)
			now := *s // samples arrive concurrently
			all[k] = append(all[k], &now)
		}
	}
	return all
}

// ended reports whether the last of a series is a staleness marker.
func (s *recorded) ended() bool { return math.IsNaN(s.v[len(s.v)-1]) }

// The result is the number of samples of the series that arrived while another one
// had not ended.
func beside(ss []*recorded) (n int) {
	type sample struct {
		t  int64
		v  float64
		of *recorded
	}
	var all []sample
	for _, s := range ss {
		for i := range s.t {
			all = append(all, sample{s.t[i], s.v[i], s})
		}
	}
	sort.Slice(all, func(i, j int) bool {
		a, b := all[i], all[j]
		return a.t < b.t || a.t == b.t && math.IsNaN(a.v) && !math.IsNaN(b.v)
	})
	alive := map[*recorded]bool{}
	for _, s := range all {
		if math.IsNaN(s.v) {
			delete(alive, s.of)
			continue
		}
		if len(alive) > 1 || len(alive) == 1 && !alive[s.of] {
			n++
		}
		alive[s.of] = true
	}
	return n
}

// scrapes checks the order of all samples. For each load_total, by its labels
// except some, it returns how often each scrape exists.
func (r *recorder) scrapes(t *testing.T, without ...string) map[string]map[int]int {
	t.Helper()
	r.tellLate(t)
	seen := map[string]map[int]int{}
	for k, ss := range r.group("load_total", without...) {
		seen[k] = map[int]int{}
		for _, s := range ss {
			for _, v := range s.v {
				if !math.IsNaN(v) {
					seen[k][int(v)]++
				}
			}
		}
	}
	return seen
}

// complete returns an error for series that lack scrapes from 1 to end, apart
// from as many as failed.
func (r *recorder) complete(t *testing.T, ofSeries, end int, without ...string) error {
	t.Helper()
	seen, group := r.scrapes(t, without...), r.group("load_total", without...)
	if len(seen) < ofSeries {
		return fmt.Errorf("%d series", len(seen))
	}
	for k, s := range seen {
		target, err := strconv.Atoi(group[k][0].labels["target"])
		if err != nil {
			return fatal{err}
		}
		var missing []int
		for n := 1; n <= end; n++ {
			if s[n] == 0 {
				missing = append(missing, n)
			}
		}
		if failed := r.failed(target); len(missing) > failed {
			return fmt.Errorf("%s lacks scrapes %v of %d, %d failed", k, missing, end, failed)
		}
	}
	return nil
}

// failed returns the number of failed scrapes of a target according to the
// received samples.
func (r *recorder) failed(target int) (n int) {
	for _, ss := range r.group("up") {
		for _, s := range ss {
			if s.labels["target"] != strconv.Itoa(target) {
				continue
			}
			for _, v := range s.v {
				if v == 0 {
					n++
				}
			}
		}
	}
	return n
}

// total returns the number of different samples that were received.
func (r *recorder) total() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.bySeries {
		n += len(s.t)
	}
	return n
}
