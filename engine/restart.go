package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
)

// The back-off of restarts and retries: it doubles from minBackoff to
// maxBackoff, and starts again after a component ran for goodRun.
const (
	minBackoff = time.Second
	maxBackoff = time.Minute
	goodRun    = time.Minute
)

func (n *node) ranWell(g *instance) bool { return n.e.clock.Now().Sub(g.started) >= goodRun }

// tryAgain posts a job after the node's back-off, which it returns.
func (n *node) tryAgain(job func()) time.Duration {
	delay := min(minBackoff<<min(n.tries, 10), maxBackoff)
	n.tries++
	ctx, cancel := context.WithCancel(n.e.hard)
	n.again = cancel
	timer := n.e.clock.NewTimer(delay)
	n.e.wg.Go(func() {
		defer timer.Stop()
		select {
		case <-timer.C():
			n.e.box.post(func() {
				if ctx.Err() == nil {
					job()
				}
			})
		case <-ctx.Done():
		}
	})
	return delay
}

func (n *node) cancelTry() {
	if n.again != nil {
		n.again()
		n.again = nil
	}
}

// gatePanic is called by the gate if the component panicked in a call.
func (e *Engine) gatePanic(id string, p *flow.PanicError) {
	e.box.post(func() {
		// It may have been replaced meanwhile.
		if n := e.nodes[id]; n != nil && n.current != nil && any(n.current.c) == p.Consumer {
			n.crash(n.current, &panicError{p.Value, p.Stack})
		}
	})
}

// crash removes an instance that failed while it ran, and builds another one
// after the back-off.
func (n *node) crash(g *instance, err error) {
	if n.current != g || g.crashed {
		return
	}
	g.crashed = true
	if n.ranWell(g) {
		n.tries = 0
	}
	attrs := []any{"component_id", n.id, "err", err}
	if p, ok := errors.AsType[*panicError](err); ok {
		attrs = append(attrs, "stack", string(p.stack))
	}
	n.cancelTry()
	delay := n.tryAgain(func() { n.e.retry(n) })
	n.e.log.Error("component exited; it will be restarted", append(attrs, "delay", delay)...)
	left := n.recv.Set(nil)
	n.change(func(s *state) {
		s.run = component.Health{State: component.Unhealthy, Message: fmt.Sprintf("component exited: %v; restarting in %s", err, delay), Time: n.e.clock.Now()}
		s.own, s.component = nil, nil
		s.restarts++
	})
	n.retire(g, left, err)
}

// retry reconciles the node with the last wanted version, even if it is
// unchanged.
func (e *Engine) retry(n *node) {
	if e.nodes[n.id] != n {
		return
	}
	n.again = nil
	r := n.reconcile(n.want, nil, true)
	e.exported(n)
	if r == rebuilt || r == updated {
		e.followFiles()
	}
}
