package batch

import "sync"

// Outputs knows which series a node that renames or drops series sent last for
// each source. When the node's rules change, some of those series will not
// come again; they are owed a staleness marker at their source's next batch,
// or an instant query would show the old series beside the new one for five
// minutes. Keeping the last output costs a pointer a series and no work per
// sample, and is exact whatever a script does.
//
// All methods are safe for concurrent use; calls for one source come one after
// the other.
type Outputs struct {
	mu   sync.Mutex
	last map[uint64][]*Series
	owed map[uint64][]*Series
}

// NewOutputs returns an empty Outputs.
func NewOutputs() *Outputs {
	return &Outputs{last: map[uint64][]*Series{}, owed: map[uint64][]*Series{}}
}

// Changed says that the rules changed: what was sent last is owed a marker
// unless the next batch of its source has it again.
func (o *Outputs) Changed() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for src, ss := range o.last {
		// Debts from a change that this source has not seen yet stand: the
		// series of both generations may be gone.
		o.owed[src] = append(o.owed[src][:len(o.owed[src]):len(o.owed[src])], ss...)
	}
}

// Settle returns out, what the node made of a batch of its source, with the
// markers appended that the source's series are owed, at time t (Unix ms);
// out itself when there are none. It changes nothing: Sent does, once the
// batch was accepted.
func (o *Outputs) Settle(out *Metrics, t int64) *Metrics {
	o.mu.Lock()
	owed := o.owed[out.Source]
	o.mu.Unlock()
	if len(owed) == 0 {
		return out
	}
	have := make(map[uint64][]*Series, len(out.Series))
	for _, s := range out.Series {
		have[s.hash] = append(have[s.hash], s)
	}
	known := func(s *Series) bool {
		for _, h := range have[s.hash] {
			if h.Equal(s) {
				return true
			}
		}
		return false
	}
	var gone []*Series
	for _, s := range owed {
		if !known(s) {
			gone = append(gone, s)
			have[s.hash] = append(have[s.hash], s)
		}
	}
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
func (o *Outputs) Sent(b *Metrics) {
	live := b.Series
	for i, v := range b.V {
		if IsStale(v) {
			live = append([]*Series(nil), b.Series[:i]...)
			for ; i < len(b.V); i++ {
				if !IsStale(b.V[i]) {
					live = append(live, b.Series[i])
				}
			}
			break
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.owed, b.Source)
	if len(live) == 0 {
		delete(o.last, b.Source)
	} else {
		o.last[b.Source] = live
	}
}
