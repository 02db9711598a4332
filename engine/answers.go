package engine

import (
	"errors"
	"slices"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
)

// await removes an error from a wanted node if its catalog does not know yet
// what its name means: a running node continues, and a new node waits.
func (w *wanted) await(running *node) {
	p, ok := errors.AsType[*component.PendingError](w.err)
	if !ok {
		return
	}
	w.answer, w.err = p.Done, nil
	if running == nil || running.current == nil {
		w.waits = config.Pending(p.What)
	}
}

// awaitAnswers counts the answers of catalogs that a plan waits for among the pending
// calls, until the worker has followed them: the catalog has posted that before the
// answer is done.
func (e *Engine) awaitAnswers(p *plan) {
	for _, w := range p.list {
		if w.answer == nil {
			continue
		}
		if call := e.answers[w.answer]; call != nil {
			call.changes = adopt(call.changes, e.change.waiting())
			continue
		}
		answer, call := w.answer, e.newPendingCall()
		call.sources = w.reg.Sources
		e.answers[answer], e.pending[call] = call, true
		e.wg.Go(func() {
			select {
			case <-answer:
			case <-e.box.closed:
				return
			}
			e.box.post(func() {
				defer close(call.done)
				delete(e.answers, answer)
				delete(e.pending, call)
			})
		})
	}
}

// followAnswers records which changes are complete when the change for these
// files is made, because it follows the answers of catalogs about them.
func (e *Engine) followAnswers(paths []string) {
	for _, call := range e.answers {
		if slices.ContainsFunc(call.sources, func(f string) bool { return slices.Contains(paths, f) }) {
			e.change.follow(call.changes)
		}
	}
}

// undecided reports whether a mistake in a plan is in a block, or in a block that refers
// to a block, whose new version is not known yet.
func (p *plan) undecided() bool {
	for _, w := range p.list {
		if w.found.HasErrors() && slices.ContainsFunc(append([]string{w.id}, w.deps...), func(id string) bool {
			return p.wanted[id] != nil && p.wanted[id].answer != nil
		}) {
			return true
		}
	}
	return false
}

// awaitConfig leaves the graph as it is until the catalogs know the new versions of the
// scripts that a config uses. The config is read again then: it and its scripts are one
// change.
func (e *Engine) awaitConfig(p *plan, start time.Time) {
	e.undecided, e.change.began = true, true
	e.awaitAnswers(p)
	e.recordTrials(counts{nodes: len(e.nodes)}, start)
}
