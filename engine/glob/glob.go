// Package glob finds files by patterns as documented for local.file_match,
// without the files in weir's storage directory. It is not a component:
// local.file_match exports the files, and loki.source.file reads them.
package glob

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/weir-run/weir/engine/files"
)

// Look is one pass over the file system, in one goroutine. It caches resolved
// directories, so that several patterns cost less than several passes.
type Look struct {
	dirs     map[string]string // real paths of directories, by path
	storage  string            // real path of weir's storage directory
	own      string            // a file in it that was excluded
	troubles []string
	glance   bool                        // do not wait for a slow file system
	hung     map[string]*files.HungError // by files.Place: file systems that do not respond
}

// callWithDeadline calls fn, which queries the file system about path. A file
// system that did not respond is not queried again.
func callWithDeadline[T any](s *Look, path, doing string, fn func(string) (T, error)) (T, error) {
	if len(s.hung) > 0 {
		if err := s.hung[files.Place(path)]; err != nil {
			var zero T
			return zero, err
		}
	}
	do := files.Do[T]
	if s.glance {
		do = files.Glance[T]
	}
	v, err := do(path, doing, func() (T, error) { return fn(path) })
	if hung, ok := errors.AsType[*files.HungError](err); ok {
		if s.hung == nil {
			s.hung = map[string]*files.HungError{}
		}
		s.hung[files.Place(path)] = hung
	}
	return v, err
}

func (s *Look) stat(path string) (fs.FileInfo, error) {
	return callWithDeadline(s, path, "looking at", os.Stat)
}

// Hung reports whether the file system of path did not respond during this
// Look. It is then unknown whether there are files.
func (s *Look) Hung(path string) bool { return len(s.hung) > 0 && s.hung[files.Place(path)] != nil }

// AnyHung returns the error of a file system that did not respond during this
// Look, or nil if all did.
func (s *Look) AnyHung() error {
	for _, err := range s.hung {
		return err
	}
	return nil
}

// NewLook returns a new Look. It excludes the files in storage, weir's storage
// directory, because weir writes to them when it reads lines.
func NewLook(storage string) *Look { return newLook(storage, false) }

func newLook(storage string, glance bool) *Look {
	s := &Look{dirs: map[string]string{}, glance: glance}
	if storage != "" {
		s.storage = s.real(storage)
	}
	return s
}

// Troubles returns descriptions of paths that could not be read, sorted and
// without duplicates.
func (s *Look) Troubles() []string {
	slices.Sort(s.troubles)
	return slices.Compact(s.troubles)
}

// Valid reports whether pattern is a valid pattern.
func Valid(pattern string) bool { return doublestar.ValidatePathPattern(pattern) }

// Find returns the absolute paths of the files that match pattern and do not
// match exclude, which may be empty, sorted. It excludes directories, and files
// last written before oldest. Both patterns must be Valid.
func (s *Look) Find(pattern, exclude string, oldest time.Time) (paths []string) {
	if pattern == "" {
		return nil
	}
	base, rest := doublestar.SplitPattern(filepath.ToSlash(filepath.Clean(pattern)))
	t := tree{s, base}
	// The pattern is valid, and errors do not stop the search; t records them.
	names, err := doublestar.Glob(t, rest, doublestar.WithFilesOnly())
	if err != nil {
		s.addTrouble(err)
	}
	for _, name := range names {
		given := filepath.FromSlash(t.path(name))
		file := files.Absolute(given)
		if excluded(exclude, given) || excluded(exclude, file) || s.IsOwn(file) {
			continue
		}
		fi, err := s.stat(file)
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				s.addTrouble(err)
			}
			continue
		}
		if !fi.IsDir() && !fi.ModTime().Before(oldest) {
			paths = append(paths, file)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

func excluded(pattern, path string) bool {
	if pattern == "" {
		return false
	}
	ok, err := doublestar.PathMatch(filepath.Clean(pattern), path)
	return ok && err == nil
}

func (s *Look) addTrouble(err error) { s.troubles = append(s.troubles, err.Error()) }

// tree is the file system below a directory, without symbolic links to a
// directory above them: ** follows links, and would not terminate.
type tree struct {
	*Look
	base string
}

func (t tree) path(name string) string { return path.Join(t.base, name) }

// Open opens a file. Globs only stat and list.
func (t tree) Open(name string) (fs.File, error) { return os.Open(t.path(name)) }

// Stat follows links.
func (t tree) Stat(name string) (fs.FileInfo, error) {
	fi, err := t.stat(t.path(name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errNotDir) {
		t.addTrouble(err)
	}
	return fi, err
}

// ReadDir returns a directory without links to directories that contain it.
func (t tree) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := callWithDeadline(t.Look, t.path(name), "listing", os.ReadDir)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errNotDir) {
			t.addTrouble(err)
		}
		return entries, err
	}
	return slices.DeleteFunc(entries, func(e fs.DirEntry) bool {
		return e.Type()&fs.ModeSymlink != 0 && t.leadsBack(name, e.Name())
	}), nil
}

func (t tree) leadsBack(dir, name string) bool {
	target := t.path(path.Join(dir, name))
	if fi, err := t.stat(target); err != nil || !fi.IsDir() {
		return false // a file, or a dangling link
	}
	resolved := t.real(target)
	for {
		if t.real(t.path(dir)) == resolved {
			return true
		}
		if dir == "." {
			break
		}
		dir = path.Dir(dir)
	}
	// Or to a directory above the base, which contains it.
	above := strings.TrimSuffix(resolved, string(filepath.Separator)) + string(filepath.Separator)
	return strings.HasPrefix(t.real(t.base), above)
}

func (s *Look) real(dir string) string {
	if r, ok := s.dirs[dir]; ok {
		return r
	}
	abs := files.Absolute(dir)
	r, err := callWithDeadline(s, abs, "following", filepath.EvalSymlinks)
	if parent := filepath.Dir(abs); err != nil && parent != abs {
		r = filepath.Join(s.real(parent), filepath.Base(abs)) // it need not exist
	} else if err != nil {
		r = abs
	}
	s.dirs[dir] = r
	return r
}
