package batch

import "unsafe"

// Slab makes handles that begin together, in memory that several of them share:
// allocations of their own would cost each a sixth more, and the collector its
// work. That memory lives as long as any of them, so there are few to one:
// many only where more is expected.
//
// The zero value is ready. It is not safe for concurrent use; the handles are.
type Slab struct {
	series   []Series // to be made handles of
	wires    []byte   // its free capacity is for labels
	expected int
}

const (
	slabSeries = 8    // handles of a slab when no more are expected
	slabMost   = 128  // and when more are
	slabBytes  = 8192 // most for their labels
)

// Expect says that about n handles will be made now.
func (p *Slab) Expect(n int) { p.expected = n }

// Series returns a new handle for the labels of a Wire, of which hash is the
// xxhash64. wire is copied.
func (p *Slab) Series(hash uint64, wire []byte) *Series {
	if len(p.series) == 0 {
		p.series = make([]Series, max(slabSeries, min(p.expected, slabMost)))
	}
	p.expected--
	if cap(p.wires)-len(p.wires) < len(wire) {
		p.wires = make([]byte, 0, max(len(wire), min(len(wire)*len(p.series), slabBytes)))
	}
	n := len(p.wires)
	p.wires = append(p.wires, wire...)
	s := &p.series[0]
	p.series = p.series[1:]
	s.wire, s.hash, s.id = unsafe.String(unsafe.SliceData(p.wires[n:]), len(wire)), hash, ids.take()
	return s
}
