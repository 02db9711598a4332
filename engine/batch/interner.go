package batch

import (
	"sync"
	"time"
)

// Interner returns the same handle for equal labels. It is for records whose
// labels do not come from the handle of a source: pushed samples, emitted
// samples, aggregates. A handle that is unused for the ttl is released and
// removed.
//
// All methods are safe for concurrent use.
type Interner struct {
	ttl time.Duration

	mu     sync.Mutex
	series map[uint64][]interned // by hash of the labels
	n      int
	bytes  int // of the labels in the encoding of AppendWire
	swept  time.Time
}

type interned struct {
	s    *Series
	used time.Time
}

// NewInterner returns an Interner that keeps each handle for ttl after its last
// use, or forever if ttl is zero.
func NewInterner(ttl time.Duration) *Interner {
	return &Interner{ttl: ttl, series: map[uint64][]interned{}}
}

// Intern returns the handle for sorted labels. If there is none, it creates one
// with a copy of the labels and with meta, which may be nil. now is the current
// time of the caller's clock. The handle has no Source: several sources may
// share it, so it must not be released with one of them.
func (in *Interner) Intern(sorted []Label, meta *Metadata, now time.Time) *Series {
	var buf [512]byte // most label sets fit, so a look-up of known labels allocates nothing
	wire := AppendLabels(buf[:0], sorted)
	return in.intern(Hash(wire), wire, meta, now)
}

// Lookup returns the handle whose AppendWire appends wire, or nil if there is
// none. hash must be Hash(wire). It allocates nothing, so encoded labels need
// not be decoded if their series is known.
func (in *Interner) Lookup(hash uint64, wire []byte, now time.Time) *Series {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.lookup(hash, wire, now)
}

// Each calls f with every known handle. f must not call the Interner.
func (in *Interner) Each(f func(*Series)) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, es := range in.series {
		for _, e := range es {
			f(e.s)
		}
	}
}

// Len returns the number of known handles.
func (in *Interner) Len() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.n
}

// Size returns the number of known handles and the size of their labels in
// bytes.
func (in *Interner) Size() (n, bytes int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.n, in.bytes
}

// Clear releases and removes every handle.
func (in *Interner) Clear() {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, es := range in.series {
		for _, e := range es {
			e.s.Release()
		}
	}
	clear(in.series)
	in.n, in.bytes = 0, 0
}

func (in *Interner) intern(hash uint64, wire []byte, meta *Metadata, now time.Time) *Series {
	in.mu.Lock()
	defer in.mu.Unlock()
	if s := in.lookup(hash, wire, now); s != nil {
		return s
	}
	s := fromWire(wire)
	if meta != nil {
		s.SetMeta(meta)
	}
	in.series[hash] = append(in.series[hash], interned{s, now})
	in.n++
	in.bytes += len(wire)
	return s
}

// lookup must be called with mu held.
func (in *Interner) lookup(hash uint64, wire []byte, now time.Time) *Series {
	if in.ttl > 0 && now.Sub(in.swept) >= in.ttl/2 {
		in.sweep(now)
	}
	es := in.series[hash]
	for i := range es {
		if es[i].s.Is(hash, wire) {
			es[i].used = now
			return es[i].s
		}
	}
	return nil
}

func (in *Interner) sweep(now time.Time) {
	in.swept = now
	for h, es := range in.series {
		kept := es[:0]
		for _, e := range es {
			if now.Sub(e.used) < in.ttl {
				kept = append(kept, e)
				continue
			}
			e.s.Release()
			in.n--
			in.bytes -= e.s.WireSize()
		}
		clear(es[len(kept):])
		if len(kept) == 0 {
			delete(in.series, h)
		} else {
			in.series[h] = kept
		}
	}
}
