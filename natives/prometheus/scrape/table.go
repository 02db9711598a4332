package scrape

import "math/bits"

// table finds things by hash: it has their numbers, from 0, in slots, and who
// asks compares. The zero value is empty, and has no room.
type table struct {
	slots []uint32 // number + 1; 0 is a free one
	shift uint8
}

// reset empties the table and makes room for n.
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

// drop empties the table; it needs reset before anything is put into it.
func (t *table) drop() { t.slots = t.slots[:0] }

// room is how many the table may have.
func (t *table) room() int { return len(t.slots) / 4 * 3 }

// first returns the number of the first thing that may have that hash and its
// slot, -1 when there is none.
func (t *table) first(hash uint64) (i, slot int) {
	if len(t.slots) == 0 {
		return -1, 0
	}
	slot = int(hash * 0x9e3779b97f4a7c15 >> t.shift)
	return int(t.slots[slot]) - 1, slot
}

// next returns the one after that in a slot.
func (t *table) next(slot int) (int, int) {
	slot = (slot + 1) & (len(t.slots) - 1)
	return int(t.slots[slot]) - 1, slot
}

// add adds a number; there must be room for it.
func (t *table) add(hash uint64, i int) {
	at, slot := t.first(hash)
	for at >= 0 {
		at, slot = t.next(slot)
	}
	t.slots[slot] = uint32(i) + 1
}
