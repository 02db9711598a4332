package engine

import (
	"slices"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/graph"
)

// halt takes the node out of the graph: later calls are refused, those in
// flight finish, then the component ends with that cause. It returns when all
// is done; once hard has ended, the component ends without waiting for calls.
func (n *node) halt(cause error) {
	left := n.recv.Stop()
	select {
	case <-left:
	case <-n.e.hard.Done():
	}
	n.mu.Lock()
	n.removed = true
	n.visible = nil
	var gens []*instance
	for g := range n.instances {
		gens = append(gens, g)
	}
	n.mu.Unlock()
	for _, g := range gens {
		// Calls in flight on replaced ones have left, or their callers have.
		g.end(cause)
	}
	for _, g := range gens {
		<-g.done
	}
	<-left // who does not heed that all contexts have ended is abandoned
	close(n.stopped)
}

// parting is a node on its way out of the graph.
type parting struct {
	halt chan struct{} // closed when the node is not called back any more
	back chan struct{} // closed when it is wanted again
	done chan struct{} // closed when it sends nothing, or no longer what it sent before
}

// remove stops nodes that are no longer wanted, each after those that send to
// it: removed ones first, and of those that stay, the calls that began before
// they were told to send elsewhere. It does not wait. Until a node stops it
// can be called back: what is removed and comes again, as in an editor's undo,
// has its receiver, its component and its memory still.
func (e *Engine) remove(gone []*node, old *graph.Graph) {
	now := e.clock.Now()
	for _, n := range gone {
		n.parting = &parting{halt: make(chan struct{}), back: make(chan struct{}), done: make(chan struct{})}
		e.parting[n.id] = n
		e.removing.add(n, now)
		n.recv.SetLeaving(true)
	}
	for _, n := range gone {
		n.cancelTry()
		var first []<-chan struct{}
		for _, id := range old.Dependants(n.id) {
			if d := e.nodes[id]; d != nil {
				first = append(first, live(d.drains)...)
			} else if d := e.parting[id]; d != nil {
				first = append(first, d.parting.done)
			}
		}
		e.leaving[n.id] = append(live(e.leaving[n.id]), n.stopped)
		p := n.parting
		e.wg.Go(func() {
			defer close(p.done)
			for _, c := range first {
				select {
				case <-c:
				case <-p.back:
				case <-e.hard.Done():
				}
			}
			if e.box.part(n) {
				select {
				case <-p.back:
				case <-p.halt:
				case <-e.box.closed:
				}
			}
			select {
			case <-p.back:
			default:
				n.halt(component.ErrRemoved)
				if e.removing.remove(n) == maxRemoving { // what waited for it goes on
					e.box.wakeWorker()
				}
				return
			}
			// It may send to those that were removed with it for a while yet.
			timer := e.clock.NewTimer(lingerTime)
			defer timer.Stop()
			select {
			case <-timer.C():
			case <-e.box.closed:
			}
		})
	}
}

// letGo ends the time in which nodes can be called back.
func (e *Engine) letGo(all []*node) {
	for _, n := range all {
		if p := n.parting; p != nil {
			n.cancelTry()
			n.parting = nil
			delete(e.parting, n.id)
			close(p.halt)
		}
	}
}

// callBack puts a node that was removed and has not stopped into the graph
// again; nil when there is none of that ID.
func (e *Engine) callBack(id string) *node {
	n := e.parting[id]
	if n == nil {
		return nil
	}
	delete(e.parting, id)
	n.recv.SetLeaving(false)
	e.removing.remove(n)
	close(n.parting.back)
	n.parting = nil
	e.leaving[id] = slices.DeleteFunc(e.leaving[id], func(c <-chan struct{}) bool { return c == n.stopped })
	if n.failed != nil || n.current != nil && n.current.crashed {
		n.tryAgain(func() { e.retry(n) }) // remove has ended the other try
	}
	return n
}

// node returns the node of an ID, or the one that can be called back; nil
// without.
func (e *Engine) node(id string) *node {
	if n := e.nodes[id]; n != nil {
		return n
	}
	return e.parting[id]
}

// lingerTime is how long a receiver stays for nodes that were told not to send
// to it any more. Longer than flow.EndAfter.
const lingerTime = 2 * time.Second

// lingerTimer returns a channel that is closed after lingerTime.
func (e *Engine) lingerTimer() <-chan struct{} {
	c := make(chan struct{})
	timer := e.clock.NewTimer(lingerTime)
	e.wg.Go(func() {
		defer close(c)
		defer timer.Stop()
		select {
		case <-timer.C():
		case <-e.hard.Done():
		}
	})
	return c
}

// live returns the channels that are not closed, in a slice of its own.
func live(cs []<-chan struct{}) (open []<-chan struct{}) {
	for _, c := range cs {
		select {
		case <-c:
		default:
			open = append(open, c)
		}
	}
	return open
}

// forgetLeft drops what has left for good.
func (e *Engine) forgetLeft() {
	for id, cs := range e.leaving {
		if cs = live(cs); len(cs) == 0 {
			delete(e.leaving, id)
		} else {
			e.leaving[id] = cs
		}
	}
}
