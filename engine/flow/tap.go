package flow

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/weir-run/weir/engine/batch"
)

// Side selects the batches that a Tap observes.
type Side uint8

// The sides of a node.
const (
	In    Side = iota // batches that arrive at the gate, accepted or not
	Out               // batches that the node sends to its receivers
	Calls             // calls of the node: each input together with its outputs
)

// The limits of the queue of a Tap. A queue with a single batch may contain more
// rows.
const (
	maxTapped     = 256
	maxTappedRows = 100_000
)

// Batches are samples and log lines. The batches are shared and must not be
// modified.
type Batches struct {
	Metrics []*batch.Metrics
	Logs    []*batch.Logs
}

// Len returns the number of samples and log lines.
func (b *Batches) Len() (n int) {
	for _, m := range b.Metrics {
		n += m.Len()
	}
	for _, l := range b.Logs {
		n += l.Len()
	}
	return n
}

// Tapped is one observation of a Tap.
type Tapped struct {
	Time time.Time // of the observation; of a call: when it returned
	// Began is when a call began; otherwise it is zero.
	Began time.Time
	// In has the batch that arrived at the gate, or nothing.
	In Batches
	// Out has the batches that the node sent. Without In, the node sent them
	// outside of a call: it is a source or it sends later.
	Out Batches
	// Err is why the node did not accept the batch of a call, or nil.
	Err error
}

func (t *Tapped) rows() int { return t.In.Len() + t.Out.Len() }

// Tap observes the batches that pass through one node. It keeps pointers to
// batches in a bounded queue. If the queue is full, it counts the rows that it
// leaves out; it never delays the node. All methods are safe for concurrent use.
type Tap struct {
	side  Side
	now   func() time.Time
	ready chan struct{} // capacity 1; holds a value if the queue may not be empty

	mu     sync.Mutex
	queue  []Tapped
	rows   int // in the queue
	missed uint64
}

// NewTap returns a Tap without a node.
func NewTap(side Side, now func() time.Time) *Tap {
	return &Tap{side: side, now: now, ready: make(chan struct{}, 1)}
}

// Ready receives a value when Take may return observations.
func (t *Tap) Ready() <-chan struct{} { return t.ready }

// Take empties the queue. It also returns the number of rows that were left out
// since the last Take. The caller owns the slice.
func (t *Tap) Take() (queue []Tapped, missed uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	queue, missed = t.queue, t.missed
	t.queue, t.rows, t.missed = nil, 0, 0
	return queue, missed
}

// offer adds an observation to the queue if it has room.
func (t *Tap) offer(o Tapped) {
	o.Time = t.now()
	rows := o.rows()
	t.mu.Lock()
	if len(t.queue) == maxTapped || len(t.queue) > 0 && t.rows+rows > maxTappedRows {
		t.missed += uint64(rows)
	} else {
		t.queue = append(t.queue, o)
		t.rows += rows
	}
	t.mu.Unlock()
	select {
	case t.ready <- struct{}{}:
	default: // it holds a value already
	}
}

// Attach adds a Tap to the node of s.
func (s *Stats) Attach(t *Tap) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var taps []*Tap
	if old := s.taps.Load(); old != nil {
		taps = slices.Clone(*old)
	}
	taps = append(taps, t)
	s.taps.Store(&taps)
}

// Detach removes a Tap from the node of s. Calls in progress may still add to
// its queue.
func (s *Stats) Detach(t *Tap) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.taps.Load()
	if old == nil {
		return
	}
	taps := slices.DeleteFunc(slices.Clone(*old), func(o *Tap) bool { return o == t })
	if len(taps) == 0 {
		s.taps.Store(nil)
		return
	}
	s.taps.Store(&taps)
}

// call is one call of a tapped node, which its context refers to.
type call struct {
	taps  []*Tap // with side Calls
	began time.Time

	mu  sync.Mutex
	in  Batches
	out Batches
	// ended means that the component has returned. Later batches are not part of
	// the call.
	ended bool
}

// callOf is the context key for the call of a node. The context of a call
// reaches the nodes below, which have keys of their own.
type callOf struct{ node *Stats }

// tapIn shows a batch that arrives at the gate to taps. It returns the context
// for the component. end must be called when the component has returned.
func (s *Stats) tapIn(ctx context.Context, taps []*Tap, in Batches) (_ context.Context, end func(error)) {
	c := &call{in: in}
	for _, t := range taps {
		switch t.side {
		case In:
			t.offer(Tapped{In: in})
		case Calls:
			c.taps = append(c.taps, t)
		}
	}
	if c.taps == nil {
		return ctx, func(error) {}
	}
	c.began = c.taps[0].now()
	return context.WithValue(ctx, callOf{s}, c), c.end
}

// tapOut shows a batch that the node sends to taps.
func (s *Stats) tapOut(ctx context.Context, taps []*Tap, out Batches) {
	c, _ := ctx.Value(callOf{s}).(*call)
	if c != nil && !c.add(out) {
		c = nil
	}
	for _, t := range taps {
		if t.side == Out || t.side == Calls && (c == nil || !slices.Contains(c.taps, t)) {
			t.offer(Tapped{Out: out})
		}
	}
}

// add reports whether out is part of the call.
func (c *call) add(out Batches) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return false
	}
	c.out.Metrics = append(c.out.Metrics, out.Metrics...)
	c.out.Logs = append(c.out.Logs, out.Logs...)
	return true
}

func (c *call) end(err error) {
	c.mu.Lock()
	c.ended = true
	c.mu.Unlock()
	if tookBatch(err) {
		err = nil
	}
	for _, t := range c.taps {
		t.offer(Tapped{Began: c.began, In: c.in, Out: c.out, Err: err})
	}
}
