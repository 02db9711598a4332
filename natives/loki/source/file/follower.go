package file

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/stall"
)

// follower follows one target. A worker has it for one turn at a time; between
// turns the scheduler has it.
type follower struct {
	c      *Component
	set    *settings
	target target
	stream *batch.Stream
	source uint64

	gens    []*generation // oldest first
	here    bool          // the last of gens is what is at the path
	knew    bool          // they knew something
	written int64         // and that was last written to then
	met     bool          // there was something at the path since
	past    time.Time     // when the last rotated file that was finished was last written to
	stuck   error         // why a rotated file cannot be opened again
	tended  time.Time     // when rotated files were last checked for max_wait
	began   bool          // what the positions know was taken over
	missing []*position   // of files that are not there by their identity
	ignored bool          // for on_positions_file_error = "skip"
	appears time.Time     // compressed: when it may be read
	leaving bool          // no more is to come after what is there
	last    int64         // the timestamp of the last line
	refused *shipment     // to be sent again, at retryAt
	retryAt time.Time
	hold    time.Duration // until the next attempt after that
	patient time.Duration // how long a receiver may take
	trouble string        // why it does not go on

	// Of the scheduler.
	due      time.Time
	pause    time.Duration
	started  time.Time   // of the turn
	asking   atomic.Bool // the turn asks the file system, which may not answer
	op       stall.Op    // while it does
	reading  string      // what op is called
	out      outcome
	retarget *target
	queued   bool
	known    []followerInfo // for the page and the metrics
	stale    bool           // known is to be told again after the turn
}

// outcome is how a turn ended.
type outcome uint8

const (
	idle    outcome = iota
	more            // there may be another batch
	crowded         // others hold too much memory
	gone            // leaving, and at the end
)

// generationAtPath returns the generation at the path, nil when there is none.
func (f *follower) generationAtPath() *generation {
	if !f.here || len(f.gens) == 0 {
		return nil
	}
	return f.gens[len(f.gens)-1]
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
		g := f.generationAtPath()
		f.here = g != nil && err == nil && g.id == id
		return nil
	}
	if err != nil {
		if isMissing(err) {
			f.here = false
			return nil
		}
		return fmt.Errorf("cannot look at %s: %w", f.target.path, err)
	}
	if g := f.generationAtPath(); g != nil && g.id == id {
		return f.checkTruncated(g, fi, now)
	}
	if i := slices.IndexFunc(f.gens, func(g *generation) bool { return g.id == id }); i >= 0 {
		// It was renamed and is back.
		g := f.gens[i]
		f.gens = append(slices.Delete(f.gens, i, i+1), g)
		f.here = true
		g.rotation = rotation{}
		if g.f == nil {
			m, err := f.open(f.target.path)
			if err != nil || m == nil {
				return err
			}
			g.f = m.f // of another file only if it was renamed again, which the next look tells
		}
		g.updateSize(fi, now)
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
func (f *follower) checkTruncated(g *generation, fi fs.FileInfo, now time.Time) error {
	shrunk := g.in == nil && fi.Size() < g.size
	g.doubted = g.doubted || shrunk || g.in == nil && fi.Size() == g.size && !fi.ModTime().Equal(g.written)
	g.updateSize(fi, now)
	if !g.doubted {
		return nil
	}
	g.scanned = 0 // the part of a line may be another one
	same := g.size >= g.offset && !(shrunk && g.fresh)
	if same {
		var err error
		if same, err = g.hasMarks(g.head, g.tail, g.offset); err != nil {
			return fmt.Errorf("cannot read %s: %w", f.target.path, err)
		}
	}
	g.doubted = false
	if !same {
		f.truncated(g, now)
	}
	return nil
}

// change begins with the file that is at the path now.
func (f *follower) change(now time.Time) error {
	g, err := f.open(f.target.path)
	if err != nil || g == nil {
		return err
	}
	if f.set.format != "" && f.set.delay > 0 {
		if f.appears.IsZero() {
			f.appears = now.Add(f.set.delay)
		}
		if now.Before(f.appears) {
			g.close()
			return nil
		}
		f.appears = time.Time{}
	}
	if !f.c.owns.claimFile(f, g.id) {
		g.close() // another one was quicker
		f.here = false
		return nil
	}
	if !f.met {
		if err := f.first(g, now); err != nil {
			f.drop(g)
			return err
		}
		f.met = true
		f.gens = append(f.gens, g)
	} else {
		f.follows(g, now)
	}
	g.grew = now
	f.here = true
	return nil
}

// follows adds g, which has come to the path since.
func (f *follower) follows(g *generation, now time.Time) {
	n := len(f.gens)
	if n == 0 {
		if !f.past.IsZero() {
			f.c.metrics.rotations.WithLabelValues("renamed").Inc()
			f.missed(f.past, g)
		} // else another target with these labels had it, or had all before it
		f.rejoin(g)
		return
	}
	before := f.gens[n-1]
	names, _ := before.refresh(now)
	if f.replaces(g, before, names) {
		f.c.positions.change(before.pos, func(p *position) { p.id, p.real = g.id, g.real })
		g.resume(before.pos)
		g.again = nil // they are under way
		f.drop(before)
		f.gens[n-1] = g
		return
	}
	if same, err := before.hasMarks(before.head, before.tail, before.offset); before.in == nil && !same && err == nil {
		f.truncated(before, now) // and renamed then, both since the last look
	}
	f.c.metrics.rotations.WithLabelValues("renamed").Inc()
	f.missed(before.written, g)
	f.rejoin(g)
}

// rejoin adds g, which goes on if it was followed before.
func (f *follower) rejoin(g *generation) {
	if p := f.c.positionOf(f.target.key, g); p != nil {
		f.resumeAt(p, g)
		g.again = nil // they are under way
	} else {
		f.fresh(g, 0)
	}
	f.gens = append(f.gens, g)
}

// open opens what is at a path, nil when that is not there any more.
func (f *follower) open(path string) (*generation, error) {
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
	return newGeneration(file, fi, real, f.set.coding, f.set.format), nil
}

// replaces reports whether g is before, saved anew by who does that with a file
// of its own that gets the name: all that was read is there too. Files whose
// names are gone and whose first kilobyte is equal are the same for Alloy too.
func (f *follower) replaces(g, before *generation, names uint64) bool {
	if names > 0 || before.head.n < headSize || before.unread() {
		return false
	}
	ok, err := g.hasMarks(before.head, before.tail, before.offset)
	return ok && err == nil
}

// fresh makes g begin at an offset of which no position is known.
func (f *follower) fresh(g *generation, offset int64) {
	p := &position{labels: f.target.key, path: f.target.path, real: g.real, id: g.id, began: offset, read: offset, last: f.last, written: max(g.written.UnixNano(), 0)}
	f.c.positions.add(p)
	g.resume(p)
}

// missed adds the generations that came after one that was last written to at
// since, and before g: rotations that nobody saw.
func (f *follower) missed(since time.Time, g *generation) {
	d := f.c.listDirectories(g.real, f.target.path)
	for _, l := range d.rotatedSince(since, func(l listed) bool {
		return l.id == g.id || f.holds(l.id) || f.c.owns.other(f, l.id) || f.c.isTarget(l.path, f.target.key)
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
		f.gens = append(f.gens, m)
		f.c.metrics.rotations.WithLabelValues("missed").Inc()
		f.c.opts.Logger.Info("a file was rotated more than once since it was last looked at; it is read before the current one", "path", f.target.path, "file", l.path)
	}
}

func (f *follower) holds(id identity) bool {
	return slices.ContainsFunc(f.gens, func(g *generation) bool { return g.id == id })
}

// truncated begins anew with the file at the path, of which the content that was
// read is gone. What was not read of that may be in a copy.
func (f *follower) truncated(g *generation, now time.Time) {
	i := slices.Index(f.gens, g)
	f.c.metrics.rotations.WithLabelValues("truncated").Inc()
	var copied *generation
	for range maxSearches {
		if g.head.n == 0 {
			break // nothing tells which it is
		}
		d := f.c.listDirectories(g.real, f.target.path)
		// What cannot be opened now will not be asked for later: the file goes on.
		copied, _ = d.find(g.pos, f.set.coding, f.set.format, func(id identity) bool {
			return id == g.id || f.holds(id) || f.c.owns.other(f, id)
		})
		if copied != nil && !f.c.owns.claimFile(f, copied.id) {
			copied.close()
			copied = nil
		}
		if copied != nil || !d.moved() {
			break
		}
	}
	old := g.pos
	f.gens = f.gens[:i]
	if copied != nil {
		again := g.again
		f.c.positions.change(old, func(p *position) { p.id, p.real = copied.id, copied.real })
		copied.resume(old)
		copied.again = again
		copied.grew = now
		f.gens = append(f.gens, copied)
		f.missed(copied.written, g)
	} else {
		if g.fresh {
			f.missed(g.earlier, g) // of what nothing was read a copy is one that is new
		}
		if len(f.gens) == i {
			g.size = g.before
			f.countLost(g, "it was truncated")
		}
		f.c.positions.finish(old)
	}
	f.restart(g)
	f.fresh(g, 0)
	g.grew = now
	f.gens = append(f.gens, g)
}

// restart forgets what is known of the content of g.
func (f *follower) restart(g *generation) {
	if fi, err := g.f.Stat(); err == nil {
		g.raw, g.written = fi.Size(), fi.ModTime()
	}
	g.size = g.raw
	if g.in != nil {
		g.size, g.ended, g.broken = unknownSize, false, nil
		g.in.reset()
	}
	g.again, g.actual, g.tracked = nil, nil, 0
}

// countLost counts what is known to be there of g and will not be read.
func (f *follower) countLost(g *generation, why string) {
	n := f.abandon(g.pos, g.again)
	size := g.size
	if g.expired {
		size = max(size, g.raw)
	}
	if g.in == nil && size > g.offset {
		n += size - g.offset
	}
	g.again = nil
	f.lost(n, g.real, g.offset, why)
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

// finish closes a generation that was read to its end.
func (f *follower) finish(i int) {
	g := f.gens[i]
	if f.leaving && g == f.generationAtPath() {
		// It is at its path still, and goes on if the target comes back.
	} else {
		f.c.positions.finish(g.pos)
		f.past = g.written
	}
	f.drop(g)
	if g == f.generationAtPath() {
		f.here = false
	}
	f.gens = slices.Delete(f.gens, i, i+1)
}

// drop lets go of a generation.
func (f *follower) drop(g *generation) {
	f.c.owns.release(f, g.id)
	if g.in != nil {
		f.c.inflaters.release(g.in)
	}
	g.close()
}

// close lets go of all generations; their positions stay.
func (f *follower) close() {
	for _, g := range f.gens {
		f.drop(g)
	}
	f.gens, f.here = nil, false
	f.forgetRefused()
	f.stream.Release()
}

// readable turns errors of a generation into what is to be done about it. The
// error is one to be told and tried again.
func (f *follower) readable(g *generation, err error, now time.Time) (outcome, error) {
	switch {
	case errors.Is(err, errChanged) && g == f.generationAtPath():
		f.truncated(g, now)
		return more, nil
	case errors.Is(err, errChanged):
		f.countLost(g, "it was written over")
		f.finish(slices.Index(f.gens, g))
		return more, nil
	}
	return idle, fmt.Errorf("cannot read %s: %w", g.real, err)
}

// keepTrack looks, while nothing is read, whether the file at the path is still
// what it was, and remembers its start: a copy must be known when it is needed.
func (f *follower) keepTrack(now time.Time) {
	g := f.generationAtPath()
	if g == nil || g.in != nil || g.size == g.tracked {
		return
	}
	if ok, err := g.hasMarks(g.head, g.tail, g.offset); !ok && err == nil {
		f.truncated(g, now)
	}
	if head, grown := g.grownHead(g.size); grown {
		f.c.positions.head(g.pos, head)
	}
	g.tracked = g.size
}
