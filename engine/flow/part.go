package flow

import (
	"context"
	"errors"
	"sync"

	"github.com/weir-run/weir/engine/batch"
)

// Part is a part of a batch and the Sender that it leaves through.
type Part struct {
	Sender *Sender
	// Batch may be empty: markers may be owed. It is nil when the part has no
	// samples and owes none.
	Batch *batch.Metrics
	// Logs are its lines, nil for none.
	Logs *batch.Logs

	closed bool // made by Exits.WithClosed
}

// SendParts sends the parts that version gen made of one batch, whose
// latest time is t, side by side, each through a Sender of its own, and returns
// when all have answered. t is Unix ms, and of no use to parts of lines alone.
// The error is nil or a *Partial.
func SendParts(ctx context.Context, gen uint64, parts []Part, t int64) error {
	single := make([]Part, 0, len(parts))
	var ends sync.WaitGroup
	for _, p := range parts {
		if p.closed {
			ends.Go(func() { p.Sender.endNow(ctx, p.Batch.Origin(), t) })
			continue
		}
		if p.Batch != nil {
			single = append(single, Part{Sender: p.Sender, Batch: p.Batch})
		}
		if p.Logs != nil && p.Logs.Len() > 0 {
			single = append(single, Part{Sender: p.Sender, Logs: p.Logs})
		}
	}
	ends.Wait()
	if len(single) == 0 {
		return nil
	}
	return sideBySide(ctx, single, func(p Part, ctx context.Context) []pending { return p.send(ctx, gen, t) })
}

// send sends a part of one signal and returns what is still pending.
func (p Part) send(ctx context.Context, gen uint64, t int64) (left []pending) {
	var err error
	if p.Logs != nil {
		err = p.Sender.SendLogs(ctx, p.Logs)
	} else {
		err = p.Sender.Send(ctx, gen, p.Batch, t)
	}
	if err == nil {
		return nil
	}
	if below, ok := errors.AsType[*Partial](err); ok {
		return below.pending
	}
	// Its turn did not come before ctx ended.
	if p.Batch.Len() > 0 {
		left = p.Sender.current().address(samplesPayload{p.Batch})
		for i := range left {
			left[i].err = err
		}
	}
	return left
}
