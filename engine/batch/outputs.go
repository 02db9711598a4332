package batch

import (
	"slices"
	"sync"
)

// Outputs records which series a node that renames or drops series sent last
// for each Origin, and which version of its rules produced them. If another
// version produces the next batch of that Origin, some of those series may not
// come again. They need a staleness marker; otherwise, an instant query would
// return the old series in addition to the new series for five minutes.
// Recording the last output costs a pointer per series and no work per sample,
// and is correct for any script.
//
// A version is any number that is unique to a set of rules. The caller passes
// it with each batch: while the rules change, calls of both versions are in
// flight, and only the caller knows which version produced the batch.
//
// All methods are safe for concurrent use. Calls for one Origin come one after
// another.
type Outputs struct {
	mu   sync.Mutex
	last map[Origin]sourceOutput
}

type sourceOutput struct {
	gen  uint64
	live []*Series
	owed []*Series // of versions before gen, not accepted yet
}

// debts returns the series that may need a marker if gen produces the next
// batch. The caller must not modify them.
func (o sourceOutput) debts(gen uint64) []*Series {
	switch {
	case o.gen == gen || len(o.live) == 0:
		return o.owed
	case len(o.owed) == 0:
		return o.live
	}
	return append(o.owed[:len(o.owed):len(o.owed)], o.live...)
}

// NewOutputs returns an empty Outputs.
func NewOutputs() *Outputs {
	return &Outputs{last: map[Origin]sourceOutput{}}
}

// Settle returns out, which version gen produced from a batch of its Origin,
// with the pending staleness markers of the Origin appended at time t (Unix
// ms). It returns out itself if no markers are pending. It does not change o:
// Sent does that after the batch was accepted.
func (o *Outputs) Settle(gen uint64, out *Metrics, t int64) *Metrics {
	o.mu.Lock()
	debts := o.last[out.Origin()].debts(gen)
	o.mu.Unlock()
	gone := absent(debts, out.Series)
	if len(gone) == 0 {
		return out
	}
	n := len(out.Series)
	b := *out
	b.Series = append(out.Series[:n:n], gone...)
	b.T = append(out.T[:n:n], make([]int64, len(gone))...)
	b.V = append(out.V[:n:n], make([]float64, len(gone))...)
	for i := n; i < len(b.Series); i++ {
		b.T[i], b.V[i] = t, Stale()
	}
	return &b
}

// Sent records that a batch returned by Settle was accepted.
func (o *Outputs) Sent(gen uint64, b *Metrics) {
	if b.Source&pushed != 0 {
		return
	}
	live := alive(b)
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(live) == 0 {
		delete(o.last, b.Origin())
		return
	}
	o.last[b.Origin()] = sourceOutput{gen: gen, live: live}
}

// SentInPart records that some receivers accepted a batch returned by Settle
// and the other receivers refused it. The markers stay pending and are sent
// again with the next batch. A repeated marker does no harm.
func (o *Outputs) SentInPart(gen uint64, b *Metrics) {
	if b.Source&pushed != 0 {
		return
	}
	live := alive(b)
	o.mu.Lock()
	defer o.mu.Unlock()
	owed := absent(o.last[b.Origin()].debts(gen), live)
	if len(live) == 0 && len(owed) == 0 {
		delete(o.last, b.Origin())
		return
	}
	o.last[b.Origin()] = sourceOutput{gen: gen, live: live, owed: owed}
}

// Ends returns a batch of markers at time t for all series recorded for an
// Origin.
func (o *Outputs) Ends(of Origin, t int64) *Metrics {
	o.mu.Lock()
	last := o.last[of]
	o.mu.Unlock()
	gone := absent(append(last.owed[:len(last.owed):len(last.owed)], last.live...), nil)
	b := &Metrics{Source: of.Source, Way: of.Way, Series: gone, T: make([]int64, len(gone)), V: make([]float64, len(gone))}
	for i := range gone {
		b.T[i], b.V[i] = t, Stale()
	}
	return b
}

// Forget removes the record of an Origin after its markers were sent.
func (o *Outputs) Forget(of Origin) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.last, of)
}

// Has reports whether there is a record of an Origin.
func (o *Outputs) Has(of Origin) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, ok := o.last[of]
	return ok
}

// Sweep removes the Origins whose series were all released, because nothing
// will be sent for them again.
func (o *Outputs) Sweep() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for of, out := range o.last {
		if allEnded(out.live) && allEnded(out.owed) {
			delete(o.last, of)
		}
	}
}

func allEnded(ss []*Series) bool {
	for _, s := range ss {
		for s.source != nil { // a derived handle may be released before its source ends
			s = s.source
		}
		if !s.dead.Load() {
			return false
		}
	}
	return true
}

// absent returns the series of ss whose labels do not occur in have, each once.
func absent(ss, have []*Series) (gone []*Series) {
	// A new version usually has the same series in the same rows.
	for i := 0; i < len(have) && len(ss) > 0 && same(ss[0], have[i]); i++ {
		ss = ss[1:]
	}
	if len(ss) == 0 {
		return nil
	}
	// The series with a hash are a list: latest[hash] is the last one, previous[i] the one
	// before seen[i].
	seen := append(make([]*Series, 0, len(have)+len(ss)), have...)
	previous := make([]int, 0, len(have)+len(ss))
	latest := make(map[uint64]int, len(have)+len(ss))
	link := func(hash uint64) {
		before, ok := latest[hash]
		if !ok {
			before = -1
		}
		latest[hash] = len(previous)
		previous = append(previous, before)
	}
	for _, s := range have {
		link(s.hash)
	}
next:
	for _, s := range ss {
		if i, ok := latest[s.hash]; ok {
			for ; i >= 0; i = previous[i] {
				if seen[i].Equal(s) {
					continue next
				}
			}
		}
		seen = append(seen, s)
		link(s.hash)
	}
	return slices.Clone(seen[len(have):]) // which may be kept for long
}

func same(a, b *Series) bool { return a == b || a.hash == b.hash && a.Equal(b) }

// alive returns the series of b without the rows that are markers. It returns
// b's own column if there are no such rows.
func alive(b *Metrics) []*Series {
	for i, v := range b.V {
		if !IsStale(v) {
			continue
		}
		live := append([]*Series(nil), b.Series[:i]...)
		for ; i < len(b.V); i++ {
			if !IsStale(b.V[i]) {
				live = append(live, b.Series[i])
			}
		}
		return live
	}
	return b.Series
}
