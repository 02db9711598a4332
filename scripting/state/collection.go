package state

import (
	"encoding/binary"
	"strings"
	"sync"
)

// Collection is one declared piece of state. It is safe for concurrent use.
// Every method is atomic. now is in Unix ms.
type Collection struct {
	kind        Kind
	mu          sync.Mutex
	decl        Decl
	ttl         int64 // ms; 0 means forever
	t           table
	fullEntries *FullError
	fullBytes   *FullError
	evicted     uint64
	refused     uint64
	dirty       map[string]struct{} // keys that differ from the disk; nil if there is no disk
	spare       map[string]struct{} // an empty map for the next
	allDirty    bool                // all keys may differ
}

func newCollection(d Decl) *Collection {
	lists := 1
	if d.Kind == LRU {
		lists = 2
	}
	c := &Collection{kind: d.Kind, t: newTable(lists)}
	c.declare(d)
	return c
}

// declare sets the limits. c.mu is held, or c is not shared yet.
func (c *Collection) declare(d Decl) {
	c.decl = d
	c.ttl = d.TTL.Milliseconds()
	c.fullEntries, c.fullBytes = newFullErrors(d)
	if !d.Persistent {
		c.dirty, c.allDirty = nil, false
	} else if c.dirty == nil {
		c.dirty, c.allDirty = map[string]struct{}{}, true
	}
}

// Decl returns the declaration.
func (c *Collection) Decl() Decl {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.decl
}

// Kind returns the kind, which never changes.
func (c *Collection) Kind() Kind { return c.kind }

// expired reports whether an entry has expired.
func (c *Collection) expired(e *entry, now int64) bool { return c.ttl > 0 && now-e.written >= c.ttl }

// find returns the position of a key that exists and has not expired.
func (c *Collection) find(key string, now int64) int32 {
	i, ok := c.t.index[key]
	if !ok || c.expired(c.t.entryAt(i), now) {
		return nowhere
	}
	return i
}

// drop removes an entry.
func (c *Collection) drop(i int32) {
	c.touch(c.t.entryAt(i).key)
	c.t.remove(i)
}

// expire removes up to n expired entries. All entries have the same ttl, so it
// stops at the first that has not expired.
func (c *Collection) expire(n int, now int64) {
	if c.ttl == 0 {
		return
	}
	for ; n > 0; n-- {
		i := c.t.first(byWrite)
		if i == nowhere || !c.expired(c.t.entryAt(i), now) {
			return
		}
		c.drop(i)
	}
}

// touch records that the value of a key differs from the disk.
func (c *Collection) touch(key string) {
	if c.dirty == nil || c.allDirty {
		return
	}
	if len(c.dirty) > len(c.t.index)+1000 { // keys that were added and removed while the disk was unavailable
		c.allDirty = true
		clear(c.dirty)
		return
	}
	c.dirty[key] = struct{}{}
}

// victim returns the entry to evict if there is no room, or nowhere if none may
// be evicted. spared is an entry that is being written.
func (c *Collection) victim(spared int32) int32 {
	list := byWrite
	switch {
	case c.decl.Kind == LRU:
		list = byUse
	case !c.decl.Evict:
		return nowhere
	}
	i := c.t.first(list)
	if i == spared && i != nowhere {
		i = c.t.entryAt(i).link[list].next
	}
	return i
}

// room makes room for more entries and bytes. spared is an entry that is being
// written.
func (c *Collection) room(entries int, bytes int64, spared int32, now int64) error {
	over := func() error {
		if len(c.t.index)+entries > c.decl.Max {
			return c.fullEntries
		}
		if c.t.bytes+bytes > c.decl.MaxBytes {
			return c.fullBytes
		}
		if c.t.share != nil {
			return c.t.share.full(c.decl.Name, bytes)
		}
		return nil
	}
	if over() == nil {
		return nil
	}
	for i := c.t.first(byWrite); c.ttl > 0 && i != nowhere && c.expired(c.t.entryAt(i), now) && i != spared; i = c.t.first(byWrite) {
		c.drop(i)
	}
	for {
		full := over()
		if full == nil {
			return nil
		}
		i := c.victim(spared)
		if i == nowhere {
			c.refused++
			return full
		}
		c.drop(i)
		c.evicted++
	}
}

// put writes a key. i is its position, or nowhere if it does not exist. The
// data is copied, because a script's text may be a small part of a large one.
func (c *Collection) put(i int32, key string, v Value, now int64) error {
	if n := int64(len(key) + len(v.Data)); n > c.decl.MaxValue {
		c.refused++
		return &SizeError{Name: c.decl.Name, Size: n, Max: c.decl.MaxValue}
	}
	if EntrySize(key, v) > c.decl.MaxBytes { // even if all other entries were evicted
		c.refused++
		return c.fullBytes
	}
	if i == nowhere {
		if err := c.room(1, EntrySize(key, v), nowhere, now); err != nil {
			return err
		}
		v.Data = strings.Clone(v.Data)
		if j, ok := c.t.index[key]; ok { // expired, but not removed yet
			c.t.write(j, v, now)
			key = c.t.entryAt(j).key
		} else {
			key = strings.Clone(key)
			c.t.insert(key, v, now)
		}
	} else {
		key, v.Data = c.t.entryAt(i).key, strings.Clone(v.Data)
		if more := int64(len(v.Data) - len(c.t.entryAt(i).val.Data)); more > 0 {
			if err := c.room(0, more, i, now); err != nil {
				return err
			}
		}
		c.t.write(i, v, now)
	}
	c.touch(key)
	c.expire(2, now) // so that entries expire as fast as they are added
	return nil
}

// Add adds n to the counter of a key, which starts at 0, and returns the sum.
func (c *Collection) Add(key string, n float64, now int64) (float64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := c.find(key, now)
	if i != nowhere {
		n += c.t.entryAt(i).val.Float()
	}
	return n, c.put(i, key, FloatValue(n), now)
}

// Insert adds a key to a set and reports whether it was added.
func (c *Collection) Insert(key string, now int64) (added bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := c.find(key, now)
	err = c.put(i, key, BoolValue(true), now)
	return i == nowhere && err == nil, err
}

// Set writes a key. A None deletes it.
func (c *Collection) Set(key string, v Value, now int64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.set(key, v, now)
}

func (c *Collection) set(key string, v Value, now int64) error {
	i := c.find(key, now)
	if v.Kind != None {
		return c.put(i, key, v, now)
	}
	if i != nowhere {
		c.drop(i)
	}
	return nil
}

// Swap writes a key if its current value is old, and reports whether it did.
// None stands for a missing key.
func (c *Collection) Swap(key string, old, v Value, now int64) (swapped bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var has Value
	if i := c.find(key, now); i != nowhere {
		has = c.t.entryAt(i).val
	}
	if has != old {
		return false, nil
	}
	return true, c.set(key, v, now)
}

// Get returns the value of a key, or None if it does not exist. It counts as a
// use in an lru.
func (c *Collection) Get(key string, now int64) Value {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := c.find(key, now)
	if i == nowhere {
		return Value{}
	}
	if c.t.lists > 1 {
		c.t.toBack(byUse, i)
	}
	return c.t.entryAt(i).val
}

// Has reports whether a key exists. It does not count as a use.
func (c *Collection) Has(key string, now int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.find(key, now) != nowhere
}

// Delete removes a key and reports whether it existed.
func (c *Collection) Delete(key string, now int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := c.find(key, now)
	if i != nowhere {
		c.drop(i)
	}
	return i != nowhere
}

// Push adds a value to the end of a queue.
func (c *Collection) Push(v Value, now int64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.put(nowhere, queueKey(c.t.seq+1), v, now)
}

// queueKey returns the key of a queue's entry, which is its sequence number.
func queueKey(seq uint64) string { return string(binary.BigEndian.AppendUint64(nil, seq)) }

// Pop removes and returns the first value of a queue, or returns None if it is
// empty.
func (c *Collection) Pop(now int64) Value {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := c.head(now)
	if i == nowhere {
		return Value{}
	}
	v := c.t.entryAt(i).val
	c.drop(i)
	return v
}

// Peek returns the first value of a queue, or None if it is empty.
func (c *Collection) Peek(now int64) Value {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := c.head(now); i != nowhere {
		return c.t.entryAt(i).val
	}
	return Value{}
}

// head returns the position of the first entry that has not expired.
func (c *Collection) head(now int64) int32 {
	c.expire(c.decl.Max, now)
	return c.t.first(byWrite)
}

// Len returns the number of entries.
func (c *Collection) Len(now int64) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expire(c.decl.Max, now)
	return len(c.t.index)
}

// Full reports whether a new entry would be refused or would evict another
// entry.
func (c *Collection) Full(now int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expire(c.decl.Max, now)
	return len(c.t.index) >= c.decl.Max || c.t.bytes+entryOverhead > c.decl.MaxBytes
}

// Clear removes everything.
func (c *Collection) Clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t.reset()
	if c.dirty != nil {
		c.allDirty = true
		clear(c.dirty)
	}
}

// Entry is a key and its value.
type Entry struct {
	Key     string
	Value   Value
	Written int64  // Unix ms
	seq     uint64 // number of the write
}

// Entries returns up to limit current entries, least recently written first.
func (c *Collection) Entries(limit int, now int64) []Entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expire(c.decl.Max, now)
	out := make([]Entry, 0, min(limit, len(c.t.index)))
	for i := c.t.first(byWrite); i != nowhere && len(out) < limit; i = c.t.entryAt(i).link[byWrite].next {
		out = append(out, c.t.entryAt(i).entry())
	}
	return out
}

func (e *entry) entry() Entry { return Entry{Key: e.key, Value: e.val, Written: e.written, seq: e.seq} }

// Stats are the statistics of a collection.
type Stats struct {
	Entries int    `json:"entries"`
	Bytes   int64  `json:"bytes"`
	Evicted uint64 `json:"evicted"` // because there was no room
	Refused uint64 `json:"refused"` // because there was no room, or because they were too large
}

// Stats returns the statistics. Expired entries count until they are removed.
func (c *Collection) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Stats{Entries: len(c.t.index), Bytes: c.t.bytes, Evicted: c.evicted, Refused: c.refused}
}

// Expire removes the expired entries.
func (c *Collection) Expire(now int64) { c.Len(now) }
