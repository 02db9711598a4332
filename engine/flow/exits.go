package flow

import (
	"context"
	"slices"
	"sync"

	"github.com/weir-run/weir/engine/batch"
)

// Exits are the receivers of a node that routes batches. Each receiver has its
// own Sender, so the record of the data sent to it does not depend on the
// routes that led to it. A node passes its Exits from component to component.
// All methods are safe for concurrent use.
type Exits struct {
	mu     sync.Mutex
	by     map[*Receiver]*Sender
	closed []*Sender // of receivers without a route
	stats  *Stats
}

// NewExits returns Exits without receivers.
func NewExits() *Exits { return &Exits{by: map[*Receiver]*Sender{}} }

// Exit is a receiver behind its Sender. Its ways are the routes that lead to
// it, as bits.
type Exit struct {
	Sender *Sender
	Ways   uint64
}

// Open returns the exits of at most 64 routes, in the order in which their
// receivers first occur. It closes the exits of receivers without a route.
// stats belongs to the node.
func (e *Exits) Open(stats *Stats, ways ...[]*Receiver) (out []Exit) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stats = stats
	at := map[*Receiver]int{}
	for way, to := range ways {
		for _, r := range to {
			if r == nil {
				continue
			}
			i, ok := at[r]
			if !ok {
				i = len(out)
				at[r] = i
				out = append(out, Exit{Sender: e.sender(r)})
			}
			out[i].Ways |= 1 << way
		}
	}
	e.closed = e.closed[:0:0]
	for r, s := range e.by {
		if _, ok := at[r]; !ok {
			e.closed = append(e.closed, s)
		}
	}
	return out
}

// sender returns the Sender of r. If it was closed, it is opened again. Stats
// belong to the node, so an Output that an older component created uses the
// same counters.
func (e *Exits) sender(r *Receiver) *Sender {
	s, ok := e.by[r]
	if !ok {
		s = NewSender()
		e.by[r] = s
	}
	s.To(NewOutput(e.stats, []*Receiver{r}))
	return s
}

// WithClosed returns parts and one part for each closed exit, for SendParts.
// The closed exits get staleness markers for the series that b's source sent
// there, before the other parts are sent. The source does not wait until the
// markers are accepted.
func (e *Exits) WithClosed(parts []Part, b *batch.Metrics) []Part {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range e.closed {
		// For a batch that still uses the previous routes, the exit is open.
		if !slices.ContainsFunc(parts, func(p Part) bool { return p.Sender == s }) {
			parts = append(parts, Part{Sender: s, Batch: &batch.Metrics{Source: b.Source, Way: b.Way}, closed: true})
		}
	}
	return parts
}

// AnyClosed reports whether WithClosed may add a part.
func (e *Exits) AnyClosed() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.closed) > 0
}

// EndLeaving ends the series at closed exits whose nodes leave the graph.
func (e *Exits) EndLeaving(ctx context.Context) {
	e.mu.Lock()
	closed := append([]*Sender(nil), e.closed...)
	nowhere := NewOutput(e.stats, nil)
	e.mu.Unlock()
	var wg sync.WaitGroup
	for _, s := range closed {
		s.To(nowhere)
		wg.Go(func() { s.EndLeaving(ctx) })
	}
	wg.Wait()
}

// Sweep removes the sources whose series were all released, and closed exits
// without sources.
func (e *Exits) Sweep() {
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
