// Package versions keeps, under the storage path, the history of scripts: the
// sources of the last versions of each script that were active, which versions were
// refused, and which ones the user pinned. It knows files and their text. It
// compiles and tests nothing.
//
// Each script has a record, and each text is a file that is called by its hash, so
// that versions share the texts that they have in common. A text is written before
// the record that names it. A file that cannot be read is reported and set aside:
// losing it costs history, never the start.
package versions

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-run/weir/engine/files"
)

const (
	folder  = "script-history" // under the storage path
	texts   = "sources"        // in folder
	earlier = "tested-scripts" // under the storage path: what this package wrote before
	suffix  = ".history"
	aside   = ".damaged"

	// maxFiles bounds the number of records.
	maxFiles = 1000
	// maxUnused is how long the record of a script that no config uses is kept.
	maxUnused = 30 * 24 * time.Hour
)

// Limits bound a store. The newest version of each script, the newest that passed its
// tests, and pinned ones are kept whatever the limits.
type Limits struct {
	Versions int   // of each script
	Size     int64 // of all texts together, in bytes
}

// DefaultLimits are the limits of a store that is not told otherwise.
var DefaultLimits = Limits{Versions: 20, Size: 64 << 20}

// Store keeps records in a directory. It is safe for concurrent use. Methods that
// change a record wait until it is written; methods that only read do not wait for
// writes.
type Store struct {
	dir      string
	limits   Limits
	readOnly bool
	log      *slog.Logger
	now      func() time.Time

	writing sync.Mutex // held while files are written, before mu

	mu      sync.Mutex
	records map[string]*Record // by path: those that were read
	all     bool               // every record was read
	dirty   map[string]bool    // paths of records that are not written yet
	texts   map[string]string  // by hash: those that are not written yet
	dropped map[string]bool    // hashes of texts of versions that were dropped
	seen    map[string]bool    // records that this process has used
}

// Open returns the store under a storage path.
func Open(storage string, limits Limits, log *slog.Logger) *Store {
	return &Store{dir: filepath.Join(storage, folder), limits: limits, log: log, now: time.Now,
		records: map[string]*Record{}, dirty: map[string]bool{}, texts: map[string]string{}, dropped: map[string]bool{}, seen: map[string]bool{}}
}

// Look returns the store under a storage path for reading. It changes nothing,
// so another process may use it meanwhile.
func Look(storage string) *Store {
	s := Open(storage, DefaultLimits, slog.New(slog.DiscardHandler))
	s.readOnly = true
	return s
}

// ReadOnly reports whether the store is that of Look.
func (s *Store) ReadOnly() bool { return s.readOnly }

// path returns the file of a script. Folders may have scripts of the same name.
func (s *Store) path(script, dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return filepath.Join(s.dir, url.PathEscape(script)+"-"+hex.EncodeToString(sum[:6])+suffix)
}

func (s *Store) textPath(hash string) string { return filepath.Join(s.dir, texts, hash) }

// Get returns what is known of a script; a Record without versions if nothing is.
func (s *Store) Get(script, dir string) Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.get(script, dir)
	if len(r.Versions) > 0 {
		s.seen[s.path(script, dir)] = true
	}
	return r.clone()
}

// Pinned returns the pin of a node; ok is false if it has none.
func (s *Store) Pinned(script, dir, node string) (p Pin, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.get(script, dir).Pinned(node)
}

// get returns the record of a script, which is read once.
func (s *Store) get(script, dir string) *Record {
	path := s.path(script, dir)
	r := s.records[path]
	if r == nil {
		if r = s.read(path); r == nil {
			r = &Record{Script: script, Dir: dir}
		}
		s.records[path] = r
	}
	return r
}

// read returns the record in a file; nil if there is none that can be used.
func (s *Store) read(path string) *Record {
	r, err := readRecord(path)
	if err == nil && s.path(r.Script, r.Dir) != path {
		err = fmt.Errorf("it is about %s in %s", r.Script, r.Dir)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		s.log.Warn("cannot read the history of a script, weir begins it again", "path", path, "err", err)
		s.setAside(path)
		return nil
	}
	return &r
}

// setAside takes a file away that cannot be used: it would only be reported again.
func (s *Store) setAside(path string) {
	if !s.readOnly && os.Rename(path, path+aside) != nil {
		_ = os.Remove(path)
	}
}

// Activate notes that a version became active on a node because its files have it.
// files are its sources, which need not be set in the version. A pin of the node
// over other files ends; it is returned.
func (s *Store) Activate(script, dir string, v Version, files []File, node string, at time.Time) (ended *Pin, err error) {
	content := Content(files, v.Test)
	v.Sources = nil
	for _, f := range files {
		v.Sources = append(v.Sources, Source{f.Path, hash(f.Text), int64(len(f.Text))})
	}
	v.Nodes = nil
	at = at.UTC()
	if !v.Passed.IsZero() {
		v.Passed = v.Passed.UTC().Truncate(time.Second)
	}
	err = s.change(script, dir, func(r *Record) bool {
		if p, ok := r.Pinned(node); ok && p.Over != content {
			ended = &p
			r.unpin(node)
		}
		if !r.activate(v, node, at) {
			return ended != nil
		}
		for i, f := range files {
			if h := v.Sources[i].Hash; !s.written(h) {
				s.texts[h] = f.Text
			}
		}
		for i := 0; len(r.Versions) > s.limits.Versions && i < len(r.Versions); {
			if r.needed(i) {
				i++
			} else {
				s.drop(r, i)
			}
		}
		s.limitSize()
		return true
	})
	return ended, err
}

// written reports whether a text is on disk, or is about to be.
func (s *Store) written(h string) bool {
	_, waits := s.texts[h]
	_, err := os.Stat(s.textPath(h))
	return waits || err == nil
}

// limitSize drops the oldest versions of all scripts until their texts fit.
func (s *Store) limitSize() {
	s.readAll()
	sizes := func() (total int64) {
		counted := map[string]bool{}
		for _, r := range s.records {
			for _, v := range r.Versions {
				for _, src := range v.Sources {
					if !counted[src.Hash] {
						counted[src.Hash] = true
						total += src.Size
					}
				}
			}
		}
		return total
	}
	for sizes() > s.limits.Size {
		oldest, at := "", 0
		for path, r := range s.records {
			for i := range r.Versions {
				if !r.needed(i) && (oldest == "" || r.Versions[i].last().Before(s.records[oldest].Versions[at].last())) {
					oldest, at = path, i
				}
			}
		}
		if oldest == "" {
			return
		}
		s.drop(s.records[oldest], at)
		s.dirty[oldest] = true
	}
}

// drop drops a version of a record.
func (s *Store) drop(r *Record, i int) {
	for _, src := range r.Versions[i].Sources {
		s.dropped[src.Hash] = true
	}
	r.Versions = slices.Delete(r.Versions, i, i+1)
}

// readAll reads the records of all scripts.
func (s *Store) readAll() {
	if s.all {
		return
	}
	s.all = true
	entries, _ := os.ReadDir(s.dir) // Sweep reports why it cannot be read
	for _, e := range entries {
		path := filepath.Join(s.dir, e.Name())
		if strings.HasSuffix(path, suffix) && s.records[path] == nil {
			if r := s.read(path); r != nil {
				s.records[path] = r
			}
		}
	}
}

// Refuse notes that a version did not become or stay active.
func (s *Store) Refuse(script, dir string, f Refusal) error {
	f.Time = s.now().UTC() // not rounded: the order of refusals and activations matters
	if len(f.Reason) > maxReason {
		f.Reason = strings.ToValidUTF8(f.Reason[:maxReason], "") + "…"
	}
	return s.change(script, dir, func(r *Record) bool { return r.refuse(f) })
}

// Pin pins a version to a node, in place of an earlier pin.
func (s *Store) Pin(script, dir string, p Pin) error {
	p.Time = s.now().UTC().Truncate(time.Second)
	return s.change(script, dir, func(r *Record) bool {
		r.unpin(p.Node)
		r.Pins = append(r.Pins, p)
		return true
	})
}

// Unpin ends the pin of a node.
func (s *Store) Unpin(script, dir, node string) error {
	return s.change(script, dir, func(r *Record) bool {
		_, was := r.Pinned(node)
		r.unpin(node)
		return was
	})
}

// Files returns the sources of a version with their texts.
func (s *Store) Files(v Version) (files []File, err error) {
	for _, src := range v.Sources {
		s.mu.Lock()
		text, waits := s.texts[src.Hash]
		s.mu.Unlock()
		if !waits {
			if text, err = readText(s.textPath(src.Hash), src); err != nil {
				if !errors.Is(err, fs.ErrNotExist) {
					s.setAside(s.textPath(src.Hash))
				}
				return nil, fmt.Errorf("cannot read %s of version %s in the history: %w", src.Path, v.ID, err)
			}
		}
		files = append(files, File{src.Path, text})
	}
	return files, nil
}

// change changes a record and waits until it is written. f reports whether it
// changed anything.
func (s *Store) change(script, dir string, f func(r *Record) bool) error {
	path := s.path(script, dir)
	s.mu.Lock()
	if s.readOnly {
		s.mu.Unlock()
		return errors.New("BUG: the history is read only")
	}
	s.seen[path] = true
	changed := f(s.get(script, dir))
	if changed {
		s.dirty[path] = true
	}
	s.mu.Unlock()
	if !changed {
		now := s.now()
		_ = os.Chtimes(path, now, now) // at worst a later process removes it too early
		return nil
	}
	if err := s.write(); err != nil {
		return fmt.Errorf("cannot keep the history of %s: %w", script, err)
	}
	return nil
}

// write writes what has changed. Callers that come while another one writes share
// the next write.
func (s *Store) write() error {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	changed, added := map[string]Record{}, maps.Clone(s.texts)
	for path := range s.dirty {
		changed[path] = s.records[path].clone()
	}
	clear(s.dirty)
	s.mu.Unlock()
	err := s.writeTexts(added)
	for path, r := range changed {
		if err == nil {
			err = format.Replace(path, r)
		}
		if err != nil {
			s.mu.Lock()
			s.dirty[path] = true // the next change tries again
			s.mu.Unlock()
		}
	}
	s.removeTexts()
	return err
}

func (s *Store) writeTexts(added map[string]string) error {
	if err := os.MkdirAll(filepath.Join(s.dir, texts), 0o700); err != nil {
		return err
	}
	for h, text := range added {
		if err := files.Replace(s.textPath(h), []byte(text), true); err != nil {
			return err
		}
		s.mu.Lock()
		delete(s.texts, h)
		s.mu.Unlock()
	}
	return nil
}

// removeTexts removes the texts of versions that were dropped.
func (s *Store) removeTexts() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.dropped) == 0 {
		return
	}
	used := s.usedTexts()
	for h := range s.dropped {
		if !used[h] {
			delete(s.texts, h)
			_ = os.Remove(s.textPath(h)) // Sweep tries again
		}
	}
	clear(s.dropped)
}

// usedTexts returns the hashes of the texts of all versions.
func (s *Store) usedTexts() map[string]bool {
	s.readAll()
	used := map[string]bool{}
	for _, r := range s.records {
		for _, v := range r.Versions {
			for _, src := range v.Sources {
				used[src.Hash] = true
			}
		}
	}
	return used
}

// Sweep removes the records of scripts that this process has not used and that
// were last used a month ago or earlier, the oldest of too many, and the texts of
// which no record knows. Call it when all scripts of the config have been looked up.
func (s *Store) Sweep() {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	type kept struct {
		path string
		used time.Time
	}
	var all []kept
	remove := func(path string) {
		delete(s.records, path)
		if err := os.Remove(path); err != nil {
			s.log.Warn("cannot remove a file of the history of scripts that is no longer used", "err", err)
		}
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.log.Warn("cannot read the history of scripts", "err", err)
	}
	for _, e := range entries {
		path := filepath.Join(s.dir, e.Name())
		info, err := e.Info()
		switch name := e.Name(); {
		case err != nil: // it has gone meanwhile
		case strings.HasSuffix(name, files.Unfinished):
			remove(path) // the process died while it wrote it
		case !strings.HasSuffix(name, suffix) && !strings.HasSuffix(name, aside):
		case s.seen[path]:
		case s.now().Sub(info.ModTime()) > maxUnused:
			remove(path)
		default:
			all = append(all, kept{path, info.ModTime()})
		}
	}
	slices.SortFunc(all, func(a, b kept) int { return b.used.Compare(a.used) })
	for _, k := range all[min(len(all), max(0, maxFiles-len(s.seen))):] {
		remove(k.path)
	}
	s.sweepTexts(remove)
	old := filepath.Join(filepath.Dir(s.dir), earlier)
	if _, err := os.Stat(old); err == nil {
		s.log.Info("removing the copies of tested scripts that an earlier version of weir made: this version keeps a history of scripts", "path", old)
		if err := os.RemoveAll(old); err != nil {
			s.log.Warn("cannot remove the copies of tested scripts", "err", err)
		}
	}
}

// sweepTexts removes the texts of which no record knows. The writer does not run.
func (s *Store) sweepTexts(remove func(path string)) {
	used := s.usedTexts()
	entries, _ := os.ReadDir(filepath.Join(s.dir, texts)) // it is there once there is a text
	for _, e := range entries {
		if !used[e.Name()] {
			remove(s.textPath(e.Name()))
		}
	}
}
