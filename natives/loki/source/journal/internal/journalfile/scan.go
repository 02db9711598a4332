package journalfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir/engine/files"
)

// Directories are read again when they have changed. Two changes within one tick
// of the file system's clock look like one, so a directory that changed less than
// settled ago is read again. rescanEvery is the interval for file systems without
// modification times and for files that cannot be opened.
const (
	settled     = 2 * time.Second
	rescanEvery = 5 * time.Second
	// maxListed is the maximum number of files in a directory.
	maxListed = 100_000
)

// scan is the state of the directories.
type scan struct {
	last   time.Time
	dirs   map[string]time.Time // the modification time of each directory when it was read; zero if it does not exist
	failed map[string]error     // files and directories that cannot be read
}

// force makes the next round read the directories.
func (s *scan) force() { s.last = time.Time{} }

// isDue reports whether the directories must be read.
func (s *scan) isDue(now time.Time) bool {
	if s.last.IsZero() || now.Sub(s.last) >= rescanEvery || now.Before(s.last) {
		return true
	}
	for dir, at := range s.dirs {
		info, err := files.Stat(dir)
		if missing := errors.Is(err, fs.ErrNotExist); missing || at.IsZero() {
			if missing != at.IsZero() {
				return true
			}
		} else if err != nil || !info.ModTime().Equal(at) || s.last.Sub(at) < settled {
			return true
		}
	}
	return false
}

// rescan opens new files, and reports whether there are any.
func (r *Reader) rescan(now time.Time) (added bool, err error) {
	if !r.scan.isDue(now) {
		return false, nil
	}
	r.scan.last = now
	r.scan.dirs = map[string]time.Time{}
	clear(r.scan.failed)
	type listed struct {
		path     string
		info     os.FileInfo
		volatile bool
	}
	var there []listed
	for _, root := range r.o.Roots {
		for _, path := range r.list(root) {
			info, err := files.Stat(path)
			if err != nil {
				r.fail(path, err)
			} else if info.Mode().IsRegular() {
				there = append(there, listed{path, info, root.Volatile})
			}
		}
	}
	for _, err := range r.scan.failed {
		if errors.Is(err, files.ErrHung) { // it is unknown which files exist
			r.scan.force()
			return false, err
		}
	}
	for _, f := range r.files {
		i := slices.IndexFunc(there, func(l listed) bool { return os.SameFile(l.info, f.info) })
		f.deleted = i < 0
		if i >= 0 {
			f.path, f.info, f.seen = there[i].path, there[i].info, now
		}
	}
	r.ended = slices.DeleteFunc(r.ended, func(e ended) bool {
		return !slices.ContainsFunc(there, func(l listed) bool { return l.path == e.path && os.SameFile(l.info, e.info) })
	})
	for _, l := range there {
		if slices.ContainsFunc(r.files, func(f *file) bool { return os.SameFile(l.info, f.info) }) ||
			slices.ContainsFunc(r.ended, func(e ended) bool { return l.path == e.path && os.SameFile(l.info, e.info) }) {
			continue
		}
		f, err := r.open(l.path, now)
		switch {
		case errors.Is(err, errEmpty), errors.Is(err, errShort), errors.Is(err, fs.ErrNotExist): // temporary, or removed since it was listed
		case err != nil && !permanent(err):
			// Continuing without the file would move the position past its
			// entries.
			r.scan.force()
			return added, err
		case err != nil:
			r.fail(l.path, err)
		case f.archived() && f.unread() == 0:
			r.end(f)
		default:
			f.volatile = l.volatile
			r.files = append(r.files, f)
			added = true
		}
	}
	return added, nil
}

// open opens a file at the position where reading begins.
func (r *Reader) open(path string, now time.Time) (*file, error) {
	f, err := openFile(path, now)
	if err != nil {
		return nil, err
	}
	r.lookForNext(f)
	if err := r.place(f); err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

// permanent reports whether retrying to open a file is useless: access is denied,
// or its content cannot be read.
func permanent(err error) bool {
	var pe *fs.PathError
	return errors.Is(err, fs.ErrPermission) || !errors.As(err, &pe) && !errors.Is(err, files.ErrHung)
}

// list returns the paths of the journal files of a root.
func (r *Reader) list(root Root) (paths []string) {
	for _, d := range r.readDir(root.Path) {
		path := filepath.Join(root.Path, d.Name())
		if isJournal(d.Name()) {
			paths = append(paths, path)
		} else if _, err := ParseID(d.Name()); err == nil && (root.Machine == "" || d.Name() == root.Machine) {
			for _, d := range r.readDir(path) {
				if isJournal(d.Name()) {
					paths = append(paths, filepath.Join(path, d.Name()))
				}
			}
		}
	}
	return paths
}

func isJournal(name string) bool {
	return strings.HasSuffix(name, ".journal") || strings.HasSuffix(name, ".journal~")
}

// readDir returns the content of a directory and records its modification time.
func (r *Reader) readDir(dir string) []os.DirEntry {
	info, err := files.Stat(dir)
	if err == nil {
		r.scan.dirs[dir] = info.ModTime()
		var in []os.DirEntry
		if in, err = files.List(dir, maxListed); err == nil {
			return in
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		r.scan.dirs[dir] = time.Time{}
	}
	r.fail(dir, err)
	return nil
}

func (r *Reader) fail(path string, err error) { r.scan.failed[path] = err }

// Problem is a file or directory that cannot be read.
type Problem struct {
	Path string
	Err  error
}

// Problems returns the files and directories that currently cannot be read,
// sorted by path. Directories that do not exist are only included if none of the
// roots exists.
func (r *Reader) Problems() (ps []Problem) {
	missing := 0
	for _, root := range r.o.Roots {
		if errors.Is(r.scan.failed[root.Path], fs.ErrNotExist) {
			missing++
		}
	}
	for path, err := range r.scan.failed {
		if errors.Is(err, fs.ErrNotExist) && missing < len(r.o.Roots) {
			continue
		}
		ps = append(ps, Problem{path, err})
	}
	slices.SortFunc(ps, func(a, b Problem) int { return strings.Compare(a.Path, b.Path) })
	return ps
}

// Found reports whether the roots contain a readable journal file.
func (r *Reader) Found() bool { return len(r.files) > 0 || len(r.ended) > 0 }
