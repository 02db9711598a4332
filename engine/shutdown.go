package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/component"
)

// The shutdown timeout has two parts. In the first part, everything ends by
// itself: sources finish their batches, and the nodes after them accept them.
// Then all contexts end, and nodes that do not return are abandoned, so that
// the process ends within the timeout.
const (
	// maxReserve and reserveShare limit the second part.
	maxReserve   = 3 * time.Second
	reserveShare = 0.3
	// workerPatience is how long to wait for the worker before the nodes are
	// stopped without it.
	workerPatience = 5 * time.Second
	// maxReported is the maximum number of abandoned nodes that are logged
	// individually.
	maxReported = 20
	// reasonStopped is the drop reason for data that a source took from a sender
	// that will not send it again, when weir stops.
	reasonStopped = "stopped"
)

// StopError means that not everything stopped by itself within the shutdown
// timeout.
type StopError struct {
	Timeout time.Duration
	// Abandoned describes, for each node that did not return, its operations and
	// the data in calls to it, which was not accepted.
	Abandoned []string
	// LostSamples and LostLines were taken from senders that will not send them
	// again, and were not accepted by the next nodes.
	LostSamples, LostLines uint64
}

func (e *StopError) Error() string {
	var parts []string
	switch n := len(e.Abandoned); {
	case n == 0 && !e.Lost():
		parts = append(parts, fmt.Sprintf("calls in flight were cut short, not everything stopped by itself within %s", e.Timeout))
	case n == 1:
		parts = append(parts, "1 node was abandoned: "+e.Abandoned[0])
	case n > 1:
		shown := e.Abandoned[:min(n, 3)]
		text := fmt.Sprintf("%d nodes were abandoned: %s", n, strings.Join(shown, "; "))
		if n > len(shown) {
			text += fmt.Sprintf("; and %d more", n-len(shown))
		}
		parts = append(parts, text)
	}
	if e.Lost() {
		parts = append(parts, fmt.Sprintf("%d samples and %d lines were lost, whose senders will not send them again", e.LostSamples, e.LostLines))
	}
	return strings.Join(parts, "; ")
}

// Lost reports whether data was lost that weir had accepted.
func (e *StopError) Lost() bool { return e.LostSamples+e.LostLines > 0 }

// reserve returns the second part of the shutdown timeout. A third of it is for
// the components, a third for the services, and the rest for the process.
func (e *Engine) reserve() time.Duration {
	return min(maxReserve, time.Duration(float64(e.o.ShutdownTimeout)*reserveShare))
}

// lost returns the amount of data that sources have dropped because weir stops.
func (s *snapshot) lost() (samples, lines uint64) {
	for _, n := range s.nodes {
		samples += n.stats.Dropped()[reasonStopped]
		lines += n.stats.DroppedLines()[reasonStopped]
	}
	return samples, lines
}

// stop stops the running graph, sources first. idle is closed when the worker
// has returned, which does not happen if a component does not return to it. The
// error is nil or a *StopError.
func (e *Engine) stop(idle <-chan struct{}) error {
	timeout := e.clock.NewTimer(e.o.ShutdownTimeout - e.reserve())
	defer timeout.Stop()
	patience := e.clock.NewTimer(min(workerPatience, (e.o.ShutdownTimeout-e.reserve())/2))
	defer patience.Stop()
	all := make(chan struct{})
	ctx, expire := context.WithCancel(e.hard)
	defer expire()
	select {
	case <-idle:
	case <-patience.C():
		// When it continues, it finds them stopped.
		e.log.Warn("the engine does not return from a change of the graph, weir stops without waiting for it", "operations", fmt.Sprint(e.watch.All()))
	}
	e.box.close()
	// The snapshot is the worker's last one. If the worker is stuck, it is in a
	// call of one of these nodes.
	snap := e.graph.Load()
	samples, lines := snap.lost()
	removed := e.removing.senders()
	go func() {
		defer close(all)
		for _, n := range snap.nodes {
			e.wg.Go(func() {
				for _, d := range append(snap.dependants(n.id), removed[n.id]...) {
					select {
					case <-d.stopped:
					case <-ctx.Done():
					}
				}
				n.halt(errStopping)
			})
		}
		<-idle
		e.wg.Wait()
	}()
	err := &StopError{Timeout: e.o.ShutdownTimeout}
	cut := false
	select {
	case <-all:
	case <-timeout.C():
		cut = true
		e.hardStop()
		grace := e.clock.NewTimer(e.reserve() / 3)
		defer grace.Stop()
		select {
		case <-all:
		case <-grace.C():
			e.abandon(snap, err)
		}
	}
	after, linesAfter := snap.lost()
	err.LostSamples += after - samples
	err.LostLines += linesAfter - lines
	if !cut && !err.Lost() {
		return nil
	}
	return err
}

// abandon reports the nodes that have not returned.
func (e *Engine) abandon(snap *snapshot, err *StopError) {
	nodes := slices.Clone(snap.nodes)
	for n := range e.removing.each {
		if e.graph.Load().byID[n.id] != n {
			nodes = append(nodes, n)
		}
	}
	if calls := e.watch.All(); len(calls) > 0 {
		err.Abandoned = append(err.Abandoned, "the engine: "+calls[0].String())
	}
	for _, n := range nodes {
		flight, calls := n.recv.InFlight(), n.watch.All()
		if flight.Calls == 0 && len(calls) == 0 {
			continue // it has stopped, or waits for a reported node
		}
		var parts []string
		for _, c := range calls {
			parts = append(parts, c.String())
		}
		if flight.Calls > 0 {
			parts = append(parts, fmt.Sprintf("calls into it have not returned: %d, with %d samples and %d lines", flight.Calls, flight.Samples, flight.Lines))
		}
		err.Abandoned = append(err.Abandoned, n.id+": "+strings.Join(parts, ", "))
		s := n.state.Load()
		if h, ok := s.component.(component.Holder); ok {
			held, _ := ask(s.instance, askUnaccepted, func() (held [2]int) {
				held[0], held[1] = h.Unaccepted()
				return held
			})
			err.LostSamples += uint64(held[0])
			err.LostLines += uint64(held[1])
		}
		if len(err.Abandoned) <= maxReported {
			e.log.Warn("abandoned", "component_id", n.id, "operations", strings.Join(parts, ", "),
				"calls", flight.Calls, "samples", flight.Samples, "lines", flight.Lines)
		}
	}
	if len(err.Abandoned) == 0 {
		err.Abandoned = append(err.Abandoned, "the engine: what it has begun has not returned")
	}
	if more := len(err.Abandoned) - maxReported; more > 0 {
		e.log.Warn("more nodes were abandoned", "count", more)
	}
}

// finishesWithin calls f and returns whether it ended in time.
func finishesWithin(c clock.Clock, d time.Duration, f func()) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	timer := c.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C():
		return false
	}
}
