package file

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// begin takes over what the positions know of the target. Files that were
// rotated away while weir was down come first.
func (f *follower) begin(now time.Time) error {
	ps := f.c.claim(&f.target)
	id, _, err := stat(f.target.path)
	if err != nil && !isMissing(err) {
		return fmt.Errorf("cannot look at %s: %w", f.target.path, err)
	}
	var missing []*position
	var found []*logFile
	for i, v := range f.c.positions.copies(ps) {
		p := ps[i]
		f.sender.raiseLast(v.last)
		f.written, f.knew = max(f.written, v.written), true
		if v.finished && len(v.open) == 0 || err == nil && v.id == id || !f.reserve(p, v.id) {
			continue
		}
		lf, err := f.c.listDirectories(p.real, p.path).find(p, f.set.coding, f.set.format, func(other identity) bool {
			return other == id && other != (identity{}) || f.c.owns.other(f, other)
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
				f.drop(lf)
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
		lf.resume(p)
		lf.grew = now
		found = append(found, lf)
		f.c.opts.Logger.Debug("a file was rotated while weir was not there; it is read to its end first", "path", f.target.path, "file", lf.real, "offset", lf.offset)
	}
	f.files, f.missing, f.began = found, missing, true
	return nil
}

// first makes lf, the first file seen at the path, go on where it was left, or
// begin. now is the time of the look.
func (f *follower) first(lf *logFile, now time.Time) error {
	var other bool
	for _, p := range slices.Backward(f.c.positions.ofFile(lf.id, func(p *position) bool { return p.labels == f.target.key })) {
		ok, err := lf.hasMarks(p.head, p.tail, p.read)
		if err != nil && lf.in == nil {
			return fmt.Errorf("cannot read %s: %w", f.target.path, err)
		}
		if ok {
			f.resumeAt(p, lf)
			return f.older(lf, now)
		}
		other = true
		if !p.finished && !slices.Contains(f.missing, p) {
			f.missing = append(f.missing, p)
		}
	}
	if p := f.same(lf); p != nil {
		f.c.positions.change(p, func(p *position) { p.id, p.real = lf.id, lf.real })
		lf.resume(p)
		return nil
	}
	if err := f.older(lf, now); err != nil {
		return err
	}
	if f.knew {
		since := time.Unix(0, f.written)
		if n := len(f.files); n > 0 && f.files[n-1].written.After(since) {
			since = f.files[n-1].written
		}
		f.missed(since, lf)
	}
	if other || f.knew {
		f.fresh(lf, 0)
		return nil
	}
	return f.startAtConfigured(lf)
}

// resumeAt makes lf go on at p.
func (f *follower) resumeAt(p *position, lf *logFile) {
	f.c.positions.change(p, func(p *position) { p.finished, p.path, p.real = false, f.target.path, lf.real })
	f.sender.raiseLast(p.last)
	lf.resume(p)
}

// same returns the position, of those whose files are not there, that is of the
// content of lf: it was moved, or the device has another number.
func (f *follower) same(lf *logFile) *position {
	for i, v := range f.c.positions.copies(f.missing) {
		p := f.missing[i]
		if v.head.n == 0 || !f.reserve(p, v.id) {
			continue
		}
		ok, err := lf.hasMarks(p.head, p.tail, p.read)
		if v.id != lf.id && !f.holds(v.id) {
			f.c.owns.release(f, v.id)
		}
		if ok && err == nil {
			f.missing = slices.Delete(f.missing, i, i+1)
			return p
		}
	}
	return nil
}

// older adds what is found of files that are not there by their identity, before
// lf: the copies that truncations left. The rest is lost. The error is that of
// opening one, which may go away; what is left is still missing then.
func (f *follower) older(lf *logFile, now time.Time) error {
	for ; len(f.missing) > 0; f.missing = f.missing[1:] {
		p := f.missing[0]
		gone := f.c.positions.copies(f.missing[:1])[0].id
		if !f.reserve(p, gone) {
			continue // its file is one that another follower has found
		}
		d := f.c.listDirectories(p.real, p.path)
		d.add(f.c.targetOf(f.target.key, gone))
		old, err := d.find(p, f.set.coding, f.set.format, func(id identity) bool {
			return id == lf.id || f.holds(id) || f.c.owns.other(f, id)
		})
		if err == nil && old != nil && !f.c.owns.claimFile(f, old.id) {
			old.close()
			old = nil
		}
		if gone != lf.id && !f.holds(gone) && (old == nil || old.id != gone) {
			f.c.owns.release(f, gone)
		}
		if err != nil {
			return err
		}
		if old == nil {
			f.lost(f.abandon(p, p.open), p.real, p.read, "it is not in its directory, nor is a copy of it")
			f.c.opts.Logger.Warn("a file that was followed is not there any more, nor is a copy of it; if it was written to since, those lines are lost",
				"path", f.target.path, "file", p.real, "offset", p.read)
			f.c.positions.remove(p)
			continue
		}
		f.c.positions.change(p, func(p *position) { p.id, p.real = old.id, old.real })
		old.resume(p)
		old.grew = now
		f.files = append(f.files, old)
	}
	return nil
}

// reserve makes the file that p is the position of, id, f's, unless another
// follower has it: that has found it by a path of its own, and goes on at p.
func (f *follower) reserve(p *position, id identity) bool {
	if !f.c.owns.claimFile(f, id) {
		return false
	}
	v := f.c.positions.copies([]*position{p})[0]
	if v.path == f.target.path || !f.c.isTarget(v.path, v.labels) {
		return true
	}
	if !f.holds(id) {
		f.c.owns.release(f, id)
	}
	return false
}

// startAtConfigured makes lf, of which nothing is known, begin where the arguments say.
func (f *follower) startAtConfigured(lf *logFile) error {
	made := creationTime(lf.f)
	new := !made.IsZero() && made.After(f.c.started.Add(-time.Second))
	atEnd := f.set.tailFromEnd
	var offset int64
	text, imported := f.c.imported(&f.target)
	switch n, err := strconv.ParseInt(text, 10, 64); {
	case imported && err == nil && n >= 0:
		if n <= lf.size {
			offset, atEnd = n, atEnd && n == 0
		}
	case imported || f.c.damaged && !new:
		f.c.unread.Store(true)
		switch f.set.onError {
		case skip:
			f.ignored = true
			return fmt.Errorf("cannot tell how far %s was read, it is skipped as on_positions_file_error says: its position is damaged", f.target.path)
		case fromEnd:
			atEnd = true
		}
		f.c.opts.Logger.Warn("cannot tell how far a file was read: its position is damaged", "path", f.target.path, "on_positions_file_error", string(f.set.onError))
	}
	if atEnd && offset == 0 && lf.in == nil {
		var err error
		if offset, err = lf.lastLine(); err != nil {
			return fmt.Errorf("cannot read %s: %w", f.target.path, err)
		}
	}
	f.fresh(lf, offset)
	return nil
}

// lastLine returns where the last whole line ends.
func (lf *logFile) lastLine() (int64, error) {
	const step = 4096 // a multiple of all widths
	lf.start(nil)
	c := lf.coding
	var head [4]byte
	if n, _ := lf.readAt(head[:], 0); n > 0 {
		c, _ = c.byMark(head[:n])
	}
	b := make([]byte, step)
	for at := (lf.size - 1) / step * step; at >= 0; at -= step {
		n, err := lf.readAt(b, at)
		if err != nil {
			return 0, err
		}
		if end := c.end(b[:n]); end > 0 {
			return at + int64(end), nil
		}
	}
	return 0, nil
}

// newFollower returns the follower of a target.
func newFollower(c *Component, set *settings, t target) *follower {
	f := &follower{c: c, set: set, target: t, pause: set.minPause, stale: true}
	f.calls.watch, f.calls.name = c.opts.Watch, "reading "+t.path
	f.trouble = troubleLog{c: c, path: t.path}
	f.sender = newSender(c, &f.calls, &f.target)
	return f
}
