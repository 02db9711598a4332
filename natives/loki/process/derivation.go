package process

import (
	"encoding/binary"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weir-run/weir/engine/batch"
)

// derivation maps a stream and some values of a line to a stream with other
// labels. The same stream and values give the same handle in every batch. Streams
// that have not been used for a while are released.
type derivation struct {
	edit func(b *batch.Builder, values []value)
	memo batch.Memo[*variants] // by the original stream

	mu     sync.Mutex
	varied []*variants // those that depend on values, of live streams
	sweeps atomic.Uint32
}

// variants are the streams that were derived from one stream.
type variants struct {
	recent [recents]atomic.Pointer[variant] // by place

	mu   sync.Mutex
	by   map[string]*variant // by the values; nil until the first lookup
	dead bool
}

// recents is the number of variants that are found without a lock. It covers the
// values that typically alternate within a stream, such as log levels.
const recents = 8

// maxVariants is the maximum number of variants of a stream. If a label is
// different in each line, each line gets a new handle, but memory stays bounded.
const maxVariants = 10_000

// place returns the index in recent of the variant for values.
func place(values []value) int {
	h := 0
	for _, v := range values {
		h = 31*h + len(v.text) + int(v.kind)
		if n := len(v.text); n > 0 {
			h ^= int(v.text[0]) ^ int(v.text[n-1])<<1
		}
	}
	return h & (recents - 1)
}

// variant is a derived stream and the values that it was derived from.
type variant struct {
	values []value
	from   *batch.Stream
	to     *batch.Stream
	used   atomic.Uint32 // the number of sweeps before the last use
}

// derive returns the stream that is derived from s and values. The caller may
// overwrite values afterwards.
func (d *derivation) derive(s *batch.Stream, values []value) *batch.Stream {
	vs, ok := d.memo.Get(s)
	if ok {
		// Most lines of a stream have the same values as a previous line.
		if v := vs.recent[place(values)].Load(); v != nil && slices.Equal(v.values, values) {
			v.markUsed(d.sweeps.Load())
			return v.to
		}
	} else {
		vs = d.memo.Put(s, new(variants))
	}
	return d.lookup(vs, s, values)
}

func (v *variant) markUsed(sweeps uint32) {
	if v.used.Load() != sweeps { // a store would invalidate the cache line on the other cores
		v.used.Store(sweeps)
	}
}

// apply derives a stream for each row of a pass from the values in slots.
func (d *derivation) apply(p *pass, slots []int) {
	var from, to *batch.Stream
	for _, r := range p.rows {
		s := p.stream[r]
		if len(slots) == 0 {
			if s != from {
				from, to = s, d.derive(s, nil)
			}
			p.setStream(r, to)
			continue
		}
		p.values = p.values[:0]
		for _, slot := range slots {
			p.values = append(p.values, p.get(slot, r))
		}
		p.setStream(r, d.derive(s, p.values))
	}
}

func (d *derivation) lookup(vs *variants, s *batch.Stream, values []value) *batch.Stream {
	var room [128]byte
	key := appendKey(room[:0], values)
	vs.mu.Lock()
	defer vs.mu.Unlock()
	v := vs.by[string(key)]
	if v == nil {
		if len(vs.by) >= maxVariants {
			vs.empty()
		}
		v = d.addVariant(s, values)
		if vs.dead { // the stream ended or the pipeline was closed
			return v.to
		}
		if vs.by == nil {
			vs.by = map[string]*variant{}
			if len(values) > 0 {
				d.mu.Lock()
				d.varied = append(d.varied, vs)
				d.mu.Unlock()
			}
		}
		vs.by[string(key)] = v
	}
	v.markUsed(d.sweeps.Load())
	vs.recent[place(values)].Store(v)
	return v.to
}

func (d *derivation) addVariant(s *batch.Stream, values []value) *variant {
	v := &variant{from: s, values: make([]value, len(values))}
	for i, w := range values { // the values must not retain the memory of a batch
		v.values[i] = value{w.kind, string([]byte(w.text))}
	}
	var b batch.Builder
	b.Reset(s)
	d.edit(&b, v.values)
	v.to = b.Series(s)
	return v
}

func appendKey(dst []byte, values []value) []byte {
	for _, v := range values {
		dst = binary.AppendUvarint(append(dst, byte(v.kind)), uint64(len(v.text)))
		dst = append(dst, v.text...)
	}
	return dst
}

// removeUnused releases the variants of streams that have ended and those that
// were not used in the last two sweep intervals.
func (d *derivation) removeUnused() {
	d.memo.Sweep(func(_ *batch.Stream, vs *variants) { d.forget(vs) })
	now := d.sweeps.Add(1)
	d.mu.Lock()
	varied := slices.Clone(d.varied)
	d.mu.Unlock()
	for _, vs := range varied {
		vs.mu.Lock()
		for key, v := range vs.by {
			if v.used.Load()+2 < now {
				delete(vs.by, key)
				vs.recent[place(v.values)].CompareAndSwap(v, nil)
				v.giveBack()
			}
		}
		vs.mu.Unlock()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.varied = slices.DeleteFunc(d.varied, func(vs *variants) bool {
		vs.mu.Lock()
		defer vs.mu.Unlock()
		return vs.dead
	})
}

func (d *derivation) forget(vs *variants) {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	vs.dead = true
	vs.empty()
	vs.by = nil
}

// empty releases all variants. The caller holds mu.
func (vs *variants) empty() {
	for i := range vs.recent {
		vs.recent[i].Store(nil)
	}
	for _, v := range vs.by {
		v.giveBack()
	}
	clear(vs.by)
}

// giveBack releases the stream of a variant that is not used any more.
func (v *variant) giveBack() {
	if v.to != v.from {
		v.to.Release()
	}
}

func (d *derivation) close() {
	d.memo.Clear(func(_ *batch.Stream, vs *variants) { d.forget(vs) })
}
