package file

import (
	"slices"
	"time"
)

// fileList contains the files that a follower reads, oldest first. Lines are sent
// in this order. At most the last file is current, which means that it is at the
// path of the target; all other files were rotated.
type fileList struct {
	all     []*logFile
	current *logFile // the last file, or nil if no file of the list is at the path

	ended     time.Time // when the last file that was read to its end and rotated was last written to
	checked   time.Time // when max_wait was last checked for files that are not read
	reopenErr error     // why a parked file cannot be opened again, nil when it can
}

func (l *fileList) isEmpty() bool { return len(l.all) == 0 }

// hasRotated reports whether the list contains a file that is not at the path, or
// whether the path has no file.
func (l *fileList) hasRotated() bool { return len(l.all) > 1 || l.current == nil }

// newest returns the last file, or nil.
func (l *fileList) newest() *logFile {
	if len(l.all) == 0 {
		return nil
	}
	return l.all[len(l.all)-1]
}

// find returns the file with an identity, or nil.
func (l *fileList) find(id identity) *logFile {
	if i := slices.IndexFunc(l.all, func(lf *logFile) bool { return lf.id == id }); i >= 0 {
		return l.all[i]
	}
	return nil
}

func (l *fileList) holds(id identity) bool { return l.find(id) != nil }

func (l *fileList) index(lf *logFile) int { return slices.Index(l.all, lf) }

// add appends a file that was rotated. It is also used for a file for which
// setCurrent is called next.
func (l *fileList) add(lf *logFile) { l.all = append(l.all, lf) }

// setCurrent makes lf, which is in the list, the last file and the current one.
func (l *fileList) setCurrent(lf *logFile) {
	if i := l.index(lf); i < len(l.all)-1 {
		l.all = append(slices.Delete(l.all, i, i+1), lf)
	}
	l.current = lf
}

// clearCurrent records that no file of the list is at the path any more.
func (l *fileList) clearCurrent() { l.current = nil }

// cut removes the i-th file and all newer ones without closing them.
func (l *fileList) cut(i int) { l.all = l.all[:i] }

// remove removes the i-th file without closing it.
func (l *fileList) remove(i int) {
	if l.all[i] == l.current {
		l.current = nil
	}
	l.all = slices.Delete(l.all, i, i+1)
}

// replace replaces the i-th file by lf without closing it.
func (l *fileList) replace(i int, lf *logFile) {
	if l.all[i] == l.current {
		l.current = lf
	}
	l.all[i] = lf
}

// hasNewerLines reports whether a file that is newer than the i-th has content.
// The writer then stops writing to the i-th file soon.
func (l *fileList) hasNewerLines(i int) bool {
	return slices.ContainsFunc(l.all[i+1:], func(lf *logFile) bool { return lf.seen.raw > 0 })
}
