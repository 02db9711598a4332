package flow

import (
	"context"
	"errors"

	"github.com/weir-run/weir/engine/batch"
)

// Part is a part of a batch and the Sender that it leaves through. It may be
// empty: markers may be owed.
type Part struct {
	Sender *Sender
	Batch  *batch.Metrics
}

// SendParts sends the parts that generation gen made of one batch, whose
// latest time is t, side by side, each through a Sender of its own, and returns
// when all have answered. The error is nil or a *Partial.
func SendParts(ctx context.Context, gen uint64, parts []Part, t int64) error {
	if len(parts) == 0 {
		return nil
	}
	return sideBySide(ctx, parts, func(p Part, ctx context.Context) []pending { return p.send(ctx, gen, t) })
}

// send returns what is still pending.
func (p Part) send(ctx context.Context, gen uint64, t int64) (left []pending) {
	err := p.Sender.Send(ctx, gen, p.Batch, t)
	if err == nil {
		return nil
	}
	if below, ok := errors.AsType[*Partial](err); ok {
		return below.pending
	}
	// Its turn did not come before ctx ended.
	if p.Batch.Len() > 0 {
		to := p.Sender.current()
		for _, r := range to.to {
			left = append(left, pending{to: r, b: p.Batch.Along(r.number), stats: to.stats, err: err})
		}
	}
	return left
}
