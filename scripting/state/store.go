package state

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
)

// Options are the options of New.
type Options struct {
	Node   string // its ID
	Dir    string // of the persistent state, as returned by Dir; "" stores nothing on disk
	Logger *slog.Logger
	// Trouble is called when writing begins to fail, and with nil when it works
	// again. Until then, the state is kept in memory.
	Trouble func(error)
	// Total is the Share of all nodes; it may be nil.
	Total *Share

	open    func(path string, flag int) (file, error)
	syncDir func(path string) error
}

// Store is the state of one node. It is safe for concurrent use, except Load,
// Plan and Commit, which only one goroutine at a time may call.
type Store struct {
	o       Options
	share   Share
	written atomic.Uint64 // bytes

	mu      sync.Mutex
	cols    []*Collection
	version int64
	any     bool // cols belong to an instance, or were read from disk

	// writeMu is held while the disk is written. It is locked before mu.
	writeMu sync.Mutex
	disk    disk
	syncMu  sync.Mutex // held while disk.f is synced without writeMu
}

// New returns an empty store.
func New(o Options) *Store {
	if o.open == nil {
		o.open = openOSFile
	}
	if o.syncDir == nil {
		o.syncDir = syncDir
	}
	return &Store{o: o, share: Share{Total: o.Total}}
}

// Load reads the state on disk, if there is any, and changes nothing there. The
// error is a read error. Damage is logged, and damaged files are set aside at
// the next write of the store.
func (s *Store) Load() error {
	if s.o.Dir == "" {
		return nil
	}
	f, err := readDir(s.o.Dir)
	if err != nil {
		return fmt.Errorf("cannot read the persistent state: %w", err)
	}
	s.writeMu.Lock()
	defer s.writeMu.Unlock()
	s.disk.number = f.top
	for _, b := range f.bad {
		s.disk.aside = append(s.disk.aside, b.path)
		s.o.Logger.Error("persistent state is damaged: what stands before the damage counts, and the file is kept",
			"file", b.path+damagedExt, "err", b.err)
	}
	if f.im == nil {
		return nil
	}
	if f.im.torn {
		s.o.Logger.Info("persistent state ends in a write that was not finished: what stands before it counts", "file", filePath(s.o.Dir, f.number))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cols, s.version, s.any = f.im.collections(), f.im.Version, true
	if f.im.damaged == nil && f.number == f.top {
		s.disk.meta, s.disk.size, s.disk.number = &f.im.meta, f.im.end, f.number
	}
	return nil
}

// Copy returns a store in memory with copies of the collections. Its entries do not
// count for other nodes.
func (s *Store) Copy(now int64) *Store {
	s.mu.Lock()
	cols, version, declared := s.cols, s.version, s.any
	s.mu.Unlock()
	c := New(Options{Node: s.o.Node, Logger: slog.New(slog.DiscardHandler)})
	c.version, c.any = version, declared
	for _, from := range cols {
		col := newCollection(from.Decl())
		col.copyEntries(from, now)
		c.cols = append(c.cols, col)
	}
	return c
}

// Plan is the result of an instance's declarations.
type Plan struct {
	// Collections are the collections of the declarations, in their order.
	Collections []*Collection
	// Changed reports whether there was state whose declaration differs in more
	// than limits. Old and OldVersion describe it, and the Collections are copies.
	Changed    bool
	Old        []*Collection
	OldVersion int64

	s       *Store
	decls   []Decl
	version int64
	fresh   []bool
}

// Plan determines what happens to the state under new declarations. A
// collection with an unchanged declaration, or with other limits, is kept. But
// if isolate is set and any other declaration changed, all collections are
// copies, so that filling them does not affect the previous instance.
func (s *Store) Plan(decls []Decl, version int64, isolate bool, now int64) *Plan {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &Plan{s: s, decls: decls, version: version, Old: s.cols, OldVersion: s.version}
	kept := 0
	for _, d := range decls {
		old := s.named(d.Name)
		if old == nil || old.decl.Kind != d.Kind {
			p.Changed = s.any
		} else {
			kept++
		}
	}
	p.Changed = p.Changed || s.any && (kept < len(s.cols) || version != s.version)
	for _, d := range decls {
		old := s.named(d.Name)
		if old != nil && old.decl.Kind == d.Kind && !(isolate && p.Changed) {
			p.Collections, p.fresh = append(p.Collections, old), append(p.fresh, false)
			continue
		}
		c := newCollection(d)
		if old != nil && d.keepsOf(old.decl) {
			c.copyEntries(old, now)
		}
		p.Collections, p.fresh = append(p.Collections, c), append(p.fresh, true)
	}
	return p
}

func (s *Store) named(name string) *Collection {
	for _, c := range s.cols {
		if c.decl.Name == name { // the name never changes
			return c
		}
	}
	return nil
}

// copyEntries copies the newest entries of another collection, as many as fit.
func (c *Collection) copyEntries(from *Collection, now int64) {
	entries := from.Entries(from.Decl().Max, now)
	c.fill(entries)
	c.shrink(now)
}

// shrink drops entries beyond the limits, oldest writes first, and returns
// their number.
func (c *Collection) shrink(now int64) (dropped int) {
	c.expire(len(c.t.index), now)
	for len(c.t.index) > c.decl.Max || c.t.bytes > c.decl.MaxBytes {
		c.drop(c.t.first(byWrite))
		dropped++
	}
	return dropped
}

// Commit sets the store's collections to those of the plan. It does not fail:
// if the disk fails, they are written later.
func (p *Plan) Commit(now int64) {
	s := p.s
	s.writeMu.Lock()
	defer s.writeMu.Unlock()
	s.mu.Lock()
	kept := map[string]bool{}
	for i, c := range p.Collections {
		d := p.decls[i]
		kept[d.Name] = true
		old := s.named(d.Name)
		c.join(&s.share)
		switch {
		case !p.fresh[i]:
			c.mu.Lock()
			c.declare(d)
			if n := c.shrink(now); n > 0 {
				s.o.Logger.Warn("state is declared smaller: the oldest entries are dropped", "state", d.Name, "dropped", n)
			}
			c.mu.Unlock()
		case old != nil && !d.keepsOf(old.decl) && old.Stats().Entries > 0:
			s.o.Logger.Warn("state is declared as another kind: it starts empty, unless migrate fills it", "state", d.Name, "was", string(old.decl.Kind), "is", string(d.Kind))
		}
	}
	for _, c := range s.cols {
		if !slices.Contains(p.Collections, c) {
			c.join(nil)
		}
		if n := c.Stats().Entries; !kept[c.decl.Name] && n > 0 {
			s.o.Logger.Info("state is no longer declared: it is dropped", "state", c.decl.Name, "entries", n)
		}
	}
	s.cols, s.version, s.any = p.Collections, p.version, true
	for _, c := range s.cols {
		if n := c.fit(); n > 0 {
			s.o.Logger.Warn("state has more than script.limits.state: the oldest entries are dropped", "state", c.decl.Name, "dropped", n)
		}
	}
	s.mu.Unlock()
	s.disk.changed = true
}

// Limit sets the maximum size of the entries in all collections, in bytes. 0 is
// the default; the limit of all nodes then also applies.
func (s *Store) Limit(bytes int64) { s.share.Limit(bytes) }

// Release removes the entries of a node that has ended from the shared limit.
func (s *Store) Release() {
	for _, c := range s.All() {
		c.join(nil)
	}
}

// join counts the entries as part of a share, which may be nil.
func (c *Collection) join(s *Share) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t.join(s)
}

// fit drops entries that exceed the share, oldest writes first, and returns
// their number.
func (c *Collection) fit() (dropped int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := c.t.first(byWrite); i != nowhere && c.t.share.full(c.decl.Name, 0) != nil; i = c.t.first(byWrite) {
		c.drop(i)
		dropped++
	}
	return dropped
}

// All returns the collections, in the order of their declarations.
func (s *Store) All() []*Collection {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cols
}

// Find returns the collection called name, or nil.
func (s *Store) Find(name string) *Collection {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.named(name)
}

// Persistent reports whether there is state that is stored on disk.
func (s *Store) Persistent() bool {
	if s.o.Dir == "" {
		return false
	}
	for _, c := range s.All() {
		if c.Decl().Persistent {
			return true
		}
	}
	return false
}

// Written returns the number of bytes written to disk.
func (s *Store) Written() uint64 { return s.written.Load() }
