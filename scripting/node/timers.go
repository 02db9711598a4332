package node

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/scripting"
)

// timer contains the data of a timer that the instances of a node pass on: its
// start, so that it stays in phase, and its Source.
type timer struct {
	began  time.Time
	source uint64
	busy   chan struct{} // capacity 1: holds a value while the hook runs
	box    mailbox

	// Guarded by busy.
	failed bool   // the last call of the hook failed
	polls  uint64 // number of polls
	sent   int64  // when the last sent records were created, Unix ms
}

// next returns the first time after now at which the timer fires.
func (t *timer) next(now time.Time, interval time.Duration) time.Time {
	return t.began.Add((t.phase(now, interval) + 1) * interval)
}

// phase returns the time of the timer's last firing, relative to its start.
func (t *timer) phase(now time.Time, interval time.Duration) time.Duration {
	return now.Sub(t.began) / interval
}

// timer returns the timer of a key. A new timer starts now.
func (m *memory) timer(key string, now time.Time) *timer {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.timers[key]
	if t == nil {
		t = &timer{began: now, source: batch.NewSource(), busy: make(chan struct{}, 1)}
		m.timers[key] = t
	}
	return t
}

// goneTimers returns the timers that the script no longer has, by key.
func (m *memory) goneTimers(beats []beat) map[string]*timer {
	m.mu.Lock()
	defer m.mu.Unlock()
	gone := maps.Clone(m.timers)
	for _, b := range beats {
		delete(gone, b.key)
	}
	return gone
}

// allTimers returns the timers of all instances that have not ended.
func (m *memory) allTimers() []*timer {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Values(m.timers))
}

// timers are the timers of an instance, including poll.
type timers struct {
	c     *Component
	beats []beat
}

func (ts *timers) add(b beat) { ts.beats = append(ts.beats, b) }

// run runs the timers until ctx ends, which happens when another instance takes
// over. run is Run's context, which limits hooks that have already begun.
func (ts *timers) run(ctx, run context.Context) {
	c := ts.c
	var wg sync.WaitGroup
	for key, t := range c.mem.goneTimers(ts.beats) {
		wg.Go(func() {
			select {
			case t.busy <- struct{}{}:
			case <-ctx.Done():
				return // the next instance ends it
			}
			defer func() { <-t.busy }()
			if ts.end(run, t) {
				c.mem.forgetTimer(key)
			}
		})
	}
	for _, b := range ts.beats {
		wg.Go(func() { ts.runTimer(ctx, run, b, c.mem.timer(b.key, c.opts.Clock.Now())) })
	}
	wg.Wait()
}

func (m *memory) forgetTimer(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.timers, key)
}

// end sends the remaining records of a removed timer, and staleness markers for
// all series that it emitted. It returns false if the next instance must do
// this.
func (ts *timers) end(run context.Context, t *timer) bool {
	c := ts.c
	c.collect(run, &t.box)
	ctx, stop := c.sending(run)
	defer stop()
	now := c.opts.Clock.Now()
	p := &emission{c: c, instance: endOfAll, out: c.emptyResult(t.source), t: max(now.UnixMilli(), t.sent+1), due: now.Add(time.Minute)}
	err := c.deliver(ctx, p)
	if errors.Is(err, component.ErrReplaced) {
		return false // a timer with that key may be added again, so no marker must be left
	}
	if err != nil {
		p.countDropped(err)
	}
	return true
}

// beat is a hook that is called repeatedly.
type beat struct {
	key      string // of its timer
	interval time.Duration
	hook     scripting.Hook
	poll     bool
}

// minPollBackoff is the time after which a failed poll is retried, if its
// interval is longer. It doubles after each further failure.
const minPollBackoff = 30 * time.Second

// first returns when a beat fires first.
func (ts *timers) first(b beat, t *timer, now time.Time) time.Time {
	if b.poll && !ts.c.script.Outside.Manual && (t.polls == 0 || t.failed || ts.c.owesExports()) {
		return now
	}
	return t.next(now, b.interval)
}

func (ts *timers) runTimer(ctx, run context.Context, b beat, t *timer) {
	c := ts.c
	next := ts.first(b, t, c.opts.Clock.Now())
	ring := c.opts.Clock.NewTimer(next.Sub(c.opts.Clock.Now()))
	defer ring.Stop()
	c.collect(run, &t.box)
	backoff := minPollBackoff
	for {
		c.progress.update(func() { c.progress.next[b.key] = next })
		select {
		case <-ctx.Done():
			return
		case <-ring.C():
		}
		last, failed := next, false
		select {
		case t.busy <- struct{}{}:
			ts.tick(ctx, run, b, t)
			failed = t.failed
			<-t.busy
		default: // the previous instance still runs it
			c.mem.metrics.skipped.Inc()
		}
		now := c.opts.Clock.Now()
		next = t.next(now, b.interval)
		c.mem.metrics.skipped.Add(max(0, float64(t.phase(now, b.interval)-t.phase(last, b.interval))))
		if !failed || !b.poll {
			backoff = minPollBackoff
		} else if again := now.Add(backoff); again.Before(next) {
			next = again
			backoff *= 2
		}
		ring.Reset(next.Sub(now))
	}
}

// tick runs the hook of a timer and sends the emitted records until the timer
// fires again. It may have waited for a VM past that time.
func (ts *timers) tick(ctx, run context.Context, b beat, t *timer) {
	c := ts.c
	hook := b.hook
	hooked, stop := c.graceful(run)
	started := time.Now()
	a, ok := c.runBatchlessHook(ctx, hooked, &hook, t.source)
	stop()
	if !ok {
		return
	}
	t.failed = a.err != nil
	p := &emission{c: c, instance: c.rules, out: a.out, t: a.began.UnixMilli(), due: t.next(c.opts.Clock.Now(), b.interval)}
	if b.poll {
		c.mem.metrics.pollTime.Add(time.Since(started).Seconds())
		t.polls++ // each poll is complete: series missing from it end
		if p.instance = t.polls; t.failed {
			p.out = c.emptyResult(t.source)
		}
	} else if !a.any {
		return
	}
	t.sent = p.t
	c.post(run, &t.box, p)
}
