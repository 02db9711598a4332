// Package stall detects operations that have not returned: a call into a
// component, a hook of a script, a stage, a request, the stop of a replaced
// version. Code that begins an operation that could hang describes it and its
// time limit, and ends it when it has returned:
//
//	op := o.Watch.Begin("send", time.Minute)
//	defer op.End()
//
// The engine checks the operations of all nodes every second, even while its
// worker waits for one of them. From the time when an operation is overdue
// until it ends, its node is unhealthy with the reason "stalled" and the time
// at which the operation began, and weir_engine_operations_stalled counts it.
// Nothing is interrupted: the code that performs the work must limit it. Do not
// begin an operation that waits by design, such as one that passes on
// backpressure, or end it before it waits.
//
// All methods are safe for concurrent use and work on a nil *Watch or *Op,
// which do nothing.
package stall

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/weir-run/weir/engine/clock"
)

// DefaultLimit is the default time limit of an operation.
const DefaultLimit = 15 * time.Second

// Watch contains the operations in progress of one node.
type Watch struct {
	clock clock.Clock

	mu  sync.Mutex
	ops []*Op
}

// New returns a Watch of a node without operations.
func New(c clock.Clock) *Watch { return &Watch{clock: c} }

// Op is an operation in progress. The zero value is not an operation; Start can
// use it repeatedly, without an allocation.
type Op struct {
	w     *Watch
	index int
	call  Call
}

// Call describes an operation.
type Call struct {
	// The name of the operation, such as "send to http://…" or "hook metrics".
	What string
	// Since is the time when it began.
	Since time.Time
	// Limit is its time limit.
	Limit time.Duration
}

// String describes the operation, when it began and its limit.
func (c Call) String() string {
	return fmt.Sprintf("%s has not returned since %s (limit %s)", c.What, c.Since.UTC().Format(time.RFC3339), c.Limit)
}

// Begin begins an operation with a time limit, or with DefaultLimit if limit is
// not positive. End must be called.
func (w *Watch) Begin(what string, limit time.Duration) *Op {
	if w == nil {
		return nil
	}
	op := new(Op)
	w.Start(op, what, limit)
	return op
}

// Start is like Begin, for the caller's Op, which must have ended.
func (w *Watch) Start(op *Op, what string, limit time.Duration) {
	if w == nil || op == nil {
		return
	}
	if limit <= 0 {
		limit = DefaultLimit
	}
	call := Call{What: what, Since: w.clock.Now(), Limit: limit}
	w.mu.Lock()
	defer w.mu.Unlock()
	op.w, op.call, op.index = w, call, len(w.ops)
	w.ops = append(w.ops, op)
}

// Next records progress: from now on, the operation does something else, with
// its own time limit.
func (op *Op) Next(what string, limit time.Duration) {
	if op == nil || op.w == nil {
		return
	}
	if limit <= 0 {
		limit = DefaultLimit
	}
	call := Call{What: what, Since: op.w.clock.Now(), Limit: limit}
	op.w.mu.Lock()
	defer op.w.mu.Unlock()
	op.call = call
}

// End ends the operation. It may be called again.
func (op *Op) End() {
	if op == nil || op.w == nil {
		return
	}
	w := op.w
	w.mu.Lock()
	defer w.mu.Unlock()
	last := len(w.ops) - 1
	w.ops[op.index] = w.ops[last]
	w.ops[op.index].index = op.index
	w.ops[last] = nil
	w.ops = w.ops[:last]
	op.w = nil
}

// Overdue returns the operations that have exceeded their limits, oldest first,
// or nil if there are none.
func (w *Watch) Overdue(now time.Time) (calls []Call) {
	return w.list(func(c Call) bool { return now.Sub(c.Since) > c.Limit })
}

// All returns all operations in progress, the oldest first.
func (w *Watch) All() []Call { return w.list(func(Call) bool { return true }) }

func (w *Watch) list(which func(Call) bool) (calls []Call) {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	for _, op := range w.ops {
		if which(op.call) {
			calls = append(calls, op.call)
		}
	}
	w.mu.Unlock()
	slices.SortFunc(calls, func(a, b Call) int { return a.Since.Compare(b.Since) })
	return calls
}
