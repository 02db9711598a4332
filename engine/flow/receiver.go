package flow

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/weir-run/weir/engine/batch"
)

// MetricsConsumer takes batches of samples.
type MetricsConsumer interface {
	// ConsumeMetrics returns nil once b is accepted. b must not be written to;
	// it may be kept. Calls come concurrently, but for one b.Origin one after
	// the other.
	ConsumeMetrics(ctx context.Context, b *batch.Metrics) error
}

// LogsConsumer takes batches of log lines.
type LogsConsumer interface {
	// ConsumeLogs is MetricsConsumer.ConsumeMetrics for log lines.
	ConsumeLogs(ctx context.Context, b *batch.Logs) error
}

// ErrStopped is returned by the receiver of a node that left the graph.
var ErrStopped = errors.New("receiver is stopped")

// PanicError is what a call returns when the component behind the gate
// panicked.
type PanicError struct {
	Node     string
	Consumer any // the component
	Value    any
	Stack    []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("%s panicked: %v", e.Node, e.Value) }

// Receiver is the gate of one graph node: what an export `receiver` holds.
// It belongs to the node, not to the component behind it, which the engine
// swaps; it is stable for the life of the node. While there is no component,
// calls wait within their context.
//
// All methods are safe for concurrent use.
type Receiver struct {
	node    string
	number  uint64        // of the node, for batch.Metrics.Along
	accepts atomic.Uint32 // batch.Signals
	leaving atomic.Bool
	stats   func() *Stats // a func, so that the config language does not walk into batches; see consumer
	onPanic func(*PanicError)

	mu      sync.Mutex
	current *slot
	changed chan struct{} // closed and replaced when current changes
	flight  Flight        // on whatever component
	stopped chan struct{} // nil until Stop; closed when no call is left
}

// consumer is an any that the config language does not recognise as one: it
// hands over a pointer as it is only if no plain any can be reached from it,
// and otherwise gives the argument forward_to a copy of the Receiver. It looks
// for one in the types of all fields, and never ends in a type that contains
// itself, as a Series does.
type consumer any

// slot is one component behind the gate and its calls in flight.
type slot struct {
	consumer consumer
	calls    int
	left     chan struct{} // closed when the slot was replaced and its last call returned
}

// NewReceiver returns the gate of a node, with nothing behind it. onPanic is
// called, without any lock held, when the component panicked; the gate has
// taken it out by then and calls wait for the next Set. stats may be nil.
func NewReceiver(node string, accepts batch.Signals, stats *Stats, onPanic func(*PanicError)) *Receiver {
	if stats == nil {
		stats = new(Stats)
	}
	r := &Receiver{node: node, number: numberOf(node), stats: func() *Stats { return stats }, onPanic: onPanic, changed: make(chan struct{})}
	r.SetAccepts(accepts)
	return r
}

func numberOf(node string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(node))
	return h.Sum64()
}

// AlloyCapsule makes a Receiver an opaque value of the config language.
func (r *Receiver) AlloyCapsule() {}

// Node returns the ID of the node, such as prometheus.relabel.default.
func (r *Receiver) Node() string { return r.node }

// Accepts returns the signals the node takes.
func (r *Receiver) Accepts() batch.Signals { return batch.Signals(r.accepts.Load()) }

// SetAccepts changes the signals the node takes: a script got another hook.
func (r *Receiver) SetAccepts(s batch.Signals) { r.accepts.Store(uint32(s)) }

// SetLeaving says whether the node leaves the graph: Stop comes soon.
func (r *Receiver) SetLeaving(leaving bool) { r.leaving.Store(leaving) }

// Set puts a component behind the gate: the next call meets it, calls in
// flight finish on the one before. A nil component makes calls wait. The
// returned channel is closed when the replaced component has no call left.
func (r *Receiver) Set(consumer any) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.swap(consumer)
}

// Stop makes waiting and later calls return ErrStopped. The returned channel is
// closed when no call is in flight, on this component or one before it.
func (r *Receiver) Stop() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped == nil {
		r.stopped = make(chan struct{})
		r.swap(nil)
		if r.flight.Calls == 0 {
			close(r.stopped)
		}
	}
	return r.stopped
}

func (r *Receiver) swap(next any) <-chan struct{} {
	old := r.current
	r.current = nil
	if next != nil {
		r.current = &slot{consumer: next, left: make(chan struct{})}
	}
	close(r.changed)
	r.changed = make(chan struct{})
	if old == nil {
		done := make(chan struct{})
		close(done)
		return done
	}
	if old.calls == 0 {
		close(old.left)
	}
	return old.left
}

// Flight is what is in calls that have not returned, and so has not been accepted.
type Flight struct {
	Calls, Samples, Lines int
}

// InFlight returns what is in calls to a component that have not returned.
func (r *Receiver) InFlight() Flight {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.flight
}

func (r *Receiver) enter(ctx context.Context, samples, lines int) (*slot, error) {
	for {
		r.mu.Lock()
		if r.stopped != nil {
			r.mu.Unlock()
			return nil, fmt.Errorf("%s: %w", r.node, ErrStopped)
		}
		if s := r.current; s != nil {
			s.calls++
			r.flight.Calls++
			r.flight.Samples += samples
			r.flight.Lines += lines
			r.mu.Unlock()
			return s, nil
		}
		changed := r.changed
		r.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("%s has no running component: %w", r.node, context.Cause(ctx))
		}
	}
}

func (r *Receiver) leave(s *slot, samples, lines int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.calls--
	if s.calls == 0 && r.current != s {
		close(s.left)
	}
	r.flight.Calls--
	r.flight.Samples -= samples
	r.flight.Lines -= lines
	if r.flight.Calls == 0 && r.stopped != nil {
		close(r.stopped)
	}
}

// ConsumeMetrics passes b to the component behind the gate.
func (r *Receiver) ConsumeMetrics(ctx context.Context, b *batch.Metrics) (err error) {
	s, err := r.enter(ctx, b.Len(), 0)
	if err != nil {
		return err
	}
	defer r.leave(s, b.Len(), 0)
	stats := r.stats()
	stats.lastIn.Store(b)
	defer r.guard(s, &err)
	c, ok := s.consumer.(MetricsConsumer)
	if !ok {
		return fmt.Errorf("%s does not accept metrics", r.node)
	}
	if err = c.ConsumeMetrics(ctx, b); tookBatch(err) {
		stats.In.Add(uint64(b.Len()))
	}
	return err
}

// ConsumeLogs passes b to the component behind the gate.
func (r *Receiver) ConsumeLogs(ctx context.Context, b *batch.Logs) (err error) {
	s, err := r.enter(ctx, 0, b.Len())
	if err != nil {
		return err
	}
	defer r.leave(s, 0, b.Len())
	stats := r.stats()
	stats.lastLogsIn.Store(b)
	defer r.guard(s, &err)
	c, ok := s.consumer.(LogsConsumer)
	if !ok {
		return fmt.Errorf("%s does not accept logs", r.node)
	}
	if err = c.ConsumeLogs(ctx, b); tookBatch(err) {
		stats.LinesIn.Add(uint64(b.Len()))
	}
	return err
}

// tookBatch reports whether the component took the batch: a *Partial is a refusal
// further down.
func tookBatch(err error) bool {
	if err == nil {
		return true
	}
	_, below := errors.AsType[*Partial](err)
	return below
}

// guard is deferred around a call of the component in s: it turns a panic into
// an error and takes the component out.
func (r *Receiver) guard(s *slot, err *error) {
	v := recover()
	if v == nil {
		return
	}
	p := &PanicError{Node: r.node, Consumer: s.consumer, Value: v, Stack: debug.Stack()}
	*err = p
	r.mu.Lock()
	first := r.current == s
	if first {
		r.swap(nil)
	}
	r.mu.Unlock()
	if first && r.onPanic != nil {
		r.onPanic(p)
	}
}

var (
	_ MetricsConsumer = (*Receiver)(nil)
	_ LogsConsumer    = (*Receiver)(nil)
)
