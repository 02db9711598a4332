package watch

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"
)

// maxFiles bounds what one Set can make us read: a directory named by mistake
// may be the whole disk.
const maxFiles = 20_000

type kind uint8

const (
	missing kind = iota
	regular
	unreadable
)

// state is what is known of a file.
type state struct {
	kind kind
	size int64
	hash uint64
	err  string // of one that is unreadable

	fi       os.FileInfo
	hashed   time.Time
	unstable bool // it was written to while it was read
}

// same reports whether a and b have the same content.
func (a state) same(b state) bool {
	return a.kind == b.kind && a.size == b.size && a.hash == b.hash && a.err == b.err
}

// finding is what look found.
type finding struct {
	files     map[string]state
	dirs      map[string]interest // real directories whose events matter
	truncated string              // a directory that has too many files
}

// look finds the state of all files that are wanted. A file is read only if it
// may have changed: its time, size or identity did, or its real path is in
// force, or its time is so recent that a later write may have left the same.
func look(wanted []string, known map[string]state, force map[string]bool, now time.Time) finding {
	l := looker{finding: finding{files: map[string]state{}, dirs: map[string]interest{}}, known: known, force: force, now: now}
	for _, path := range wanted {
		if dir, pattern, ok := glob(path); ok {
			l.matching(dir, pattern)
			continue
		}
		real, fi := l.resolve(path)
		switch {
		case fi == nil:
			l.files[path] = state{}
		case fi.IsDir():
			l.tree(path, real, fi, nil)
		default:
			l.file(path, real, fi)
		}
	}
	return l.finding
}

type looker struct {
	finding
	known map[string]state
	force map[string]bool
	now   time.Time
}

func (l *looker) want(dir, name string) {
	in := l.dirs[dir]
	if in.names == nil {
		in.names = map[string]bool{}
	}
	in.names[fold(name)] = true
	l.dirs[dir] = in
}

// resolve follows symbolic links and notes every directory in which a change
// can make path mean something else: those that hold a link, and the one that
// holds the last element or the first that is missing. fi is nil when there is
// nothing.
func (l *looker) resolve(path string) (real string, fi os.FileInfo) {
	vol := filepath.VolumeName(path)
	root := vol + string(filepath.Separator)
	cur, rest := root, elements(path[len(vol):])
	fi, err := os.Lstat(cur)
	for links := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		if name == ".." {
			cur = filepath.Dir(cur)
			continue
		}
		next := filepath.Join(cur, name)
		fi, err = os.Lstat(next)
		if err != nil {
			l.want(cur, name)
			return next, nil
		}
		if fi.Mode()&fs.ModeSymlink != 0 {
			l.want(cur, name)
			target, err := os.Readlink(next)
			if links++; err != nil || links > 40 {
				return next, nil
			}
			if filepath.IsAbs(target) {
				vol := filepath.VolumeName(target)
				cur = vol + string(filepath.Separator)
				target = target[len(vol):]
			}
			rest = slices.Concat(elements(target), rest)
			continue
		}
		if len(rest) == 0 {
			l.want(cur, name)
		}
		cur = next
	}
	if fi == nil || fi.Mode()&fs.ModeSymlink != 0 { // it ended in ".." or a link to the root
		fi, err = os.Stat(cur)
	}
	if err != nil {
		return cur, nil
	}
	return cur, fi
}

func elements(path string) []string {
	return slices.DeleteFunc(strings.Split(filepath.ToSlash(path), "/"), func(s string) bool { return s == "" || s == "." })
}

// tree looks at all files below a directory. above are the directories around
// it: a link to one of them is not followed.
func (l *looker) tree(path, real string, dir os.FileInfo, above []os.FileInfo) {
	if slices.ContainsFunc(above, func(a os.FileInfo) bool { return os.SameFile(a, dir) }) || len(above) > 64 {
		return
	}
	above = append(above[:len(above):len(above)], dir)
	in := l.dirs[real]
	in.all = true
	l.dirs[real] = in
	entries, err := os.ReadDir(real)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			l.files[path] = state{kind: unreadable, err: err.Error()}
		}
		return
	}
	for _, e := range entries {
		if ignored(e.Name()) {
			continue
		}
		if len(l.files) >= maxFiles {
			l.truncated = path
			return
		}
		p, r := filepath.Join(path, e.Name()), filepath.Join(real, e.Name())
		var fi os.FileInfo
		if e.Type()&fs.ModeSymlink != 0 {
			r, fi = l.resolve(r)
		} else if fi, err = os.Lstat(r); err != nil {
			continue
		}
		switch {
		case fi == nil:
		case fi.IsDir():
			l.tree(p, r, fi, above)
		case fi.Mode().IsRegular():
			l.file(p, r, fi)
		}
	}
}

// glob splits a pattern: the last element of a path if it has a star.
func glob(path string) (dir, pattern string, ok bool) {
	dir, pattern = filepath.Split(path)
	return filepath.Clean(dir), pattern, strings.Contains(pattern, "*")
}

func matches(pattern, name string) bool {
	ok, err := filepath.Match(pattern, name)
	return ok && err == nil && !ignored(name)
}

// matching looks at the files of a directory, not of those below it, whose
// names match.
func (l *looker) matching(dir, pattern string) {
	real, fi := l.resolve(dir)
	if fi == nil || !fi.IsDir() {
		return
	}
	in := l.dirs[real]
	in.globs = append(in.globs, pattern)
	l.dirs[real] = in
	entries, err := os.ReadDir(real)
	if err != nil {
		l.files[dir] = state{kind: unreadable, err: err.Error()}
		return
	}
	for _, e := range entries {
		if !matches(pattern, e.Name()) {
			continue
		}
		if r, fi := l.resolve(filepath.Join(real, e.Name())); fi != nil && fi.Mode().IsRegular() {
			l.file(filepath.Join(dir, e.Name()), r, fi)
		}
	}
}

// racy is how old a file's time must be for an equal time to mean that nothing
// was written since: file systems count in steps of up to two seconds.
const racy = 3 * time.Second

func (l *looker) file(path, real string, fi os.FileInfo) {
	if !fi.Mode().IsRegular() { // opening a pipe would wait, a device never ends
		l.files[path] = state{kind: unreadable, err: fi.Mode().Type().String()}
		return
	}
	old, ok := l.known[path]
	if ok && old.kind == regular && !old.unstable && !l.force[real] && old.fi != nil &&
		os.SameFile(old.fi, fi) && old.fi.Size() == fi.Size() && old.fi.ModTime().Equal(fi.ModTime()) &&
		old.hashed.Sub(fi.ModTime()) > racy {
		l.files[path] = old
		return
	}
	l.files[path] = read(real, l.now)
}

// read hashes a file.
func read(path string, now time.Time) state {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return state{}
	}
	if err != nil {
		return state{kind: unreadable, err: err.Error()}
	}
	defer f.Close()
	before, err := f.Stat()
	if err != nil {
		return state{kind: unreadable, err: err.Error()}
	}
	h := xxhash.New()
	n, err := io.Copy(h, f)
	if err != nil {
		return state{kind: unreadable, err: err.Error()}
	}
	after, err := f.Stat()
	s := state{kind: regular, size: n, hash: h.Sum64(), fi: before, hashed: now}
	s.unstable = err != nil || after.Size() != n || !after.ModTime().Equal(before.ModTime())
	return s
}

// covers reports whether path is one of roots, matches one or is below one.
func covers(roots []string, path string) bool {
	return slices.ContainsFunc(roots, func(root string) bool {
		if dir, pattern, ok := glob(root); ok {
			return path == dir || filepath.Dir(path) == dir && matches(pattern, filepath.Base(path))
		}
		rest, ok := strings.CutPrefix(path, root)
		return ok && (rest == "" || rest[0] == filepath.Separator || strings.HasSuffix(root, string(filepath.Separator)))
	})
}
