package watch

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/fsnotify/fsnotify"

	"github.com/weir-run/weir/engine/files"
)

// interest is what matters in a directory.
type interest struct {
	all   bool            // every name that is not ignored
	globs []string        // those that match
	names map[string]bool // and these
}

func (in interest) contains(name string) bool {
	return in.names[fold(name)] || in.all && !ignored(name) ||
		slices.ContainsFunc(in.globs, func(g string) bool { return matches(g, name) })
}

// watched is a directory that has a watch.
type watched struct {
	interest
	fi     os.FileInfo // the directory itself: another may come to stand there
	silent string      // the file system, if it does not tell of all changes
}

// fold makes names equal that the file system may take as equal.
func fold(name string) string {
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		return strings.ToLower(name)
	}
	return name
}

// ignored names are no files of the user: editors' and version control's.
func ignored(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasSuffix(name, "~")
}

func (l *loop) relevant(e fsnotify.Event) bool {
	if e.Op == 0 {
		return false
	}
	if _, ok := l.dirs[e.Name]; ok && e.Op&(fsnotify.Remove|fsnotify.Rename) != 0 {
		// The watch went with the directory, even if it comes back.
		l.removeWatch(e.Name)
		return true
	}
	dir, name := filepath.Dir(e.Name), filepath.Base(e.Name)
	d, ok := l.dirs[dir]
	if ok && !d.contains(name) {
		return false
	}
	l.force[e.Name] = true
	return true
}

// goesOn reports whether an event of an ignored file shows that a burst is not over: rsync
// writes each file under a temporary name first.
func (l *loop) goesOn(e fsnotify.Event) bool {
	_, ok := l.dirs[filepath.Dir(e.Name)]
	return ok && e.Op != 0 && !l.first.IsZero() && ignored(filepath.Base(e.Name))
}

func (l *loop) removeWatch(dir string) {
	delete(l.dirs, dir)
	if l.n != nil {
		// It may be gone already, and with it the watch.
		_ = l.n.Remove(dir)
	}
}

// sync watches exactly dirs and reports whether one is watched that was not
// before. Directories that cannot be watched are polled, and those of file
// systems that do not tell what others change.
func (l *loop) sync(dirs map[string]interest) (added bool) {
	if l.w.o.Poll {
		return false
	}
	if l.n == nil {
		n, err := l.w.open()
		if err != nil {
			l.fallBack("cannot receive file events, looking every second", "err", err)
			return false
		}
		l.n, added = n, true
	}
	for dir := range l.dirs {
		if _, ok := dirs[dir]; !ok {
			l.removeWatch(dir)
		}
	}
	failed := false
	// In order: where the kernel's limit is met, it is met at the same one.
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		in := dirs[dir]
		fi, err := files.Stat(dir)
		if err != nil {
			continue // it went, and the next look finds its parent, or it hangs
		}
		if old, ok := l.dirs[dir]; ok {
			if os.SameFile(old.fi, fi) {
				old.interest = in
				l.dirs[dir] = old
				continue
			}
			l.removeWatch(dir)
		}
		n := l.n
		fsys, err := files.Do(filepath.Join(dir, "*"), "watching", func() (string, error) {
			if err := n.Add(dir); err != nil {
				return "", err
			}
			return l.w.silent(dir), nil
		})
		if errors.Is(err, files.ErrHung) {
			// It holds a lock that all other calls of n need, so n is left to it.
			go n.Close()
			l.n = nil
			clear(l.dirs)
			l.fallBack("cannot receive events of a directory, looking every second", "path", dir, "err", err)
			return false
		}
		if err != nil {
			if _, gone := files.Stat(dir); gone != nil {
				continue
			}
			failed = true
			l.fallBack("cannot receive events of a directory, looking every second", "path", dir, "err", err)
			continue
		}
		l.dirs[dir] = watched{in, fi, fsys}
		added = true
	}
	for _, dir := range slices.Sorted(maps.Keys(l.dirs)) {
		if fs := l.dirs[dir].silent; fs != "" {
			failed = true
			l.fallBack("file system does not tell of changes from elsewhere, looking every second", "path", dir, "file_system", fs)
			break
		}
	}
	if !failed && l.poll {
		l.setPolling(false)
		l.told = false
		l.w.o.Logger.Info("receiving file events again")
	}
	return added
}

func (l *loop) setPolling(polling bool) {
	if l.poll != polling && l.w.o.OnPolling != nil {
		l.w.o.OnPolling(polling)
	}
	l.poll = polling
}

func (l *loop) fallBack(msg string, args ...any) {
	l.setPolling(true)
	if !l.told {
		l.told = true
		l.w.o.Logger.Warn(msg, args...)
	}
}

// closeNotifier forgets all watches; the next sync makes new ones.
func (l *loop) closeNotifier() {
	if l.n != nil {
		if err := l.n.Close(); err != nil {
			l.w.o.Logger.Debug("cannot close the file watcher", "err", err)
		}
		l.n = nil
	}
	clear(l.dirs)
}
