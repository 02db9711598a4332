package file

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// past is what the positions log knew about a target when its follower started.
type past struct {
	lastWrite time.Time   // when a file of the target was last written to; zero if there are no positions
	missing   []*position // of files that were not found by their identity, not yet searched for by content
}

// isKnown reports whether the target had positions.
func (p *past) isKnown() bool { return !p.lastWrite.IsZero() }

// addWrite records the time of the last write to a file from its position.
func (p *past) addWrite(written int64) {
	if t := time.Unix(0, written); t.After(p.lastWrite) {
		p.lastWrite = t
	}
}

// addMissing adds a position if it is not there yet.
func (p *past) addMissing(q *position) {
	if !slices.Contains(p.missing, q) {
		p.missing = append(p.missing, q)
	}
}

// loadPositions takes over the positions of the target. Files that were rotated
// while weir was not running come first.
func (f *follower) loadPositions(now time.Time) error {
	ps := f.c.claim(&f.target)
	id, _, err := statPath(f.target.path)
	if err != nil && !isMissing(err) {
		return fmt.Errorf("cannot look at %s: %w", f.target.path, err)
	}
	var missing []*position
	var found []*logFile
	for i, v := range f.c.positions.copies(ps) {
		p := ps[i]
		f.sender.raiseLast(v.last)
		f.past.addWrite(v.written)
		if v.finished && len(v.open) == 0 || err == nil && v.id == id || !f.claimPosition(p, v.id) {
			continue
		}
		lf, err := f.c.listDirectories(p.real, p.path).find(p, f.set.coding, f.set.format, func(other identity) bool {
			return other == id && other != (identity{}) || f.c.owns.isOwnedByOther(f, other)
		})
		if err == nil && lf != nil && !f.c.owns.claimFile(f, lf.id) {
			lf.close()
			lf = nil
		}
		if has := func(lf *logFile) bool { return lf.id == v.id }; !slices.ContainsFunc(found, has) && (lf == nil || !has(lf)) {
			f.c.owns.release(f, v.id)
		}
		if err != nil {
			for _, lf := range found {
				f.dropFile(lf)
			}
			return err
		}
		if lf == nil {
			missing = append(missing, p)
			continue
		}
		if lf.id != p.id || lf.real != p.real {
			f.c.positions.change(p, func(p *position) { p.id, p.real = lf.id, lf.real })
		}
		lf.resumeFrom(p)
		lf.seen.grew = now
		found = append(found, lf)
		f.c.opts.Logger.Debug("a file was rotated while weir was not there; it is read to its end first", "path", f.target.path, "file", lf.real, "offset", lf.cursor.offset)
	}
	f.files.all, f.past.missing = found, missing
	f.enter(waiting)
	return nil
}

// resumeFirst makes lf, the first file that was seen at the path, continue at its
// position, or start. now is the time of the check.
func (f *follower) resumeFirst(lf *logFile, now time.Time) error {
	var replaced bool // another content had a position under the identity of lf
	for _, p := range slices.Backward(f.c.positions.ofFile(lf.id, func(p *position) bool { return p.labels == f.target.key })) {
		ok, err := lf.hasMarks(p.head, p.tail, p.read)
		if err != nil && !lf.isCompressed() {
			return fmt.Errorf("cannot read %s: %w", f.target.path, err)
		}
		if ok {
			f.resumeAt(p, lf)
			return f.addCopies(lf, now)
		}
		replaced = true
		if !p.finished {
			f.past.addMissing(p)
		}
	}
	if p := f.takeMissing(lf); p != nil {
		f.c.positions.change(p, func(p *position) { p.id, p.real = lf.id, lf.real })
		lf.resumeFrom(p)
		return nil
	}
	if err := f.addCopies(lf, now); err != nil {
		return err
	}
	if f.past.isKnown() {
		since := f.past.lastWrite
		if last := f.files.newest(); last != nil && last.seen.written.After(since) {
			since = last.seen.written
		}
		f.addMissed(since, lf)
	}
	if replaced || f.past.isKnown() {
		f.startAt(lf, 0)
		return nil
	}
	return f.startAtConfigured(lf)
}

// resumeAt makes lf continue at p.
func (f *follower) resumeAt(p *position, lf *logFile) {
	f.c.positions.change(p, func(p *position) { p.finished, p.path, p.real = false, f.target.path, lf.real })
	f.sender.raiseLast(p.last)
	lf.resumeFrom(p)
}

// takeMissing removes the position of the content of lf from the missing ones and
// returns it, nil if there is none: the file was moved, or the number of its
// device has changed.
func (f *follower) takeMissing(lf *logFile) *position {
	for i, v := range f.c.positions.copies(f.past.missing) {
		p := f.past.missing[i]
		if v.head.n == 0 || !f.claimPosition(p, v.id) {
			continue
		}
		ok, err := lf.hasMarks(p.head, p.tail, p.read)
		if v.id != lf.id && !f.files.holds(v.id) {
			f.c.owns.release(f, v.id)
		}
		if ok && err == nil {
			f.past.missing = slices.Delete(f.past.missing, i, i+1)
			return p
		}
	}
	return nil
}

// addCopies searches for the content of the missing files and adds the copies
// that truncations left. It reports all other missing files as lost. It returns
// an error if a copy cannot be opened; the position then stays among the missing
// ones, and opening is retried.
func (f *follower) addCopies(lf *logFile, now time.Time) error {
	for ; len(f.past.missing) > 0; f.past.missing = f.past.missing[1:] {
		p := f.past.missing[0]
		gone := f.c.positions.copies(f.past.missing[:1])[0].id
		if !f.claimPosition(p, gone) {
			continue // another follower has found its file
		}
		d := f.c.listDirectories(p.real, p.path)
		d.add(f.c.targetOf(f.target.key, gone))
		old, err := d.find(p, f.set.coding, f.set.format, func(id identity) bool {
			return id == lf.id || f.files.holds(id) || f.c.owns.isOwnedByOther(f, id)
		})
		if err == nil && old != nil && !f.c.owns.claimFile(f, old.id) {
			old.close()
			old = nil
		}
		if gone != lf.id && !f.files.holds(gone) && (old == nil || old.id != gone) {
			f.c.owns.release(f, gone)
		}
		if err != nil {
			return err
		}
		if old == nil {
			f.reportLost(f.abandonRanges(p, p.open), p.real, p.read, "neither the file nor a copy of it is in its directory")
			f.c.opts.Logger.Warn("a followed file and its copies no longer exist; lines written to it since then are lost",
				"path", f.target.path, "file", p.real, "offset", p.read)
			f.c.positions.remove(p)
			continue
		}
		f.c.positions.change(p, func(p *position) { p.id, p.real = old.id, old.real })
		old.resumeFrom(p)
		old.seen.grew = now
		f.files.add(old)
	}
	return nil
}

// claimPosition claims the file of position p, which has the identity id. It
// returns false if another follower owns the file: that one has found it by its
// own path and continues at p.
func (f *follower) claimPosition(p *position, id identity) bool {
	if !f.c.owns.claimFile(f, id) {
		return false
	}
	v := f.c.positions.copies([]*position{p})[0]
	if v.path == f.target.path || !f.c.isTarget(v.path, v.labels) {
		return true
	}
	if !f.files.holds(id) {
		f.c.owns.release(f, id)
	}
	return false
}

// startAtConfigured starts reading lf, which has no position, where the arguments
// or the positions file of another collector specify.
func (f *follower) startAtConfigured(lf *logFile) error {
	created := creationTime(lf.f)
	isNew := !created.IsZero() && created.After(f.c.start.at.Add(-time.Second))
	atEnd := f.set.tailFromEnd
	var offset int64
	text, imported := f.c.imported(&f.target)
	switch n, err := strconv.ParseInt(text, 10, 64); {
	case imported && err == nil && n >= 0:
		if n <= lf.seen.size {
			offset, atEnd = n, atEnd && n == 0
		}
	case imported || f.c.start.damaged && !isNew:
		f.c.start.unread.Store(true)
		switch f.set.onError {
		case skip:
			f.enter(skipped)
			return fmt.Errorf("cannot tell how far %s was read, it is skipped as on_positions_file_error says: its position is damaged", f.target.path)
		case fromEnd:
			atEnd = true
		}
		f.c.opts.Logger.Warn("cannot tell how far a file was read: its position is damaged", "path", f.target.path, "on_positions_file_error", string(f.set.onError))
	}
	if atEnd && offset == 0 && !lf.isCompressed() {
		var err error
		if offset, err = lf.lastLineEnd(); err != nil {
			return fmt.Errorf("cannot read %s: %w", f.target.path, err)
		}
	}
	f.startAt(lf, offset)
	return nil
}
