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

	"github.com/weir-run/weir/engine/files"
)

// maxFiles bounds what one Set can make us read: a directory named by mistake
// may be the whole disk.
const maxFiles = 20_000

// maxListed bounds a directory, of which most may be files that are not watched.
const maxListed = 100_000

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
	hung      map[string]error    // what is on a file system that does not answer: the states below are those of before
}

// compareFiles finds the state of all files that are wanted. A file is read only if it
// may have changed: its time, size or identity did, or its real path is in
// force, or its time is so recent that a later write may have left the same.
func compareFiles(wanted []string, known map[string]state, force map[string]bool, now time.Time) finding {
	l := looker{finding: finding{files: map[string]state{}, dirs: map[string]interest{}, hung: map[string]error{}}, known: known, force: force, now: now}
	for _, path := range wanted {
		if dir, pattern, ok := glob(path); ok {
			l.matching(dir, pattern)
			continue
		}
		resolved, fi, err := l.resolve(path)
		switch {
		case l.hangs(path, err):
		case fi == nil:
			l.files[path] = state{}
		case fi.IsDir():
			l.tree(path, resolved, fi, nil)
		default:
			l.file(path, resolved, fi)
		}
	}
	for path, s := range known {
		for at := path; len(l.hung) > 0; at = filepath.Dir(at) {
			if _, ok := l.files[path]; !ok && l.hung[at] != nil {
				l.files[path] = s
			}
			if at == filepath.Dir(at) {
				break
			}
		}
	}
	return l.finding
}

// hangs notes a path whose file system does not answer.
func (l *looker) hangs(path string, err error) bool {
	if !errors.Is(err, files.ErrHung) {
		return false
	}
	l.hung[path] = err
	return true
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
// nothing. The error is that the file system does not answer.
func (l *looker) resolve(path string) (resolved string, fi os.FileInfo, err error) {
	type result struct {
		real string
		fi   os.FileInfo
		want [][2]string
	}
	r, err := files.Do(path, "following", func() (r result, err error) {
		r.real, r.fi = resolve(path, func(dir, name string) { r.want = append(r.want, [2]string{dir, name}) })
		return r, nil
	})
	for _, w := range r.want {
		l.want(w[0], w[1])
	}
	return r.real, r.fi, err
}

func resolve(path string, want func(dir, name string)) (resolved string, fi os.FileInfo) {
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
			want(cur, name)
			return next, nil
		}
		if fi.Mode()&fs.ModeSymlink != 0 {
			want(cur, name)
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
			want(cur, name)
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
func (l *looker) tree(path, resolved string, dir os.FileInfo, above []os.FileInfo) {
	if slices.ContainsFunc(above, func(a os.FileInfo) bool { return os.SameFile(a, dir) }) || len(above) > 64 {
		return
	}
	above = append(above[:len(above):len(above)], dir)
	in := l.dirs[resolved]
	in.all = true
	l.dirs[resolved] = in
	entries, err := list(resolved)
	if l.hangs(path, err) {
		return
	}
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
		p, r := filepath.Join(path, e.Name()), filepath.Join(resolved, e.Name())
		fi := e.FileInfo
		if fi.Mode()&fs.ModeSymlink != 0 {
			r, fi, err = l.resolve(r)
		}
		switch {
		case l.hangs(p, err):
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
	resolved, fi, err := l.resolve(dir)
	if l.hangs(dir, err) || fi == nil || !fi.IsDir() {
		return
	}
	in := l.dirs[resolved]
	in.globs = append(in.globs, pattern)
	l.dirs[resolved] = in
	entries, err := list(resolved)
	if l.hangs(dir, err) {
		return
	}
	if err != nil {
		l.files[dir] = state{kind: unreadable, err: err.Error()}
		return
	}
	for _, e := range entries {
		if !matches(pattern, e.Name()) {
			continue
		}
		p := filepath.Join(dir, e.Name())
		if r, fi, err := l.resolve(filepath.Join(resolved, e.Name())); !l.hangs(p, err) && fi != nil && fi.Mode().IsRegular() {
			l.file(p, r, fi)
		}
	}
}

// racy is how old a file's time must be for an equal time to mean that nothing
// was written since: file systems count in steps of up to two seconds.
const racy = 3 * time.Second

func (l *looker) file(path, resolved string, fi os.FileInfo) {
	if !fi.Mode().IsRegular() { // opening a pipe would wait, a device never ends
		l.files[path] = state{kind: unreadable, err: fi.Mode().Type().String()}
		return
	}
	old, ok := l.known[path]
	if ok && old.kind == regular && !old.unstable && !l.force[resolved] && old.fi != nil &&
		os.SameFile(old.fi, fi) && old.fi.Size() == fi.Size() && old.fi.ModTime().Equal(fi.ModTime()) &&
		old.hashed.Sub(fi.ModTime()) > racy {
		l.files[path] = old
		return
	}
	s, err := read(resolved, l.now)
	if !l.hangs(path, err) {
		l.files[path] = s
	}
}

// entry is a file of a directory, as Lstat sees it.
type entry struct{ os.FileInfo }

// list returns the files of a directory.
func list(dir string) ([]entry, error) {
	entries, err := files.List(dir, maxListed)
	if err != nil {
		return nil, err
	}
	return files.Do(filepath.Join(dir, "*"), "listing", func() (all []entry, err error) {
		for _, e := range entries {
			if fi, err := e.Info(); err == nil {
				all = append(all, entry{fi})
			}
		}
		return all, nil
	})
}

// maxHash is how much of a file is worth reading to see whether it changed. No file
// that is used is as large; of those that are, the time tells.
const maxHash = 64 << 20

// read hashes a file. The error is that the file system does not answer.
func read(path string, now time.Time) (state, error) {
	f, err := files.Open(path)
	if errors.Is(err, files.ErrHung) {
		return state{}, err
	}
	if err != nil {
		return hash(nil, err, now), nil
	}
	return files.Do(path, "reading", func() (state, error) {
		defer f.Close()
		return hash(f, nil, now), nil
	})
}

func hash(f *os.File, err error, now time.Time) state {
	if errors.Is(err, fs.ErrNotExist) {
		return state{}
	}
	if err != nil {
		return state{kind: unreadable, err: err.Error()}
	}
	before, err := f.Stat()
	if err != nil {
		return state{kind: unreadable, err: err.Error()}
	}
	if before.Size() > maxHash {
		return state{kind: regular, size: before.Size(), hash: uint64(before.ModTime().UnixNano()), fi: before, hashed: now}
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
