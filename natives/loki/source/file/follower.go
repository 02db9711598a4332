package file

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"
)

// follower follows one target. A worker has it for one turn at a time; between
// turns the scheduler has it.
type follower struct {
	c      *Component
	set    *settings
	target target

	files   []*logFile  // oldest first
	here    bool        // the last of files is what is at the path
	knew    bool        // they knew something
	written int64       // and that was last written to then
	met     bool        // there was something at the path since
	past    time.Time   // when the last rotated file that was finished was last written to
	stuck   error       // why a rotated file cannot be opened again
	tended  time.Time   // when rotated files were last checked for max_wait
	began   bool        // what the positions know was taken over
	missing []*position // of files that are not there by their identity
	ignored bool        // for on_positions_file_error = "skip"
	appears time.Time   // compressed: when it may be read
	leaving bool        // no more is to come after what is there
	sender  sender
	calls   fileCalls
	trouble troubleLog

	// Of the scheduler.
	due      time.Time
	pause    time.Duration
	started  time.Time // of the turn
	out      outcome
	retarget *target
	queued   bool
	known    []followerInfo // for the page and the metrics
	stale    bool           // known is to be told again after the turn
}

// fileAtPath returns the file at the path, nil when there is none.
func (f *follower) fileAtPath() *logFile {
	if !f.here || len(f.files) == 0 {
		return nil
	}
	return f.files[len(f.files)-1]
}

// checkPath finds out what is at the path.
func (f *follower) checkPath(now time.Time) error {
	if !f.began {
		if err := f.begin(now); err != nil {
			return err
		}
	}
	if f.ignored {
		return nil
	}
	id, fi, err := stat(f.target.path)
	if f.leaving {
		// If its name is gone too, the file was rotated or deleted: a pattern does
		// not match it any more.
		lf := f.fileAtPath()
		f.here = lf != nil && err == nil && lf.id == id
		return nil
	}
	if err != nil {
		if isMissing(err) {
			f.here = false
			return nil
		}
		return fmt.Errorf("cannot look at %s: %w", f.target.path, err)
	}
	if lf := f.fileAtPath(); lf != nil && lf.id == id {
		return f.checkTruncated(lf, fi, now)
	}
	if i := slices.IndexFunc(f.files, func(lf *logFile) bool { return lf.id == id }); i >= 0 {
		// It was renamed and is back.
		lf := f.files[i]
		f.files = append(slices.Delete(f.files, i, i+1), lf)
		f.here = true
		lf.rotation = rotation{}
		if lf.f == nil {
			m, err := f.open(f.target.path)
			if err != nil || m == nil {
				return err
			}
			lf.f = m.f // of another file only if it was renamed again, which the next look tells
		}
		lf.updateSize(fi, now)
		return nil
	}
	if err := check(f.target.path, fi); err != nil {
		return err
	}
	if f.c.owns.other(f, id) {
		f.here = false
		return nil // another target with these labels follows it by its other name
	}
	return f.change(now)
}

// checkTruncated looks again at the file at the path. If it was written to and is not
// longer than before, what is there may be another content: it was truncated and
// has grown since, maybe to just the old place.
func (f *follower) checkTruncated(lf *logFile, fi fs.FileInfo, now time.Time) error {
	shrunk := lf.in == nil && fi.Size() < lf.size
	lf.doubted = lf.doubted || shrunk || lf.in == nil && fi.Size() == lf.size && !fi.ModTime().Equal(lf.written)
	lf.updateSize(fi, now)
	if !lf.doubted {
		return nil
	}
	lf.scanned = 0 // the part of a line may be another one
	same := lf.size >= lf.offset && !(shrunk && lf.fresh)
	if same {
		var err error
		if same, err = lf.hasMarks(lf.head, lf.tail, lf.offset); err != nil {
			return fmt.Errorf("cannot read %s: %w", f.target.path, err)
		}
	}
	lf.doubted = false
	if !same {
		f.truncated(lf, now)
	}
	return nil
}

// change begins with the file that is at the path now.
func (f *follower) change(now time.Time) error {
	lf, err := f.open(f.target.path)
	if err != nil || lf == nil {
		return err
	}
	if f.set.format != "" && f.set.delay > 0 {
		if f.appears.IsZero() {
			f.appears = now.Add(f.set.delay)
		}
		if now.Before(f.appears) {
			lf.close()
			return nil
		}
		f.appears = time.Time{}
	}
	if !f.c.owns.claimFile(f, lf.id) {
		lf.close() // another one was quicker
		f.here = false
		return nil
	}
	if !f.met {
		if err := f.first(lf, now); err != nil {
			f.drop(lf)
			return err
		}
		f.met = true
		f.files = append(f.files, lf)
	} else {
		f.follows(lf, now)
	}
	lf.grew = now
	f.here = true
	return nil
}

// follows adds lf, which has come to the path since.
func (f *follower) follows(lf *logFile, now time.Time) {
	n := len(f.files)
	if n == 0 {
		if !f.past.IsZero() {
			f.c.metrics.rotations.WithLabelValues("renamed").Inc()
			f.missed(f.past, lf)
		} // else another target with these labels had it, or had all before it
		f.rejoin(lf)
		return
	}
	before := f.files[n-1]
	names, _ := before.refresh(now)
	if f.replaces(lf, before, names) {
		f.c.positions.change(before.pos, func(p *position) { p.id, p.real = lf.id, lf.real })
		lf.resume(before.pos)
		lf.again = nil // they are under way
		f.drop(before)
		f.files[n-1] = lf
		return
	}
	if same, err := before.hasMarks(before.head, before.tail, before.offset); before.in == nil && !same && err == nil {
		f.truncated(before, now) // and renamed then, both since the last look
	}
	f.c.metrics.rotations.WithLabelValues("renamed").Inc()
	f.missed(before.written, lf)
	f.rejoin(lf)
}

// rejoin adds lf, which goes on if it was followed before.
func (f *follower) rejoin(lf *logFile) {
	if p := f.c.positionOf(f.target.key, lf); p != nil {
		f.resumeAt(p, lf)
		lf.again = nil // they are under way
	} else {
		f.fresh(lf, 0)
	}
	f.files = append(f.files, lf)
}

// open opens what is at a path, nil when that is not there any more.
func (f *follower) open(path string) (*logFile, error) {
	file, err := f.c.openFile(path)
	if err != nil {
		if isMissing(err) {
			f.here = false
			return nil, nil
		}
		return nil, fmt.Errorf("cannot open %s: %w", path, err)
	}
	fi, err := file.Stat()
	if err == nil {
		err = check(path, fi)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	f.c.starved.Store(false)
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		real = path // it went meanwhile
	}
	return newLogFile(file, fi, real, f.set.coding, f.set.format), nil
}

// replaces reports whether lf is before, saved anew by who does that with a file
// of its own that gets the name: all that was read is there too. Files whose
// names are gone and whose first kilobyte is equal are the same for Alloy too.
func (f *follower) replaces(lf, before *logFile, names uint64) bool {
	if names > 0 || before.head.n < headSize || before.unread() {
		return false
	}
	ok, err := lf.hasMarks(before.head, before.tail, before.offset)
	return ok && err == nil
}

// fresh makes lf begin at an offset of which no position is known.
func (f *follower) fresh(lf *logFile, offset int64) {
	p := &position{labels: f.target.key, path: f.target.path, real: lf.real, id: lf.id, began: offset, read: offset, last: f.sender.last, written: max(lf.written.UnixNano(), 0)}
	f.c.positions.add(p)
	lf.resume(p)
}

// missed adds the files that came after one that was last written to at
// since, and before lf: rotations that nobody saw.
func (f *follower) missed(since time.Time, lf *logFile) {
	d := f.c.listDirectories(lf.real, f.target.path)
	for _, l := range d.rotatedSince(since, func(l listed) bool {
		return l.id == lf.id || f.holds(l.id) || f.c.owns.other(f, l.id) || f.c.isTarget(l.path, f.target.key)
	}) {
		m, err := f.open(l.path)
		if err != nil || m == nil {
			continue // it is looked at as lost if it was
		}
		// The inode of a file that was deleted may belong to another one by now.
		known := f.c.positionOf(f.target.key, m) != nil
		if m.id != l.id || known || !f.c.owns.claimFile(f, m.id) {
			m.close()
			continue
		}
		f.fresh(m, 0)
		f.files = append(f.files, m)
		f.c.metrics.rotations.WithLabelValues("missed").Inc()
		f.c.opts.Logger.Info("a file was rotated more than once since it was last looked at; it is read before the current one", "path", f.target.path, "file", l.path)
	}
}

func (f *follower) holds(id identity) bool {
	return slices.ContainsFunc(f.files, func(lf *logFile) bool { return lf.id == id })
}

// truncated begins anew with the file at the path, of which the content that was
// read is gone. What was not read of that may be in a copy.
func (f *follower) truncated(lf *logFile, now time.Time) {
	i := slices.Index(f.files, lf)
	f.c.metrics.rotations.WithLabelValues("truncated").Inc()
	var copied *logFile
	for range maxSearches {
		if lf.head.n == 0 {
			break // nothing tells which it is
		}
		d := f.c.listDirectories(lf.real, f.target.path)
		// What cannot be opened now will not be asked for later: the file goes on.
		copied, _ = d.find(lf.pos, f.set.coding, f.set.format, func(id identity) bool {
			return id == lf.id || f.holds(id) || f.c.owns.other(f, id)
		})
		if copied != nil && !f.c.owns.claimFile(f, copied.id) {
			copied.close()
			copied = nil
		}
		if copied != nil || !d.moved() {
			break
		}
	}
	old := lf.pos
	f.files = f.files[:i]
	if copied != nil {
		again := lf.again
		f.c.positions.change(old, func(p *position) { p.id, p.real = copied.id, copied.real })
		copied.resume(old)
		copied.again = again
		copied.grew = now
		f.files = append(f.files, copied)
		f.missed(copied.written, lf)
	} else {
		if lf.fresh {
			f.missed(lf.earlier, lf) // of what nothing was read a copy is one that is new
		}
		if len(f.files) == i {
			lf.size = lf.before
			f.countLost(lf, "it was truncated")
		}
		f.c.positions.finish(old)
	}
	f.restart(lf)
	f.fresh(lf, 0)
	lf.grew = now
	f.files = append(f.files, lf)
}

// restart forgets what is known of the content of lf.
func (f *follower) restart(lf *logFile) {
	if fi, err := lf.f.Stat(); err == nil {
		lf.raw, lf.written = fi.Size(), fi.ModTime()
	}
	lf.size = lf.raw
	if lf.in != nil {
		lf.size, lf.ended, lf.broken = unknownSize, false, nil
		lf.in.reset()
	}
	lf.again, lf.actual, lf.tracked = nil, nil, 0
}

// countLost counts what is known to be there of lf and will not be read.
func (f *follower) countLost(lf *logFile, why string) {
	n := f.abandon(lf.pos, lf.again)
	size := lf.size
	if lf.expired {
		size = max(size, lf.raw)
	}
	if lf.in == nil && size > lf.offset {
		n += size - lf.offset
	}
	lf.again = nil
	f.lost(n, lf.real, lf.offset, why)
}

// abandon forgets ranges that were to be sent again, and returns how long they
// are.
func (f *follower) abandon(p *position, again []span) (n int64) {
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

func (f *follower) lost(n int64, real string, offset int64, why string) {
	if n > 0 {
		f.c.metrics.lost.Add(float64(n))
		f.c.opts.Logger.Warn("lines are lost: a file was not read to its end",
			"path", f.target.path, "file", real, "offset", offset, "lost_bytes", n, "reason", why)
	}
}

// finish closes a file that was read to its end.
func (f *follower) finish(i int) {
	lf := f.files[i]
	if f.leaving && lf == f.fileAtPath() {
		// It is at its path still, and goes on if the target comes back.
	} else {
		f.c.positions.finish(lf.pos)
		f.past = lf.written
	}
	f.drop(lf)
	if lf == f.fileAtPath() {
		f.here = false
	}
	f.files = slices.Delete(f.files, i, i+1)
}

// drop lets go of a file.
func (f *follower) drop(lf *logFile) {
	f.c.owns.release(f, lf.id)
	if lf.in != nil {
		f.c.inflaters.release(lf.in)
	}
	lf.close()
}

// close lets go of all files; their positions stay.
func (f *follower) close() {
	for _, lf := range f.files {
		f.drop(lf)
	}
	f.files, f.here = nil, false
	f.sender.close()
}

// handleReadError handles an error of reading lf. The error that it returns is to
// be reported, and reading is tried again.
func (f *follower) handleReadError(lf *logFile, err error, now time.Time) (outcome, error) {
	switch {
	case errors.Is(err, errChanged) && lf == f.fileAtPath():
		f.truncated(lf, now)
		return more, nil
	case errors.Is(err, errChanged):
		f.countLost(lf, "it was written over")
		f.finish(slices.Index(f.files, lf))
		return more, nil
	}
	return idle, fmt.Errorf("cannot read %s: %w", lf.real, err)
}

// keepTrack looks, while nothing is read, whether the file at the path is still
// what it was, and remembers its start: a copy must be known when it is needed.
func (f *follower) keepTrack(now time.Time) {
	lf := f.fileAtPath()
	if lf == nil || lf.in != nil || lf.size == lf.tracked {
		return
	}
	if ok, err := lf.hasMarks(lf.head, lf.tail, lf.offset); !ok && err == nil {
		f.truncated(lf, now)
	}
	if head, grown := lf.grownHead(lf.size); grown {
		f.c.positions.head(lf.pos, head)
	}
	lf.tracked = lf.size
}
