package journalfile

// place sets the index at which reading a file begins.
func (r *Reader) place(f *file) error {
	start, err := f.search(func(c Cursor) bool { return c.Realtime >= r.since })
	if err != nil {
		return err
	}
	if at, ok := r.at[f.h.seqnum]; ok {
		i, err := f.search(func(c Cursor) bool { return c.Seqnum > at.Seqnum })
		if err != nil {
			return err
		}
		start = max(start, i)
	} else if r.foreign != nil {
		i, err := f.search(func(c Cursor) bool {
			if c.BootID == r.foreign.BootID {
				return c.Monotonic >= r.foreign.Monotonic
			}
			return c.Realtime >= r.foreign.Realtime
		})
		if err != nil {
			return err
		}
		start = max(start, i)
	}
	f.next = start
	return r.skipCopies(f)
}

// journald copies its journal from /run to /var when it can write there, gives
// the entries new numbers in another sequence, and deletes the originals. Copies
// are skipped in two ways: a file that is complete when it is found is read from
// the entry after the copy of the last entry (skipCopies); for a file to which
// journald is still copying, each entry is searched in the original files
// (copied).

// copied reports whether an entry of f is also in a volatile file.
func (r *Reader) copied(f *file, c Cursor) (bool, error) {
	if f.volatile {
		return false, nil
	}
	var e entry
	for _, g := range r.files {
		if !g.volatile {
			continue
		}
		i, err := g.search(func(x Cursor) bool { return x.Monotonic >= c.Monotonic }) // all entries of one boot
		for ; err == nil && i < g.h.entries; i++ {
			if err = g.load(i, &e); isDamage(err) {
				err = nil
				continue
			}
			if err == nil && twins(e.cursor, c) {
				return true, nil
			}
			if e.cursor.Monotonic > c.Monotonic {
				break
			}
		}
		if err != nil {
			return false, err
		}
	}
	return false, nil
}

// skipCopies moves a file to the entry after the copy of the last entry that was
// read.
func (r *Reader) skipCopies(f *file) error {
	for id, at := range r.at {
		if err := r.skipCopy(f, at, id == f.h.seqnum); err != nil {
			return err
		}
	}
	if r.foreign != nil {
		return r.skipCopy(f, *r.foreign, false)
	}
	return nil
}

func (r *Reader) skipCopy(f *file, at Cursor, same bool) error {
	var e entry
	for i := f.next; i < f.h.entries; i++ {
		err := f.load(i, &e)
		if err != nil && !isDamage(err) {
			return err
		}
		if err != nil {
			continue
		}
		c := e.cursor
		if c.BootID != at.BootID || c.Monotonic > at.Monotonic {
			return nil
		}
		if twins(c, at) && !(same && c.Seqnum == at.Seqnum) {
			f.next = i + 1
			return nil
		}
	}
	return nil
}
