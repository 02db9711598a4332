package engine

import (
	"errors"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
)

// await takes from a wanted node an error that says that its catalog does not know yet
// what its name means: what runs keeps running, and a new node waits.
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
		if w.answer == nil || e.answers[w.answer] {
			continue
		}
		answer, call := w.answer, &pendingCall{done: make(chan struct{})}
		e.answers[answer], e.pending[call] = true, true
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
