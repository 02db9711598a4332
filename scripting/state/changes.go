package state

import "encoding/binary"

// taken contains the changes of one collection that are being written to disk.
type taken struct {
	keys map[string]struct{}
	all  bool
}

// changes appends records of changes. One record contains the changes of one or
// several batches, unless there are too many.
type changes struct {
	buf []byte
	at  int // start of the current record; -1 if there is none
}

// room begins a new record if there is none, or if the current one is long.
func (w *changes) room() {
	if w.at >= 0 && len(w.buf)-w.at > goodRecord {
		w.end()
	}
	if w.at < 0 {
		w.buf, w.at = beginRecord(w.buf, recChanges)
	}
}

func (w *changes) end() {
	if w.at >= 0 {
		w.buf, w.at = endRecord(w.buf, w.at), -1
	}
}

// takeChanges appends records of the changes in the collections, or of all
// their entries. If the write fails, the taken changes must be given back.
func takeChanges(buf []byte, cols []*Collection, all bool) ([]byte, []taken) {
	w := &changes{buf: buf, at: -1}
	ts := make([]taken, len(cols))
	for i, c := range cols {
		ts[i] = c.takeChanges(w, i, all)
	}
	w.end()
	return w.buf, ts
}

func (c *Collection) takeChanges(w *changes, number int, all bool) taken {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := taken{all: c.allDirty}
	switch {
	case all || c.allDirty:
		w.room()
		w.buf = append(binary.AppendUvarint(w.buf, uint64(number)), opClear)
		for i := c.t.first(byWrite); i != nowhere; i = c.t.entryAt(i).link[byWrite].next {
			w.room()
			w.buf = appendPut(w.buf, number, c.t.entryAt(i))
		}
	case len(c.dirty) == 0:
		return t
	default:
		for key := range c.dirty {
			w.room()
			if i, ok := c.t.index[key]; ok {
				w.buf = appendPut(w.buf, number, c.t.entryAt(i))
			} else {
				w.buf = appendText(append(binary.AppendUvarint(w.buf, uint64(number)), opDelete), key)
			}
		}
	}
	t.keys, c.dirty, c.spare, c.allDirty = c.dirty, c.spare, nil, false
	if c.dirty == nil {
		c.dirty = map[string]struct{}{}
	}
	return t
}

// done releases taken changes, which are now on disk.
func (c *Collection) done(t taken) {
	if len(t.keys) == 0 || len(t.keys) > 10_000 { // a map never releases memory
		return
	}
	clear(t.keys)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spare = t.keys
}

func (c *Collection) restoreEntries(t taken) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dirty == nil { // no longer persistent
		return
	}
	c.allDirty = c.allDirty || t.all
	for key := range t.keys {
		c.touch(key)
	}
	if c.allDirty {
		clear(c.dirty)
	}
}

func restoreAll(cols []*Collection, ts []taken) {
	for i, c := range cols {
		c.restoreEntries(ts[i])
	}
}

func doneWith(cols []*Collection, ts []taken) {
	for i, c := range cols {
		c.done(ts[i])
	}
}
