package view_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/view"
)

// row is a sample in the naive implementation, which copies everything into
// maps.
type row struct {
	Labels    map[string]string
	Type      string
	Bits      uint64 // of the value
	T         int64
	Hist      string
	Exemplars string
	Start     string
	dropped   bool
	hist      *histogram.FloatHistogram
}

func (r *row) stale() bool  { return r.Bits == batch.StaleNaN }
func (r *row) judged() bool { return !r.stale() && r.hist == nil }
func (r *row) v() float64   { return math.Float64frombits(r.Bits) }

func rowsOf(b *batch.Metrics) []*row {
	out := make([]*row, b.Len())
	for i, s := range b.Series {
		r := &row{Labels: map[string]string{}, Bits: math.Float64bits(b.V[i]), T: b.T[i], Type: "unknown"}
		for n, v := range s.Labels() {
			r.Labels[n] = v
		}
		if md := s.Meta(); md != nil {
			r.Type = string(md.Type)
		}
		out[i] = r
	}
	for _, h := range b.Histograms {
		out[h.Row].setHist(h)
	}
	for _, e := range b.Exemplars {
		out[e.Row].Exemplars += fmt.Sprint(e.Labels, e.Value, e.T, e.HasT)
	}
	for _, s := range b.Starts {
		out[s.Row].Start = fmt.Sprint(s.T)
	}
	return out
}

func (r *row) setHist(h batch.Histogram) {
	if h.Int != nil {
		r.Hist, r.hist = fmt.Sprintf("%p", h.Int), h.Int.ToFloat(nil)
		return
	}
	r.Hist, r.hist = fmt.Sprint("float ", h.Float.String(), h.Float.Sum), h.Float
}

// predicates are expressions with their equivalents in Go.
var predicates = []struct {
	src   string
	match func(r *row) bool // of a judged row
	drop  func(r *row) bool // of a row without a value, for drop_where
	keep  func(r *row) bool // and for keep_where
}{
	{`labels.job == "api"`,
		func(r *row) bool { return r.Labels["job"] == "api" },
		func(r *row) bool { return r.Labels["job"] == "api" },
		func(r *row) bool { return r.Labels["job"] == "api" }},
	{`value > 3`,
		func(r *row) bool { return r.v() > 3 },
		func(*row) bool { return false },
		func(*row) bool { return true }},
	{`labels.job == "api" && value > 3`,
		func(r *row) bool { return r.Labels["job"] == "api" && r.v() > 3 },
		func(r *row) bool { return r.Labels["job"] == "api" },
		func(r *row) bool { return r.Labels["job"] == "api" }},
	{`name startsWith "go_" && !(labels.job in args.keep)`,
		func(r *row) bool { return strings.HasPrefix(r.Labels["__name__"], "go_") && r.Labels["job"] != "api" },
		func(r *row) bool { return strings.HasPrefix(r.Labels["__name__"], "go_") && r.Labels["job"] != "api" },
		func(r *row) bool { return strings.HasPrefix(r.Labels["__name__"], "go_") && r.Labels["job"] != "api" }},
	{`time > 1000 || value < 0`,
		func(r *row) bool { return r.T > 1000 || r.v() < 0 },
		func(r *row) bool { return r.T > 1000 },
		func(*row) bool { return true }},
	{`type == "counter" && time <= 1000`,
		func(r *row) bool { return r.Type == "counter" && r.T <= 1000 },
		func(r *row) bool { return r.Type == "counter" && r.T <= 1000 },
		func(r *row) bool { return r.Type == "counter" && r.T <= 1000 }},
}

// world creates batches from one population of series.
type world struct {
	*rand.Rand
	series []*batch.Series
	source uint64
	column []*batch.Series   // of the previous batch
	late   [][]*batch.Series // columns with series that were released
}

func newWorld(seed uint64) *world {
	w := &world{Rand: rand.New(rand.NewPCG(seed, 7)), source: batch.NewSource()}
	for range 5 + w.IntN(30) {
		w.series = append(w.series, w.newSeries())
	}
	return w
}

func (w *world) pick(ss ...string) string { return ss[w.IntN(len(ss))] }

func (w *world) newSeries() *batch.Series {
	var b batch.Builder
	b.Set(batch.NameLabel, w.pick("go_x", "up", "request_ms"))
	for _, n := range []string{"job", "path", "zone"} {
		b.Set(n, w.pick("", "api", "web", "/users/42"))
	}
	s := b.Series(nil)
	// Decide by the labels: two released series with the same labels become one
	// handle.
	if s.Hash()%2 == 0 {
		s.SetMeta(&batch.Metadata{Type: []model.MetricType{"counter", "gauge"}[s.Hash()/2%2], Help: "h"})
	}
	return s
}

// nextColumn usually returns the column of the previous batch. Otherwise,
// series may have been released and their IDs reused, or it returns an earlier
// column.
func (w *world) nextColumn() []*batch.Series {
	switch k := w.IntN(9); {
	case k < 6 && w.column != nil:
		return w.column
	case k == 6 && len(w.late) > 0:
		return w.late[w.IntN(len(w.late))]
	case k == 7 && len(w.column) > 0:
		w.late = append(w.late, w.column)
		w.series = slices.Clone(w.series)
		i := w.IntN(len(w.series))
		w.series[i].Release()
		w.series[i] = w.newSeries()
	}
	w.column = slices.Clone(w.series[:w.IntN(len(w.series)+1)])
	return w.column
}

func (w *world) batch() *batch.Metrics {
	b := &batch.Metrics{Source: w.source, Series: w.nextColumn()}
	several := w.Int64N(2) // whether the rows have several timestamps
	values := []float64{0, 1, 5, -2, batch.Stale(), math.Float64frombits(0x7ff8000000000123), math.Inf(1)}
	for i := range b.Series {
		v := values[w.IntN(len(values))]
		switch w.IntN(8) {
		case 0:
			h := &histogram.Histogram{Count: 3, Sum: 4.5, Schema: 1, PositiveSpans: []histogram.Span{{Offset: 0, Length: 1}}, PositiveBuckets: []int64{3}}
			b.Histograms, v = append(b.Histograms, batch.Histogram{Row: i, Int: h}), 4.5
		case 1:
			h := &histogram.FloatHistogram{Count: 2, Sum: 1.5, ZeroCount: 2}
			b.Histograms, v = append(b.Histograms, batch.Histogram{Row: i, Float: h}), 1.5
		}
		for range max(0, w.IntN(5)-2) {
			b.Exemplars = append(b.Exemplars, batch.Exemplar{Row: i, Labels: []batch.Label{{Name: "id", Value: fmt.Sprint(w.IntN(99))}}, Value: 1})
		}
		if w.IntN(4) == 0 {
			b.Starts = append(b.Starts, batch.Start{Row: i, T: w.Int64N(500)})
		}
		b.T, b.V = append(b.T, 1000+w.Int64N(1+several)), append(b.V, v)
	}
	return b
}

// step is one edit, applied to both implementations.
type step struct {
	what string
	view func(m *view.Metrics) error
	rows func(rs []*row) []*row
}

func alive(rs []*row, f func(r *row)) []*row {
	for _, r := range rs {
		if !r.dropped {
			f(r)
		}
	}
	return rs
}

func (r *row) set(name, value string) {
	if value == "" {
		delete(r.Labels, name)
	} else {
		r.Labels[name] = value
	}
}

func (w *world) step() step {
	p := predicates[w.IntN(len(predicates))]
	name, value := w.pick("job", "path", "new"), w.pick("api", "", "x")
	switch w.IntN(12) {
	case 11:
		return step{"keep_labels " + name, func(m *view.Metrics) error { return m.KeepLabels([]string{name, "zone"}) }, func(rs []*row) []*row {
			return alive(rs, func(r *row) {
				for l := range r.Labels {
					if l != name && l != "zone" && l != "__name__" {
						r.set(l, "")
					}
				}
			})
		}}
	case 0:
		return step{"drop_where " + p.src, func(m *view.Metrics) error { return m.DropWhere(p.src) }, func(rs []*row) []*row {
			return alive(rs, func(r *row) { r.dropped = r.judged() && p.match(r) || !r.judged() && p.drop(r) })
		}}
	case 1:
		return step{"keep_where " + p.src, func(m *view.Metrics) error { return m.KeepWhere(p.src) }, func(rs []*row) []*row {
			return alive(rs, func(r *row) { r.dropped = r.judged() && !p.match(r) || !r.judged() && !p.keep(r) })
		}}
	case 2:
		return step{"set_label " + name + "=" + value, func(m *view.Metrics) error { return m.SetLabelAll(name, value) }, func(rs []*row) []*row {
			return alive(rs, func(r *row) { r.set(name, value) })
		}}
	case 3:
		return step{"drop_label " + name, func(m *view.Metrics) error { return m.DropLabel(name) }, func(rs []*row) []*row {
			return alive(rs, func(r *row) { r.set(name, "") })
		}}
	case 4:
		to := w.pick("zone", "new2", name)
		return step{"rename_label " + name + ">" + to, func(m *view.Metrics) error { return m.RenameLabel(name, to) }, func(rs []*row) []*row {
			return alive(rs, func(r *row) {
				if v, ok := r.Labels[name]; ok && name != to {
					r.set(to, v)
					r.set(name, "")
				}
			})
		}}
	case 5:
		src := p.src
		if w.IntN(3) == 0 {
			src = ""
		}
		k := []float64{0.5, 1, -1}[w.IntN(3)]
		return step{fmt.Sprint("scale ", src, k), func(m *view.Metrics) error { return m.Scale(src, k) }, func(rs []*row) []*row {
			return alive(rs, func(r *row) {
				if r.stale() || k == 1 || src != "" && !(r.judged() && p.match(r) || !r.judged() && p.drop(r)) {
					return
				}
				r.Bits = math.Float64bits(r.v() * k)
				if r.hist != nil {
					r.setHist(batch.Histogram{Float: r.hist.Copy().Mul(k)})
				}
			})
		}}
	case 6:
		return step{"set_value " + p.src, func(m *view.Metrics) error { return m.SetValueWhere(p.src, "value + 10") }, func(rs []*row) []*row {
			return alive(rs, func(r *row) {
				if r.judged() && p.match(r) {
					r.Bits = math.Float64bits(r.v() + 10)
				}
			})
		}}
	case 7:
		to := func(v string) string {
			return map[string]string{"api": "API", "web": "web", "/users/42": "", "x": "y"}[v]
		}
		site := any("site")
		if w.IntN(3) == 0 {
			site = nil
		}
		return step{"map_label " + name, func(m *view.Metrics) error {
			return m.MapLabel(site, name, func(v string) (string, bool, error) { return to(v), v == "web", nil })
		}, func(rs []*row) []*row {
			return alive(rs, func(r *row) {
				if v, ok := r.Labels[name]; ok {
					r.set(name, to(v))
				}
			})
		}}
	case 8:
		return w.each()
	case 9:
		return step{"series", func(m *view.Metrics) error {
			return m.RunSeries(func(_ int, s *view.Series) error {
				if s.Label("zone") == "web" {
					s.Drop()
				}
				if s.Name() == "request_ms" {
					_ = s.SetName("request_seconds")
				}
				return s.SetLabel("seen", s.Label("path"))
			})
		}, func(rs []*row) []*row {
			return alive(rs, func(r *row) {
				r.dropped = r.Labels["zone"] == "web"
				r.set("seen", r.Labels["path"])
				if r.Labels["__name__"] == "request_ms" {
					r.set("__name__", "request_seconds")
				}
			})
		}}
	default:
		return w.emit()
	}
}

// each edits every record individually and rolls some edits back.
func (w *world) each() step {
	mode, fail := w.IntN(6), w.IntN(3)
	label := w.pick("job", "n")
	return step{fmt.Sprint("each ", mode, fail, label), func(m *view.Metrics) error {
		for i := m.Next(0); i >= 0; i = m.Next(i + 1) {
			m.Mark(i)
			switch mode {
			case 0:
				_ = m.SetLabel(i, label, fmt.Sprint(i%7))
				_ = m.SetName(i, m.Name(i)+"_total")
			case 1:
				if m.Judged(i) {
					_ = m.SetValue(i, batch.Stale())
				}
			case 2:
				m.SetTime(i, m.Time(i)+1)
			case 3:
				m.SetStale(i, i%2 == 0)
			case 4:
				if m.Label(i, "job") == "api" {
					m.Drop(i)
				}
			case 5:
				_ = m.SetLabel(i, "job", "tmp")
				_ = m.SetLabel(i, "job", m.Label(i, "path"))
				_ = m.Emit(m.Copy(i))
			}
			if i%3 == fail {
				m.Rollback()
			}
		}
		return nil
	}, func(rs []*row) []*row {
		n := len(rs)
		for i, r := range rs[:n] {
			if r.dropped || i%3 == fail {
				continue
			}
			switch mode {
			case 0:
				r.set(label, fmt.Sprint(i%7))
				r.set("__name__", r.Labels["__name__"]+"_total")
			case 1:
				if r.judged() {
					r.Bits = 0x7ff8000000000001
				}
			case 2:
				r.T++
			case 3:
				if to := i%2 == 0; to != r.stale() {
					r.Hist, r.hist, r.Exemplars, r.Start = "", nil, "", ""
					r.Bits = 0x7ff8000000000001
					if to {
						r.Bits = batch.StaleNaN
					}
				}
			case 4:
				r.dropped = r.Labels["job"] == "api"
			case 5:
				r.set("job", r.Labels["path"])
				rs = append(rs, r.clone())
			}
		}
		return rs
	}}
}

func (r *row) clone() *row {
	c := *r
	c.Labels = maps.Clone(r.Labels)
	if c.stale() {
		c.Hist, c.hist, c.Exemplars, c.Start = "", nil, "", ""
	}
	return &c
}

func (w *world) emit() step {
	k := w.IntN(3)
	return step{fmt.Sprint("emit ", k), func(m *view.Metrics) error {
		for j := range k {
			r := view.Record{Name: "made", Value: float64(j), Time: 5, Type: "gauge", Labels: []batch.Label{{Name: "z", Value: "1"}, {Name: "a", Value: fmt.Sprint(j)}, {Name: "no", Value: ""}}}
			if err := m.Emit(r); err != nil {
				return err
			}
		}
		return nil
	}, func(rs []*row) []*row {
		for j := range k {
			rs = append(rs, &row{Labels: map[string]string{"__name__": "made", "z": "1", "a": fmt.Sprint(j)}, Type: "gauge", Bits: math.Float64bits(float64(j)), T: 5})
		}
		return rs
	}}
}

var start = time.Unix(1700000000, 0)

func newCache() *view.Cache {
	return view.NewCache(view.Options{Args: map[string]any{"keep": []string{"api"}}})
}

// script returns the edits of a batch: usually those of the previous batch.
func (w *world) script(before []step) (script []step) {
	switch {
	case before == nil || w.IntN(4) == 0:
		for range w.IntN(6) {
			// The series hook is cached by series. It sees unedited series, so it comes
			// first.
			if s := w.step(); s.what != "series" || len(script) == 0 {
				script = append(script, s)
			}
		}
		return script
	case w.IntN(3) == 0:
		i := w.IntN(len(before) + 1)
		s := w.step()
		if s.what == "series" {
			return before
		}
		if i == 0 && len(before) > 0 && before[0].what == "series" {
			i = 1
		}
		return slices.Insert(slices.Clone(before), i, s)
	}
	return before
}

// check applies random edits to some batches in the windows of several VMs, and
// compares the results with the naive implementation.
func check(t *testing.T, seed uint64) {
	w := newWorld(seed)
	gen := newCache()
	defer gen.Close()
	var windows [2]view.Metrics
	var script []step
	for round := range 10 {
		if w.IntN(8) == 0 {
			gen.Sweep()
		}
		m := &windows[w.IntN(2)]
		b := w.batch()
		before := snapshot(b)
		rows := rowsOf(b)
		n := len(rows)
		m.Reset(b, gen, start.Add(time.Duration(round)*time.Minute))
		var did []string
		script = w.script(script)
		for _, s := range script {
			did = append(did, s.what)
			if err := s.view(m); err != nil {
				t.Fatalf("seed %d: %s: %v", seed, s.what, err)
			}
			// Later steps do not affect emitted rows.
			made := rows[n:]
			after := s.rows(rows[:n:n])
			rows = append(after[:n:n], append(slices.Clone(made), after[n:]...)...)
			checkWindow(t, m, rows[:n], fmt.Sprint("seed ", seed, " ", did))
		}
		res := m.Apply()
		where := fmt.Sprintf("seed %d round %d %v", seed, round, did)
		checkResult(t, where, b, res, rows)
		if diff := cmp.Diff(before, snapshot(b)); diff != "" {
			t.Fatalf("%s: the source batch was written to:\n%s", where, diff)
		}
		m.Done()
	}
}

// snapshot describes everything in a batch, to check that it was not modified.
func snapshot(b *batch.Metrics) string {
	out := fmt.Sprintf("%p %v ", b.Series, b.T)
	for i, s := range b.Series {
		out += fmt.Sprintf("%p=%x ", s, math.Float64bits(b.V[i]))
	}
	for _, h := range b.Histograms {
		out += fmt.Sprint(h.Row, h.Int, h.Float)
	}
	return out + fmt.Sprint(b.Exemplars, b.Starts)
}

// checkWindow compares the results of read methods before Apply.
func checkWindow(t *testing.T, m *view.Metrics, rows []*row, where string) {
	t.Helper()
	left := 0
	for i, r := range rows {
		if m.Alive(i) == r.dropped {
			t.Fatalf("%s: row %d alive %v", where, i, m.Alive(i))
		}
		if r.dropped {
			continue
		}
		left++
		v, ok := m.Value(i)
		if math.Float64bits(v) != r.Bits || ok != (r.hist == nil) || m.Time(i) != r.T || m.Stale(i) != r.stale() ||
			m.Judged(i) != r.judged() || m.Name(i) != r.Labels["__name__"] || m.Label(i, "job") != r.Labels["job"] || m.Type(i) != r.Type {
			t.Fatalf("%s: row %d is %s %v %v, want %v", where, i, m.Series(i), v, m.Time(i), r)
		}
		if c := m.Column("path").At(m.Series(i)); (c == nil) != (r.Labels["path"] == "") || c != nil && *c != r.Labels["path"] {
			t.Fatalf("%s: row %d has another path in its column", where, i)
		}
	}
	if m.Left() != left {
		t.Fatalf("%s: %d rows left, want %d", where, m.Left(), left)
	}
}

func checkResult(t *testing.T, where string, in *batch.Metrics, res view.Result[*batch.Metrics], rows []*row) {
	t.Helper()
	want := []*row{}
	dropped := 0
	for _, r := range rows {
		if r.dropped {
			dropped++
		} else {
			want = append(want, r)
		}
	}
	got := rowsOf(res.Batch)
	for _, rs := range [][]*row{got, want} {
		for _, r := range rs {
			r.hist = nil
		}
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(row{}), cmp.Comparer(func(a, b *histogram.FloatHistogram) bool { return true })); diff != "" {
		t.Fatalf("%s (-want +got):\n%s", where, diff)
	}
	if res.Dropped != dropped || res.Batch.Source != in.Source {
		t.Fatalf("%s: %d dropped, source %d, want %d, %d", where, res.Dropped, res.Batch.Source, dropped, in.Source)
	}
	// If nothing changed, the result is the same batch. Unchanged columns are
	// shared.
	same := len(rows) == in.Len() && dropped == 0
	orig := rowsOf(in)
	seriesSame, vSame, tSame := same, same, same
	for i := range got {
		if !same {
			break
		}
		// Handles derived from a released series do not refer back to it.
		seriesSame = seriesSame && maps.Equal(got[i].Labels, orig[i].Labels) && !in.Series[i].Released()
		vSame = vSame && got[i].Bits == orig[i].Bits
		tSame = tSame && got[i].T == orig[i].T
	}
	out := res.Batch
	if in.Len() > 0 && (seriesSame && &out.Series[0] != &in.Series[0] || vSame && &out.V[0] != &in.V[0] || tSame && &out.T[0] != &in.T[0]) {
		t.Fatalf("%s: a column that did not change is a copy", where)
	}
	collisions := map[string]int{}
	n := 0
	for _, r := range got {
		k := fmt.Sprint(r.Labels, r.T)
		if collisions[k]++; collisions[k] > 1 {
			n++
		}
	}
	relabelled := len(rows) > in.Len()
	for i, r := range orig {
		relabelled = relabelled || !maps.Equal(rows[i].Labels, r.Labels)
	}
	if res.Collisions != n && (relabelled || res.Collisions != 0) || (res.Collisions > 0) != (res.Collision != nil) {
		t.Fatalf("%s: %d collisions (%v), want %d", where, res.Collisions, res.Collision, n)
	}
}

func TestModel(t *testing.T) {
	n := uint64(400) // the fuzz test covers more
	if testing.Short() {
		n = 100
	}
	for seed := range n {
		check(t, seed)
	}
}

func FuzzModel(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(check)
}
