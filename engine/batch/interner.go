package batch

import (
	"sync"
	"time"
)

// Interner gives equal labels the same handle, for records whose labels are
// not a function of a source's handle: pushed samples, emitted ones,
// aggregates. A handle unused for the ttl is released and forgotten.
//
// All methods are safe for concurrent use.
type Interner struct {
	ttl time.Duration

	mu     sync.Mutex
	series map[uint64][]interned // by label hash
	n      int
	bytes  int // of the labels, as AppendWire appends them
	swept  time.Time
}

type interned struct {
	s    *Series
	used time.Time
}

// NewInterner returns an Interner whose handles live for ttl after their last
// use; zero means forever.
func NewInterner(ttl time.Duration) *Interner {
	return &Interner{ttl: ttl, series: map[uint64][]interned{}}
}

// Intern returns the handle for sorted labels, which it copies when they are
// new; meta, which may be nil, becomes a new handle's metadata. now is the
// caller's clock. The handle has no Source: several series may share it, and
// it must not die with one of them.
func (in *Interner) Intern(sorted []Label, meta *Metadata, now time.Time) *Series {
	var buf [512]byte // most label sets fit, and a look-up of known ones allocates nothing
	wire := AppendLabels(buf[:0], sorted)
	return in.intern(Hash(wire), wire, meta, now)
}

// Lookup returns the handle whose AppendWire appends the given bytes, of which hash is
// the Hash, nil when there is none. It allocates nothing; what comes encoded
// needs no decoding while its series is known.
func (in *Interner) Lookup(hash uint64, wire []byte, now time.Time) *Series {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.lookup(hash, wire, now)
}

// Each calls f with every handle that is known. f must not call the Interner.
func (in *Interner) Each(f func(*Series)) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, es := range in.series {
		for _, e := range es {
			f(e.s)
		}
	}
}

// Len returns how many handles are known.
func (in *Interner) Len() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.n
}

// Size returns how many handles are known and how many bytes their labels take.
func (in *Interner) Size() (n, bytes int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.n, in.bytes
}

// Clear releases and forgets every handle.
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

// lookup expects mu to be held.
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
