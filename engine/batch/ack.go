package batch

import "sync"

// Ack is the acknowledgement of a batch of lines. It tells the source when no
// component holds a line of the batch in memory any more, which can be later than
// the return of the call that accepted the batch: a component that joins lines or
// waits for more of them takes a Hold first. A component that derives a batch from
// another one passes the Ack on. A source moves its checkpoint past a batch only
// when the Ack is done.
//
// The methods are safe for concurrent use. A nil *Ack is valid and does nothing,
// for sources that cannot read their lines again or do not wait.
type Ack struct {
	done func()

	mu       sync.Mutex
	open     int // holds, and one for the source
	holds    map[*Hold]struct{}
	adopted  []*Hold
	flushing bool
}

// Hold represents rows of a batch that a component keeps in memory.
type Hold struct {
	ack   *Ack
	flush func()
	freed bool // under ack.mu
}

// NewAck returns the Ack of one batch. done is called once, when the source has
// called Accepted and all holds were released. It runs without a lock, on the
// goroutine of the last of these calls, and must not block.
func NewAck(done func()) *Ack { return &Ack{done: done, open: 1} }

// Accepted is called once by the source, when all receivers have accepted the
// batch.
func (a *Ack) Accepted() { a.free(nil) }

// Hold registers that the caller keeps some rows of the batch after its Consume
// call returns. It must be called before that. flush, which may be nil, asks the
// caller to send the rows soon; it may be called from any goroutine and must not
// block.
func (a *Ack) Hold(flush func()) *Hold {
	if a == nil {
		return nil
	}
	h := &Hold{ack: a, flush: flush}
	a.mu.Lock()
	a.open++
	if a.holds == nil {
		a.holds = map[*Hold]struct{}{}
	}
	a.holds[h] = struct{}{}
	flushing := a.flushing
	a.mu.Unlock()
	if flushing && flush != nil {
		flush()
	}
	return h
}

// Release ends the hold, because the rows were accepted by their receivers or
// dropped for good. Further calls have no effect.
func (h *Hold) Release() {
	if h != nil {
		h.ack.free(h)
	}
}

// Adopt releases h when a is done, because the rows of h are now part of the batch
// of a. If a is nil, the sender of the batch must release h itself.
func (a *Ack) Adopt(h *Hold) {
	if a == nil || h == nil {
		return
	}
	a.mu.Lock()
	over := a.open == 0
	if !over {
		a.adopted = append(a.adopted, h)
	}
	a.mu.Unlock()
	if over {
		h.Release()
	}
}

// Flush asks all current and future holders of rows of the batch to send them soon.
func (a *Ack) Flush() {
	if a == nil {
		return
	}
	a.mu.Lock()
	a.flushing = true
	var all []func()
	for h := range a.holds {
		if h.flush != nil {
			all = append(all, h.flush)
		}
	}
	a.mu.Unlock()
	for _, f := range all {
		f()
	}
}

// free ends a hold. nil stands for the hold of the source.
func (a *Ack) free(h *Hold) {
	if a == nil {
		return
	}
	a.mu.Lock()
	if h != nil {
		if h.freed {
			a.mu.Unlock()
			return
		}
		h.freed = true
		delete(a.holds, h)
	}
	a.open--
	over := a.open == 0
	adopted := a.adopted
	if over {
		a.adopted = nil
	}
	a.mu.Unlock()
	if !over {
		return
	}
	if a.done != nil {
		a.done()
	}
	for _, h := range adopted {
		h.Release()
	}
}
