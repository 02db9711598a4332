package quarantine

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/files"
)

// MaxEntries is the maximum number of entries in a store, whatever their size.
const MaxEntries = 10_000

// Limits are the limits of a store. The oldest entries are dropped.
type Limits struct {
	MaxSize int64         // bytes; the newest entry is kept whatever its size
	MaxAge  time.Duration // since Put
}

// Reasons why an entry was lost.
const (
	LostSize    = "size" // size or number
	LostAge     = "age"
	LostDamaged = "damaged"
	LostDropped = "dropped" // by Discard
)

// Store is the quarantine of one node. All methods are safe for concurrent use.
type Store struct {
	dir    string
	clock  clock.Clock
	logger *slog.Logger
	lost   func(reason string, e Entry)

	mu      sync.Mutex
	limits  Limits
	opened  bool
	next    uint64
	entries []kept // ascending
	size    int64

	write func(path string, b []byte) error
}

// kept is the information about an entry in memory.
type kept struct {
	id      uint64
	size    int64
	time    time.Time
	records int
	signal  string
}

// entry returns the information as an Entry.
func (k kept) entry() Entry {
	return Entry{ID: k.id, Time: k.time, Records: k.records, Signal: k.signal}
}

// New returns the store of a directory, which is created by the first Put. lost
// is called with entries that leave it other than by Drop; ID, Time, Records
// and Signal are set.
func New(dir string, c clock.Clock, logger *slog.Logger, lost func(reason string, e Entry)) *Store {
	return &Store{dir: dir, clock: c, logger: logger, lost: lost, write: writeFile}
}

// Configure sets the limits. They also apply to entries of earlier processes.
func (s *Store) Configure(l Limits) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limits = l
	if s.opened {
		s.shrink()
	} else if err := s.open(); err != nil {
		s.logger.Warn("cannot look into the quarantine", "err", err)
	}
}

// open reads the directory and sets unreadable files aside. mu is held.
func (s *Store) open() error {
	if s.opened {
		return nil
	}
	names, err := os.ReadDir(s.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot open the quarantine: %w", err)
	}
	s.entries, s.size, s.next = nil, 0, 1
	for _, d := range names {
		path := filepath.Join(s.dir, d.Name())
		if strings.HasSuffix(d.Name(), files.Unfinished) {
			_ = os.Remove(path) // the process died while writing it, so it was not reported as stored
			continue
		}
		id, ok := idOf(d.Name())
		if !ok {
			continue
		}
		s.next = max(s.next, id+1)
		e, err := head(path)
		if err != nil {
			s.setAside(path, err)
			continue
		}
		s.entries = append(s.entries, kept{id: id, size: e.Size, time: e.Time, records: e.Records, signal: e.Signal})
		s.size += e.Size
	}
	s.opened = true
	s.shrink()
	return nil
}

// setAside renames a file so that it is kept but not used. The number of its
// records is unknown.
func (s *Store) setAside(path string, why error) {
	if err := os.Rename(path, path+aside); err != nil {
		s.logger.Warn("cannot set aside a file of the quarantine", "path", path, "err", err)
		return
	}
	s.logger.Warn("a file of the quarantine cannot be read and is set aside", "path", path+aside, "err", why)
}

// Put stores data and returns the ID of the entry. It is stored once Put
// returns without an error.
func (s *Store) Put(e Entry, data []byte) (id uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.open(); err != nil {
		return 0, err
	}
	e.ID, e.Time = s.next, s.clock.Now()
	b, err := encode(&e, data)
	if err == nil {
		if err = os.MkdirAll(s.dir, 0o700); err == nil {
			err = s.write(filepath.Join(s.dir, fileName(e.ID)), b)
		}
	}
	if err != nil {
		return 0, fmt.Errorf("cannot put a batch into quarantine: %w", err)
	}
	s.next++
	s.entries = append(s.entries, kept{id: e.ID, size: int64(len(b)), time: e.Time, records: e.Records, signal: e.Signal})
	s.size += int64(len(b))
	s.shrink()
	return e.ID, nil
}

func writeFile(path string, content []byte) error { return files.Replace(path, content, false) }

// shrink drops entries beyond the limits. mu is held.
func (s *Store) shrink() {
	now := s.clock.Now()
	for len(s.entries) > 0 {
		first := s.entries[0]
		reason := ""
		switch {
		case len(s.entries) > MaxEntries, s.limits.MaxSize > 0 && s.size > s.limits.MaxSize && len(s.entries) > 1:
			reason = LostSize
		case s.limits.MaxAge > 0 && now.Sub(first.time) > s.limits.MaxAge:
			reason = LostAge
		default:
			return
		}
		if err := s.remove(0); err != nil {
			s.logger.Warn("cannot remove an entry of the quarantine", "id", first.id, "err", err)
			return
		}
		s.lost(reason, first.entry())
	}
}

// remove removes the entry at an index. mu is held.
func (s *Store) remove(i int) error {
	err := os.Remove(filepath.Join(s.dir, fileName(s.entries[i].id)))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	s.size -= s.entries[i].size
	s.entries = slices.Delete(s.entries, i, i+1)
	if len(s.entries) == 0 {
		_ = os.Remove(s.dir) // unless it contains files that were set aside
	}
	return nil
}

// Sweep drops entries that are too old.
func (s *Store) Sweep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opened {
		s.shrink()
	}
}

// Drop removes entries that were delivered. An unknown ID is an error that
// wraps fs.ErrNotExist; the other entries are removed nevertheless.
func (s *Store) Drop(ids ...uint64) error { return s.drop(func(kept) {}, ids) }

// Discard is like Drop, for entries that are lost.
func (s *Store) Discard(ids ...uint64) error {
	return s.drop(func(k kept) { s.lost(LostDropped, k.entry()) }, ids)
}

func (s *Store) drop(dropped func(kept), ids []uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.open(); err != nil {
		return err
	}
	var errs []error
	for _, id := range ids {
		i := slices.IndexFunc(s.entries, func(k kept) bool { return k.id == id })
		if i < 0 {
			errs = append(errs, fmt.Errorf("there is no entry %d in the quarantine: %w", id, fs.ErrNotExist))
			continue
		}
		k := s.entries[i]
		if err := s.remove(i); err != nil {
			errs = append(errs, fmt.Errorf("cannot drop entry %d of the quarantine: %w", id, err))
			continue
		}
		dropped(k)
	}
	return errors.Join(errs...)
}

// Read returns an entry and its data. A damaged entry is set aside.
func (s *Store) Read(id uint64) (Entry, []byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.open(); err != nil {
		return Entry{}, nil, err
	}
	e, data, err := Read(s.dir, id)
	if errors.Is(err, errDamaged) || errors.Is(err, errVersion) {
		s.setAside(filepath.Join(s.dir, fileName(id)), err)
		if i := slices.IndexFunc(s.entries, func(k kept) bool { return k.id == id }); i >= 0 {
			s.lost(LostDamaged, s.entries[i].entry())
			s.size -= s.entries[i].size
			s.entries = slices.Delete(s.entries, i, i+1)
		}
	}
	return e, data, err
}

// List reads the directory as the function List does.
func (s *Store) List() (Listing, error) { return List(s.dir) }

// IDs returns the IDs of the entries, ascending.
func (s *Store) IDs() ([]uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.open(); err != nil {
		return nil, err
	}
	ids := make([]uint64, len(s.entries))
	for i, k := range s.entries {
		ids[i] = k.id
	}
	return ids, nil
}

// Size returns the number of entries, and their size in bytes.
func (s *Store) Size() (entries int, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.entries), s.size
}

// Records returns the number of records in the entries.
func (s *Store) Records() (n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.entries {
		n += int64(k.records)
	}
	return n
}
