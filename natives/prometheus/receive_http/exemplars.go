package receivehttp

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/weir-run/weir/engine/batch"
)

// held are exemplars whose series had no sample in their request, as Prometheus
// sends them. They wait for the next sample, because in a batch an exemplar
// belongs to a sample.
type held struct {
	mu       sync.Mutex
	bySeries map[*batch.Series][]heldExemplar
	n        int
}

type heldExemplar struct {
	e     batch.Exemplar
	since time.Time
}

// maxExemplar is the maximum size of an exemplar message, in bytes; larger ones
// are not decoded. Its labels may have valid.MaxExemplarRunes, and take many
// times the size of the message in memory.
const maxExemplar = 16 << 10

const (
	// maxHeld is the maximum number of waiting exemplars.
	maxHeld = 10_000
	// heldFor is how long they wait.
	heldFor = 5 * time.Minute
)

func newHeld() *held { return &held{bySeries: map[*batch.Series][]heldExemplar{}} }

// add keeps an exemplar. It returns false if there are too many.
func (h *held) add(o orphan, now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.n >= maxHeld {
		return false
	}
	h.bySeries[o.series] = append(h.bySeries[o.series], heldExemplar{o.e, now})
	h.n++
	return true
}

// takeExemplars removes the exemplars that wait for one of ss, and calls f with
// each and the index of its series.
func (h *held) takeExemplars(ss []*batch.Series, f func(row int, e batch.Exemplar)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, s := range ss {
		if h.n == 0 {
			return
		}
		if es, ok := h.bySeries[s]; ok {
			for _, e := range es {
				f(i, e.e)
			}
			delete(h.bySeries, s)
			h.n -= len(es)
		}
	}
}

// expire removes exemplars that have waited too long and returns their number.
func (h *held) expire(now time.Time) (gone int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for s, es := range h.bySeries {
		kept := slices.DeleteFunc(es, func(e heldExemplar) bool { return now.Sub(e.since) > heldFor })
		gone += len(es) - len(kept)
		if len(kept) == 0 {
			delete(h.bySeries, s)
		} else {
			h.bySeries[s] = kept
		}
	}
	h.n -= gone
	return gone
}

// placeOrphans adds exemplars without a sample to a row of their series in this
// request, or keeps them for a later one.
func (d *decoder) placeOrphans() {
	d.held.takeExemplars(d.series, func(row int, e batch.Exemplar) {
		e.Row = row
		d.exemplars = append(d.exemplars, e)
	})
	if len(d.orphans) > 0 {
		last := make(map[*batch.Series]int, len(d.orphans))
		for _, o := range d.orphans {
			last[o.series] = -1
		}
		for row, s := range d.series {
			if _, ok := last[s]; ok {
				last[s] = row
			}
		}
		for _, o := range d.orphans {
			if row := last[o.series]; row >= 0 {
				o.e.Row = row
				d.exemplars = append(d.exemplars, o.e)
			} else if !d.held.add(o, d.now) {
				d.dropExemplar("no_sample")
				d.written.exemplars--
			}
		}
	}
	slices.SortStableFunc(d.exemplars, func(a, b batch.Exemplar) int {
		return cmp.Or(cmp.Compare(a.Row, b.Row), cmp.Compare(a.T, b.T))
	})
}
