package route

import (
	"context"
	"slices"
	"sync"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/flow"
)

// exits are the receivers of a node, each behind a Sender of its own: what a
// receiver was sent does not depend on which routes led to it.
type exits struct {
	mu     sync.Mutex
	by     map[*flow.Receiver]*flow.Sender
	closed []*flow.Sender // of receivers that no route leads to any more
	stats  *flow.Stats
}

// exit is a receiver and the routes that lead to it, as bits.
type exit struct {
	sender *flow.Sender
	routes uint64
}

// open returns the exits of routes, in the order they are first named.
func (e *exits) open(stats *flow.Stats, a *Arguments) (out []exit) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stats = stats
	at := map[*flow.Receiver]int{}
	add := func(route int, to []*flow.Receiver) {
		for _, r := range to {
			if r == nil {
				continue
			}
			i, ok := at[r]
			if !ok {
				i = len(out)
				at[r] = i
				out = append(out, exit{sender: e.sender(r)})
			}
			out[i].routes |= 1 << route
		}
	}
	for i, r := range a.Routes {
		add(i, r.ForwardTo)
	}
	add(len(a.Routes), a.ForwardTo)
	e.closed = e.closed[:0:0]
	for r, s := range e.by {
		if _, ok := at[r]; !ok {
			e.closed = append(e.closed, s)
		}
	}
	return out
}

// sender returns the Sender of r, which sends to it again if it was closed.
// Stats belong to the node, so an Output that was made for an older component
// counts in the same place.
func (e *exits) sender(r *flow.Receiver) *flow.Sender {
	s, ok := e.by[r]
	if !ok {
		s = flow.NewSender()
		e.by[r] = s
	}
	s.To(flow.NewOutput(e.stats, []*flow.Receiver{r}))
	return s
}

// withClosed returns parts and an empty one for each closed exit: through it
// leave the markers of what b's source sent there before.
func (e *exits) withClosed(parts []flow.Part, b *batch.Metrics) []flow.Part {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range e.closed {
		// To a batch of the routes before, the exit is still open.
		if !slices.ContainsFunc(parts, func(p flow.Part) bool { return p.Sender == s }) {
			parts = append(parts, flow.Part{Sender: s, Batch: &batch.Metrics{Source: b.Source, Way: b.Way}})
		}
	}
	return parts
}

// EndLeaving ends the series at closed exits whose nodes leave the graph.
func (e *exits) EndLeaving(ctx context.Context) {
	e.mu.Lock()
	closed := append([]*flow.Sender(nil), e.closed...)
	nowhere := flow.NewOutput(e.stats, nil)
	e.mu.Unlock()
	var wg sync.WaitGroup
	for _, s := range closed {
		s.To(nowhere)
		wg.Go(func() { s.EndLeaving(ctx) })
	}
	wg.Wait()
}

// Sweep forgets the sources whose series were all released, and closed exits
// of which nothing is known.
func (e *exits) Sweep() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for r, s := range e.by {
		if s.Sweep(); !s.Idle() {
			continue
		}
		for i, c := range e.closed {
			if c == s {
				e.closed = append(e.closed[:i:i], e.closed[i+1:]...)
				delete(e.by, r)
				break
			}
		}
	}
}
