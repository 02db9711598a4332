package write_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/google/go-cmp/cmp"
	"github.com/grafana/alloy/syntax"
	lokipush "github.com/grafana/loki/pkg/push"
	"github.com/prometheus/prometheus/model/labels"
	"go.uber.org/goleak"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/natives/loki/write"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("WEIR_TEST_LOKI_WRITE"); dir != "" {
		sendForever(dir, os.Getenv("WEIR_TEST_URL"))
		return
	}
	goleak.VerifyTestMain(m)
}

const (
	id = "loki.write.test"
	t0 = 1735689600000000000 // 2025-01-01
)

// server accepts push requests and decodes them with Loki's own code.
type server struct {
	*httptest.Server

	mu       sync.Mutex
	requests []request
	lines    []string // accepted lines, in order
	unique   map[string]bool
	fault    func(w http.ResponseWriter, r request, n int) bool // returns true if it has sent the response
	arrived  chan struct{}                                      // closed and replaced
}

type request struct {
	*http.Request
	body   []byte
	tenant string
	push   lokipush.PushRequest
}

// rows returns the lines of the request as text.
func (r *request) rows() (rows []string) {
	for _, s := range r.push.Streams {
		for _, e := range s.Entries {
			rows = append(rows, row(r.tenant, s.Labels, e.Timestamp.UnixNano(), e.Line, e.StructuredMetadata))
		}
	}
	return rows
}

func row(tenant, labels string, t int64, line string, meta lokipush.LabelsAdapter) string {
	if len(line) > 100 {
		line = fmt.Sprintf("%s… (%d)", line[:20], len(line))
	}
	text := fmt.Sprintf("%s %s %d %s", tenant, labels, t-t0, line)
	if len(meta) > 0 {
		text += fmt.Sprint(" ", meta)
	}
	return strings.TrimSpace(text)
}

func newServer(t testing.TB) *server {
	s := &server{arrived: make(chan struct{}), unique: map[string]bool{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client disconnected
		}
		got := request{Request: r, body: body, tenant: r.Header.Get("X-Scope-OrgID")}
		raw, err := snappy.Decode(nil, body)
		if err == nil {
			err = got.push.Unmarshal(raw)
		}
		if err != nil {
			t.Errorf("cannot read a request: %v", err)
		}
		s.mu.Lock()
		s.requests = append(s.requests, got)
		n, fault := len(s.requests), s.fault
		s.mu.Unlock()
		if fault == nil || !fault(w, got, n) {
			s.acceptRows(got.rows()...)
			w.WriteHeader(http.StatusNoContent)
		}
		s.mu.Lock()
		close(s.arrived)
		s.arrived = make(chan struct{})
		s.mu.Unlock()
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) acceptRows(rows ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, rows...)
	for _, r := range rows {
		s.unique[r] = true
	}
}

func (s *server) setFault(f func(w http.ResponseWriter, r request, n int) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

// answer makes the server answer every request with a status and a message.
func (s *server) answer(status int, message string) {
	s.setFault(func(w http.ResponseWriter, _ request, _ int) bool {
		http.Error(w, message, status)
		return true
	})
}

func (s *server) heal() { s.setFault(nil) }

func (s *server) received() []request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// rows returns the accepted lines in the order of arrival.
func (s *server) rows() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.lines)
}

func (s *server) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.unique)
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
			t.Fatalf("what was waited for did not come; %d requests, %d lines", len(s.received()), s.count())
		}
	}
}

func decode(t testing.TB, text string) *write.Arguments {
	t.Helper()
	var a write.Arguments
	if err := syntax.Unmarshal([]byte(text), &a); err != nil {
		t.Fatal(err)
	}
	return &a
}

// node is a running component. It uses the real clock unless the test sets
// another one.
type node struct {
	*componenttest.Node
	c    *write.Component
	stop func()

	replace func() // stop because a successor runs
}

func start(t testing.TB, n *componenttest.Node, c clock.Clock, text string) *node {
	t.Helper()
	o := n.Options()
	if c != nil {
		o.Clock = c
	}
	built, err := write.New(o, decode(t, text), n.Previous)
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
	return start(t, componenttest.New(t, id), clock.System{}, text)
}

func (n *node) accept(t testing.TB, bs ...*batch.Logs) {
	t.Helper()
	for _, b := range bs {
		if err := n.c.ConsumeLogs(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
}

// endpoint returns an endpoint that sends immediately and has a long timeout,
// unless more sets other values: lines that are sent again because the machine is
// busy would arrive twice.
func endpoint(url, more string) string {
	if !strings.Contains(more, "remote_timeout") {
		more = "remote_timeout = \"5m\"\n" + more
	}
	if !strings.Contains(more, "batch_wait") {
		more = "batch_wait = \"0s\"\n" + more
	}
	if !strings.Contains(more, "_backoff_period") {
		more = "min_backoff_period = \"10ms\"\nmax_backoff_period = \"50ms\"\n" + more
	}
	return fmt.Sprintf("endpoint {\n url = %q\n%s\n}\n", url, more)
}

func stream(pairs ...string) *batch.Stream { return batch.FromLabels(labels.FromStrings(pairs...)) }

// lines returns a batch of n lines of one stream.
func lines(source uint64, s *batch.Stream, n int, t int64) *batch.Logs {
	b := &batch.Logs{Source: source}
	for i := range n {
		b.Stream, b.T, b.Line = append(b.Stream, s), append(b.T, t+int64(i)), append(b.Line, fmt.Sprint("line ", i))
	}
	return b
}

// long makes the lines of a batch so long that it is written immediately.
func long(b *batch.Logs) *batch.Logs {
	for i := range b.Line {
		b.Line[i] += strings.Repeat(" "+b.Line[i], 40<<10/len(b.Line)/(1+len(b.Line[i]))+1)
	}
	return b
}

// rows returns batches as they arrive.
func rows(bs ...*batch.Logs) (out []string) {
	for _, b := range bs {
		for i, s := range b.Stream {
			var ls []string
			for n, v := range s.Labels() {
				if !strings.HasPrefix(n, "__") {
					ls = append(ls, fmt.Sprintf("%s=%q", n, v))
				}
			}
			var meta lokipush.LabelsAdapter
			for _, l := range b.MetaOf(i) {
				meta = append(meta, lokipush.LabelAdapter{Name: l.Name, Value: l.Value})
			}
			out = append(out, row(s.Label("__tenant_id__"), "{"+strings.Join(ls, ", ")+"}", b.T[i], b.Line[i], meta))
		}
	}
	return out
}

func sorted(rows []string) []string {
	rows = slices.Clone(rows)
	slices.Sort(rows)
	return rows
}

func diff(t testing.TB, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// metric returns the value of a metric line, such as name{a="b"}, or "".
func (n *node) metric(t testing.TB, name, reason string) float64 {
	t.Helper()
	fs, err := n.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	v := 0.0
	for _, f := range fs {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.Metric {
			ok := reason == ""
			for _, l := range m.Label {
				ok = ok || l.GetValue() == reason
			}
			if ok {
				v += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return v
}
