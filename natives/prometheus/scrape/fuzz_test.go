package scrape

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/service"
)

// realBodies are the bodies of testdata.
var realBodies = []string{
	"node_exporter.txt", "alltypes.txt", "prometheus.txt", "vmagent.txt", "kube_state.txt",
	"exemplars.om.txt", "histogram.om.txt", "created.om.txt", "timestamps.om.txt",
}

// shortened returns the first lines of a body in testdata, with the EOF line.
func shortened(t testing.TB, name string, n int) []byte {
	a := corpus(t, name)
	ls := strings.SplitAfter(a.body, "\n")
	short := strings.Join(ls[:min(n, len(ls))], "")
	if a.contentType == omType && !strings.HasSuffix(short, "# EOF\n") {
		short += "# EOF\n"
	}
	return []byte(short)
}

// bytesPlan is a plan with one change: del bytes are replaced by ins. The body is
// then shown twice, and the change is undone.
func bytesPlan(at, del int, ins string) []byte {
	op := slices.IndexFunc(operations, func(o operation) bool { return o.name == "bytes" })
	plan := append([]byte{0, byte(op), byte(at >> 8), byte(at), byte(del), byte(len(ins))}, ins...)
	return append(plan, 1, 0, 15, 3)
}

func addSeeds(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 1))
	for i, name := range realBodies {
		f.Add(strings.HasSuffix(name, ".om.txt"), uint8(i), shortened(f, name, 30), randomPlan(r))
	}
	for i, v := range valueSeeds {
		f.Add(i%2 == 0, uint8(i), []byte("# TYPE a counter\na{b=\"c\"} 1\na{b=\"d\"} "+v+" 5\nb 1\n# EOF\n"), append(bytesPlan(28, 1, "2"), bytesPlan(28, 1, v)...))
	}
	f.Add(true, uint8(1), []byte("# TYPE h histogram\nh_bucket{le=\"1\"} 1 # {a=\"b\"} 1\nc 1\nd 2\ne 3\nf 4\n# EOF\n"), append(bytesPlan(60, 1, "9"), bytesPlan(43, 1, "3")...))
	f.Add(false, uint8(2), []byte("a 1 1000\na 2\na 3\nb 1\n"), append(bytesPlan(4, 4, ""), bytesPlan(2, 1, "\n ")...))
}

// fuzzArgs are the settings from which a fuzz test chooses.
var fuzzArgs = []string{
	"", "honor_timestamps = false", "track_timestamps_staleness = true", "sample_limit = 20", "honor_labels = true",
	"label_limit = 4", `metric_name_validation_scheme = "utf8"`, "honor_metadata = false", `scrape_fallback_protocol = ""`,
	"start_timestamp_zero_ingestion = true", "enable_type_and_unit_labels = true", "convert_classic_histograms_to_nhcb = true",
	"sample_limit = 25\ntrack_timestamps_staleness = true", "label_value_length_limit = 40",
}

// taken is the result of an intake for a body.
type taken struct {
	Err                                           string
	Total, Added, SeriesAdded, Repeated, TooAhead int
	Rows                                          []sample
}

// tags are the labels of the target of fuzz tests.
var tags = []labels.Label{{Name: "instance", Value: "i"}, {Name: "job", Value: "j"}}

// newIntake returns an intake as a loop creates it.
func newIntake(set *settings, c *cache, now int64) *intake {
	cfg := set.cfg
	t := &target{native: cfg.ScrapeNativeHistogramsEnabled(), nhcb: cfg.ConvertClassicHistogramsToNHCBEnabled(), classic: cfg.AlwaysScrapeClassicHistogramsEnabled()}
	return &intake{set: set, opts: t.parserOptions(set), tags: tags, c: c, now: now, maxT: now + maxAhead, after: now - 1000}
}

// scrapeInto scrapes a body into a cache as a loop does. It returns the result
// and the handles of the rows.
func scrapeInto(set *settings, c *cache, s show, now int64) (out taken, handles []*batch.Series) {
	in := newIntake(set, c, now)
	if s.body == nil {
		in.empty()
	} else if err := in.body(append(make([]byte, 0, len(s.body)+1), s.body...), s.contentType()); err != nil {
		out = taken{Err: err.Error(), Total: in.total, Added: in.added, SeriesAdded: in.seriesAdded}
		in = newIntake(set, c, now)
		in.empty()
	} else {
		out = taken{Total: in.total, Added: in.added, SeriesAdded: in.seriesAdded, Repeated: in.repeated, TooAhead: in.ahead}
	}
	if in.wholly {
		in.rows.series = c.columns(set, nil)
	}
	// The collector reads the time of the last row, and there may be no row.
	end := batch.FromLabels(labels.FromStrings("end", "of rows"))
	defer end.Release()
	handles = in.rows.series
	in.rows.add(end, now, 0)
	var k collector
	if err := k.ConsumeMetrics(context.Background(), in.rows.batch(1)); err != nil {
		out.Err += err.Error()
	}
	out.Rows = k.scrapes[0]
	for _, h := range c.gone {
		h.Release()
	}
	c.gone = c.gone[:0]
	return out, handles
}

// pairs maps the handles of one cache to those of another.
type pairs map[*batch.Series]*batch.Series

// pair reports whether both caches always use the same handles for the same
// series.
func (p pairs) pair(as, bs []*batch.Series) bool {
	for i := range as {
		for a, b := range map[*batch.Series]*batch.Series{as[i]: bs[i], bs[i]: as[i]} {
			if was := p[a]; was != nil && was != b {
				return false
			}
			p[a] = b
		}
	}
	return len(as) == len(bs)
}

func newTestSettings(t testing.TB, args string) *settings {
	t.Helper()
	set, err := newSettings(component.Options{ID: "x", Logger: slog.New(slog.DiscardHandler)}, decode(t, args), service.HTTPData{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// play compares the results of a history with and without layouts: the rows and
// the handles must be the same. It returns the number of scrapes that used a
// layout.
func play(t *testing.T, args string, shows []show) (replayed int) {
	t.Helper()
	set := newTestSettings(t, args)
	with, without, same := newCache(), newCache(), pairs{}
	for i, s := range shows {
		now := int64(1e12) + int64(i)*1000
		if s.forget {
			with.forget()
			without.forget()
		}
		without.dropLayout()
		if with.settled {
			replayed++
		}
		got, gotHandles := scrapeInto(set, with, s, now)
		want, wantHandles := scrapeInto(set, without, s, now)
		fail := func(what string) {
			t.Helper()
			t.Errorf("%s: scrape %d of %d: %s", args, i+1, len(shows), what)
			for j := max(0, i-4); j <= i; j++ {
				t.Logf("%d: %s, openmetrics=%t: %.1000q", j+1, shows[j].what, shows[j].om, shows[j].body)
			}
			t.FailNow()
		}
		if d := cmp.Diff(want, got); d != "" {
			fail("(-textparse +layout)\n" + d)
		}
		// The order of markers is not defined.
		if n := len(got.Rows); n == len(gotHandles)+1 && !slices.ContainsFunc(got.Rows, func(s sample) bool { return s.V == "stale" }) && !same.pair(wantHandles, gotHandles) {
			fail("a series has another handle than before")
		}
		if s.patient == 0 {
			with.pack()
		}
		if d := cmp.Diff(texts(without), texts(with)); d != "" {
			fail("lines (-textparse +layout)\n" + d)
		}
		consistent(t, with)
	}
	return replayed
}

// FuzzLayout compares the results of histories with and without layouts.
func FuzzLayout(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, openMetrics bool, args uint8, body, plan []byte) {
		play(t, fuzzArgs[int(args)%len(fuzzArgs)], history(openMetrics, body, plan))
	})
}

// TestHistories plays histories of real bodies from which FuzzLayout can start.
func TestHistories(t *testing.T) {
	shows, replayed := 0, 0
	for seed := range uint64(250) {
		r := rand.New(rand.NewPCG(seed, 3))
		name := realBodies[r.IntN(len(realBodies))]
		h := history(strings.HasSuffix(name, ".om.txt"), shortened(t, name, 20+r.IntN(100)), randomPlan(r))
		args := ""
		if seed%2 == 1 {
			args = fuzzArgs[r.IntN(len(fuzzArgs))]
		}
		shows += len(h)
		replayed += play(t, args, h)
	}
	t.Logf("%d scrapes, %d after one that settled", shows, replayed)
	if replayed < shows/4 {
		t.Errorf("layouts were of use in %d of %d scrapes: nothing is proven", replayed, shows)
	}
}

// texts returns the lines in the cache, sorted.
func texts(c *cache) (out []string) {
	for _, l := range c.lines {
		out = append(out, fmt.Sprintf("%x %x %d %s", l.text.hi, l.text.lo, l.n, c.series[l.s].h))
	}
	slices.Sort(out)
	return out
}

// consistent checks that the parts of a cache agree with each other.
func consistent(t *testing.T, c *cache) {
	t.Helper()
	means := make([]int32, len(c.series))
	for i, l := range c.lines {
		means[l.s]++
		if l.n != noText && l.iter == 0 {
			t.Fatalf("line %d was in no scrape", i)
		}
	}
	for i, s := range c.series {
		if s.lines != means[i] || s.lines == 0 {
			t.Fatalf("%s has %d lines and says %d", s.h, means[i], s.lines)
		}
		if s.h.Released() {
			t.Fatalf("%s was released", s.h)
		}
		if !c.has(s.h) {
			t.Fatalf("%s is not found", s.h)
		}
	}
	if lo := c.layout; lo != nil {
		for i, ln := range lo.lines {
			if int(ln.line) >= len(c.lines) {
				t.Fatalf("line %d of the layout is line %d of %d", i, ln.line, len(c.lines))
			}
			// After a failed scrape, indexes refer to its body.
			if at := c.lines[ln.line].at; c.settled && lo.lines[at].line != ln.line {
				t.Fatalf("line %d of the layout is line %d, which says %d", i, ln.line, at)
			}
		}
	}
}

// TestPack: after pack, a cache reads bodies as before and keeps the handles of
// series that continue.
func TestPack(t *testing.T) {
	set := newTestSettings(t, "")
	c := newCache()
	f := func(body string, packed bool, want ...string) {
		t.Helper()
		if got, _ := scrapeInto(set, c, show{body: []byte(body)}, int64(1e12)); got.Err != "" {
			t.Fatal(got.Err)
		}
		if got := c.byText.slots == nil; got != packed {
			t.Errorf("after %q packed is %t", body, got)
		}
		var got []string
		for _, s := range c.series {
			got = append(got, strings.NewReplacer(`{instance="i",job="j"}`, "", `instance="i",job="j",`, "").Replace(s.h.String()))
		}
		slices.Sort(got)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("series after %q (-want +got)\n%s", body, d)
		}
		consistent(t, c)
	}
	f("a 1\nb{x=\"1\"}  2\n", true, "a", `b{x="1"}`)
	handles := map[string]*batch.Series{}
	for h := range c.all {
		handles[h.Name()] = h
	}
	f("b{x=\"1\"}  2\na 1\n", false, "a", `b{x="1"}`)
	f("b{x=\"1\"}  2\na 1\n", true, "a", `b{x="1"}`)
	f("b{ x=\"1\" } 2\na 1\nc 1\n", false, "a", `b{x="1"}`, "c")
	for h := range c.all {
		if was := handles[h.Name()]; was != nil && was != h {
			t.Errorf("%s is another one", h)
		}
	}
	f("a 1\n", false, "a")
	c.pack()
	in := &intake{set: set, c: c, now: 1e12}
	in.empty()
	if len(in.series) != 1 || in.series[0] != handles["a"] {
		t.Errorf("a failed scrape has %d markers", len(in.series))
	}
	f("a 2\n", true, "a") // all lines are in the layout
	c.forget()
	f("a 2\n", false, "a")
	if c.series[0].h != handles["a"] {
		t.Error("the series did not outlive its lines")
	}
	c.forget()
	f("d 2\n", false, "d")
}

// asPrometheus compares a history with Prometheus's scrape manager. It returns
// false if nothing could be compared, because a parser of Prometheus panics,
// which would end the test.
func asPrometheus(t *testing.T, args string, shows []show) bool {
	t.Helper()
	if args == "honor_metadata = false" {
		args = "" // the manager always forwards metadata
	}
	set := newTestSettings(t, args)
	answers := make([]answer, len(shows))
	for i, s := range shows {
		if got, _ := scrapeInto(set, newCache(), s, 0); strings.Contains(got.Err, "panicked") {
			return false
		}
		if answers[i] = (answer{contentType: s.contentType(), body: string(s.body)}); s.body == nil {
			answers[i] = answer{status: 500}
		}
	}
	compare(t, args, answers...)
	return true
}

// FuzzAsPrometheus compares histories with Prometheus's scrape manager.
func FuzzAsPrometheus(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, openMetrics bool, args uint8, body, plan []byte) {
		if !asPrometheus(t, fuzzArgs[int(args)%len(fuzzArgs)], history(openMetrics, body, plan)) {
			t.Skip("textparse panics")
		}
	})
}

// TestHistoriesAsPrometheus plays histories from which FuzzAsPrometheus can
// start.
func TestHistoriesAsPrometheus(t *testing.T) {
	compared := 0
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 4))
		name := realBodies[r.IntN(len(realBodies))]
		h := history(strings.HasSuffix(name, ".om.txt"), shortened(t, name, 20+r.IntN(60)), randomPlan(r))
		args := ""
		if seed%2 == 1 {
			args = fuzzArgs[r.IntN(len(fuzzArgs))]
		}
		if asPrometheus(t, args, h) {
			compared++
		}
		if t.Failed() {
			t.Fatalf("history %d of %s with %q", seed, name, args)
		}
	}
	if compared < 35 {
		t.Errorf("%d of 40 histories were compared", compared)
	}
}
