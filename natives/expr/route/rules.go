package route

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/expr"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/natives/expr/internal/clause"
)

// rules are the routes of one set of arguments and the cached results for series.
type rules struct {
	args    *Arguments
	exits   []flow.Exit
	samples side
	lines   side
}

// side contains the expressions for one signal. Without judges, everything goes
// to forward_to.
type side struct {
	judges []*clause.Judge
	none   uint64 // the bit for rows that match no route
	memo   batch.Memo[way]
}

// way is the result for a series: the route of all its rows, or the fact that
// each row must be evaluated.
type way struct {
	route uint64 // one bit; 0 if each row must be evaluated
	asked *asked
}

// asked is a series whose rows may take different routes.
type asked struct {
	labels []expr.Verdict // the results of the labels, by route
	went   atomic.Uint64  // the routes of the samples since the last marker, as bits
}

func newRules(a *Arguments, exits []flow.Exit) *rules {
	r := &rules{args: a, exits: exits}
	r.samples.none = 1 << len(a.Routes)
	r.lines.none = r.samples.none
	signals, _ := a.fit().Signals()
	for _, route := range a.Routes {
		j := clause.NewJudges(route.When)
		if signals&batch.SignalMetrics != 0 {
			r.samples.judges = append(r.samples.judges, j.Samples)
		}
		if signals&batch.SignalLogs != 0 {
			r.lines.judges = append(r.lines.judges, j.Lines)
		}
	}
	return r
}

// same reports whether a has the same routes to the same receivers. The names of
// routes may differ.
func (r *rules) same(a *Arguments) bool {
	return slices.Equal(r.args.ForwardTo, a.ForwardTo) && slices.EqualFunc(r.args.Routes, a.Routes, func(x, y *Route) bool {
		return x.When == y.When && slices.Equal(x.ForwardTo, y.ForwardTo)
	})
}

// Sweep removes released series from the cache.
func (r *rules) Sweep() {
	r.samples.memo.Sweep(nil)
	r.lines.memo.Sweep(nil)
}

// Close does nothing: no series are derived.
func (r *rules) Close() {}

// words is the pool of scratch memory for the routes of each row.
var words = sync.Pool{New: func() any { return new([]uint64) }}

// apply returns the rows for each output, and the number of rows whose route has
// no receivers.
func (r *rules) apply(b *batch.Metrics, failed *clause.Batch) (parts []flow.Part, dropped int) {
	var x expr.Sample
	return r.split(batch.SignalMetrics, &r.samples, b.Series,
		func(i int, a *asked) uint64 { return r.samples.chooseRoute(&x, b, i, a, failed) },
		func(leave func(row int) bool) flow.Part { return flow.Part{Batch: b.Select(leave)} })
}

// applyLogs is apply for log lines.
func (r *rules) applyLogs(b *batch.Logs, failed *clause.Batch) (parts []flow.Part, dropped int) {
	var x expr.Sample
	return r.split(batch.SignalLogs, &r.lines, b.Stream,
		func(i int, a *asked) uint64 { return r.lines.askLine(&x, b, i, a, failed) },
		func(leave func(row int) bool) flow.Part { return flow.Part{Logs: b.Select(leave)} })
}

// split divides the rows of a batch with that column. ask returns the route of a
// row for which the labels are not sufficient; part returns a batch of some rows.
func (r *rules) split(signal batch.Signals, s *side, column []*batch.Series,
	ask func(row int, a *asked) uint64, part func(leave func(row int) bool) flow.Part) (parts []flow.Part, dropped int) {
	scratch := words.Get().(*[]uint64)
	defer words.Put(scratch)
	routes := s.routes((*scratch)[:0], column, ask)
	*scratch = routes
	var taken uint64 // routes that have a receiver
	parts = make([]flow.Part, 0, len(r.exits)+1)
	made := map[uint64]flow.Part{} // several outputs may have the same routes
	for _, e := range r.exits {
		if !e.Sender.Takes(signal) {
			continue
		}
		taken |= e.Ways
		p, ok := made[e.Ways]
		if !ok {
			p = part(func(row int) bool { return routes[row]&e.Ways != 0 })
			made[e.Ways] = p
		}
		p.Sender = e.Sender
		parts = append(parts, p)
	}
	for _, route := range routes {
		if route&taken == 0 {
			dropped++
		}
	}
	return parts, dropped
}

// routes appends the route of each row to dst.
func (s *side) routes(dst []uint64, column []*batch.Series, ask func(row int, a *asked) uint64) []uint64 {
	var last *batch.Series
	var w way
	for i, of := range column {
		if of != last {
			last, w = of, s.wayOf(of)
		}
		if w.route != 0 {
			dst = append(dst, w.route)
		} else {
			dst = append(dst, ask(i, w.asked))
		}
	}
	return dst
}

// wayOf evaluates the labels of a series.
func (s *side) wayOf(of *batch.Series) way {
	if w, ok := s.memo.Get(of); ok {
		return w
	}
	var x expr.Sample
	w := way{route: s.none}
	labels := make([]expr.Verdict, 0, len(s.judges))
	for i, j := range s.judges {
		v := j.LabelPart(&x, of)
		labels = append(labels, v)
		if !j.Decides(v) {
			w = way{asked: &asked{}}
		} else if v == expr.True {
			if w.asked == nil {
				w.route = 1 << i
			}
			break
		}
	}
	if w.asked != nil {
		w.asked.labels = labels
	}
	if of.Released() {
		return w // its ID may belong to another series by now
	}
	return s.memo.Put(of, w)
}

// chooseRoute returns the route of row i. For a marker, it may return several
// routes.
func (s *side) chooseRoute(x *expr.Sample, b *batch.Metrics, i int, a *asked, failed *clause.Batch) uint64 {
	stale := batch.IsStale(b.V[i])
	if stale {
		if went := a.went.Swap(0); went != 0 {
			return went
		}
	}
	route := s.none
	for k, v := range a.labels {
		if j := s.judges[k]; !j.Decides(v) {
			var err error
			if v, err = j.Row(x, b, i, v); err != nil {
				failed.Add("when", b.Series[i], err)
			}
		}
		if v == expr.True {
			route = 1 << k
			break
		}
	}
	if !stale && a.went.Load()&route == 0 {
		a.went.Or(route)
	}
	return route
}

// askLine is chooseRoute for log lines.
func (s *side) askLine(x *expr.Sample, b *batch.Logs, i int, a *asked, failed *clause.Batch) uint64 {
	for k, v := range a.labels {
		if j := s.judges[k]; !j.Decides(v) {
			var err error
			if v, err = j.Line(x, b, i, v); err != nil {
				failed.AddLine("when", b.Stream[i], err)
			}
		}
		if v == expr.True {
			return 1 << k
		}
	}
	return s.none
}
