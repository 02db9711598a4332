package scrape

import (
	"maps"
	"slices"

	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/natives/prometheus/internal/valid"
)

// exemplarOrder is the reason for dropping exemplars that are older than the
// newest one of their series.
const exemplarOrder = "out_of_order"

// newest identifies the newest exemplar of a series.
type newest struct {
	t    int64 // Unix ms; the time of the scrape unless hasT
	hasT bool
	v    float64
	hash uint64 // of its labels
}

// check compares the exemplar e with the newest one of its series, like
// Prometheus's exemplar storage. Duplicates are not counted as dropped, because a
// target repeats an exemplar until it has a new one.
func (n newest) check(e newest) (duplicate, outOfOrder bool) {
	if n.hash == e.hash && n.v == e.v && (n.t == e.t || !n.hasT && !e.hasT) {
		return true, false
	}
	return false, e.t < n.t || e.t == n.t && (e.v < n.v || e.v == n.v && e.hash < n.hash)
}

// exemplars contains the newest exemplar of each series of a target, by the hash
// of the series. As in Prometheus, a series that disappears and comes back keeps
// its newest exemplar.
type exemplars struct {
	byHash map[uint64]newest
	// fresh are the exemplars of the current scrape, which may still fail.
	fresh map[uint64]newest
}

// find returns the newest exemplar of a series.
func (x *exemplars) find(series uint64) (n newest, ok bool) {
	if n, ok = x.fresh[series]; !ok {
		n, ok = x.byHash[series]
	}
	return n, ok
}

func (x *exemplars) put(series uint64, n newest) {
	if x.fresh == nil {
		x.fresh = map[uint64]newest{}
	}
	x.fresh[series] = n
}

// done ends the current scrape.
func (x *exemplars) done(good bool) {
	if len(x.fresh) == 0 {
		return
	}
	if good {
		// Otherwise, series that disappear would stay for ever.
		if x.byHash == nil || len(x.byHash) > 2*len(x.fresh)+1000 {
			x.byHash = make(map[uint64]newest, len(x.fresh))
		}
		maps.Copy(x.byHash, x.fresh)
	}
	clear(x.fresh)
}

// addExemplars adds the exemplars of a row's sample, whose time is t, except
// those that Prometheus would not store. It modifies in.exemplars.
func (in *intake) addExemplars(s *batch.Series, row int, t int64) {
	for i := range in.exemplars {
		if !in.exemplars[i].HasTs {
			in.exemplars[i].Ts = t // for sorting only
		}
	}
	slices.SortFunc(in.exemplars, exemplar.Compare)
	for _, e := range in.exemplars {
		e.Labels = e.Labels.WithoutEmpty()
		out := batch.Exemplar{Row: row, Value: e.Value, HasT: e.HasTs}
		if e.HasTs {
			out.T = e.Ts
		}
		e.Labels.Range(func(l labels.Label) {
			out.Labels = append(out.Labels, batch.Label{Name: l.Name, Value: l.Value})
		})
		reason := valid.CheckExemplar(out.Labels)
		n := newest{t: e.Ts, hash: e.Labels.Hash(), v: e.Value, hasT: e.HasTs}
		if last, ok := in.c.exemplars.find(s.Hash()); ok && reason == "" {
			duplicate, outOfOrder := last.check(n)
			if duplicate || outOfOrder {
				in.c.exemplars.put(s.Hash(), last)
			}
			if duplicate {
				continue
			}
			if outOfOrder {
				reason = exemplarOrder
			}
		}
		if reason != "" {
			count(&in.exDropped, reason)
			continue
		}
		in.c.exemplars.put(s.Hash(), n)
		in.rows.exemplars = append(in.rows.exemplars, out)
	}
}

// count increments a counter. The map is only created when it is needed.
func count(counts *map[string]int, reason string) {
	if *counts == nil {
		*counts = map[string]int{}
	}
	(*counts)[reason]++
}
