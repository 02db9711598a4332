package file

import "time"

const (
	// partialGrace is how long weir waits for the end of the last line of a
	// rotated file if a newer file has lines. Then the line is sent without its
	// end. The newer lines wait in the meantime.
	partialGrace = 5 * time.Second
	// maxRotated is the number of open rotated files per component above which
	// idle files are closed even if they may have a writer, and files that cannot
	// be read now are closed until they can.
	maxRotated = 1000
	// locateEvery is how often the current path of a rotated file is looked up.
	locateEvery = time.Second
)

// writers tells whether a process has a file open for writing.
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

// rotation is what is known about a file since it left its path.
type rotation struct {
	state     rotationState
	left      time.Time // when it was first found missing at its path
	located   time.Time // when its path was last looked up
	names     uint64    // number of names of the file; 0 if it is deleted
	abandoned string    // why it is closed although it may have a writer, or ""
}

// rotationState is the relation of a file to its path.
type rotationState uint8

const (
	atPath  rotationState = iota
	rotated               // the follower waits for the writer of the file
	expired               // max_wait has passed: only the lines up to then are read
)

// leave changes from atPath to rotated. It does nothing in the other states.
func (r *rotation) leave(now time.Time) {
	if r.state == atPath {
		r.state, r.left = rotated, now
	}
}

// expire changes from rotated to expired.
func (r *rotation) expire() { r.state = expired }

// comeBack changes to atPath: the file has its old name again.
func (r *rotation) comeBack() { *r = rotation{} }

func (r *rotation) isExpired() bool { return r.state == expired }

// pickFile returns the file to read next, or nil. whole is true if the last line
// of the file counts as a line although it has no end.
func (f *follower) pickFile(now time.Time) (lf *logFile, whole bool) {
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
		case lf.isParked():
			return nil, false // the file could not be opened, and newer files must wait for it
		case lf.isCompressed() && lf.packed.isEnded() && !lf.hasUnread():
		case lf.hasUnread():
			return lf, false
		case lf.hasPartialLine() && (ending || f.files.hasNewerLines(i) && now.Sub(lf.seen.grew) >= partialGrace):
			return lf, true
		case lf.hasPartialLine() && old:
			return nil, false // newer files wait for the end of this line
		}
		i++
	}
	return nil, false
}

// closeIfDone closes the i-th file if nothing more is to be read from it. The
// file is not at the path, or its target was removed. ending is true if nothing
// more is expected to be written to it.
func (f *follower) closeIfDone(i int, now time.Time) (ending, closed bool) {
	lf := f.files.all[i]
	if lf.isParked() && !f.reopenParked(i) {
		return false, !f.files.holds(lf.id)
	}
	lf = f.files.all[i]
	if err := f.refreshRotated(lf, now); err != nil {
		f.countLost(lf, err.Error())
		f.finishFile(i)
		return false, true
	}
	switch {
	case f.isWithdrawn():
		ending = true
	case f.expireFile(i, now):
		return false, true
	default:
		ending = lf.rotation.isExpired() || !lf.hasUnread() && f.isFinished(i, now)
	}
	if !ending || lf.hasUnread() || lf.hasPartialLine() && !lf.isCompressed() {
		return ending, false
	}
	if lf.rotation.abandoned != "" {
		f.c.metrics.abandoned.WithLabelValues(lf.rotation.abandoned).Inc()
	}
	f.countLost(lf, "it was written to for longer than file_rotation.max_wait after its rotation")
	f.finishFile(i)
	return ending, true
}

// refreshRotated checks the size and the name of a file. It records the path of a
// rotated file, so that the file is found after a restart even in another
// directory.
func (f *follower) refreshRotated(lf *logFile, now time.Time) error {
	names, err := lf.refresh(now)
	if err != nil || f.isWithdrawn() {
		return err
	}
	lf.rotation.leave(now)
	lf.rotation.names = names
	if names > 0 && now.Sub(lf.rotation.located) >= locateEvery {
		lf.rotation.located = now
		if resolved := currentPath(lf.f, lf.id); resolved != "" && resolved != lf.real {
			lf.real = resolved
			f.c.positions.change(lf.pos, func(p *position) { p.real = resolved })
		}
	}
	return nil
}

// isFinished reports whether a rotated file that was read to its end has been
// idle for long enough and has no writer.
func (f *follower) isFinished(i int, now time.Time) bool {
	lf := f.files.all[i]
	if lf.isCompressed() && i+1 < len(f.files.all) {
		return true // compressed files are not appended to
	}
	if now.Sub(lf.seen.grew) < f.set.idle || now.Sub(lf.rotation.left) < f.set.idle {
		return false
	}
	if f.c.writersOf(lf.f) == noWriter {
		// The last writer may have written more before it closed the file.
		return f.refreshRotated(lf, now) == nil && !lf.hasUnread()
	}
	if lf.rotation.abandoned == byNumber {
		return true
	}
	if f.c.rotated.Add(-1) < f.c.maxRotated {
		f.c.rotated.Add(1)
		return false
	}
	lf.rotation.abandoned = byNumber
	if !f.c.warned.crowded.Swap(true) {
		f.c.opts.Logger.Warn("too many rotated files are open; those that are idle are closed although a process may still write to them", "limit", f.c.maxRotated, "path", f.target.path, "file", lf.real)
	}
	return true
}

// expireFile ends the wait for the i-th file, which was rotated, after max_wait.
// If the file still has a name, everything that it has now is read. If it was
// deleted, it is closed, because its open handle keeps its space on the disk in
// use. expireFile reports whether it closed the file.
func (f *follower) expireFile(i int, now time.Time) (closed bool) {
	lf := f.files.all[i]
	if now.Sub(lf.rotation.left) < f.set.maxWait {
		return false
	}
	if !lf.rotation.isExpired() {
		lf.rotation.expire()
		// If it now has the path of another target, that target continues to read
		// it.
		if f.c.writersOf(lf.f) == hasWriter && (lf.real == f.target.path || !f.c.isTarget(lf.real, f.target.key)) {
			lf.rotation.abandoned = byMaxWait
			f.c.opts.Logger.Warn("a rotated file is still open for writing after file_rotation.max_wait; lines written to it from now on are lost: make the writer reopen its log, or increase max_wait",
				"path", f.target.path, "file", lf.real, "max_wait", f.set.maxWait.String())
		}
	}
	if lf.rotation.names > 0 || !lf.hasUnread() {
		return false
	}
	if lf.rotation.abandoned != "" {
		f.c.metrics.abandoned.WithLabelValues(lf.rotation.abandoned).Inc()
	}
	f.countLost(lf, "it was deleted, and file_rotation.max_wait has passed")
	f.finishFile(i)
	return true
}

// expireAll expires and parks rotated files that are not read now, because other
// files come first or because receivers refuse lines.
func (f *follower) expireAll(now time.Time) {
	waits := f.sender.isRefused() // whether older lines have not been read yet
	for i := 0; i < len(f.files.all); {
		lf := f.files.all[i]
		if lf.isParked() || lf == f.files.current || f.isWithdrawn() || f.refreshRotated(lf, now) != nil {
			i++
			continue
		}
		if f.expireFile(i, now) {
			continue
		}
		if waits && lf.hasUnread() && !lf.isCompressed() && lf.rotation.names > 0 && f.c.rotated.Load() > f.c.maxRotated {
			f.c.rotated.Add(-1)
			lf.park()
		}
		waits = waits || lf.hasUnread()
		i++
	}
}

// reopenParked opens the i-th file, which was parked. It may have another name by
// now, or be compressed. If it is not found, it counts as lost and is removed
// from the list. reopenParked reports whether the file is open.
func (f *follower) reopenParked(i int) bool {
	lf := f.files.all[i]
	found, err := f.c.listDirectories(lf.real, f.target.path).find(lf.pos, f.set.coding, f.set.format, func(id identity) bool {
		return id != lf.id && f.files.holds(id) || f.c.owns.isOwnedByOther(f, id)
	})
	if f.files.reopenErr = err; err != nil {
		return false // opening is retried
	}
	if found == nil || !f.c.owns.claimFile(f, found.id) {
		f.countLost(lf, "neither the file nor a copy of it is in its directory")
		f.finishFile(i)
		return false
	}
	if found.id != lf.id {
		f.c.owns.release(f, lf.id)
		f.c.positions.change(lf.pos, func(p *position) { p.id, p.real = found.id, found.real })
	}
	found.resumeFrom(lf.pos)
	found.cursor.again, found.seen.grew, found.rotation = lf.cursor.again, lf.seen.grew, lf.rotation
	f.files.replace(i, found)
	return true
}
