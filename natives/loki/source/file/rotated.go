package file

import "time"

const (
	// partialGrace is how long the end of a rotated file may lack the end of its
	// last line, if a newer file has lines, before it is sent as it is. Newer
	// lines wait meanwhile.
	partialGrace = 5 * time.Second
	// maxRotated is the number of open rotated files per component above which
	// those that are idle are closed although they may have a writer, and those
	// that are not read now are closed until they are.
	maxRotated = 1000
	// locateEvery is how often the current path of a rotated file is looked up.
	locateEvery = time.Second
)

// writers says whether a process has a file open for writing.
type writers uint8

const (
	noWriter writers = iota
	hasWriter
	unknownWriter
)

// The reasons to close a rotated file that has a writer, or may have one.
const (
	byMaxWait = "max_wait"
	byNumber  = "too_many"
)

// rotation is what is known about a rotated file since it left its path.
type rotation struct {
	left      time.Time // when that was first seen; zero while it is at its path
	located   time.Time // when its path was last looked up
	names     uint64    // how many names the file has; 0: it is deleted
	expired   bool      // max_wait has passed: only what it had then is read
	abandoned string    // why it is closed although it may have a writer, "" if it is not
}

// pick returns the file to read next, nil when there is none, and whether
// its last line is over although it has no end.
func (f *follower) pick(now time.Time) (lf *logFile, whole bool) {
	for i := 0; i < len(f.files.all); {
		lf := f.files.all[i]
		old, ending := lf != f.files.current || f.removed, false
		if old {
			var closed bool
			if ending, closed = f.closeIfDone(i, now); closed {
				continue
			}
		}
		switch {
		case lf.f == nil:
			return nil, false // it could not be opened; what is newer comes after it
		case lf.in != nil && lf.ended && !lf.unread():
		case lf.unread():
			return lf, false
		case lf.waits() && (ending || f.files.hasNewerLines(i) && now.Sub(lf.grew) >= partialGrace):
			return lf, true
		case lf.waits() && old:
			return nil, false // what is newer comes after its end
		}
		i++
	}
	return nil, false
}

// closeIfDone closes the i-th file, which is not at the path or whose target was
// removed, if nothing more is to be read of it. ending says that no more will be
// written to it, as far as is known or waited for.
func (f *follower) closeIfDone(i int, now time.Time) (ending, closed bool) {
	lf := f.files.all[i]
	if lf.f == nil && !f.unpark(i) {
		return false, !f.files.holds(lf.id)
	}
	lf = f.files.all[i]
	if err := f.visit(lf, now); err != nil {
		f.countLost(lf, err.Error())
		f.finish(i)
		return false, true
	}
	switch {
	case f.isWithdrawn():
		ending = true
	case f.expire(i, now):
		return false, true
	default:
		ending = lf.expired || !lf.unread() && f.isFinished(i, now)
	}
	if !ending || lf.unread() || lf.waits() && lf.in == nil {
		return ending, false
	}
	if lf.abandoned != "" {
		f.c.metrics.abandoned.WithLabelValues(lf.abandoned).Inc()
	}
	f.countLost(lf, "it was written to for longer than file_rotation.max_wait after its rotation")
	f.finish(i)
	return ending, true
}

// visit checks the size and the name of a file. The path of one that was rotated is
// recorded, so that it is found after a restart even in another directory.
func (f *follower) visit(lf *logFile, now time.Time) error {
	names, err := lf.refresh(now)
	if err != nil || f.isWithdrawn() {
		return err
	}
	if lf.left.IsZero() {
		lf.left = now
	}
	lf.names = names
	if names > 0 && now.Sub(lf.located) >= locateEvery {
		lf.located = now
		if real := currentPath(lf.f, lf.id); real != "" && real != lf.real {
			lf.real = real
			f.c.positions.change(lf.pos, func(p *position) { p.real = real })
		}
	}
	return nil
}

// isFinished reports whether a rotated file that was read to its end has been
// idle for long enough and has no writer.
func (f *follower) isFinished(i int, now time.Time) bool {
	lf := f.files.all[i]
	if lf.in != nil && i+1 < len(f.files.all) {
		return true // nobody appends to a compressed file
	}
	if now.Sub(lf.grew) < f.set.idle || now.Sub(lf.left) < f.set.idle {
		return false
	}
	if f.c.writersOf(lf.f) == noWriter {
		// The last writer may have written something before it closed the file.
		return f.visit(lf, now) == nil && !lf.unread()
	}
	if lf.abandoned == byNumber {
		return true
	}
	if f.c.rotated.Add(-1) < f.c.maxRotated {
		f.c.rotated.Add(1)
		return false
	}
	lf.abandoned = byNumber
	if !f.c.crowded.Swap(true) {
		f.c.opts.Logger.Warn("too many rotated files are open; those that are idle are closed although a process may still write to them", "limit", f.c.maxRotated, "path", f.target.path, "file", lf.real)
	}
	return true
}

// expire ends the wait for a rotated file after max_wait. Of a file that
// still has a name, everything that it has now is read. A deleted file is closed,
// because its open handle holds its space on the disk. It reports whether the
// logFile is closed.
func (f *follower) expire(i int, now time.Time) (closed bool) {
	lf := f.files.all[i]
	if now.Sub(lf.left) < f.set.maxWait {
		return false
	}
	if !lf.expired {
		lf.expired = true
		// A target that names it where it is now goes on with it.
		if f.c.writersOf(lf.f) == hasWriter && (lf.real == f.target.path || !f.c.isTarget(lf.real, f.target.key)) {
			lf.abandoned = byMaxWait
			f.c.opts.Logger.Warn("a rotated file is still open for writing after file_rotation.max_wait; lines written to it from now on are lost: make the writer reopen its log, or increase max_wait",
				"path", f.target.path, "file", lf.real, "max_wait", f.set.maxWait.String())
		}
	}
	if lf.names > 0 || !lf.unread() {
		return false
	}
	if lf.abandoned != "" {
		f.c.metrics.abandoned.WithLabelValues(lf.abandoned).Inc()
	}
	f.countLost(lf, "it was deleted, and file_rotation.max_wait has passed")
	f.finish(i)
	return true
}

// expireAll expires and parks files that are not read now, because others
// are or because receivers refuse lines.
func (f *follower) expireAll(now time.Time) {
	waits := f.sender.isRefused() // whether lines that come first are not read yet
	for i := 0; i < len(f.files.all); {
		lf := f.files.all[i]
		if lf.f == nil || lf == f.files.current || f.isWithdrawn() || f.visit(lf, now) != nil {
			i++
			continue
		}
		if f.expire(i, now) {
			continue
		}
		if waits && lf.unread() && lf.in == nil && lf.names > 0 && f.c.rotated.Load() > f.c.maxRotated {
			f.c.rotated.Add(-1)
			lf.close()
			lf.f = nil
		}
		waits = waits || lf.unread()
		i++
	}
}

// unpark opens a rotated file that was closed because there were too many. It may have another name by now, or be compressed. If it is not found, it
// is lost and not among the files any more.
func (f *follower) unpark(i int) bool {
	lf := f.files.all[i]
	found, err := f.c.listDirectories(lf.real, f.target.path).find(lf.pos, f.set.coding, f.set.format, func(id identity) bool {
		return id != lf.id && f.files.holds(id) || f.c.owns.other(f, id)
	})
	if f.files.reopenErr = err; err != nil {
		return false // it is tried again
	}
	if found == nil || !f.c.owns.claimFile(f, found.id) {
		f.countLost(lf, "it is not in its directory, nor is a copy of it")
		f.finish(i)
		return false
	}
	if found.id != lf.id {
		f.c.owns.release(f, lf.id)
		f.c.positions.change(lf.pos, func(p *position) { p.id, p.real = found.id, found.real })
	}
	found.resume(lf.pos)
	found.again, found.grew, found.rotation = lf.again, lf.grew, lf.rotation
	f.files.replace(i, found)
	return true
}
