package batch

import "sync"

// Receipt tells the source of a batch of lines when none of them is kept in
// memory any more, which may be after the call returned that accepted them: who
// joins lines into one, or waits for their end, takes a Hold first. Whoever makes
// another batch of one passes its Receipt on. A source moves its position past a
// batch when its Receipt is done, not before.
//
// Its methods are safe for concurrent use, and of a nil *Receipt they do nothing:
// not every source can read its lines again, or would wait.
type Receipt struct {
	done func()

	mu       sync.Mutex
	open     int // holds, and one for the source
	holds    map[*Hold]struct{}
	adopted  []*Hold
	flushing bool
}

// Hold is a part of a batch that somebody keeps.
type Hold struct {
	of    *Receipt
	flush func()
	freed bool // under of.mu
}

// NewReceipt returns the Receipt of one batch. done is called once, by whoever
// comes last, with no lock held: when the source has called Accepted and all
// holds were released. It must not block.
func NewReceipt(done func()) *Receipt { return &Receipt{done: done, open: 1} }

// Accepted is called once by the source, when all receivers have accepted the
// batch.
func (r *Receipt) Accepted() { r.free(nil) }

// Hold says that some rows of the batch are kept beyond the call; it is called
// within it. flush is called when the source would like to have them sent soon,
// from any goroutine and maybe never; it must not block and may be nil.
func (r *Receipt) Hold(flush func()) *Hold {
	if r == nil {
		return nil
	}
	h := &Hold{of: r, flush: flush}
	r.mu.Lock()
	r.open++
	if r.holds == nil {
		r.holds = map[*Hold]struct{}{}
	}
	r.holds[h] = struct{}{}
	flushing := r.flushing
	r.mu.Unlock()
	if flushing && flush != nil {
		flush()
	}
	return h
}

// Release says that the rows were accepted by whoever they were for, or dropped
// for good. More than one call are one.
func (h *Hold) Release() {
	if h != nil {
		h.of.free(h)
	}
}

// Adopt says that the rows of h are in the batch of r now, so that h is released
// when r is done. With a nil r nobody will tell: it is for who sends the batch
// to release h then.
func (r *Receipt) Adopt(h *Hold) {
	if r == nil || h == nil {
		return
	}
	r.mu.Lock()
	over := r.open == 0
	if !over {
		r.adopted = append(r.adopted, h)
	}
	r.mu.Unlock()
	if over {
		h.Release()
	}
}

// Flush asks those who keep rows of the batch to send them soon, also those who
// will.
func (r *Receipt) Flush() {
	if r == nil {
		return
	}
	r.mu.Lock()
	r.flushing = true
	var all []func()
	for h := range r.holds {
		if h.flush != nil {
			all = append(all, h.flush)
		}
	}
	r.mu.Unlock()
	for _, f := range all {
		f()
	}
}

// free ends a hold, or with nil the source's own.
func (r *Receipt) free(h *Hold) {
	if r == nil {
		return
	}
	r.mu.Lock()
	if h != nil {
		if h.freed {
			r.mu.Unlock()
			return
		}
		h.freed = true
		delete(r.holds, h)
	}
	r.open--
	over := r.open == 0
	adopted := r.adopted
	if over {
		r.adopted = nil
	}
	r.mu.Unlock()
	if !over {
		return
	}
	if r.done != nil {
		r.done()
	}
	for _, a := range adopted {
		a.Release()
	}
}
