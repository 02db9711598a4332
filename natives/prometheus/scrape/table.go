package scrape

import "math/bits"

// table is an index by hash. It contains the indexes of entries, from 0; the
// caller compares the entries. The zero value is empty and has no capacity.
type table struct {
	slots []uint32 // index + 1; 0 means free
	shift uint8
}

// reset clears the table and allocates capacity for n entries.
func (t *table) reset(n int) {
	size := 8
	for size*3 < n*4 {
		size *= 2
	}
	if cap(t.slots) >= size && cap(t.slots) <= 4*size {
		t.slots = t.slots[:size]
		clear(t.slots)
	} else {
		t.slots = make([]uint32, size)
	}
	t.shift = uint8(64 - bits.TrailingZeros(uint(size)))
}

// drop clears the table. Call reset before add.
func (t *table) drop() { t.slots = t.slots[:0] }

// room returns the maximum number of entries.
func (t *table) room() int { return len(t.slots) / 4 * 3 }

// first returns the index of the first entry that may have this hash, and its
// slot. The index is -1 if there is none.
func (t *table) first(hash uint64) (i, slot int) {
	if len(t.slots) == 0 {
		return -1, 0
	}
	slot = int(hash * 0x9e3779b97f4a7c15 >> t.shift)
	return int(t.slots[slot]) - 1, slot
}

// next returns the next candidate after a slot.
func (t *table) next(slot int) (int, int) {
	slot = (slot + 1) & (len(t.slots) - 1)
	return int(t.slots[slot]) - 1, slot
}

// add adds an index. The table must have capacity for it.
func (t *table) add(hash uint64, i int) {
	at, slot := t.first(hash)
	for at >= 0 {
		at, slot = t.next(slot)
	}
	t.slots[slot] = uint32(i) + 1
}
