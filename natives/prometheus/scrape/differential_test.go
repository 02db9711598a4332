package scrape

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/grafana/alloy/syntax"
	"github.com/prometheus/client_golang/prometheus"
	commonconfig "github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/scrape"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/util/logging"
	"go.uber.org/goleak"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/service"
)

func TestMain(m *testing.M) {
	// Prometheus looks up the name of its host. The first look-up creates
	// channels that all later ones use, so it must not happen in a synctest
	// bubble.
	_, _ = net.LookupIP("localhost")
	_, _ = net.LookupAddr("127.0.0.1")
	goleak.VerifyTestMain(m)
}

// answer is the response of the target to one scrape.
type answer struct {
	status      int // 0 means 200
	contentType string
	body        string
	gzip        bool
	garble      func([]byte) []byte // changes the bytes on the wire, after compression
	// silent closes the connection without a response.
	silent bool
	// hang sends nothing until the scraper closes the connection.
	hang bool
	// reset closes the connection after half of the body.
	reset bool
	// to is the location of a redirect.
	to string
	// live, if not nil, creates the answer when it is requested.
	live func() answer
}

const (
	textType  = "text/plain; version=0.0.4; charset=utf-8"
	omType    = "application/openmetrics-text; version=1.0.0; charset=utf-8"
	protoType = "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
)

func text(body string) answer { return answer{contentType: textType, body: body} }
func om(body string) answer   { return answer{contentType: omType, body: body + "# EOF\n"} }

// corpus returns a body of testdata as an answer.
func corpus(t testing.TB, name string) answer {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	a := answer{contentType: textType, body: string(b)}
	if strings.HasSuffix(name, ".om.txt") {
		a.contentType = omType
	}
	return a
}

// sample is one sample as it was forwarded; T is 0 for the time of the scrape.
type sample struct {
	Series    string
	Own       bool  // has a timestamp other than the time of the scrape
	T         int64 // that timestamp
	V         string
	Start     int64
	Histogram string
	Exemplars []string
	Meta      string
}

func formatValue(v float64) string {
	if batch.IsStale(v) {
		return "stale"
	}
	return fmt.Sprintf("%v %x", v, math.Float64bits(v))
}

// tidy makes scrapes comparable: it sorts markers, whose order is not defined,
// and omits values that a clock measures.
func tidy(ss []sample) []sample {
	for i := range ss {
		if ss[i].V == "stale" {
			ss[i].Meta = ""
		} else if strings.Contains(ss[i].Series, `__name__="scrape_duration_seconds"`) {
			ss[i].V = ""
		}
	}
	for i := 0; i < len(ss); i++ {
		j := i
		for j < len(ss) && ss[j].V == "stale" {
			j++
		}
		slices.SortFunc(ss[i:j], func(a, b sample) int { return strings.Compare(a.Series, b.Series) })
		i = max(i, j-1)
	}
	return ss
}

// world has a target in memory that gives the same answers to each scraper.
type world struct {
	answers []answer
	conns   chan net.Conn
	server  *http.Server

	mu      sync.Mutex
	asked   map[string]int           // number of answers by scraper
	headers map[string][]http.Header // of the requests, by scraper
}

const targetAddress = "target.test:80"

func newWorld(answers []answer) *world {
	w := &world{answers: answers, conns: make(chan net.Conn), asked: map[string]int{}, headers: map[string][]http.Header{}}
	w.server = &http.Server{Handler: w, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	go w.server.Serve(w)
	return w
}

// Accept, Close and Addr implement net.Listener.
func (w *world) Accept() (net.Conn, error) {
	c, ok := <-w.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}
func (w *world) Close() error   { close(w.conns); return nil }
func (w *world) Addr() net.Addr { return &net.TCPAddr{} }

func (w *world) dial(context.Context, string, string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	w.conns <- theirs
	return ours, nil
}

func (w *world) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/elsewhere" {
		rw.Header().Set("Content-Type", textType)
		io.WriteString(rw, "elsewhere 1\n")
		return
	}
	who := strings.ToLower(strings.SplitN(r.UserAgent(), "/", 2)[0])
	w.mu.Lock()
	i := w.asked[who]
	w.asked[who]++
	w.headers[who] = append(w.headers[who], r.Header)
	w.mu.Unlock()
	if i >= len(w.answers) {
		return
	}
	a := w.answers[i]
	if a.live != nil {
		a = a.live()
	}
	switch {
	case a.silent:
		panic(http.ErrAbortHandler)
	case a.hang:
		<-r.Context().Done()
		return
	case a.to != "":
		http.Redirect(rw, r, a.to, http.StatusFound)
		return
	}
	rw.Header()["Content-Type"] = []string{a.contentType}
	body := []byte(a.body)
	if a.gzip {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		z.Write(body)
		z.Close()
		body = b.Bytes()
		rw.Header().Set("Content-Encoding", "gzip")
	}
	if a.garble != nil {
		body = a.garble(body)
	}
	if a.reset {
		rw.Header().Set("Content-Length", fmt.Sprint(len(body)))
		rw.Write(body[:len(body)/2])
		rw.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	if a.status != 0 {
		rw.WriteHeader(a.status)
	}
	rw.Write(body)
}

// collector is a consumer, and a storage, that records the samples by scrape.
type collector struct {
	mu      sync.Mutex
	scrapes [][]sample
	batches []*batch.Metrics
	refs    map[string]storage.SeriesRef
	latest  map[string]int64 // Unix ms, by series
	// exemplars is the storage with which Prometheus decides which exemplars it
	// keeps.
	exemplars *tsdb.CircularExemplarStorage
}

// newCollector returns a collector for Prometheus.
func newCollector(t testing.TB) *collector {
	t.Helper()
	es, err := tsdb.NewCircularExemplarStorage(10_000, tsdb.NewExemplarMetrics(prometheus.NewRegistry()), 0)
	if err != nil {
		t.Fatal(err)
	}
	return &collector{refs: map[string]storage.SeriesRef{}, latest: map[string]int64{}, exemplars: es.(*tsdb.CircularExemplarStorage)}
}

func (c *collector) ConsumeMetrics(_ context.Context, b *batch.Metrics) error {
	var out []sample
	now := b.T[len(b.T)-1]
	var e, h int
	for i, s := range b.Series {
		m := sample{Series: s.PromLabels().String(), V: formatValue(b.V[i])}
		if b.T[i] != now {
			m.Own, m.T = true, b.T[i]
		}
		if meta := s.Meta(); meta != nil {
			m.Meta = fmt.Sprintf("%s %q %q", meta.Type, meta.Unit, meta.Help)
		}
		for ; h < len(b.Histograms) && b.Histograms[h].Row == i; h++ {
			if g := b.Histograms[h]; g.Int != nil {
				m.Histogram = fmt.Sprintf("%d %s", g.Int.Schema, g.Int)
				m.V = formatValue(0)
			} else {
				m.Histogram = fmt.Sprintf("%d %s", g.Float.Schema, g.Float)
				m.V = formatValue(0)
			}
		}
		for ; e < len(b.Exemplars) && b.Exemplars[e].Row == i; e++ {
			x := b.Exemplars[e]
			t := x.T
			if !x.HasT {
				t = b.T[i]
			}
			bl := labels.NewScratchBuilder(0)
			for _, l := range x.Labels {
				bl.Add(l.Name, l.Value)
			}
			if !x.HasT && b.T[i] == now {
				t = 0
			}
			m.Exemplars = append(m.Exemplars, fmt.Sprintf("%s %v %v %d", bl.Labels(), x.Value, x.HasT, t))
		}
		out = append(out, m)
	}
	for _, st := range b.Starts {
		out[st.Row].Start = st.T
	}
	if e != len(b.Exemplars) || h != len(b.Histograms) {
		return fmt.Errorf("sparse columns are out of order")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.scrapes = append(c.scrapes, tidy(out))
	c.batches = append(c.batches, b)
	return nil
}

func (c *collector) AppenderV2(context.Context) storage.AppenderV2 { return &appender{c: c} }

// appender behaves like an appender of the TSDB, with one difference: the scrape
// continues after an invalid histogram.
type appender struct {
	c         *collector
	rows      []sample
	ts        []int64
	now       int64
	series    []labels.Labels
	exemplars [][]exemplar.Exemplar
}

func (a *appender) Append(ref storage.SeriesRef, ls labels.Labels, st, t int64, v float64, h *histogram.Histogram, fh *histogram.FloatHistogram, opts storage.AppendV2Options) (storage.SeriesRef, error) {
	if name, twice := ls.HasDuplicateLabelNames(); twice { // like the TSDB and the agent's storage
		return 0, fmt.Errorf("label name %q is not unique", name)
	}
	m := sample{Series: ls.String(), V: formatValue(v), Start: st}
	var invalid error
	switch {
	case h != nil:
		m.Histogram = fmt.Sprintf("%d %s", h.Schema, h)
		v, invalid = h.Sum, h.Validate()
	case fh != nil:
		m.Histogram = fmt.Sprintf("%d %s", fh.Schema, fh)
		v, invalid = fh.Sum, fh.Validate()
	}
	if invalid != nil {
		return 0, storage.ErrOutOfBounds
	}
	if opts.Metadata.Type != "" || opts.Metadata.Help != "" || opts.Metadata.Unit != "" {
		m.Meta = fmt.Sprintf("%s %q %q", opts.Metadata.Type, opts.Metadata.Unit, opts.Metadata.Help)
	}
	a.c.mu.Lock()
	defer a.c.mu.Unlock()
	key := ls.String()
	if opts.RejectOutOfOrder && t <= a.c.latest[key] { // like the TSDB
		return 0, storage.ErrOutOfOrderSample
	}
	a.c.latest[key] = max(a.c.latest[key], t)
	a.rows = append(a.rows, m)
	a.ts = append(a.ts, t)
	a.series = append(a.series, ls)
	a.exemplars = append(a.exemplars, nil)
	if !batch.IsStale(v) {
		a.exemplars[len(a.rows)-1] = slices.Clone(opts.Exemplars)
	}
	a.now = t // the report comes last
	if a.c.refs[key] == 0 {
		a.c.refs[key] = storage.SeriesRef(len(a.c.refs) + 1)
	}
	return a.c.refs[key], nil
}

func (a *appender) Commit() error {
	a.c.mu.Lock()
	defer a.c.mu.Unlock()
	for i := range a.rows {
		if a.ts[i] != a.now {
			a.rows[i].Own, a.rows[i].T = true, a.ts[i]
		}
		for _, e := range a.exemplars[i] {
			e.Labels = e.Labels.WithoutEmpty()
			if !sendable(e.Labels) || a.c.exemplars.ValidateExemplar(a.series[i], e) != nil {
				continue
			}
			if err := a.c.exemplars.AddExemplar(a.series[i], e); err != nil {
				return err
			}
			t := e.Ts
			if !e.HasTs && t == a.now {
				t = 0
			}
			a.rows[i].Exemplars = append(a.rows[i].Exemplars, fmt.Sprintf("%s %v %v %d", e.Labels, e.Value, e.HasTs, t))
		}
	}
	a.c.scrapes = append(a.c.scrapes, tidy(a.rows))
	return nil
}

func (a *appender) Rollback() error { return nil }

// sendable reports whether the labels of an exemplar can be sent. In addition to
// the checks of the TSDB, names must be unique, as in the agent, and all text
// must be UTF-8.
func sendable(ls labels.Labels) bool {
	_, twice := ls.HasDuplicateLabelNames()
	return !twice && ls.Validate(func(l labels.Label) error {
		if l.Name == "" || !utf8.ValidString(l.Name) || !utf8.ValidString(l.Value) {
			return errors.New("cannot be sent")
		}
		return nil
	}) == nil
}

func decode(t testing.TB, text string) *Arguments {
	t.Helper()
	var a Arguments
	if !strings.Contains(text, "targets") {
		text += "\ntargets = [{ __address__ = \"" + targetAddress + "\" }]"
	}
	if !strings.Contains(text, "forward_to") {
		text += "\nforward_to = []"
	}
	if err := syntax.Unmarshal([]byte(text), &a); err != nil {
		t.Fatal(err)
	}
	return &a
}

// byManager lets Prometheus scrape the world n times.
func byManager(t testing.TB, w *world, a *Arguments, n int) [][]sample {
	t.Helper()
	c := newCollector(t)
	manage(t, w, a, n, c)
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.scrapes) < n {
		t.Fatalf("Prometheus scraped %d times, want %d", len(c.scrapes), n)
	}
	return c.scrapes[:n]
}

// manage lets Prometheus scrape the world n times into a storage.
func manage(t testing.TB, w *world, a *Arguments, n int, into storage.AppendableV2) {
	t.Helper()
	m := startManager(t, w, a, into)
	time.Sleep(time.Duration(n+1) * a.ScrapeInterval)
	m.stop()
}

// manager is a running scrape manager of Prometheus.
type manager struct {
	*scrape.Manager
	sets chan map[string][]*targetgroup.Group
	done chan struct{}
}

// startManager lets Prometheus scrape the world into a storage until stop is
// called.
func startManager(t testing.TB, w *world, a *Arguments, into storage.AppendableV2) *manager {
	t.Helper()
	m, err := scrape.NewManager(&scrape.Options{
		AppendMetadata: true, DiscoveryReloadOnStartup: true, EnableTypeAndUnitLabels: a.EnableTypeAndUnitLabels,
		EnableStartTimestampZeroIngestion: a.StartTimestampZeroIngestion,
		HTTPClientOptions:                 []commonconfig.HTTPClientOption{commonconfig.WithDialContextFunc(w.dial)},
	}, slog.New(slog.DiscardHandler), func(string) (*logging.JSONFileLogger, error) { return nil, nil }, nil, into, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	run := &manager{m, make(chan map[string][]*targetgroup.Group, 1), make(chan struct{})}
	run.apply(t, a)
	go func() { defer close(run.done); _ = m.Run(run.sets) }()
	return run
}

// apply gives the manager a configuration and its targets. If a is nil, the
// configuration has no jobs.
func (m *manager) apply(t testing.TB, a *Arguments) {
	t.Helper()
	cfg, err := config.Load("", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	sets := map[string][]*targetgroup.Group{}
	if a != nil {
		sc := a.config("prometheus.scrape.test")
		hc, err := a.Client.Config()
		if err != nil {
			t.Fatal(err)
		}
		sc.HTTPClientConfig = *hc
		cfg.ScrapeConfigs = []*config.ScrapeConfig{sc}
		g := &targetgroup.Group{Source: "x"}
		for _, tg := range a.Targets {
			set := model.LabelSet{}
			for n, v := range tg {
				set[model.LabelName(n)] = model.LabelValue(v)
			}
			g.Targets = append(g.Targets, set)
		}
		sets[sc.JobName] = []*targetgroup.Group{g}
	}
	if err := m.ApplyConfig(cfg); err != nil {
		t.Fatal(err)
	}
	m.sets <- sets
}

func (m *manager) stop() {
	m.Stop()
	<-m.done
}

// byWeir lets weir scrape the world n times.
func byWeir(t testing.TB, w *world, a *Arguments, n int) [][]sample {
	t.Helper()
	c := new(collector)
	_, stop := runWeir(t, w, a, c)
	time.Sleep(time.Duration(n+1) * a.ScrapeInterval)
	stop()
	if len(c.scrapes) < n {
		t.Fatalf("weir scraped %d times, want %d", len(c.scrapes), n)
	}
	return c.scrapes[:n]
}

// runWeir lets weir scrape the world until stop is called.
func runWeir(t testing.TB, w *world, a *Arguments, c *collector) (_ *Component, stop func()) {
	t.Helper()
	comp, end := startWeir(t, w, a, c)
	return comp, func() { end(nil) }
}

// startWeir lets weir scrape the world until end is called with the cause.
func startWeir(t testing.TB, w *world, a *Arguments, c *collector) (_ *Component, end func(cause error)) {
	t.Helper()
	recv := flow.NewReceiver("sink", batch.SignalMetrics, nil, nil)
	recv.Set(c)
	a.ForwardTo = []*flow.Receiver{recv}
	comp, err := build(component.Options{
		ID: "prometheus.scrape.test", Logger: slog.New(slog.DiscardHandler), Registerer: prometheus.NewRegistry(),
		Clock: clock.System{}, Stats: new(flow.Stats), Health: func(component.Health) {}, UserAgent: "weir/test",
		Service: func(string) (any, error) {
			return service.HTTPData{MemoryAddress: targetAddress, DialContext: w.dial}, nil
		},
	}, a, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error)
	go func() { done <- comp.Run(ctx) }()
	return comp, func(cause error) {
		cancel(cause)
		if err := <-done; err != nil {
			t.Errorf("Run ended with %v", err)
		}
	}
}

// compare lets both scrape the same answers and compares the results.
func compare(t *testing.T, args string, answers ...answer) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(answers)
		defer func() {
			w.server.Close()
			synctest.Wait()
		}()
		want := byManager(t, w, decode(t, args), len(answers))
		got := byWeir(t, w, decode(t, args), len(answers))
		for i := range answers {
			if d := cmp.Diff(want[i], got[i]); d != "" {
				t.Errorf("scrape %d (-Prometheus +weir)\n%s", i+1, d)
			}
		}
		for i := range min(len(w.headers["prometheus"]), len(w.headers["weir"])) {
			theirs, ours := w.headers["prometheus"][i], w.headers["weir"][i]
			for _, h := range []http.Header{theirs, ours} {
				h.Del("User-Agent")
				h.Del("Traceparent")
			}
			if d := cmp.Diff(theirs, ours); d != "" {
				t.Errorf("request %d (-Prometheus +weir)\n%s", i+1, d)
			}
		}
	})
}
