package state

// entry is a key with its value. It is in two lists, ordered by the last write
// and by the last use (lru only).
type entry struct {
	key     string
	val     Value
	written int64  // Unix ms
	seq     uint64 // number of the last write
	link    [2]link
}

type link struct{ prev, next int32 }

// The lists of a table.
const (
	byWrite = iota
	byUse
)

const (
	chunkBits = 7
	chunkSize = 1 << chunkBits
	nowhere   = int32(-1)
)

// table contains entries by key and in order. Entries are in chunks that are
// never moved: growing a slice would copy millions of entries while a batch
// waits.
type table struct {
	index  map[string]int32
	chunks [][]entry
	used   int32 // number of positions in chunks that were ever used
	free   int32 // the first free position, chained by link[byWrite].next
	ends   [2]link
	lists  int
	bytes  int64
	share  *Share // that counts bytes; may be nil
	seq    uint64
}

func newTable(lists int) table {
	t := table{lists: lists}
	t.reset()
	return t
}

// reset drops everything.
func (t *table) reset() {
	t.grow(-t.bytes)
	t.index, t.chunks, t.used, t.free = map[string]int32{}, nil, 0, nowhere
	for i := range t.ends {
		t.ends[i] = link{nowhere, nowhere}
	}
}

// grow adds n bytes, which may be negative.
func (t *table) grow(n int64) {
	if t.bytes += n; t.share != nil {
		t.share.add(n)
	}
}

// join counts the bytes in a share, which may be nil, instead of the previous
// one.
func (t *table) join(s *Share) {
	n := t.bytes
	t.grow(-n)
	t.share = s
	t.grow(n)
}

func (t *table) entryAt(i int32) *entry { return &t.chunks[i>>chunkBits][i&(chunkSize-1)] }

func (t *table) first(list int) int32 { return t.ends[list].next }

func (t *table) pushBack(list int, i int32) {
	last := t.ends[list].prev
	t.entryAt(i).link[list] = link{last, nowhere}
	if last == nowhere {
		t.ends[list].next = i
	} else {
		t.entryAt(last).link[list].next = i
	}
	t.ends[list].prev = i
}

func (t *table) unlink(list int, i int32) {
	l := t.entryAt(i).link[list]
	if l.prev == nowhere {
		t.ends[list].next = l.next
	} else {
		t.entryAt(l.prev).link[list].next = l.next
	}
	if l.next == nowhere {
		t.ends[list].prev = l.prev
	} else {
		t.entryAt(l.next).link[list].prev = l.prev
	}
}

func (t *table) toBack(list int, i int32) {
	if t.ends[list].prev == i {
		return
	}
	t.unlink(list, i)
	t.pushBack(list, i)
}

// insert adds a key that does not exist.
func (t *table) insert(key string, v Value, now int64) {
	i := t.free
	if i != nowhere {
		t.free = t.entryAt(i).link[byWrite].next
	} else {
		i = t.used
		if int(i>>chunkBits) == len(t.chunks) {
			t.chunks = append(t.chunks, make([]entry, 0, chunkSize))
		}
		c := &t.chunks[i>>chunkBits]
		*c = (*c)[:len(*c)+1]
		t.used++
	}
	t.seq++
	e := t.entryAt(i)
	e.key, e.val, e.written, e.seq = key, v, now, t.seq
	for l := range t.lists {
		t.pushBack(l, i)
	}
	t.index[key] = i
	t.grow(EntrySize(key, v))
}

// write sets the value of an entry.
func (t *table) write(i int32, v Value, now int64) {
	e := t.entryAt(i)
	t.grow(int64(len(v.Data) - len(e.val.Data)))
	t.seq++
	e.val, e.written, e.seq = v, now, t.seq
	for l := range t.lists {
		t.toBack(l, i)
	}
}

func (t *table) remove(i int32) {
	e := t.entryAt(i)
	t.grow(-EntrySize(e.key, e.val))
	delete(t.index, e.key)
	for l := range t.lists {
		t.unlink(l, i)
	}
	*e = entry{link: [2]link{{next: t.free}}}
	t.free = i
	if len(t.index) == 0 && len(t.chunks) > 1 {
		t.reset() // otherwise, neither chunks nor a map release memory
	}
}
