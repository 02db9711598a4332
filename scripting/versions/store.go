// Package versions keeps, under the storage path, the last version of each
// script that passed its tests, and which version failed them last. It knows
// files and their text. It compiles and tests nothing.
//
// Each script has one file. A file that cannot be read is reported and ignored:
// losing a version costs the fallback, never the start.
package versions

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/weir-run/weir/engine/files"
)

const (
	folder  = "tested-scripts" // under the storage path
	suffix  = ".tested"
	aside   = ".damaged"
	tmp     = ".tmp"
	magic   = "weirtest"
	version = 1

	headerSize = len(magic) + 4 + sha256.Size
	// maxFile bounds one file, and maxFiles the number of files.
	maxFile  = 16 << 20
	maxFiles = 1000
	// maxUnused is how long the file of a script that no config uses is kept.
	maxUnused = 30 * 24 * time.Hour
)

// Source is a file that a version is made of.
type Source struct {
	Path string `json:"path"` // below the folder of scripts, with slashes
	Text string `json:"text"`
}

// Version is a version that passed its tests.
type Version struct {
	ID      string    `json:"id"` // of its content
	Time    time.Time `json:"time"`
	Sources []Source  `json:"sources"`        // the script, then the files it imports
	Test    string    `json:"test,omitempty"` // path of the test file; "" for examples alone
}

// Rejection is a version that failed its tests.
type Rejection struct {
	ID     string    `json:"id"`
	Time   time.Time `json:"time"`
	Reason string    `json:"reason"`
}

// Record is what is known of a script.
type Record struct {
	Script   string     `json:"script"`             // the component's name
	Dir      string     `json:"dir"`                // its folder of scripts, absolute
	Passed   *Version   `json:"passed,omitempty"`   // nil: none has
	Rejected *Rejection `json:"rejected,omitempty"` // nil: none has since
}

// Store keeps records in a directory. It is safe for concurrent use.
type Store struct {
	dir      string
	readOnly bool
	log      *slog.Logger
	now      func() time.Time
	mu       sync.Mutex
	seen     map[string]bool // files that this process has used
}

// Open returns the store under a storage path.
func Open(storage string, log *slog.Logger) *Store {
	return &Store{dir: filepath.Join(storage, folder), log: log, now: time.Now, seen: map[string]bool{}}
}

// Look returns the store under a storage path for reading. It changes nothing,
// so another process may use it meanwhile.
func Look(storage string) *Store {
	return &Store{dir: filepath.Join(storage, folder), readOnly: true, log: slog.New(slog.DiscardHandler), now: time.Now, seen: map[string]bool{}}
}

// path returns the file of a script. Folders may have scripts of the same name.
func (s *Store) path(script, dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return filepath.Join(s.dir, url.PathEscape(script)+"-"+hex.EncodeToString(sum[:6])+suffix)
}

// Get returns what is known of a script; a zero Record if nothing is.
func (s *Store) Get(script, dir string) Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.get(script, dir)
}

func (s *Store) get(script, dir string) Record {
	path := s.path(script, dir)
	r, err := read(path)
	if err == nil && (r.Script != script || r.Dir != dir) {
		err = fmt.Errorf("it is about %s in %s", r.Script, r.Dir)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		s.log.Warn("cannot read the last tested version of a script, weir ignores it", "script", script, "path", path, "err", err)
		if !s.readOnly && os.Rename(path, path+aside) != nil {
			_ = os.Remove(path) // it would only be reported again
		}
	default:
		return r
	}
	return Record{Script: script, Dir: dir}
}

// Pass stores a version that has passed its tests, in place of the last one.
func (s *Store) Pass(script, dir string, v Version) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.get(script, dir)
	if r.Passed != nil && r.Passed.ID == v.ID && slices.Equal(r.Passed.Sources, v.Sources) && r.Rejected == nil {
		s.used(script, dir)
		return nil
	}
	for _, src := range v.Sources {
		if !utf8.ValidString(src.Text) { // JSON would change it
			return fmt.Errorf("cannot keep the tested version of %s: %s is not UTF-8", script, src.Path)
		}
	}
	v.Time = s.now().UTC().Truncate(time.Second)
	return s.put(Record{Script: script, Dir: dir, Passed: &v})
}

// Reject notes a version that has failed its tests. The last one that passed
// stays.
func (s *Store) Reject(script, dir string, rejected Rejection) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.get(script, dir)
	if r.Rejected != nil && r.Rejected.ID == rejected.ID && r.Rejected.Reason == rejected.Reason {
		s.used(script, dir)
		return nil
	}
	rejected.Time = s.now().UTC().Truncate(time.Second)
	r.Rejected = &rejected
	return s.put(r)
}

// used notes when a file was used last, for Sweep.
func (s *Store) used(script, dir string) {
	path, now := s.path(script, dir), s.now()
	s.seen[path] = true
	_ = os.Chtimes(path, now, now) // at worst a later process removes it too early
}

func (s *Store) put(r Record) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if len(b) > maxFile-headerSize {
		return fmt.Errorf("cannot keep the tested version of %s: its files are larger than %d MiB together", r.Script, maxFile>>20)
	}
	sum := sha256.Sum256(b)
	out := append(make([]byte, 0, headerSize+len(b)), magic...)
	out = binary.LittleEndian.AppendUint32(out, version)
	out = append(append(out, sum[:]...), b...)
	path := s.path(r.Script, r.Dir)
	s.seen[path] = true
	if err := writeFile(path, out); err != nil {
		return fmt.Errorf("cannot keep the tested version of %s: %w", r.Script, err)
	}
	return nil
}

// writeFile writes a file that is there whole or not at all.
func writeFile(path string, b []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path+tmp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(path+tmp, path)
	}
	if err != nil {
		_ = os.Remove(path + tmp)
	}
	return err
}

func read(path string) (r Record, err error) {
	b, err := files.Read(path, maxFile)
	if errors.Is(err, files.ErrTooLarge) {
		return r, errors.New("it is damaged: it is too large")
	}
	if err != nil {
		return r, err
	}
	if len(b) < headerSize || string(b[:len(magic)]) != magic {
		return r, errors.New("it is damaged")
	}
	if v := binary.LittleEndian.Uint32(b[len(magic):]); v != version {
		return r, fmt.Errorf("it was written by another version of weir: its format is %d, not %d", v, version)
	}
	sum := sha256.Sum256(b[headerSize:])
	if !bytes.Equal(sum[:], b[len(magic)+4:headerSize]) {
		return r, errors.New("it is damaged: its checksum is wrong")
	}
	if err := json.Unmarshal(b[headerSize:], &r); err != nil {
		return r, fmt.Errorf("it is damaged: %w", err)
	}
	if r.Passed != nil && len(r.Passed.Sources) == 0 {
		return r, errors.New("it is damaged: there is no script in it")
	}
	return r, nil
}

// Sweep removes the files of scripts that this process has not used and that
// were last used a month ago or earlier, and the oldest of too many. Call it when
// all scripts of the config have been looked up.
func (s *Store) Sweep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	type kept struct {
		path string
		used time.Time
	}
	var all []kept
	entries, err := os.ReadDir(s.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.log.Warn("cannot read the last tested versions of scripts", "err", err)
	}
	remove := func(path string) {
		if err := os.Remove(path); err != nil {
			s.log.Warn("cannot remove the tested version of a script that is no longer used", "err", err)
		}
	}
	for _, e := range entries {
		path := filepath.Join(s.dir, e.Name())
		info, err := e.Info()
		switch name := e.Name(); {
		case err != nil: // it has gone meanwhile
		case strings.HasSuffix(name, tmp):
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
}
