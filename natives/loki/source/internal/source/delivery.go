// Package source is the common part of components that receive lines which cannot
// be read again: their streams (Streams), and sending batches until they are
// accepted (Delivery). It is not a component.
//
// A Delivery never gives up by itself. Its caller continues to read only when it
// returns, so that backpressure reaches the sender of the lines.
package source

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/flow"
)

// Delivery sends batches until every receiver has accepted them. If the receivers
// change and a batch has been in flight to the old ones for longer than
// flow.EndAfter, the whole batch is sent to the new ones. A receiver that already
// has it gets the same streams, times and lines again, and Loki stores them only
// once.
//
// All methods are safe for concurrent use.
type Delivery struct {
	clock clock.Clock

	mu      sync.Mutex
	out     *flow.Output
	flights map[*flight]struct{}
}

// flight is one attempt to send a batch.
type flight struct {
	out    *flow.Output
	since  time.Time
	cancel context.CancelCauseFunc
}

// NewDelivery returns a Delivery to out.
func NewDelivery(c clock.Clock, out *flow.Output) *Delivery {
	return &Delivery{clock: c, out: out, flights: map[*flight]struct{}{}}
}

// To sets the output for subsequent attempts.
func (d *Delivery) To(out *flow.Output) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.out = out
}

var errRedirected = errors.New("forward_to has changed")

// Look ends attempts to send to receivers that were removed. Call it about every
// second.
func (d *Delivery) Look() {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.clock.Now()
	for f := range d.flights {
		if f.out != d.out && now.Sub(f.since) > flow.EndAfter {
			f.cancel(errRedirected)
		}
	}
}

// The pauses between two attempts to send a refused batch double from minPause to
// maxPause.
const (
	minPause = 20 * time.Millisecond
	maxPause = time.Second
)

// Send returns nil when every receiver has accepted b. If ctx ends first, it
// returns the cause.
func (d *Delivery) Send(ctx context.Context, b *batch.Logs) error {
	for {
		again, err := d.attempt(ctx, b)
		if !again {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// attempt sends b to the current receivers. again is true if they have changed in
// the meantime or were removed.
func (d *Delivery) attempt(ctx context.Context, b *batch.Logs) (again bool, err error) {
	fctx, f := d.start(ctx)
	defer d.end(f)
	err = f.out.SendLogs(fctx, b)
	for pause := minPause; err != nil; pause = min(2*pause, maxPause) {
		partial, ok := errors.AsType[*flow.Partial](err)
		if !ok || ctx.Err() != nil || clock.Sleep(ctx, d.clock, pause) != nil {
			return false, err
		}
		if d.mustResend(f, err) {
			return true, nil
		}
		err = partial.Retry(fctx)
	}
	return false, nil
}

// mustResend reports whether the whole batch should be sent again: the receivers
// have changed, or one further downstream has left the graph and will never
// accept it.
func (d *Delivery) mustResend(f *flight, err error) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.clock.Now().Sub(f.since) > flow.EndAfter && (f.out != d.out || errors.Is(err, flow.ErrStopped))
}

func (d *Delivery) start(ctx context.Context) (context.Context, *flight) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := &flight{out: d.out, since: d.clock.Now()}
	ctx, f.cancel = context.WithCancelCause(ctx)
	d.flights[f] = struct{}{}
	return ctx, f
}

func (d *Delivery) end(f *flight) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.flights, f)
	f.cancel(nil)
}
