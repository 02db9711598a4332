package engine

import (
	"slices"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
)

const (
	// fastRounds is the number of consecutive changes, each of which arrived
	// before the previous one had been processed, that make a foreach unhealthy
	// and the worker slow down.
	fastRounds = 3
	// calmAfter is the time without such a change after which this ends.
	calmAfter = 5 * time.Second
	// maxPause is the maximum time that the worker waits before it processes the
	// next change.
	maxPause = 5 * time.Second
	// maxRemoving is the maximum number of stopping nodes with which another
	// collection is processed.
	maxRemoving = 1000
)

// pace limits the work for exports. Exports that arrive faster than they can be
// processed are merged into one change, with the newest values. In this case,
// the worker spends half of its time on them and waits the other half, so that
// other jobs and other goroutines can run.
type pace struct {
	rounds int       // consecutive changes that were followed by another one
	next   time.Time // the earliest time for the next change
}

// followed records that a change has been processed since start, and whether
// another one has already arrived.
func (p *pace) followed(start, now time.Time, more bool) {
	if !more {
		p.rounds = 0
		return
	}
	if p.rounds++; p.rounds >= fastRounds {
		p.next = now.Add(min(now.Sub(start), maxPause))
	}
}

// churn is a foreach or an import that changes faster than its nodes can be built.
type churn struct {
	rounds int
	last   time.Time // when a round was too fast
	why    string    // "" if it is not too fast
}

const (
	churnFast  = "it changes faster than its nodes can be built: the worker follows the newest version as fast as it can and skips those in between, which weir_engine_exports_coalesced_total counts; make what it refers to change less often"
	churnStuck = "it has changed, but more than 1000 nodes that were removed have not stopped: the nodes stay as they are until they have; weir_engine_nodes_removing counts them"
)

// collections returns the inputs of the foreach and import blocks of a plan.
func (p *plan) collections() map[string]any {
	all := map[string]any{}
	for id, l := range p.loops {
		all[id] = l.keys
	}
	for id, s := range p.sources {
		if s.im.Content != nil {
			all[id] = []string{s.text}
		}
	}
	return all
}

// churned records which foreach and import blocks another plan has changed
// because of exports, and whether the next change had already arrived.
func (e *Engine) churned(before map[string]any, more bool) {
	now := e.clock.Now()
	for id, is := range e.plan.collections() {
		was, known := before[id]
		if !known || slices.Equal(was.([]string), is.([]string)) {
			continue
		}
		c := e.churns[id]
		switch {
		case !more:
			if c != nil && c.why == "" {
				delete(e.churns, id)
			}
			continue
		case c == nil:
			c = &churn{}
			e.churns[id] = c
		}
		c.last = now
		if c.rounds++; c.rounds >= fastRounds && c.why != churnFast {
			c.why = churnFast
			e.show(e.plan.wanted[id])
		}
	}
}

// markStuck records that a foreach or an import is not processed.
func (e *Engine) markStuck(w *wanted) {
	if c := e.churns[w.id]; c == nil || c.why == "" {
		e.churns[w.id] = &churn{last: e.clock.Now(), why: churnStuck}
		e.show(w)
	} else {
		c.last = e.clock.Now()
	}
}

// endChurn ends the churn of blocks that have not been too fast for a while. It
// returns how long to wait for the next one to end, or 0 if there is none.
func (e *Engine) endChurn() (wait time.Duration) {
	now := e.clock.Now()
	for id, c := range e.churns {
		if e.stale && c.why == churnStuck {
			c.last = now
		}
		left := calmAfter - now.Sub(c.last)
		if left > 0 {
			if wait == 0 || left < wait {
				wait = left
			}
			continue
		}
		delete(e.churns, id)
		if w := e.plan.wanted[id]; w != nil && c.why != "" {
			e.show(w)
		}
	}
	return wait
}

// churning returns an error if a foreach or an import changes too fast.
func (e *Engine) churning(id string) error {
	if c := e.churns[id]; c != nil && c.why != "" {
		return churnError(c.why)
	}
	return nil
}

// churnError means that a foreach or an import does not have its current input.
type churnError string

func (c churnError) Error() string { return string(c) }

// reason returns the health reason for an error of a virtual block.
func reason(err error) string {
	if _, ok := err.(churnError); ok {
		return component.ReasonChurn
	}
	return component.ReasonBuild
}

// pending reports whether an error says that something is still to come.
func pending(err error) bool {
	_, ok := err.(config.Pending)
	return ok || err == config.ErrUnknown
}
