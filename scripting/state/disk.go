package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// damagedExt is added to the name of a file that is damaged.
const damagedExt = ".damaged"

// A file is written anew when it is this much longer than what is in it needs.
const (
	growFactor = 2
	growBytes  = 1 << 20
)

// disk is the state file that is being written. Store.writeMu guards it.
type disk struct {
	number  uint64   // of the newest file
	meta    *meta    // of the file that is written; nil: begin another
	f       file     // nil: not open yet
	size    int64    // of the file
	changed bool     // the declarations did
	unsafe  bool     // something is not synced
	failed  error    // of the last write
	aside   []string // files to be set aside
	buf     []byte
}

// Flush writes what changed since the last one: who waits for another's finds
// nothing left to write. What it wrote outlives the process, and after the
// next Maintain the machine. An error is Options.Trouble's; until Maintain
// could write again, Flush does nothing.
func (s *Store) Flush() {
	if s.o.Dir == "" {
		return
	}
	s.writeMu.Lock()
	defer s.writeMu.Unlock()
	if s.disk.failed == nil {
		s.finishWrite(s.flush())
	}
}

// Maintain does what is due about once a second: it syncs, tries again what
// failed, and writes a file anew that has become long.
func (s *Store) Maintain() {
	if s.o.Dir == "" {
		return
	}
	s.writeMu.Lock()
	d := &s.disk
	err := s.flush()
	if cols := s.persistent(); err == nil && d.f != nil && d.size > growFactor*sizeOnDisk(cols)+growBytes {
		err = s.begin(cols)
	}
	s.finishWrite(err)
	f := d.f
	if err != nil || !d.unsafe || f == nil {
		s.writeMu.Unlock()
		return
	}
	d.unsafe = false
	// Batches go on meanwhile: a sync takes as long as the disk likes.
	s.syncMu.Lock()
	s.writeMu.Unlock()
	err = f.Sync()
	s.syncMu.Unlock()
	if err != nil {
		s.writeMu.Lock()
		defer s.writeMu.Unlock()
		d.meta = nil // nobody knows what the disk has of this file
		s.finishWrite(err)
	}
}

// Close writes and syncs what is left. The next Flush opens a file again.
func (s *Store) Close() {
	if s.o.Dir == "" {
		return
	}
	s.writeMu.Lock()
	defer s.writeMu.Unlock()
	d := &s.disk
	err := s.flush()
	if f := d.f; f != nil {
		d.f, d.meta, d.unsafe = nil, nil, false
		s.syncMu.Lock()
		err = errors.Join(err, f.Sync(), f.Close())
		s.syncMu.Unlock()
	}
	s.finishWrite(err)
}

// sizeOnDisk is about what the entries take in a file.
func sizeOnDisk(cols []*Collection) (n int64) {
	const entryOnDisk = 24 // beside key and value
	for _, c := range cols {
		st := c.Stats()
		n += st.Bytes - int64(st.Entries)*(entryOverhead-entryOnDisk)
	}
	return n
}

// finishWrite notes how a write ended.
func (s *Store) finishWrite(err error) {
	was := s.disk.failed
	s.disk.failed = err
	if (err == nil) == (was == nil) {
		return
	}
	if err != nil {
		err = fmt.Errorf("cannot write persistent state, it goes on in memory and would be lost with the process: %w", err)
		s.o.Logger.Error("cannot write persistent state, it goes on in memory", "dir", s.o.Dir, "err", err)
	} else {
		s.o.Logger.Info("persistent state is written again", "dir", s.o.Dir)
	}
	if s.o.Trouble != nil {
		s.o.Trouble(err)
	}
}

// persistent returns the collections that belong on disk.
func (s *Store) persistent() []*Collection {
	return slices.DeleteFunc(slices.Clone(s.All()), func(c *Collection) bool { return !c.Decl().Persistent })
}

// flush writes changes, to a new file if they are not of this one.
func (s *Store) flush() error {
	d := &s.disk
	cols := s.persistent()
	if d.changed && d.meta != nil && d.meta.equals(s.meta(cols)) {
		d.changed = false
	}
	switch {
	case d.changed && len(cols) == 0:
		if err := s.forget(); err != nil {
			return err
		}
		d.changed = false
		return nil
	case len(cols) == 0:
		return nil
	case d.changed || d.meta == nil:
		if err := s.begin(cols); err != nil {
			return err
		}
		d.changed = false
		return nil
	}
	if d.f == nil {
		f, err := s.o.open(filePath(s.o.Dir, d.number), os.O_RDWR)
		if err == nil {
			err = f.Truncate(d.size) // what was not finished
		}
		if err != nil {
			d.meta = nil
			return s.begin(cols)
		}
		d.f = f
	}
	buf, taken := takeChanges(d.buf[:0], cols, false)
	if len(buf) > 0 {
		if err := d.append(buf); err != nil {
			restoreAll(cols, taken)
			return err
		}
		s.written.Add(uint64(len(buf)))
		doneWith(cols, taken)
	}
	d.reuseBuffer(buf)
	return nil
}

// append writes records to the end of the file.
func (d *disk) append(buf []byte) error {
	if _, err := d.f.WriteAt(buf, d.size); err != nil {
		// The next write comes to the same place, but a process that dies
		// before that should not leave half a record.
		if d.f.Truncate(d.size) != nil {
			d.meta = nil
		}
		return err
	}
	d.size += int64(len(buf))
	d.unsafe = true
	return nil
}

// reuseBuffer keeps a buffer for the next write, if it is not large.
func (d *disk) reuseBuffer(buf []byte) {
	d.buf = buf[:0]
	if cap(buf) > 4*goodRecord {
		d.buf = nil
	}
}

func (s *Store) meta(cols []*Collection) *meta {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := &meta{Node: s.o.Node, Version: s.version}
	for _, c := range cols {
		m.Decls = append(m.Decls, c.decl)
	}
	return m
}

func (m *meta) equals(o *meta) bool {
	return m.Node == o.Node && m.Version == o.Version && slices.Equal(m.Decls, o.Decls)
}

// begin writes everything to a new file, which is then the one. The one before
// is gone when the new one is safe.
func (s *Store) begin(cols []*Collection) error {
	d := &s.disk
	m := s.meta(cols)
	about, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("BUG: cannot encode the head of a state file: %w", err)
	}
	if err := os.MkdirAll(s.o.Dir, 0o700); err != nil {
		return err
	}
	buf, at := beginRecord(appendHeader(d.buf[:0]), recMeta)
	buf = endRecord(append(buf, about...), at)
	buf, taken := takeChanges(buf, cols, true)
	buf, at = beginRecord(buf, recStarted)
	buf = endRecord(buf, at)

	number := d.number + 1
	path := filePath(s.o.Dir, number)
	f, err := s.o.open(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
	if err == nil {
		_, err = f.WriteAt(buf, 0)
		if err == nil {
			err = f.Sync()
		}
		if err == nil {
			err = s.o.syncDir(s.o.Dir)
		}
		if err != nil {
			err = errors.Join(err, f.Close(), os.Remove(path))
		}
	}
	if err != nil {
		restoreAll(cols, taken)
		return err
	}
	s.written.Add(uint64(len(buf)))
	old := d.f
	d.f, d.meta, d.number, d.size, d.unsafe = f, m, number, int64(len(buf)), false
	d.reuseBuffer(buf)
	s.syncMu.Lock()
	defer s.syncMu.Unlock()
	if old != nil {
		err = old.Close()
	}
	return errors.Join(err, s.clear(number))
}

// forget removes the files: nothing is persistent any more.
func (s *Store) forget() error {
	d := &s.disk
	var err error
	if d.f != nil {
		s.syncMu.Lock()
		err = d.f.Close()
		s.syncMu.Unlock()
	}
	d.f, d.meta, d.unsafe = nil, nil, false
	return errors.Join(err, s.clear(0))
}

// clear sets damaged files aside and removes the others but one.
func (s *Store) clear(but uint64) error {
	d := &s.disk
	for len(d.aside) > 0 {
		if err := os.Rename(d.aside[0], d.aside[0]+damagedExt); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		d.aside = d.aside[1:]
	}
	ns, err := numbers(s.o.Dir)
	if err != nil {
		return err
	}
	for _, n := range ns {
		if n != but {
			if err := os.Remove(filePath(s.o.Dir, n)); err != nil {
				return err
			}
		}
	}
	if but == 0 {
		// Damaged files stay, and then their directory does.
		_ = os.Remove(s.o.Dir)
		_ = os.Remove(filepath.Dir(s.o.Dir))
	}
	return nil
}
