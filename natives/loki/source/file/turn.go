package file

import (
	"context"
	"errors"
	"time"
)

// outcome is the outcome of a turn.
type outcome uint8

const (
	idle    outcome = iota // there was nothing to do
	more                   // there may be another batch
	refused                // a receiver refused a batch
	crowded                // the component needs too much memory for refused lines or decompressors
	gone                   // the target was removed, and all its files were read
)

// takeTurn checks the path once and sends at most one batch.
func (f *follower) takeTurn(ctx context.Context) outcome {
	f.calls.begin()
	defer f.calls.end()
	now := f.c.opts.Clock.Now()
	err := f.checkPath(now)
	if now.Sub(f.files.checked) >= locateEvery && f.files.hasRotated() {
		f.files.checked = now
		f.expireAll(now)
	}
	out := idle
	if f.sender.isRefused() {
		out = f.resendRefused(ctx, now)
	} else {
		var readErr error
		out, readErr = f.readBatch(ctx, now)
		err = errors.Join(err, readErr)
	}
	f.trouble.report(errors.Join(err, f.files.reopenErr))
	return out
}

// resendRefused sends a refused batch again if it is due. In the meantime,
// nothing is read, but rotations are still detected.
func (f *follower) resendRefused(ctx context.Context, now time.Time) outcome {
	tried, accepted := f.sender.resend(ctx, now)
	if accepted {
		return more
	}
	f.keepTrack(now)
	if tried {
		return refused
	}
	return idle
}

// readBatch reads and sends one batch.
func (f *follower) readBatch(ctx context.Context, now time.Time) (outcome, error) {
	lf, whole := f.pickFile(now)
	if lf == nil {
		if f.removed && f.files.isEmpty() {
			return gone, nil
		}
		if at := f.files.current; at != nil && at.hasUnread() { // an older file must be read first
			f.keepTrack(now)
		}
		return idle, nil
	}
	crowd := f.c.held.Load() > maxHeld
	if crowd || lf != f.files.current {
		f.keepTrack(now) // it is not read now
	}
	if crowd {
		return crowded, nil
	}
	if lf.isCompressed() && !f.c.inflaters.acquire(lf.packed.in) {
		return crowded, nil
	}
	c, ok, err := lf.nextChunk(chunkSize, whole)
	if lf.isCompressed() && (lf.packed.isEnded() || err != nil) {
		f.c.inflaters.release(lf.packed.in)
	}
	if err != nil {
		return f.handleReadError(lf, err, now)
	}
	f.c.metrics.holes.Add(float64(c.holes))
	switch {
	case ok && c.to > c.from:
		if !f.sender.send(ctx, lf, c, now) {
			return refused, nil
		}
		return more, nil
	case ok:
		return more, nil
	}
	return idle, lf.packed.problem()
}

// troubleLog logs the reason why a file cannot be followed, once for as long as
// the reason stays the same.
type troubleLog struct {
	c    *Component
	path string
	text string // the last reason, or ""
}

// report logs err if it differs from the last one.
func (t *troubleLog) report(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text == t.text {
		return
	}
	if t.text = text; isStarved(err) {
		if !t.c.warned.starved.Swap(true) {
			t.c.opts.Logger.Warn("cannot open all files, the process has too many open; it is tried again: raise its limit (LimitNOFILE, ulimit -n)", "path", t.path, "err", err)
		}
	} else if text != "" {
		t.c.opts.Logger.Warn("cannot follow a file; it is tried again", "path", t.path, "err", err)
	} else {
		t.c.opts.Logger.Info("a file is followed again", "path", t.path)
	}
}
