package journalfile

// place sets the index that reading a file begins at.
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

// skipCopies moves a file behind the copy of an entry that was read from another
// file: when journald begins to keep its journal in /var it copies that of /run.
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
