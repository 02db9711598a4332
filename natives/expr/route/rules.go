package route

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/natives/expr/clause"
	"github.com/weir-run/weir/scripting/expr"
)

// rules are the routes of one generation and what they remember of series.
type rules struct {
	args   *Arguments
	judges []*clause.Judge
	exits  []flow.Exit
	taken  uint64 // routes that lead to a receiver, as bits
	memo   batch.Memo[way]
}

// way is what is known of a series: the route that all its samples go, or that
// each sample must be asked.
type way struct {
	route uint64 // one bit, 0 when each must be asked
	asked *asked
}

// asked is a series whose samples may go different ways.
type asked struct {
	labels []expr.Verdict // what the labels say, by route
	went   atomic.Uint64  // the routes of the samples since the last marker, as bits
}

func newRules(a *Arguments, exits []flow.Exit) *rules {
	r := &rules{args: a, exits: exits}
	for _, route := range a.Routes {
		r.judges = append(r.judges, clause.NewJudge(route.When))
	}
	for _, e := range exits {
		r.taken |= e.Ways
	}
	return r
}

// same reports whether a has the same routes to the same receivers. Routes may
// have other names.
func (r *rules) same(a *Arguments) bool {
	return slices.Equal(r.args.ForwardTo, a.ForwardTo) && slices.EqualFunc(r.args.Routes, a.Routes, func(x, y *Route) bool {
		return x.When == y.When && slices.Equal(x.ForwardTo, y.ForwardTo)
	})
}

// Sweep forgets released series.
func (r *rules) Sweep() { r.memo.Sweep(nil) }

// Close does nothing: nothing is derived.
func (r *rules) Close() {}

// words are scratch memory: the routes of each row.
var words = sync.Pool{New: func() any { return new([]uint64) }}

// apply returns what leaves through each exit, and how many rows go a way that
// leads nowhere.
func (r *rules) apply(b *batch.Metrics, failed *clause.Batch) (parts []flow.Part, dropped int) {
	scratch := words.Get().(*[]uint64)
	defer words.Put(scratch)
	routes := (*scratch)[:0]
	var x expr.Sample
	for i, s := range b.Series {
		w, ok := r.memo.Get(s)
		if !ok {
			w = r.way(&x, s)
		}
		route := w.route
		if route == 0 {
			route = r.ask(&x, b, i, w.asked, failed)
		}
		if route&r.taken == 0 {
			dropped++
		}
		routes = append(routes, route)
	}
	*scratch = routes
	parts = make([]flow.Part, 0, len(r.exits)+1)
	made := map[uint64]*batch.Metrics{} // several exits may have the same routes
	for _, e := range r.exits {
		out, ok := made[e.Ways]
		if !ok {
			out = b.Select(func(i int) bool { return routes[i]&e.Ways != 0 })
			made[e.Ways] = out
		}
		parts = append(parts, flow.Part{Sender: e.Sender, Batch: out})
	}
	return parts, dropped
}

// way decides what the labels of s can decide.
func (r *rules) way(x *expr.Sample, s *batch.Series) way {
	w := way{route: 1 << len(r.judges)}
	labels := make([]expr.Verdict, 0, len(r.judges))
	for i, j := range r.judges {
		v := j.LabelPart(x, s)
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
	if s.Released() {
		return w // its ID may be another's by now
	}
	return r.memo.Put(s, w)
}

// ask returns the route of row i, of several ones for a marker.
func (r *rules) ask(x *expr.Sample, b *batch.Metrics, i int, a *asked, failed *clause.Batch) uint64 {
	stale := batch.IsStale(b.V[i])
	if stale {
		if went := a.went.Swap(0); went != 0 {
			return went
		}
	}
	route := uint64(1) << len(r.judges)
	for k, v := range a.labels {
		if j := r.judges[k]; !j.Decides(v) {
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
