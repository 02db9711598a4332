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
	// Batch may be empty, because staleness markers may be pending. It is nil if
	// the part has no samples and no pending markers.
	Batch *batch.Metrics
	// Logs are the lines of the part. It may be nil.
	Logs *batch.Logs

	closed bool // created by Exits.WithClosed
}

// SendParts sends the parts that version gen created from one batch. It sends
// them concurrently, each through its own Sender, and returns when all have
// answered. t is the latest time of the batch in Unix ms; parts with lines only
// do not use it. The error is nil or a *Partial.
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

// send sends a part with one signal and returns the data that is still pending.
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
	// ctx ended before its turn.
	if p.Batch.Len() > 0 {
		left = p.Sender.current().address(samplesPayload{p.Batch})
		for i := range left {
			left[i].err = err
		}
	}
	return left
}
