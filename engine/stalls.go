package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/stall"
)

const (
	// stallInterval is the interval at which operations in progress are checked.
	stallInterval = time.Second
	// workerLimit is the time limit of the worker for one change of the graph.
	workerLimit = time.Minute
)

// watchStalls detects operations that have not returned, until ctx ends. It
// needs neither the worker nor any lock that is held during a call.
func (e *Engine) watchStalls(ctx context.Context) {
	timer := e.clock.NewTimer(stallInterval)
	defer timer.Stop()
	seen := map[*node]bool{} // that were stalled at the last check
	var q queues
	for {
		select {
		case <-timer.C():
			e.lookForStalls(seen)
			q.checkQueues(e.graph.Load().nodes, e.clock.Now())
			timer.Reset(stallInterval)
		case <-ctx.Done():
			return
		}
	}
}

func (e *Engine) lookForStalls(seen map[*node]bool) {
	now := e.clock.Now()
	calls := e.watch.Overdue(now)
	total := len(calls)
	var own []string
	for _, c := range calls {
		own = append(own, c.String())
	}
	for _, n := range e.graph.Load().nodes {
		calls := n.watch.Overdue(now)
		total += len(calls)
		if len(calls) == 0 && !seen[n] {
			continue
		}
		if e.stalled(n, calls); len(calls) > 0 {
			seen[n] = true
		} else {
			delete(seen, n)
		}
	}
	abandoned := e.removing.abandoned(now)
	for i, n := range abandoned {
		total++
		if i < maxNamed {
			own = append(own, n.notStopped())
		}
		if !n.abandoned {
			n.abandoned = true
			e.log.Warn("a removed node does not stop", "component_id", n.id, "operations", n.notStopped())
		}
	}
	if more := len(abandoned) - maxNamed; more > 0 {
		own = append(own, fmt.Sprintf("%d more removed nodes have not stopped", more))
	}
	e.metrics.abandoned.Set(float64(len(abandoned)))
	for n := range seen {
		if e.graph.Load().byID[n.id] != n {
			delete(seen, n)
		}
	}
	e.metrics.stalled.Set(float64(total))
	e.stalledOwn.Store(&own)
}

// maxNamed is the maximum number of abandoned nodes in a message.
const maxNamed = 10

// notStopped describes what a removed node waits for.
func (n *node) notStopped() string {
	for _, c := range n.watch.All() {
		return fmt.Sprintf("%s was removed and has not stopped: %s", n.id, c)
	}
	return n.id + " was removed and has not stopped: calls into it are in flight"
}

// stalled makes a node unhealthy while its operations are overdue.
func (e *Engine) stalled(n *node, calls []stall.Call) {
	var h component.Health
	if len(calls) > 0 {
		h = component.Health{State: component.Unhealthy, Message: calls[0].String(), Time: calls[0].Since}
		if more := len(calls) - 1; more > 0 {
			h.Message += fmt.Sprintf(", and %d more", more)
		}
	}
	before := n.state.Load().stalled
	if before.Message == h.Message {
		return
	}
	n.change(func(s *state) { s.stalled = h })
	switch {
	case before.State == component.Unknown:
		e.metrics.stalls.Inc()
		e.log.Warn("an operation does not return", "component_id", n.id, "operation", calls[0].What, "since", calls[0].Since, "limit", calls[0].Limit)
	case h.State == component.Unknown:
		e.log.Info("the operation has returned", "component_id", n.id)
	}
}
