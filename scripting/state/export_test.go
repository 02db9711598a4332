package state

// File lets tests inject faults.
type File = file

// WithFiles makes a store open its files with open.
func (o Options) WithFiles(open func(path string, flag int) (File, error)) Options {
	o.open = open
	return o
}

// OpenOSFile opens files in the way that Options without WithFiles does.
func OpenOSFile(path string, flag int) (File, error) { return openOSFile(path, flag) }

// Kill releases the file as the kernel does when a process dies.
func (s *Store) Kill() {
	if s.disk.f != nil {
		s.disk.f.Close()
	}
}

// Check returns an error if the table is inconsistent.
func (c *Collection) Check() string { return c.t.check() }

func (t *table) check() string {
	bytes, n := int64(0), 0
	for list := range t.lists {
		n = 0
		prev := nowhere
		for i := t.first(list); i != nowhere; i = t.entryAt(i).link[list].next {
			e := t.entryAt(i)
			if e.link[list].prev != prev {
				return "a link back is wrong"
			}
			if t.index[e.key] != i {
				return "a key is not where the index says"
			}
			if list == byWrite {
				bytes += EntrySize(e.key, e.val)
			}
			prev = i
			n++
		}
		if n != len(t.index) || t.ends[list].prev != prev {
			return "a list has not all entries"
		}
	}
	if bytes != t.bytes {
		return "bytes are counted wrong"
	}
	return ""
}

// Dirty returns the number of recorded keys that have not been written.
func (c *Collection) Dirty() int { return len(c.dirty) }

// WithoutSync makes a store faster, and not safe against a loss of power.
func (o Options) WithoutSync() Options {
	o.syncDir = func(string) error { return nil }
	return o.WithFiles(func(path string, flag int) (File, error) {
		f, err := openOSFile(path, flag)
		return unsynced{f}, err
	})
}

type unsynced struct{ File }

func (unsynced) Sync() error { return nil }
