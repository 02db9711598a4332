package view_test

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/histogram"
	"go.uber.org/goleak"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/expr"
	"github.com/weir-run/weir/engine/view"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// series creates a handle with name, label, value, label, value, …
func series(name string, kv ...string) *batch.Series {
	var b batch.Builder
	b.Set(batch.NameLabel, name)
	for i := 0; i < len(kv); i += 2 {
		b.Set(kv[i], kv[i+1])
	}
	return b.Series(nil)
}

func metrics(ss ...*batch.Series) *batch.Metrics {
	b := &batch.Metrics{Source: 1, Series: ss, T: make([]int64, len(ss)), V: make([]float64, len(ss))}
	for i := range ss {
		b.V[i] = float64(i + 1)
	}
	return b
}

func over(b *batch.Metrics, g *view.Cache) *view.Metrics {
	m := new(view.Metrics)
	m.Reset(b, g, start)
	return m
}

func text(b *batch.Metrics) (out []string) {
	for i, s := range b.Series {
		out = append(out, fmt.Sprint(s, " ", b.V[i]))
	}
	return out
}

// TestHandles: the same series and the same result have the same handle in
// every batch and every VM.
func TestHandles(t *testing.T) {
	edits := map[string]func(m *view.Metrics) error{
		"set_label":    func(m *view.Metrics) error { return m.SetLabelAll("x", "1") },
		"drop_label":   func(m *view.Metrics) error { return m.DropLabel("job") },
		"rename_label": func(m *view.Metrics) error { return m.RenameLabel("job", "x") },
		"keep_labels":  func(m *view.Metrics) error { return m.KeepLabels([]string{"path"}) },
		"map_label": func(m *view.Metrics) error {
			return m.MapLabel("s", "job", func(v string) (string, bool, error) { return v + "!", false, nil })
		},
		"map_label, not remembered": func(m *view.Metrics) error {
			return m.MapLabel(nil, "job", func(v string) (string, bool, error) { return v + "?", false, nil })
		},
		"record": func(m *view.Metrics) error { return m.SetName(0, "other") },
		"emit":   func(m *view.Metrics) error { return m.Emit(m.Copy(0)) },
		"emit, made": func(m *view.Metrics) error {
			return m.Emit(view.Record{Name: "made", Type: "gauge"})
		},
		"emit, from": func(m *view.Metrics) error {
			r := m.Copy(0)
			r.Name = "from"
			return m.Emit(r)
		},
		"series": func(m *view.Metrics) error {
			return m.RunSeries(func(_ int, s *view.Series) error { return s.SetLabel("seen", "1") })
		},
		"several": func(m *view.Metrics) error {
			return errors.Join(m.SetLabelAll("x", "1"), m.SetName(0, "n"), m.SetLabelAll("y", "2"), m.RenameLabel("y", "z"))
		},
		"back and forth": func(m *view.Metrics) error {
			return errors.Join(m.SetLabelAll("x", "1"), m.SetLabelAll("x", ""))
		},
	}
	for name, edit := range edits {
		t.Run(name, func(t *testing.T) {
			g := newCache()
			defer g.Close()
			src := series("up", "job", "api")
			src.SetMeta(&batch.Metadata{Type: "counter"})
			var want []*batch.Series
			for i := range 6 {
				m := new(view.Metrics) // another VM
				m.Reset(metrics(src), g, start.Add(time.Duration(i)*time.Hour/12))
				if err := edit(m); err != nil {
					t.Fatal(err)
				}
				got := m.Apply().Batch.Series
				if want != nil && !equalHandles(got, want) {
					t.Errorf("batch %d has handles %p, want %p", i, got, want)
				}
				want = got
				for _, s := range got {
					if s.Released() {
						t.Errorf("batch %d has released handle %s", i, s)
					}
				}
			}
			if name == "back and forth" && want[0] != src {
				t.Error("labels that are the source's again have another handle")
			}
			if md := want[0].Meta(); md == nil || md.Type != "counter" {
				t.Error("metadata was lost")
			}
		})
	}
}

func equalHandles(a, b []*batch.Series) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// TestManyResults: if the result differs from batch to batch, a bounded number
// of handles live as long as their source. The rest expire.
func TestManyResults(t *testing.T) {
	g := newCache()
	src := series("up")
	var m view.Metrics
	all := map[*batch.Series]string{}
	for round := range 3 {
		for i := range 50 {
			m.Reset(metrics(src), g, start.Add(time.Duration(round)*time.Minute))
			v := fmt.Sprint(i)
			if err := m.SetLabel(0, "n", v); err != nil {
				t.Fatal(err)
			}
			s := m.Apply().Batch.Series[0]
			if s.Label("n") != v || s.Released() {
				t.Fatalf("%s: label %q, released %v", s, s.Label("n"), s.Released())
			}
			all[s] = v
		}
	}
	if len(all) != 50 {
		t.Errorf("%d handles for 50 results", len(all))
	}
	// An hour later, only the handles of the source are alive.
	m.Reset(metrics(src), g, start.Add(time.Hour))
	if err := errors.Join(m.SetLabel(0, "n", "new")); err != nil {
		t.Fatal(err)
	}
	m.Apply()
	live := 0
	for s := range all {
		if !s.Released() {
			live++
		}
	}
	if live == 0 || live > 10 {
		t.Errorf("%d of 50 handles are alive after an hour", live)
	}
	g.Close()
	for s := range all {
		if !s.Released() {
			t.Fatalf("%s outlives its cache", s)
		}
	}
}

func TestSweep(t *testing.T) {
	g := newCache()
	defer g.Close()
	gone, stays := series("gone", "job", "a"), series("stays", "job", "a")
	var m view.Metrics
	run := func(ss ...*batch.Series) *batch.Metrics {
		m.Reset(metrics(ss...), g, start)
		err := errors.Join(
			m.RunSeries(func(_ int, s *view.Series) error { return s.SetLabel("a", "1") }),
			m.SetLabelAll("b", "1"),
			m.MapLabel("x", "job", func(v string) (string, bool, error) { return v + v, false, nil }),
			m.DropWhere(`labels.b == "2"`))
		if err != nil {
			t.Fatal(err)
		}
		m.Column("job").At(m.Series(0))
		return m.Apply().Batch
	}
	out := run(gone, stays)
	gone.Release()
	g.Sweep()
	if !out.Series[0].Released() {
		t.Error("the handle of a series that ended was not released")
	}
	if out.Series[1].Released() {
		t.Error("the handle of a live series was released")
	}
	if again := run(stays); again.Series[0] != out.Series[1] {
		t.Error("Sweep changed a live series' handle")
	}
	// A late batch contains the series again. It is processed, and nothing of it
	// is kept.
	late := run(gone)
	if got := text(late); got[0] != `gone{a="1",b="1",job="aa"} 1` {
		t.Errorf("got %v", got)
	}

	// IDs are freed: a thousand caches of series get the same IDs. A freed ID is
	// the next to be assigned.
	ids := map[uint32]bool{}
	for i := range 1000 {
		s := series("s", "i", fmt.Sprint(i))
		for d := run(s).Series[0]; d != nil; d = d.Source() {
			ids[d.ID()] = true
		}
		s.Release()
		g.Sweep()
	}
	if len(ids) > 50 {
		t.Errorf("IDs leak: %d were taken", len(ids))
	}
}

func TestSeriesHook(t *testing.T) {
	g := newCache()
	defer g.Close()
	a, b, c := series("a"), series("b"), series("c")
	var m view.Metrics
	calls := map[string]int{}
	boom := errors.New("boom")
	var fail error
	hook := func(i int, s *view.Series) error {
		calls[s.Name()]++
		switch s.Name() {
		case "a":
			s.Drop()
		case "b":
			return fail
		}
		return nil
	}
	run := func() ([]string, error) {
		m.Reset(metrics(a, b, c), g, start)
		err := m.RunSeries(hook)
		return text(m.Apply().Batch), err
	}
	fail = boom
	if _, err := run(); err != boom {
		t.Errorf("got error %v, want boom", err)
	}
	fail = view.ErrSkip
	if got, err := run(); err != nil || cmp.Diff([]string{"b 2", "c 3"}, got) != "" {
		t.Errorf("got %v, %v", got, err)
	}
	fail = nil
	for range 3 {
		if got, err := run(); err != nil || cmp.Diff([]string{"b 2", "c 3"}, got) != "" {
			t.Errorf("got %v, %v", got, err)
		}
	}
	if diff := cmp.Diff(map[string]int{"a": 1, "b": 3, "c": 1}, calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	// No decision and no change.
	in := metrics(c)
	m.Reset(in, g, start)
	if err := m.RunSeries(hook); err != nil || m.Apply().Batch != in {
		t.Errorf("%v, or a new batch", err)
	}
}

func TestMapLabel(t *testing.T) {
	g := newCache()
	defer g.Close()
	var ss []*batch.Series
	for i := range 30 {
		ss = append(ss, series("m", "path", fmt.Sprint(i%3), "i", fmt.Sprint(i)))
	}
	ss = append(ss, series("none"))
	var m view.Metrics
	calls := 0
	fn := func(v string) (string, bool, error) {
		calls++
		switch v {
		case "0":
			return "", true, nil
		case "1":
			return "", false, nil
		}
		return "two", false, nil
	}
	for range 4 {
		m.Reset(metrics(ss...), g, start)
		if err := m.MapLabel("site", "path", fn); err != nil {
			t.Fatal(err)
		}
		for i, s := range m.Apply().Batch.Series {
			want := []string{"0", "", "two"}[i%3]
			if i == 30 {
				want = ""
			}
			if got := s.Label("path"); got != want {
				t.Errorf("row %d: got %q, want %q", i, got, want)
			}
		}
	}
	if calls != 3 {
		t.Errorf("%d calls for 3 values", calls)
	}
	// Another label has another cache. Without a site, nothing is cached.
	m.Reset(metrics(ss...), g, start)
	if err := m.MapLabel("site", "i", fn); err != nil || calls != 33 {
		t.Errorf("%v, %d calls", err, calls)
	}
	calls = 0
	for range 2 {
		m.Reset(metrics(ss...), g, start)
		if err := m.MapLabel(nil, "path", fn); err != nil {
			t.Fatal(err)
		}
	}
	if calls != 6 {
		t.Errorf("%d calls, want 6", calls)
	}

	// An error is returned unchanged, and fn is called again next time.
	boom := errors.New("boom")
	for range 2 {
		m.Reset(metrics(ss...), g, start)
		if err := m.MapLabel("bad", "path", func(string) (string, bool, error) { return "", false, boom }); err != boom {
			t.Errorf("got error %v", err)
		}
	}
	m.Reset(metrics(ss...), g, start)
	err := m.MapLabel("utf8", "path", func(string) (string, bool, error) { return "\xff", false, nil })
	if err == nil || !strings.Contains(err.Error(), `cannot set label "path" to "\xff": it is not valid UTF-8, which was made of "0"`) {
		t.Errorf("got error %v", err)
	}
}

// TestBounds: new expressions and values in every batch do not fill the memory,
// and work like cached ones.
func TestBounds(t *testing.T) {
	g := view.NewCache(view.Options{MaxMemos: 3, MaxValues: 3})
	defer g.Close()
	src := series("m", "job", "api")
	var m view.Metrics
	for i := range 20 {
		m.Reset(metrics(src), g, start)
		job := fmt.Sprint("j", i)
		err := errors.Join(
			m.DropWhere(fmt.Sprintf(`labels.job == "%d"`, i)),
			m.SetValueWhere("", fmt.Sprint(i)),
			m.SetLabelAll("job", job),
			m.MapLabel(i, "job", func(v string) (string, bool, error) { return v + "!", false, nil }))
		if err != nil {
			t.Fatal(err)
		}
		if c := m.Column(fmt.Sprint("l", i)).At(m.Series(0)); c != nil {
			t.Errorf("got %q", *c)
		}
		if got, want := text(m.Apply().Batch)[0], fmt.Sprintf(`m{job="%s!"} %d`, job, i); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	// More values than a site caches.
	calls := 0
	for range 3 {
		for i := range 9 {
			m.Reset(metrics(series("v", "x", fmt.Sprint(i))), g, start)
			if err := m.MapLabel("values", "x", func(v string) (string, bool, error) { calls++; return "n" + v, false, nil }); err != nil {
				t.Fatal(err)
			}
			if got := m.Label(0, "x"); got != fmt.Sprint("n", i) {
				t.Errorf("got %s", got)
			}
			if c := m.Column("x").At(m.Series(0)); *c != fmt.Sprint("n", i) {
				t.Errorf("column has %s", *c)
			}
		}
	}
	if calls != 27 {
		t.Errorf("%d calls", calls)
	}
}

func TestEditErrors(t *testing.T) {
	g := newCache()
	defer g.Close()
	b := metrics(series("m", "job", "api"), series("h"))
	b.Histograms = []batch.Histogram{{Row: 1, Int: &histogram.Histogram{}}}
	m := over(b, g)
	f := func(err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want %q", err, want)
		}
	}
	f(m.SetName(0, ""), "cannot use an empty name: drop the record instead")
	f(m.SetName(0, "\xff"), "not valid UTF-8")
	f(m.SetLabel(0, "", "x"), "cannot use an empty label name")
	f(m.SetLabel(0, "__name__", "x"), "it is the record's name")
	f(m.SetLabel(0, "\xff", "x"), "not valid UTF-8")
	f(m.SetLabel(0, "x", "\xff"), "not valid UTF-8")
	f(m.SetLabelAll("__name__", ""), "it is the record's name")
	f(m.SetLabelAll("x", "\xff"), "not valid UTF-8")
	f(m.DropLabel(""), "empty label name")
	f(m.RenameLabel("", "x"), "empty label name")
	f(m.RenameLabel("job", ""), "empty label name")
	f(m.RenameLabel("job", "__name__"), "it is the record's name")
	f(m.KeepLabels(nil), "cannot keep 0 labels: name between 1 and 32")
	f(m.KeepLabels(make([]string, 33)), "cannot keep 33 labels")
	f(m.KeepLabels([]string{"job", "__name__"}), "it is the record's name")
	f(m.KeepLabels([]string{"\xff"}), "not valid UTF-8")
	f(m.MapLabel("x", "__name__", nil), "it is the record's name")
	f(m.SetValue(1, 3), "cannot set the value of h: it is a native histogram")
	f(m.Scale("", math.NaN()), "cannot scale by NaN")
	f(m.Scale("nope", 2), "unknown name nope (1:1)")
	f(m.Scale("nope", 1), "unknown name nope (1:1)")
	f(m.DropWhere("value"), "it must be true or false")
	f(m.KeepWhere("int(labels.job) > 1"), "it is no whole number")
	f(m.SetValueWhere("", "name"), "it must be a number")
	f(m.SetValueWhere("1", "1"), "it must be true or false")
	f(m.SetValueWhere("", "int(labels.job)"), "it is no whole number")
	f(m.Emit(view.Record{}), "cannot use an empty name")
	f(m.Emit(view.Record{Name: "m", Type: "nope"}), `cannot emit type "nope": it is one of counter`)
	f(m.Emit(view.Record{Name: "m", Labels: []batch.Label{{Name: "__name__"}}}), "it is the record's name")
	f(m.Emit(view.Record{Name: "m", Labels: []batch.Label{{Name: "a", Value: "\xff"}}}), "not valid UTF-8")
	f(m.Emit(view.Record{Name: "m", Histogram: batch.Histogram{Int: &histogram.Histogram{}, Float: &histogram.FloatHistogram{}}}), "two histograms")
	if m.Apply().Batch != b {
		t.Error("what failed changed the batch")
	}
	var e *expr.Error
	if err := g.Check("vaule > 1", expr.Bool); !errors.As(err, &e) || e.Column != 1 {
		t.Errorf("got error %v", err)
	}
	if err := errors.Join(g.Check("value > 1", expr.Bool), g.Check("value + 1", expr.Number)); err != nil {
		t.Error(err)
	}
	if err := g.Check("name", expr.Number); err == nil {
		t.Error("a string passed for a number")
	}
}

func TestStale(t *testing.T) {
	g := newCache()
	defer g.Close()
	b := metrics(series("s", "job", "api"), series("v", "job", "api"), series("other"))
	b.V[0] = batch.Stale()
	run := func(edit func(m *view.Metrics) error) (out []string) {
		m := over(b, g)
		if err := edit(m); err != nil {
			t.Fatal(err)
		}
		res := m.Apply().Batch
		for i, s := range res.Series {
			out = append(out, fmt.Sprintf("%s %x", s.Name(), math.Float64bits(res.V[i])))
		}
		return out
	}
	f := func(name string, edit func(m *view.Metrics) error, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, run(edit)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	const s, v, other = "s 7ff0000000000002", "v 4000000000000000", "other 4008000000000000"
	f("drop by value", func(m *view.Metrics) error { return m.DropWhere("value > 0") }, s)
	f("drop by value, negated", func(m *view.Metrics) error { return m.DropWhere("!(value > 5)") }, s)
	f("keep by value", func(m *view.Metrics) error { return m.KeepWhere("value > 2") }, s, other)
	f("drop by labels", func(m *view.Metrics) error { return m.DropWhere(`labels.job == "api"`) }, other)
	f("drop by both", func(m *view.Metrics) error { return m.DropWhere(`labels.job == "api" && value > 5`) }, v, other)
	f("keep by both", func(m *view.Metrics) error { return m.KeepWhere(`labels.job == "web" && value > 2`) })
	f("scale", func(m *view.Metrics) error { return m.Scale("", 2) }, s, "v 4010000000000000", "other 4018000000000000")
	f("set_value", func(m *view.Metrics) error { return m.SetValueWhere("", "2") }, s, v, "other 4000000000000000")
	f("set", func(m *view.Metrics) error { return m.SetValue(0, 5) }, s, v, other)
	f("nan", func(m *view.Metrics) error { return m.SetValue(1, m.Values()[0]) }, s, "v 7ff8000000000001", other)
	f("stale", func(m *view.Metrics) error { m.SetStale(1, true); m.SetStale(0, true); return nil }, s, "v 7ff0000000000002", other)
	f("not stale", func(m *view.Metrics) error { m.SetStale(0, false); return m.SetValue(0, 2) }, "s 4000000000000000", v, other)
	f("emitted", func(m *view.Metrics) error {
		return m.Emit(view.Record{Name: "e", Value: m.Values()[0]})
	}, s, v, other, "e 7ff8000000000001")
	f("emitted stale", func(m *view.Metrics) error { return m.Emit(m.Copy(0)) }, s, v, other, s)
}

func TestScaleHistogram(t *testing.T) {
	g := newCache()
	defer g.Close()
	in := &histogram.Histogram{Count: 6, Sum: 10, ZeroCount: 1, Schema: 1,
		PositiveSpans: []histogram.Span{{Offset: 0, Length: 2}}, PositiveBuckets: []int64{2, 1}}
	b := metrics(series("h"), series("v"))
	b.V[0] = in.Sum
	b.Histograms = []batch.Histogram{{Row: 0, Int: in}}
	m := over(b, g)
	if err := m.Scale(`name == "h"`, 0.5); err != nil {
		t.Fatal(err)
	}
	out := m.Apply().Batch
	h := out.Histograms[0].Float
	if h == nil || h.Count != 3 || h.Sum != 5 || h.ZeroCount != 0.5 || cmp.Diff([]float64{1, 1.5}, h.PositiveBuckets) != "" || out.V[0] != 5 || out.V[1] != 2 {
		t.Errorf("got %v, values %v", h, out.V)
	}
	if in.Sum != 10 || in.Count != 6 {
		t.Error("the source's histogram was written to")
	}
	// A predicate on the value does not judge a histogram.
	m.Reset(b, g, start)
	if err := m.Scale(`value > 0`, 0.5); err != nil {
		t.Fatal(err)
	}
	if out = m.Apply().Batch; out.Histograms[0].Int != in || out.V[0] != 10 || out.V[1] != 1 {
		t.Errorf("got %v, values %v", out.Histograms, out.V)
	}
}

func TestRecords(t *testing.T) {
	g := newCache()
	defer g.Close()
	b := metrics(series("m", "job", "api", "name", "x"))
	b.T[0] = 7
	b.Exemplars = []batch.Exemplar{{Row: 0, Value: 1}}
	b.Starts = []batch.Start{{Row: 0, T: 3}}
	m := over(b, g)
	var labels []string
	for n, v := range m.Labels(0) {
		labels = append(labels, n+"="+v)
	}
	if diff := cmp.Diff([]string{"job=api", "name=x"}, labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if m.Label(0, "__name__") != "" || m.Name(0) != "m" || *m.Column("name").At(m.Series(0)) != "m" || *m.Column("labels.name").At(m.Series(0)) != "x" || m.Column("__name__").At(m.Series(0)) != nil || m.Column("nope").At(m.Series(0)) != nil {
		t.Error("the name is mixed up with the labels")
	}
	if st, ok := m.Start(0); !ok || st != 3 || len(m.Exemplars(0)) != 1 || m.HasHistogram(0) {
		t.Error("sparse columns are not seen")
	}
	epoch := m.Epoch()
	r := m.Copy(0)
	m.Done()
	if m.Epoch() == epoch || m.Len() != 0 || m.Next(0) != -1 {
		t.Error("the window is open after Done")
	}
	// A copy stays valid after its batch, with all its data.
	m.Reset(metrics(), g, start)
	if err := m.Emit(r); err != nil {
		t.Fatal(err)
	}
	res := m.Apply()
	if got := res.Batch; res.Emitted != 1 || m.Emitted() != 1 || got.Series[0] != b.Series[0] || got.T[0] != 7 || got.V[0] != 1 ||
		len(got.Exemplars) != 1 || len(got.Starts) != 1 || got.Starts[0].T != 3 {
		t.Errorf("got %+v", res)
	}
}

func TestRollback(t *testing.T) {
	g := newCache()
	defer g.Close()
	b := metrics(series("a"), series("b"))
	b.Starts = []batch.Start{{Row: 0, T: 3}}
	m := over(b, g)
	m.Rollback() // nothing marked
	m.Mark(0)
	err := errors.Join(m.SetName(0, "x"), m.SetLabel(0, "l", "1"), m.SetValue(0, 9), m.Emit(m.Copy(1)))
	if err != nil {
		t.Fatal(err)
	}
	m.SetTime(0, 99)
	m.SetStale(0, true)
	m.Drop(0)
	m.Rollback()
	if res := m.Apply(); res.Batch != b || res.Dropped != 0 {
		t.Errorf("got %v", text(res.Batch))
	}

	// Only the marked row is rolled back. Earlier changes stay.
	m.Reset(b, g, start)
	if err := errors.Join(m.SetName(0, "before"), m.Emit(m.Copy(1))); err != nil {
		t.Fatal(err)
	}
	m.Mark(0)
	if err := errors.Join(m.SetName(0, "after"), m.SetName(1, "other")); err != nil {
		t.Fatal(err)
	}
	m.Drop(1)
	m.Rollback()
	if diff := cmp.Diff([]string{"before 1", "b 2"}, text(m.Apply().Batch)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCollisions(t *testing.T) {
	g := newCache()
	defer g.Close()
	ss := []*batch.Series{series("m", "id", "1"), series("m", "id", "2"), series("m", "id", "3"), series("n")}
	for range 2 { // computed, then cached
		m := over(metrics(ss...), g)
		if err := m.DropLabel("id"); err != nil {
			t.Fatal(err)
		}
		if res := m.Apply(); res.Collisions != 2 || res.Collision.Name() != "m" || res.Batch.Len() != 4 {
			t.Errorf("got %+v", res)
		}
	}
	// Other timestamps do not collide.
	b := metrics(ss...)
	b.T = []int64{1, 2, 3, 3}
	m := over(b, g)
	if err := m.DropLabel("id"); err != nil {
		t.Fatal(err)
	}
	if res := m.Apply(); res.Collisions != 0 {
		t.Errorf("got %+v", res)
	}
}

// TestManyVMs: VMs share a Cache and get the same handles. Run with -race.
func TestManyVMs(t *testing.T) {
	g := newCache()
	var ss []*batch.Series
	for i := range 200 {
		ss = append(ss, series("m", "job", []string{"api", "web"}[i%2], "i", fmt.Sprint(i)))
	}
	var mu sync.Mutex
	var want []*batch.Series
	work := func(vm int) {
		var m view.Metrics
		for round := range 20 {
			b := metrics(ss...)
			b.Source = uint64(vm)
			m.Reset(b, g, start.Add(time.Duration(round)*time.Second))
			err := errors.Join(
				m.RunSeries(func(_ int, s *view.Series) error {
					if s.Label("i") == "7" {
						s.Drop()
					}
					return s.SetLabel("region", "eu")
				}),
				m.DropWhere(`labels.job == "web" && value > 100`),
				m.SetLabelAll("a", "b"),
				m.MapLabel("site", "job", func(v string) (string, bool, error) { return v + "!", false, nil }),
				m.Scale(`labels.job == "api!"`, 2),
				m.Emit(view.Record{Name: "made"}))
			if err != nil {
				t.Error(err)
				return
			}
			for i := m.Next(0); i >= 0; i = m.Next(i + 1) {
				m.Column("job").At(m.Series(i))
				if i%50 == 0 {
					if err := m.SetLabel(i, "n", fmt.Sprint(i)); err != nil {
						t.Error(err)
					}
				}
			}
			out := m.Apply().Batch.Series
			mu.Lock()
			if want == nil {
				want = out
			}
			same := equalHandles(want, out)
			mu.Unlock()
			if !same {
				t.Error("two VMs have different handles for the same result")
			}
			// Series come and go at the same time.
			x := series("x", "vm", fmt.Sprint(vm), "round", fmt.Sprint(round))
			m.Reset(metrics(x), g, start)
			if err := m.SetLabelAll("a", "b"); err != nil {
				t.Error(err)
			}
			m.Apply()
			x.Release()
			if round%5 == 0 {
				g.Sweep()
			}
		}
	}
	var wg sync.WaitGroup
	for vm := range 2 * runtime.GOMAXPROCS(0) {
		wg.Go(func() { work(vm) })
	}
	wg.Wait()
	g.Close()
}

func TestAllocations(t *testing.T) {
	g := newCache()
	defer g.Close()
	var ss []*batch.Series
	for i := range 500 {
		ss = append(ss, series("m", "job", []string{"api", "web", "db"}[i%3], "i", fmt.Sprint(i)))
	}
	b := metrics(ss...)
	var m view.Metrics
	now := time.Unix(1, 0)
	f := func(name string, want float64, edit func() error) {
		t.Helper()
		got := math.Inf(1)
		for range 5 { // allocations by the runtime do not count
			got = min(got, testing.AllocsPerRun(20, func() {
				m.Reset(b, g, now)
				if err := edit(); err != nil {
					t.Error(err)
				}
				m.Apply()
			}))
		}
		if got > want {
			t.Errorf("%s: %v allocations a batch, want %v", name, got, want)
		}
	}
	f("untouched", 0, func() error { return nil })
	f("predicate that nothing matches", 0, func() error { return m.DropWhere(`labels.job == "x" && value > 3`) })
	f("predicate that all match", 0, func() error { return m.KeepWhere(`name == "m" && value > 0`) })
	f("series hook that is called for every row", 0, func() error {
		return m.RunSeries(func(int, *view.Series) error { return view.ErrSkip })
	})
	f("series hook that changes nothing", 0, func() error {
		return m.RunSeries(func(int, *view.Series) error { return nil })
	})
	f("label that is there already", 0, func() error { return m.DropLabel("nope") })
	f("read", 0, func() error {
		c := m.Column("job")
		for i := range m.Len() {
			if c.At(m.Series(i)) == nil || m.Name(i) == "" {
				return errors.New("nothing")
			}
		}
		return nil
	})
	// A batch and a column are allocated.
	f("set_label", 2, func() error { return m.SetLabelAll("region", "eu") })
	f("map_label", 2, func() error {
		return m.MapLabel("s", "job", func(v string) (string, bool, error) { return v + "!", false, nil })
	})
	f("scale", 2, func() error { return m.Scale("", 2) })
	f("rename each", 2, func() error {
		for i := range m.Len() {
			if err := m.SetName(i, "renamed"); err != nil {
				return err
			}
		}
		return nil
	})
	f("drop", 4, func() error { return m.DropWhere(`labels.job == "api"`) })
}

// TestSweepForgets: used entries stay cached over any number of Sweeps. Unused
// entries are removed by the second Sweep.
func TestSweepForgets(t *testing.T) {
	g := view.NewCache(view.Options{MaxMemos: 2})
	defer g.Close()
	src := series("m", "job", "api")
	calls := map[string]int{}
	run := func(m *view.Metrics, site string) {
		m.Reset(metrics(src), g, start)
		err := errors.Join(
			m.MapLabel(site, "job", func(v string) (string, bool, error) { calls[site]++; return v, true, nil }),
			m.DropWhere(`name == "`+site+`"`), m.SetLabelAll("site", site), m.SetValueWhere("", "1"))
		if err != nil {
			t.Fatal(err)
		}
		m.Column(site)
	}
	var busy, other view.Metrics
	run(&other, "rare")
	for range 5 {
		run(&busy, "often")
		g.Sweep()
	}
	run(&other, "rare")
	if diff := cmp.Diff(map[string]int{"often": 1, "rare": 2}, calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	// After two Sweeps there is room for new entries.
	for i := range 6 {
		run(&busy, "often")
		run(&other, fmt.Sprint(i))
		run(&other, fmt.Sprint(i))
		g.Sweep()
		g.Sweep()
	}
	for i := range 6 {
		if n := calls[fmt.Sprint(i)]; n != 1 {
			t.Errorf("site %d: %d calls", i, n)
		}
	}
}

// TestMapLabelEditedMeanwhile: a callback may edit the batch while MapLabel
// iterates over it. No row gets the labels of another row.
func TestMapLabelEditedMeanwhile(t *testing.T) {
	b := metrics(series("a", "job", "x"), series("b", "job", "y"), series("c", "job", "z"))
	m := over(b, view.NewCache(view.Options{}))
	err := m.MapLabel("site", "job", func(v string) (string, bool, error) {
		if v == "y" {
			for i := range 3 {
				if err := m.SetLabel(i, "seen", v); err != nil {
					return "", false, err
				}
			}
		}
		return v + v, false, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{`a{job="xx",seen="y"} 1`, `b{job="yy",seen="y"} 2`, `c{job="zz",seen="y"} 3`}
	if diff := cmp.Diff(want, text(m.Apply().Batch)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
