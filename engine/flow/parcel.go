package flow

import (
	"context"

	"github.com/weir-run/weir/engine/batch"
)

// parcel is a batch of either signal on its way, so that a Partial can hold both:
// a node may make samples of lines and one receiver refuse both.
type parcel interface {
	Len() int
	unit() string
	signal() batch.Signals
	along(receiver uint64) parcel
	deliver(ctx context.Context, to *Receiver) error
	countOut(s *Stats)
}

// samples and lines are pointers, which an interface holds as they are.
type (
	samples struct{ *batch.Metrics }
	lines   struct{ *batch.Logs }
)

func (samples) unit() string                   { return "samples" }
func (samples) signal() batch.Signals          { return batch.SignalMetrics }
func (p samples) along(receiver uint64) parcel { return samples{p.Metrics.Along(receiver)} }
func (p samples) countOut(s *Stats)            { s.Out.Add(uint64(p.Len())) }
func (p samples) deliver(ctx context.Context, to *Receiver) error {
	return to.ConsumeMetrics(ctx, p.Metrics)
}

func (lines) unit() string                   { return "lines" }
func (lines) signal() batch.Signals          { return batch.SignalLogs }
func (p lines) along(receiver uint64) parcel { return lines{p.Logs.Along(receiver)} }
func (p lines) countOut(s *Stats)            { s.LinesOut.Add(uint64(p.Len())) }
func (p lines) deliver(ctx context.Context, to *Receiver) error {
	return to.ConsumeLogs(ctx, p.Logs)
}
