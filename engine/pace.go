package engine

import (
	"slices"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
)

const (
	// fastRounds is how many changes in a row, each there before the previous one
	// had been followed, make a foreach unhealthy and the worker slow down.
	fastRounds = 3
	// calmAfter is how long none of them may have come for that to end.
	calmAfter = 5 * time.Second
	// maxPause bounds how long the worker waits before it follows the next change.
	maxPause = 5 * time.Second
	// maxRemoving is how many removed nodes may be stopping for another collection
	// to be followed.
	maxRemoving = 1000
)

// pace is how the worker keeps up with what components export. Exports that
// arrive faster than they can be followed are one change: what is followed is what
// is exported then. While that is so, the worker spends half of its time on them
// and the other half waiting, so that others have the CPU, and jobs are done.
type pace struct {
	rounds int       // changes in a row that were followed by another one
	next   time.Time // before which none is followed
}

// followed notes that a change has been followed since start, and whether another
// one is there already.
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
	why    string    // "" while it is not too fast
}

const (
	churnFast  = "it changes faster than its nodes can be built: the worker follows the newest version as fast as it can and skips those in between, which weir_engine_exports_coalesced_total counts; make what it refers to change less often"
	churnStuck = "it has changed, but more than 1000 nodes that were removed have not stopped: the nodes stay as they are until they have; weir_engine_nodes_removing counts them"
)

// collections returns what the foreachs and imports of a plan are written out of.
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

// churned notes which foreachs and imports another plan has changed because of
// what components export, when the next change was there already or not.
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

// markStuck notes that a foreach or an import is not followed.
func (e *Engine) markStuck(w *wanted) {
	if c := e.churns[w.id]; c == nil || c.why == "" {
		e.churns[w.id] = &churn{last: e.clock.Now(), why: churnStuck}
		e.show(w)
	} else {
		c.last = e.clock.Now()
	}
}

// endChurn ends what has not been too fast for a while. It returns how long to wait
// for the next one to end; 0 when there is none.
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

// churning returns what is wrong with a foreach or an import that changes too
// fast; no error when it does not.
func (e *Engine) churning(id string) error {
	if c := e.churns[id]; c != nil && c.why != "" {
		return churnError(c.why)
	}
	return nil
}

// churnError is why a foreach or an import is not what it should be now.
type churnError string

func (c churnError) Error() string { return string(c) }

// reason is the reason for which something virtual is not healthy.
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
