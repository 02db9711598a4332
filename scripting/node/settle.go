package node

import (
	"context"
	"sync"
	"time"
)

// progress is the progress of a component, for tests that wait until all due
// work is done before they advance the clock.
type progress struct {
	mu      sync.Mutex
	opened  bool
	failed  error                // of the last setup
	next    map[string]time.Time // when timers fire next, by key
	changed chan struct{}        // closed and replaced at each change
}

func newProgress() *progress {
	return &progress{next: map[string]time.Time{}, changed: make(chan struct{})}
}

func (p *progress) update(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
	close(p.changed)
	p.changed = make(chan struct{})
}

// Settled waits until the component has set up, has run the timers that are due
// by its clock, and its hook run waits. It returns the time when the next timer
// fires or run continues, or zero for never. The error is setup's, or the
// context's. Run must be running.
func (c *Component) Settled(ctx context.Context) (next time.Time, err error) {
	for {
		next, done, changed, err := c.awaitIdle()
		if done || err != nil {
			return next, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return next, context.Cause(ctx)
		}
	}
}

func (c *Component) awaitIdle() (next time.Time, done bool, changed <-chan struct{}, err error) {
	p := c.progress
	now := c.opts.Clock.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.opened {
		return next, false, p.changed, p.failed
	}
	keys := make([]string, 0, len(c.timers.beats)+1)
	for _, b := range c.timers.beats {
		keys = append(keys, b.key)
	}
	if c.script.Definition.Run {
		keys = append(keys, hookRun)
	}
	for _, key := range keys {
		at := p.next[key]
		if !at.After(now) {
			return next, false, p.changed, nil
		}
		if next.IsZero() || at.Before(next) {
			next = at
		}
	}
	return next, true, p.changed, nil
}

// timerSummary is a timer, or poll, with the time when it fires next.
type timerSummary struct {
	Name string    `json:"name"` // the interval of a timer in every, or poll
	Next time.Time `json:"next"`
}

func (ts *timers) summaries() (out []timerSummary) {
	c := ts.c
	c.progress.mu.Lock()
	defer c.progress.mu.Unlock()
	for _, b := range ts.beats {
		if next, ok := c.progress.next[b.key]; ok {
			out = append(out, timerSummary{b.key, next})
		}
	}
	return out
}
