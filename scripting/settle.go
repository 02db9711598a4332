package scripting

import (
	"context"
	"sync"
	"time"
)

// progress is how far a component has come, for those who wait for it: tests,
// whose clock goes on only when all that was due has been done.
type progress struct {
	mu      sync.Mutex
	opened  bool
	failed  error                // of the last setup
	next    map[string]time.Time // when timers ring, by key
	changed chan struct{}        // closed and replaced when any of it changes
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

// Settled waits until the component has set up and has run the timers that are
// due by its clock, and returns when the next one rings; zero for never. The
// error is setup's, or the context's. Run must be running.
func (c *Component) Settled(ctx context.Context) (next time.Time, err error) {
	for {
		next, done, changed, err := c.settled()
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

func (c *Component) settled() (next time.Time, done bool, changed <-chan struct{}, err error) {
	p := c.progress
	now := c.opts.Clock.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.opened {
		return next, false, p.changed, p.failed
	}
	for _, e := range c.script.def.Every {
		at := p.next[e.Key]
		if !at.After(now) {
			return next, false, p.changed, nil
		}
		if next.IsZero() || at.Before(next) {
			next = at
		}
	}
	return next, true, p.changed, nil
}
