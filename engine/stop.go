package engine

import (
	"slices"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/graph"
)

// halt removes the node from the graph: later calls are refused, calls in
// flight finish, then the component ends with the cause. It returns when all of
// this is done. After hard has ended, the component ends without waiting for
// calls.
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
		// Calls in flight on replaced instances have returned, or their callers have.
		g.end(cause)
	}
	for _, g := range gens {
		<-g.done
	}
	<-left // a node that ignores that all contexts have ended is abandoned
	close(n.stopped)
}

// parting is the state of a node that is leaving the graph.
type parting struct {
	halt chan struct{} // closed when the node can no longer be called back
	back chan struct{} // closed when it is wanted again
	done chan struct{} // closed when it sends nothing, or no longer the same data
}

// remove stops nodes that are no longer wanted, each after the nodes that send
// to it. Calls that nodes began before they got other receivers also end first.
// remove does not wait. Until a node stops, it can be called back: if it is
// added again, for example by an undo in an editor, it still has its receiver,
// its component and its memory.
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
				if e.removing.remove(n) == maxRemoving { // what waited for it continues
					e.box.wakeWorker()
				}
				return
			}
			// It may still send to nodes that were removed with it.
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

// callBack returns a node that was removed and has not stopped to the graph. It
// returns nil if there is none with that ID.
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
		n.tryAgain(func() { e.retry(n) }) // remove has stopped the earlier attempt
	}
	return n
}

// node returns the node with an ID, or the one that can be called back, or nil.
func (e *Engine) node(id string) *node {
	if n := e.nodes[id]; n != nil {
		return n
	}
	return e.parting[id]
}

// lingerTime is how long a receiver stays for nodes that no longer send to it.
// It is longer than flow.EndAfter.
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

// live returns the channels that are not closed, in a new slice.
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

// forgetLeft removes the nodes that have stopped.
func (e *Engine) forgetLeft() {
	for id, cs := range e.leaving {
		if cs = live(cs); len(cs) == 0 {
			delete(e.leaving, id)
		} else {
			e.leaving[id] = cs
		}
	}
}
