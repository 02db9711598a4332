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
	// ConsumeMetrics returns nil once b is accepted. The consumer may keep b but
	// must not modify it. Calls are concurrent, except that batches with the same
	// b.Origin arrive one after another.
	ConsumeMetrics(ctx context.Context, b *batch.Metrics) error
}

// LogsConsumer takes batches of log lines.
type LogsConsumer interface {
	// ConsumeLogs is like MetricsConsumer.ConsumeMetrics, for log lines.
	ConsumeLogs(ctx context.Context, b *batch.Logs) error
}

// ErrStopped is returned by the receiver of a node that left the graph.
var ErrStopped = errors.New("receiver is stopped")

// PanicError is the error of a call whose component panicked.
type PanicError struct {
	Node     string
	Consumer any // the component
	Value    any
	Stack    []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("%s panicked: %v", e.Node, e.Value) }

// Receiver is the gate of one graph node and the value of the export
// `receiver`. It belongs to the node, not to the component behind it, which the
// engine can replace; it exists as long as the node. While there is no
// component, calls wait until their context ends.
//
// All methods are safe for concurrent use.
type Receiver struct {
	node    string
	number  uint64        // of the node, for batch.Metrics.Along
	accepts atomic.Uint32 // batch.Signals
	leaving atomic.Bool
	stats   func() *Stats // a func, so that the config language does not inspect batches; see consumer
	onPanic func(*PanicError)

	mu      sync.Mutex
	current *slot
	changed chan struct{} // closed and replaced when current changes
	flight  Flight        // on any component, current or replaced
	stopped chan struct{} // nil until Stop; closed when no call is in flight
}

// consumer is a named type that the config language does not recognise as any.
// The config language passes a pointer as it is only if no plain any is
// reachable from it. Otherwise, the argument forward_to gets a copy of the
// Receiver. It searches the types of all fields, and does not terminate for a
// type that contains itself, as a Series does.
type consumer any

// slot is one component behind the gate with its calls in flight.
type slot struct {
	consumer consumer
	calls    int
	left     chan struct{} // closed when the slot was replaced and its last call returned
}

// NewReceiver returns the gate of a node, without a component. onPanic is
// called without any lock held when the component has panicked. By then the
// gate has removed the component, and calls wait for the next Set. stats may be
// nil.
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

// Accepts returns the signals that the node takes.
func (r *Receiver) Accepts() batch.Signals { return batch.Signals(r.accepts.Load()) }

// SetAccepts changes the signals that the node takes, for example because a
// script defines another hook.
func (r *Receiver) SetAccepts(s batch.Signals) { r.accepts.Store(uint32(s)) }

// SetLeaving sets whether the node is leaving the graph and Stop will be called
// soon.
func (r *Receiver) SetLeaving(leaving bool) { r.leaving.Store(leaving) }

// Set puts a component behind the gate. New calls go to it; calls in flight
// finish on the previous component. A nil component makes calls wait. The
// returned channel is closed when the replaced component has no more calls in
// flight.
func (r *Receiver) Set(consumer any) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.swap(consumer)
}

// Stop makes waiting and later calls return ErrStopped. The returned channel is
// closed when no call is in flight on this component or on a previous one.
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

// Flight is the data in calls that have not returned, so it is not accepted
// yet.
type Flight struct {
	Calls, Samples, Lines int
}

// InFlight returns the data in calls to a component that have not returned.
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
	if m := stats.meter.Load(); m != nil {
		m.arrive(b.Bytes())
		defer func() { m.answer(err) }()
	}
	if taps := stats.taps.Load(); taps != nil {
		var end func(error)
		ctx, end = stats.tapIn(ctx, *taps, Batches{Metrics: []*batch.Metrics{b}})
		defer func() { end(err) }()
	}
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
	if m := stats.meter.Load(); m != nil {
		m.arrive(b.Bytes())
		defer func() { m.answer(err) }()
	}
	if taps := stats.taps.Load(); taps != nil {
		var end func(error)
		ctx, end = stats.tapIn(ctx, *taps, Batches{Logs: []*batch.Logs{b}})
		defer func() { end(err) }()
	}
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

// tookBatch reports whether the component took the batch. A *Partial means that
// a node further down refused it.
func tookBatch(err error) bool {
	if err == nil {
		return true
	}
	_, below := errors.AsType[*Partial](err)
	return below
}

// guard is deferred around a call of the component in s. It turns a panic into
// an error and removes the component.
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
