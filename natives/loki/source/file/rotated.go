package file

import (
	"slices"
	"time"
)

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

// rotation is what is known about a generation since it left its path.
type rotation struct {
	left      time.Time // when that was first seen; zero while it is at its path
	located   time.Time // when its path was last looked up
	names     uint64    // how many names the file has; 0: it is deleted
	expired   bool      // max_wait has passed: only what it had then is read
	abandoned string    // why it is closed although it may have a writer, "" if it is not
}

// isWithdrawn reports whether the target was removed although its file is still
// there: its config changed. The file is not waited for then.
func (f *follower) isWithdrawn() bool { return f.leaving && f.here }

// pick returns the generation to read next, nil when there is none, and whether
// its last line is over although it has no end.
func (f *follower) pick(now time.Time) (g *generation, whole bool) {
	for i := 0; i < len(f.gens); {
		g := f.gens[i]
		old, ending := g != f.generationAtPath() || f.leaving, false
		if old {
			var closed bool
			if ending, closed = f.closeIfDone(i, now); closed {
				continue
			}
		}
		switch {
		case g.f == nil:
			return nil, false // it could not be opened; what is newer comes after it
		case g.in != nil && g.ended && !g.unread():
		case g.unread():
			return g, false
		case g.waits() && (ending || f.replaced(i) && now.Sub(g.grew) >= partialGrace):
			return g, true
		case g.waits() && old:
			return nil, false // what is newer comes after its end
		}
		i++
	}
	return nil, false
}

// closeIfDone closes the i-th generation, which is not at the path or whose target was
// removed, if nothing more is to be read of it. ending says that no more will be
// written to it, as far as is known or waited for.
func (f *follower) closeIfDone(i int, now time.Time) (ending, closed bool) {
	g := f.gens[i]
	if g.f == nil && !f.unpark(i) {
		return false, !f.holds(g.id)
	}
	g = f.gens[i]
	if err := f.visit(g, now); err != nil {
		f.countLost(g, err.Error())
		f.finish(i)
		return false, true
	}
	switch {
	case f.isWithdrawn():
		ending = true
	case f.expire(i, now):
		return false, true
	default:
		ending = g.expired || !g.unread() && f.isFinished(i, now)
	}
	if !ending || g.unread() || g.waits() && g.in == nil {
		return ending, false
	}
	if g.abandoned != "" {
		f.c.metrics.abandoned.WithLabelValues(g.abandoned).Inc()
	}
	f.countLost(g, "it was written to for longer than file_rotation.max_wait after its rotation")
	f.finish(i)
	return ending, true
}

// visit looks at the file of a generation. The path of one that was rotated is
// recorded, so that it is found after a restart even in another directory.
func (f *follower) visit(g *generation, now time.Time) error {
	names, err := g.refresh(now)
	if err != nil || f.isWithdrawn() {
		return err
	}
	if g.left.IsZero() {
		g.left = now
	}
	g.names = names
	if names > 0 && now.Sub(g.located) >= locateEvery {
		g.located = now
		if real := currentPath(g.f, g.id); real != "" && real != g.real {
			g.real = real
			f.c.positions.change(g.pos, func(p *position) { p.real = real })
		}
	}
	return nil
}

// isFinished reports whether a rotated generation that was read to its end has been
// idle for long enough and has no writer.
func (f *follower) isFinished(i int, now time.Time) bool {
	g := f.gens[i]
	if g.in != nil && i+1 < len(f.gens) {
		return true // nobody appends to a compressed file
	}
	if now.Sub(g.grew) < f.set.idle || now.Sub(g.left) < f.set.idle {
		return false
	}
	if f.c.writersOf(g.f) == noWriter {
		// The last writer may have written something before it closed the file.
		return f.visit(g, now) == nil && !g.unread()
	}
	if g.abandoned == byNumber {
		return true
	}
	if f.c.rotated.Add(-1) < f.c.maxRotated {
		f.c.rotated.Add(1)
		return false
	}
	g.abandoned = byNumber
	if !f.c.crowded.Swap(true) {
		f.c.opts.Logger.Warn("too many rotated files are open; those that are idle are closed although a process may still write to them", "limit", f.c.maxRotated, "path", f.target.path, "file", g.real)
	}
	return true
}

// expire ends the wait for a rotated generation after max_wait. Of a file that
// still has a name, everything that it has now is read. A deleted file is closed,
// because its open handle holds its space on the disk. It reports whether the
// generation is closed.
func (f *follower) expire(i int, now time.Time) (closed bool) {
	g := f.gens[i]
	if now.Sub(g.left) < f.set.maxWait {
		return false
	}
	if !g.expired {
		g.expired = true
		// A target that names it where it is now goes on with it.
		if f.c.writersOf(g.f) == hasWriter && (g.real == f.target.path || !f.c.isTarget(g.real, f.target.key)) {
			g.abandoned = byMaxWait
			f.c.opts.Logger.Warn("a rotated file is still open for writing after file_rotation.max_wait; lines written to it from now on are lost: make the writer reopen its log, or increase max_wait",
				"path", f.target.path, "file", g.real, "max_wait", f.set.maxWait.String())
		}
	}
	if g.names > 0 || !g.unread() {
		return false
	}
	if g.abandoned != "" {
		f.c.metrics.abandoned.WithLabelValues(g.abandoned).Inc()
	}
	f.countLost(g, "it was deleted, and file_rotation.max_wait has passed")
	f.finish(i)
	return true
}

// expireAll expires and parks generations that are not read now, because others
// are or because receivers refuse lines.
func (f *follower) expireAll(now time.Time) {
	waits := f.refused != nil // whether lines that come first are not read yet
	for i := 0; i < len(f.gens); {
		g := f.gens[i]
		if g.f == nil || g == f.generationAtPath() || f.isWithdrawn() || f.visit(g, now) != nil {
			i++
			continue
		}
		if f.expire(i, now) {
			continue
		}
		if waits && g.unread() && g.in == nil && g.names > 0 && f.c.rotated.Load() > f.c.maxRotated {
			f.c.rotated.Add(-1)
			g.close()
			g.f = nil
		}
		waits = waits || g.unread()
		i++
	}
}

// unpark opens the file of a generation that was closed because there were too
// many. It may have another name by now, or be compressed. If it is not found, it
// is lost and not among the generations any more.
func (f *follower) unpark(i int) bool {
	g := f.gens[i]
	found, err := f.c.listDirectories(g.real, f.target.path).find(g.pos, f.set.coding, f.set.format, func(id identity) bool {
		return id != g.id && f.holds(id) || f.c.owns.other(f, id)
	})
	if f.stuck = err; err != nil {
		return false // it is tried again
	}
	if found == nil || !f.c.owns.claimFile(f, found.id) {
		f.countLost(g, "it is not in its directory, nor is a copy of it")
		f.finish(i)
		return false
	}
	if found.id != g.id {
		f.c.owns.release(f, g.id)
		f.c.positions.change(g.pos, func(p *position) { p.id, p.real = found.id, found.real })
	}
	found.resume(g.pos)
	found.again, found.grew, found.rotation = g.again, g.grew, g.rotation
	f.gens[i] = found
	return true
}

// replaced reports whether there is something in a newer generation: who writes
// to this one will know soon, if it does not already.
func (f *follower) replaced(i int) bool {
	return slices.ContainsFunc(f.gens[i+1:], func(g *generation) bool { return g.raw > 0 })
}
