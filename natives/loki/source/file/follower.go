package file

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"
)

// follower follows one target. A worker owns it for one turn at a time; between
// turns, the scheduler owns it.
type follower struct {
	c       *Component
	set     *settings
	target  target
	removed bool // the target was removed: no file is added to files any more
	phase   phase
	past    past
	delay   startDelay
	files   fileList
	sender  sender
	calls   fileCalls
	trouble troubleLog
	slot    slot
}

// phase is how far the start of a follower has come.
type phase uint8

const (
	// starting: the positions of the target were not taken over yet.
	starting phase = iota
	// waiting: rotated files may be read, but no file has been seen at the path.
	waiting
	// following: a file was seen at the path; each further one is its successor.
	following
	// skipped: the path is not read, because the position of its file is damaged
	// and on_positions_file_error is "skip". Rotated files are still read.
	skipped
)

// enter changes the phase: starting → waiting → following or skipped.
func (f *follower) enter(next phase) {
	if ok := next == waiting && f.phase == starting || next > waiting && f.phase == waiting; !ok {
		panic(fmt.Sprintf("BUG: a follower cannot go from phase %d to %d", f.phase, next))
	}
	f.phase = next
}

// newFollower returns a follower for a target.
func newFollower(c *Component, set *settings, t target) *follower {
	f := &follower{c: c, set: set, target: t}
	f.slot.pause, f.slot.snapshot.stale = set.minPause, true
	f.calls.watch, f.calls.name = c.opts.Watch, "reading "+t.path
	f.trouble = troubleLog{c: c, path: t.path}
	f.sender = newSender(c, &f.calls, &f.target)
	return f
}

// isWithdrawn reports whether the target was removed although its file is still
// there: its config changed. The follower does not wait for more lines then.
func (f *follower) isWithdrawn() bool { return f.removed && f.files.current != nil }

// checkPath checks the path and adds the file there to files if it is new.
func (f *follower) checkPath(now time.Time) error {
	if f.phase == starting {
		if err := f.loadPositions(now); err != nil {
			return err
		}
	}
	if f.phase == skipped {
		return nil
	}
	id, fi, err := statPath(f.target.path)
	cur := f.files.current
	if f.removed {
		// If its name does not exist any more, the file was rotated or deleted: a
		// pattern does not match it any more.
		if cur != nil && (err != nil || cur.id != id) {
			f.files.clearCurrent()
		}
		return nil
	}
	if err != nil {
		if isMissing(err) {
			f.files.clearCurrent()
			return nil
		}
		return fmt.Errorf("cannot look at %s: %w", f.target.path, err)
	}
	if cur != nil && cur.id == id {
		return f.checkTruncated(cur, fi, now)
	}
	if lf := f.files.find(id); lf != nil {
		return f.bringBack(lf, fi, now)
	}
	if err := checkRegular(f.target.path, fi); err != nil {
		return err
	}
	if f.c.owns.isOwnedByOther(f, id) {
		f.files.clearCurrent()
		return nil // another target with these labels follows the file by its other name
	}
	return f.addCurrent(now)
}

// bringBack makes lf current again, which was rotated and has its old name again.
func (f *follower) bringBack(lf *logFile, fi fs.FileInfo, now time.Time) error {
	f.files.setCurrent(lf)
	lf.rotation.comeBack()
	if lf.isParked() {
		opened, err := f.openLogFile(f.target.path)
		if err != nil {
			return err
		}
		if opened == nil {
			f.files.clearCurrent()
			return nil
		}
		lf.f = opened.f // another file only if it was renamed again, which the next check detects
	}
	lf.observe(fi, now)
	return nil
}

// checkTruncated checks the file at the path. If it was written to and is not
// longer than at the last check, its content may have changed: it may have been
// truncated and have grown since, perhaps to exactly the old size.
func (f *follower) checkTruncated(lf *logFile, fi fs.FileInfo, now time.Time) error {
	shrunk := !lf.isCompressed() && fi.Size() < lf.seen.size
	lf.seen.doubted = lf.seen.doubted || shrunk || !lf.isCompressed() && fi.Size() == lf.seen.size && !fi.ModTime().Equal(lf.seen.written)
	lf.observe(fi, now)
	if !lf.seen.doubted {
		return nil
	}
	lf.cursor.scanned = 0 // part of the line may have changed
	same := lf.seen.size >= lf.cursor.offset && !(shrunk && lf.cursor.fresh)
	if same {
		var err error
		if same, err = lf.hasContentOf(&lf.cursor); err != nil {
			return fmt.Errorf("cannot read %s: %w", f.target.path, err)
		}
	}
	lf.seen.doubted = false
	if !same {
		f.restartTruncated(lf, now)
	}
	return nil
}

// addCurrent opens the file at the path, which is not among files, and makes it
// the current one.
func (f *follower) addCurrent(now time.Time) error {
	lf, err := f.openLogFile(f.target.path)
	if err != nil {
		return err
	}
	if lf == nil {
		f.files.clearCurrent()
		return nil
	}
	if f.set.format != "" && !f.delay.isOver(now, f.set.delay) {
		lf.close()
		return nil
	}
	if !f.c.owns.claimFile(f, lf.id) {
		lf.close() // another follower has claimed it in the meantime
		f.files.clearCurrent()
		return nil
	}
	if f.phase == waiting {
		if err := f.resumeFirst(lf, now); err != nil {
			f.dropFile(lf)
			return err
		}
		f.enter(following)
		f.files.add(lf)
	} else {
		f.addNext(lf, now)
	}
	lf.seen.grew = now
	f.files.setCurrent(lf)
	return nil
}

// addNext adds lf, which replaced another file at the path.
func (f *follower) addNext(lf *logFile, now time.Time) {
	old := f.files.newest()
	if old == nil {
		if !f.files.ended.IsZero() {
			f.c.metrics.rotations.WithLabelValues("renamed").Inc()
			f.addMissed(f.files.ended, lf)
		} // else another target with these labels had it, or had all files until now
		f.rejoin(lf)
		return
	}
	names, _ := old.refresh(now)
	if f.replaces(lf, old, names) {
		f.c.positions.change(old.pos, func(p *position) { p.id, p.real = lf.id, lf.real })
		lf.resumeFrom(old.pos)
		lf.cursor.again = nil // they are being sent
		f.dropFile(old)
		f.files.replace(len(f.files.all)-1, lf)
		return
	}
	if same, err := old.hasContentOf(&old.cursor); !old.isCompressed() && !same && err == nil {
		f.restartTruncated(old, now) // and then renamed, both since the last check
	}
	f.c.metrics.rotations.WithLabelValues("renamed").Inc()
	f.addMissed(old.seen.written, lf)
	f.rejoin(lf)
}

// rejoin adds lf, which continues at its position if it has one.
func (f *follower) rejoin(lf *logFile) {
	if p := f.c.positionOf(f.target.key, lf); p != nil {
		f.resumeAt(p, lf)
		lf.cursor.again = nil // they are being sent
	} else {
		f.startAt(lf, 0)
	}
	f.files.add(lf)
}

// openLogFile opens the file at a path. It returns nil if the file does not
// exist.
func (f *follower) openLogFile(path string) (*logFile, error) {
	file, err := f.c.openFile(path)
	if err != nil {
		if isMissing(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("cannot open %s: %w", path, err)
	}
	fi, err := file.Stat()
	if err == nil {
		err = checkRegular(path, fi)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	f.c.warned.starved.Store(false)
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		resolved = path // it was removed in the meantime
	}
	return newLogFile(file, fi, resolved, f.set.coding, f.set.format), nil
}

// replaces reports whether lf replaced old and contains everything that was read
// of it: some programs save a file by writing a new one and renaming it. As in
// Alloy, the name of old must not exist any more, and the first kilobyte must be
// equal.
func (f *follower) replaces(lf, old *logFile, names uint64) bool {
	if names > 0 || old.cursor.head.n < headSize || old.hasUnread() {
		return false
	}
	ok, err := lf.hasContentOf(&old.cursor)
	return ok && err == nil
}

// startAt starts reading lf at an offset and gives it a new position.
func (f *follower) startAt(lf *logFile, offset int64) {
	p := &position{
		labels: f.target.key, path: f.target.path, real: lf.real, id: lf.id, began: offset, read: offset,
		last: f.sender.last, written: max(lf.seen.written.UnixNano(), 0),
	}
	f.c.positions.add(p)
	lf.resumeFrom(p)
}

// addMissed adds the files that appeared after a file that was last written to at
// since, and before lf: rotations that happened between two checks.
func (f *follower) addMissed(since time.Time, lf *logFile) {
	d := f.c.listDirectories(lf.real, f.target.path)
	for _, l := range d.rotatedSince(since, func(l listed) bool {
		return l.id == lf.id || f.files.holds(l.id) || f.c.owns.isOwnedByOther(f, l.id) || f.c.isTarget(l.path, f.target.key)
	}) {
		m, err := f.openLogFile(l.path)
		if err != nil || m == nil {
			continue // a lost file is counted elsewhere
		}
		// The inode of a deleted file may belong to another file by now.
		known := f.c.positionOf(f.target.key, m) != nil
		if m.id != l.id || known || !f.c.owns.claimFile(f, m.id) {
			m.close()
			continue
		}
		f.startAt(m, 0)
		f.files.add(m)
		f.c.metrics.rotations.WithLabelValues("missed").Inc()
		f.c.opts.Logger.Info("a file was rotated more than once since it was last looked at; it is read before the current one", "path", f.target.path, "file", l.path)
	}
}

// restartTruncated reads lf from its start, because the content that was read is
// gone. If a copy of that content is found, the rest of the copy is read first.
func (f *follower) restartTruncated(lf *logFile, now time.Time) {
	i := f.files.index(lf)
	f.c.metrics.rotations.WithLabelValues("truncated").Inc()
	copied := f.findCopy(lf)
	old := lf.pos
	f.files.cut(i)
	if copied != nil {
		again := lf.cursor.again
		f.c.positions.change(old, func(p *position) { p.id, p.real = copied.id, copied.real })
		copied.resumeFrom(old)
		copied.cursor.again = again
		copied.seen.grew = now
		f.files.add(copied)
		f.addMissed(copied.seen.written, lf)
	} else {
		if lf.cursor.fresh {
			f.addMissed(lf.seen.earlier, lf) // nothing of it was read, so its copy is a new file
		}
		if len(f.files.all) == i {
			lf.seen.size = lf.seen.before
			f.countLost(lf, "it was truncated")
		}
		f.c.positions.finish(old)
	}
	lf.forgetContent()
	f.startAt(lf, 0)
	lf.seen.grew = now
	f.files.add(lf)
}

// findCopy opens the copy of lf that a truncation left, or returns nil.
func (f *follower) findCopy(lf *logFile) *logFile {
	if lf.cursor.head.n == 0 {
		return nil // nothing identifies the copy
	}
	for range maxSearches {
		d := f.c.listDirectories(lf.real, f.target.path)
		// If opening a copy fails, it is not retried, and the file continues.
		copied, _ := d.find(lf.pos, f.set.coding, f.set.format, func(id identity) bool {
			return id == lf.id || f.files.holds(id) || f.c.owns.isOwnedByOther(f, id)
		})
		if copied != nil {
			if f.c.owns.claimFile(f, copied.id) {
				return copied
			}
			copied.close()
		}
		if !d.moved() {
			return nil
		}
	}
	return nil
}

// countLost counts the bytes of lf that are known to exist and will not be read.
func (f *follower) countLost(lf *logFile, why string) {
	n := f.abandonRanges(lf.pos, lf.cursor.again)
	size := lf.seen.size
	if lf.rotation.isExpired() {
		size = max(size, lf.seen.raw)
	}
	if !lf.isCompressed() && size > lf.cursor.offset {
		n += size - lf.cursor.offset
	}
	lf.cursor.again = nil
	f.reportLost(n, lf.real, lf.cursor.offset, why)
}

// abandonRanges removes ranges that were to be sent again from p and returns
// their length.
func (f *follower) abandonRanges(p *position, again []span) (n int64) {
	for _, r := range again {
		n += r.to - r.from
	}
	if n > 0 {
		f.c.positions.change(p, func(p *position) {
			p.open = slices.DeleteFunc(p.open, func(r span) bool { return slices.Contains(again, r) })
		})
	}
	return n
}

func (f *follower) reportLost(n int64, resolved string, offset int64, why string) {
	if n > 0 {
		f.c.metrics.lost.Add(float64(n))
		f.c.opts.Logger.Warn("lines are lost: a file was not read to its end",
			"path", f.target.path, "file", resolved, "offset", offset, "lost_bytes", n, "reason", why)
	}
}

// finishFile closes the i-th file, which was read to its end.
func (f *follower) finishFile(i int) {
	lf := f.files.all[i]
	// A withdrawn file is still at its path. It continues if the target comes back.
	if !f.removed || lf != f.files.current {
		f.c.positions.finish(lf.pos)
		f.files.ended = lf.seen.written
	}
	f.dropFile(lf)
	f.files.remove(i)
}

// dropFile closes a file and gives up its ownership.
func (f *follower) dropFile(lf *logFile) {
	f.c.owns.release(f, lf.id)
	if lf.isCompressed() {
		f.c.inflaters.release(lf.packed.in)
	}
	lf.close()
}

// closeFiles closes all files; their positions stay.
func (f *follower) closeFiles() {
	for _, lf := range f.files.all {
		f.dropFile(lf)
	}
	f.files = fileList{}
	f.sender.close()
}

// handleReadError handles an error of reading lf. The caller reports the returned
// error, and reading is retried.
func (f *follower) handleReadError(lf *logFile, err error, now time.Time) (outcome, error) {
	switch {
	case errors.Is(err, errChanged) && lf == f.files.current:
		f.restartTruncated(lf, now)
		return more, nil
	case errors.Is(err, errChanged):
		f.countLost(lf, "it was written over")
		f.finishFile(f.files.index(lf))
		return more, nil
	}
	return idle, fmt.Errorf("cannot read %s: %w", lf.real, err)
}

// keepTrack is called while nothing is read. It checks whether the file at the
// path still has the content that was read, and updates the mark of its start, so
// that a copy can be recognised later.
func (f *follower) keepTrack(now time.Time) {
	lf := f.files.current
	if lf == nil || lf.isCompressed() || lf.seen.size == lf.seen.compared {
		return
	}
	if ok, err := lf.hasContentOf(&lf.cursor); !ok && err == nil {
		f.restartTruncated(lf, now)
	}
	if head, grown := lf.extendHead(lf.seen.size); grown {
		f.c.positions.recordHead(lf.pos, head)
	}
	lf.seen.compared = lf.seen.size
}

// startDelay is decompression.initial_delay: a compressed file is not opened
// until it has been at the path for that long.
type startDelay struct{ until time.Time }

// isOver reports whether the delay of the file at the path has passed. The first
// call starts it, and the call that reports true ends it.
func (s *startDelay) isOver(now time.Time, delay time.Duration) bool {
	if delay <= 0 {
		return true
	}
	if s.until.IsZero() {
		s.until = now.Add(delay)
	}
	if now.Before(s.until) {
		return false
	}
	s.until = time.Time{}
	return true
}
