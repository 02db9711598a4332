package scripting

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/flow"
)

// timer is what the generations of a node hand down of one of their timers:
// when it began, so that it goes on in phase, and its Source.
type timer struct {
	began  time.Time
	source uint64
	busy   chan struct{} // capacity 1: holds a value while the hook runs
}

// next returns the first time after now at which the timer rings.
func (t *timer) next(now time.Time, interval time.Duration) time.Time {
	return t.began.Add((now.Sub(t.began)/interval + 1) * interval)
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

// forgetTimers returns those that the script no longer has.
func (m *memory) forgetTimers(d *Definition) (gone []*timer) {
	has := map[string]bool{}
	for _, e := range d.Every {
		has[e.Key] = true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, key := range sortedKeys(m.timers) {
		if !has[key] {
			gone = append(gone, m.timers[key])
			delete(m.timers, key)
		}
	}
	return gone
}

// runTimers runs the timers until ctx ends, which it does when another
// generation takes over. run is Run's: what has begun may go on for as long.
func (c *Component) runTimers(ctx, run context.Context) {
	for _, t := range c.mem.forgetTimers(c.script.def) {
		c.endTimer(ctx, t)
	}
	var wg sync.WaitGroup
	for _, e := range c.script.def.Every {
		wg.Go(func() { c.runTimer(ctx, run, e, c.mem.timer(e.Key, c.opts.Clock.Now())) })
	}
	wg.Wait()
}

// endTimer sends the markers of what a timer emitted that is no more.
func (c *Component) endTimer(ctx context.Context, t *timer) {
	select {
	case t.busy <- struct{}{}:
	case <-ctx.Done():
		return
	}
	now := c.opts.Clock.Now()
	c.deliver(ctx, result{samples: c.made(&batch.Metrics{Source: t.source}, nil)}, now, now.Add(time.Minute))
}

func (c *Component) runTimer(ctx, run context.Context, e Every, t *timer) {
	next := t.next(c.opts.Clock.Now(), e.Interval)
	ring := c.opts.Clock.NewTimer(next.Sub(c.opts.Clock.Now()))
	defer ring.Stop()
	for {
		c.progress.update(func() { c.progress.next[e.Key] = next })
		select {
		case <-ctx.Done():
			return
		case <-ring.C():
		}
		last := next
		select {
		case t.busy <- struct{}{}:
			c.tick(ctx, run, e, t)
			<-t.busy
		default: // the generation before is still at it
			c.mem.metrics.skipped.Inc()
		}
		now := c.opts.Clock.Now()
		next = t.next(now, e.Interval)
		c.mem.metrics.skipped.Add(max(0, float64(next.Sub(last)/e.Interval-1)))
		ring.Reset(next.Sub(now))
	}
}

// tick runs the hook of a timer and sends what it emits, until it rings again: it
// may have waited for a VM past its next ring.
func (c *Component) tick(ctx, run context.Context, e Every, t *timer) {
	if !c.entrance.enter() {
		return
	}
	leave := sync.OnceFunc(c.entrance.leave)
	defer leave()
	w, err := c.pool.get(ctx)
	if err != nil {
		if e, ok := errors.AsType[*Error](err); ok { // a VM that cannot be made
			c.report.errored(e)
			c.report.done(t.source, e)
		}
		return
	}
	run, stop := c.graceful(run)
	defer stop()
	k := c.newCall(run, w)
	now := k.now
	w.win.Reset(&batch.Metrics{Source: t.source}, c.gen.Generation, now)
	hook := &Hook{Name: "every", Key: e.Key, Metrics: k.samples(), Logs: k.logLines(t.source, 0)}
	_, err = k.hook(hook)
	c.report.done(t.source, k.first)
	res := w.win.Apply()
	out := result{samples: c.made(res.Batch, &w.win)}
	if err == nil {
		c.routed(&w.win)
		c.unsent(out.samples)
	}
	w.win.Done()
	if hook.Logs != nil {
		out.lines = c.madeLines(hook.Logs.Apply().Batch, hook.Logs)
		if err == nil {
			c.routedLines(hook.Logs)
		}
		hook.Logs.Done()
	}
	c.putBack(c.pool, w)
	leave() // a generation that waits for this one does not wait for who gets it
	c.mem.metrics.emitted.Add(float64(res.Emitted))
	c.mem.metrics.emittedLines.Add(float64(out.lines.len()))
	switch {
	case err != nil:
		c.opts.Stats.Drop("script_error", res.Emitted)
		c.opts.Stats.DropLines("script_error", out.lines.len())
	case res.Emitted > 0 || out.lines.len() > 0:
		c.deliver(run, out, now, t.next(now, e.Interval))
	}
}

// deliver sends what a timer emitted, whose source it is: what is refused is
// sent again until due.
func (c *Component) deliver(ctx context.Context, out result, now, due time.Time) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	alarm := clock.AfterFunc(c.opts.Clock, due.Sub(now), cancel)
	defer alarm.Stop()
	err := c.send(ctx, out, now.UnixMilli())
	for backoff := 100 * time.Millisecond; err != nil; backoff = min(2*backoff, 10*time.Second) {
		p, refused := errors.AsType[*flow.Partial](err)
		if !refused || clock.Sleep(ctx, c.opts.Clock, backoff) != nil {
			samples, lines := out.samples.len(), out.lines.len()
			if refused {
				samples, lines = p.Samples(), p.Lines()
			}
			c.opts.Stats.Drop("refused", samples)
			c.opts.Stats.DropLines("refused", lines)
			c.opts.Logger.Warn("cannot send what a timer emitted", "err", err)
			return
		}
		err = p.Retry(ctx)
	}
}
