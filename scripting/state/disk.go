package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// damagedExt is appended to the name of a damaged file.
const damagedExt = ".damaged"

// A file is rewritten when it is this much longer than its entries need.
const (
	growFactor = 2
	growBytes  = 1 << 20
)

// disk is the state file that is being written. Store.writeMu guards it.
type disk struct {
	number  uint64   // of the newest file
	meta    *meta    // of the current file; nil: begin a new file
	f       file     // nil: not open yet
	size    int64    // of the file
	changed bool     // the declarations changed
	unsafe  bool     // some writes are not synced
	failed  error    // of the last write
	aside   []string // files to be set aside
	buf     []byte
}

// Flush writes the changes since the last write. Concurrent calls share a
// write. The written data survives the process, and after the next Maintain the
// machine. Errors are reported to Options.Trouble. After an error, Flush does
// nothing until Maintain succeeds.
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

// Maintain performs the work that is due about once per second: it syncs,
// retries failed writes, and rewrites a file that has become too long.
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
	// Batches are not blocked meanwhile, because a sync may take long.
	s.syncMu.Lock()
	s.writeMu.Unlock()
	err = f.Sync()
	s.syncMu.Unlock()
	if err != nil {
		s.writeMu.Lock()
		defer s.writeMu.Unlock()
		d.meta = nil // it is unknown what the disk has of this file
		s.finishWrite(err)
	}
}

// Close writes and syncs the remaining changes. The next Flush opens a file
// again.
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

// sizeOnDisk returns the approximate size of the entries in a file.
func sizeOnDisk(cols []*Collection) (n int64) {
	const entryOnDisk = 24 // in addition to key and value
	for _, c := range cols {
		st := c.Stats()
		n += st.Bytes - int64(st.Entries)*(entryOverhead-entryOnDisk)
	}
	return n
}

// finishWrite records the result of a write.
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

// persistent returns the collections that are stored on disk.
func (s *Store) persistent() []*Collection {
	return slices.DeleteFunc(slices.Clone(s.All()), func(c *Collection) bool { return !c.Decl().Persistent })
}

// flush writes changes. It begins a new file if they do not fit the current
// one.
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
			err = f.Truncate(d.size) // an unfinished record
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
		// The next write goes to the same position, but a process that dies before
		// that should not leave half a record.
		if d.f.Truncate(d.size) != nil {
			d.meta = nil
		}
		return err
	}
	d.size += int64(len(buf))
	d.unsafe = true
	return nil
}

// reuseBuffer keeps a buffer for the next write unless it is large.
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

// begin writes all entries to a new file, which becomes the current one. The
// previous file is removed when the new one is synced.
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

// forget removes the files, because nothing is persistent any more.
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

// clear sets damaged files aside and removes all other files except one.
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
		// If there are damaged files, the directory is not empty and stays.
		_ = os.Remove(s.o.Dir)
		_ = os.Remove(filepath.Dir(s.o.Dir))
	}
	return nil
}
