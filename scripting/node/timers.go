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

// timer is what the instances of a node hand down of one of their timers:
// when it began, so that it goes on in phase, and its Source.
type timer struct {
	began  time.Time
	source uint64
	busy   chan struct{} // capacity 1: holds a value while the hook runs
	box    mailbox

	// Of who holds busy.
	failed bool   // the hook did, the last time
	polls  uint64 // that have been made
	sent   int64  // when what it sent last was made, Unix ms
}

// next returns the first time after now at which the timer rings.
func (t *timer) next(now time.Time, interval time.Duration) time.Time {
	return t.began.Add((t.phase(now, interval) + 1) * interval)
}

// phase is how often the timer has rung by now, beside when it began.
func (t *timer) phase(now time.Time, interval time.Duration) time.Duration {
	return now.Sub(t.began) / interval
}

// timer returns the timer of a key, which begins now if it is new.
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

// goneTimers returns those that the script no longer has, by key.
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

// timers are the timers of an instance, poll among them.
type timers struct {
	c     *Component
	beats []beat
}

func (ts *timers) add(b beat) { ts.beats = append(ts.beats, b) }

// run runs the timers until ctx ends, which it does when another instance takes
// over. run is Run's: what has begun may go on for as long.
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

// end sends what a timer that is no more left to be sent, and the markers
// of all that it emitted. It returns false when the next instance is to.
func (ts *timers) end(run context.Context, t *timer) bool {
	c := ts.c
	c.collect(run, &t.box)
	ctx, stop := c.sending(run)
	defer stop()
	now := c.opts.Clock.Now()
	p := &emission{c: c, instance: endOfAll, out: c.emptyResult(t.source), t: max(now.UnixMilli(), t.sent+1), due: now.Add(time.Minute)}
	err := c.deliver(ctx, p)
	if errors.Is(err, component.ErrReplaced) {
		return false // a timer of that key may come back, so no marker is left
	}
	if err != nil {
		p.countDropped(err)
	}
	return true
}

// beat is a hook that is called again and again.
type beat struct {
	key      string // of its timer
	interval time.Duration
	hook     scripting.Hook
	poll     bool
}

// minPollBackoff is after how long a poll that failed is tried again, when its
// interval is longer; twice as long after each further failure.
const minPollBackoff = 30 * time.Second

// first is when a beat rings first.
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
		default: // the instance before is still at it
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

// tick runs the hook of a timer and sends what it emits, until it rings again: it
// may have waited for a VM past its next ring.
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
	p := &emission{c: c, instance: c.instance.number, out: a.out, t: a.began.UnixMilli(), due: t.next(c.opts.Clock.Now(), b.interval)}
	if b.poll {
		c.mem.metrics.pollTime.Add(time.Since(started).Seconds())
		t.polls++ // each knows all that there is: what is not in it ends
		if p.instance = t.polls; t.failed {
			p.out = c.emptyResult(t.source)
		}
	} else if !a.any {
		return
	}
	t.sent = p.t
	c.post(run, &t.box, p)
}
