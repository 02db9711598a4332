//go:build integration

package integration

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sort"
	"testing"

	"github.com/grafana/loki/pkg/push"
	"github.com/klauspost/compress/snappy"
	"github.com/prometheus/prometheus/promql/parser"
)

// pushRecorder is an endpoint of Loki's push API that records every line in the
// order of arrival, so that a test detects errors that Loki would hide.
type pushRecorder struct {
	listener
	// counts: it only counts lines, including duplicates, and does not store
	// them.
	counts bool

	counted  int
	byStream map[string]*pushed
	again    int // number of duplicate lines with the same time
}

// pushed is the data received for one stream and tenant, without duplicates.
type pushed struct {
	labels  map[string]string
	entries []entry
	seen    map[string]bool // by time and line
}

func startPushRecorder(t *testing.T) *pushRecorder {
	r := &pushRecorder{byStream: map[string]*pushed{}}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *pushRecorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, _, ok := r.body(w, req)
	if !ok {
		return
	}
	var p push.PushRequest
	var err error
	if body, err = snappy.Decode(nil, body); err == nil {
		err = p.Unmarshal(body)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range p.Streams {
		if r.counted += len(s.Entries); r.counts {
			continue
		}
		if err := r.add(req.Header.Get("X-Scope-OrgID"), s); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	}
	w.WriteHeader(http.StatusNoContent)
}

func (r *pushRecorder) add(tenant string, s push.Stream) error {
	key := tenant + "\xff" + s.Labels
	at := r.byStream[key]
	if at == nil {
		labels, err := parser.NewParser(parser.Options{}).ParseMetric(s.Labels)
		if err != nil {
			return err
		}
		at = &pushed{labels: labels.Map(), seen: map[string]bool{}}
		if tenant != "" {
			at.labels["tenant"] = tenant
		}
		r.byStream[key] = at
	}
	for _, in := range s.Entries {
		e := entry{labels: at.labels, ns: in.Timestamp.UnixNano(), line: in.Line, metadata: map[string]string{}}
		for _, m := range in.StructuredMetadata {
			e.metadata[m.Name] = m.Value
		}
		id := fmt.Sprint(e.ns, " ", e.line)
		if at.seen[id] {
			r.again++
			continue
		}
		at.seen[id] = true
		if n := len(at.entries); n > 0 && e.ns < at.entries[n-1].ns {
			r.late = append(r.late, fmt.Sprintf("%s: %q", s.Labels, tail(e.line, 60)))
		}
		at.entries = append(at.entries, e)
	}
	return nil
}

// entries returns the received lines, per stream in the order of arrival.
func (r *pushRecorder) entries() (all []entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	keys := make([]string, 0, len(r.byStream))
	for k := range r.byStream {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		all = append(all, r.byStream[k].entries...)
	}
	return all
}

// count returns the number of different lines that were received.
func (r *pushRecorder) count() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.counts {
		return r.counted
	}
	for _, s := range r.byStream {
		n += len(s.entries)
	}
	return n
}

// endpoint returns an endpoint block for the recorder, with more arguments.
func (r *pushRecorder) endpoint(more ...string) string { return endpointBlock(r.URL, more...) }

// whole waits until all lines have arrived, each exactly once and in order.
func (r *pushRecorder) whole(t *testing.T, l *lines) {
	t.Helper()
	want := l.written()
	defer func() {
		if err := l.judge(r.entries(), nil); err != nil {
			t.Error(err)
		}
		r.tellLate(t)
	}()
	eventually(t, "every line arrives", func() error {
		if n := r.count(); n < want {
			return fmt.Errorf("%d of %d lines came", n, want)
		}
		return nil
	})
}
