package batch

import "sync"

// Outputs knows which series a node that renames or drops series sent last for
// each source, and under which version of its rules. When the next batch of
// that Origin is made by another version, some of those series may not come
// again; they are owed a staleness marker, or an instant query would show the
// old series beside the new one for five minutes. Keeping the last output
// costs a pointer a series and no work per sample, and is exact whatever a
// script does.
//
// A version is any number that a rule set has to itself. It is passed in,
// not announced: while rules change, calls of both versions are in flight,
// and only the batch knows which of them made it.
//
// All methods are safe for concurrent use; calls for one Origin come one after
// the other.
type Outputs struct {
	mu   sync.Mutex
	last map[Origin]sourceOutput
}

type sourceOutput struct {
	gen  uint64
	live []*Series
	owed []*Series // of versions before gen, not accepted yet
}

// debts are the series that may be owed a marker when gen makes a batch.
func (o sourceOutput) debts(gen uint64) []*Series {
	if o.gen == gen || len(o.live) == 0 {
		return o.owed
	}
	return append(o.owed[:len(o.owed):len(o.owed)], o.live...)
}

// NewOutputs returns an empty Outputs.
func NewOutputs() *Outputs {
	return &Outputs{last: map[Origin]sourceOutput{}}
}

// Settle returns out, what version gen made of a batch of its Origin, with
// the markers appended that the Origin's series are owed, at time t (Unix ms);
// out itself when there are none. It changes nothing: Sent does, once the
// batch was accepted.
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

// Sent says that a batch made by Settle was accepted.
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

// SentInPart says that some receivers accepted a batch made by Settle and some
// did not. The markers stay owed, and come again with the next batch, which
// does no harm to those who have them.
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

// Ends returns a batch of markers, at time t, for all that is known to have
// been sent of an Origin.
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

// Forget forgets what was sent of an Origin: markers were.
func (o *Outputs) Forget(of Origin) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.last, of)
}

// Has reports whether something is known of an Origin.
func (o *Outputs) Has(of Origin) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, ok := o.last[of]
	return ok
}

// Sweep forgets the Origins whose series were all released: nothing will be
// sent for them again.
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

// absent returns those of ss whose labels no series of have has, each once.
func absent(ss, have []*Series) (gone []*Series) {
	if len(ss) == 0 {
		return nil
	}
	byHash := make(map[uint64][]*Series, len(have))
	for _, s := range have {
		byHash[s.hash] = append(byHash[s.hash], s)
	}
next:
	for _, s := range ss {
		for _, h := range byHash[s.hash] {
			if h.Equal(s) {
				continue next
			}
		}
		gone = append(gone, s)
		byHash[s.hash] = append(byHash[s.hash], s)
	}
	return gone
}

// alive returns the series of b but for the rows that are markers; b's own
// column when there is none.
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
