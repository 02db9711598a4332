package file

import (
	"context"
	"errors"
	"time"
)

const (
	// The pauses between attempts to send what was refused double from minHold to maxHold.
	minHold = 100 * time.Millisecond
	maxHold = 5 * time.Second
	// A receiver that does not answer is asked again after minPatience, which
	// doubles up to maxPatience: who waits for it sees no rotation.
	minPatience = 5 * time.Second
	maxPatience = time.Minute
)

// turn is one look at the path, and at most one batch.
func (f *follower) turn(ctx context.Context) outcome {
	f.beginFileCalls()
	defer f.endFileCalls()
	now := f.c.opts.Clock.Now()
	err := f.checkPath(now)
	if now.Sub(f.tended) >= locateEvery && (len(f.files) > 1 || !f.here) {
		f.tended = now
		f.expireAll(now)
	}
	out := idle
	if f.refused != nil {
		out = f.resend(ctx, now)
	} else {
		var readErr error
		out, readErr = f.read(ctx, now)
		err = errors.Join(err, readErr)
	}
	f.logOnce(errors.Join(err, f.stuck))
	return out
}

// beginFileCalls begins the part of a turn that asks the file system, and asked ends it.
func (f *follower) beginFileCalls() {
	f.asking.Store(true)
	f.c.opts.Watch.Start(&f.op, f.reading, 0)
}

func (f *follower) endFileCalls() {
	f.op.End()
	f.asking.Store(false)
}

// resend sends again what was refused, if it is time. Nothing is read meanwhile,
// and rotations are seen nevertheless.
func (f *follower) resend(ctx context.Context, now time.Time) outcome {
	if !now.Before(f.retryAt) {
		if f.resendRefused(ctx) {
			f.hold, f.patient = minHold, minPatience
			return more
		}
		f.wait(now)
	}
	f.keepTrack(now)
	return idle
}

// wait says when what was refused is sent again.
func (f *follower) wait(now time.Time) {
	f.c.metrics.refusals.Inc()
	f.retryAt = now.Add(f.hold)
	f.hold = min(2*f.hold, maxHold)
	f.pause = f.set.minPause
}

// read reads and sends one batch.
func (f *follower) read(ctx context.Context, now time.Time) (outcome, error) {
	lf, whole := f.pick(now)
	if lf == nil {
		if f.leaving && len(f.files) == 0 {
			return gone, nil
		}
		if at := f.fileAtPath(); at != nil && at.unread() { // what is older holds it up
			f.keepTrack(now)
		}
		return idle, nil
	}
	crowd := f.c.held.Load() > maxHeld
	if crowd || lf != f.fileAtPath() {
		f.keepTrack(now) // it is not read now
	}
	if crowd {
		return crowded, nil
	}
	if lf.in != nil && !f.c.inflaters.acquire(lf.in) {
		return crowded, nil
	}
	c, ok, err := lf.next(chunkSize, whole)
	if lf.in != nil && (lf.ended || err != nil) {
		f.c.inflaters.release(lf.in)
	}
	if err != nil {
		return f.readable(lf, err, now)
	}
	f.c.metrics.holes.Add(float64(c.holes))
	switch {
	case ok && c.to > c.from:
		if !f.send(ctx, lf, c) {
			f.wait(now)
			return idle, nil
		}
		return more, nil
	case ok:
		return more, nil
	}
	return idle, lf.broken
}

// logOnce logs what keeps a follower from its work, once as long as it is the same.
func (f *follower) logOnce(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text == f.trouble {
		return
	}
	if f.trouble = text; isStarved(err) {
		if !f.c.starved.Swap(true) {
			f.c.opts.Logger.Warn("cannot open all files, the process has too many open; it is tried again: raise its limit (LimitNOFILE, ulimit -n)", "path", f.target.path, "err", err)
		}
	} else if text != "" {
		f.c.opts.Logger.Warn("cannot follow a file; it is tried again", "path", f.target.path, "err", err)
	} else {
		f.c.opts.Logger.Info("a file is followed again", "path", f.target.path)
	}
}
