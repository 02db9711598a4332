package flow

import (
	"context"

	"github.com/weir-run/weir/engine/batch"
)

// payload is a batch of either signal, so that a Partial can hold both: a node
// may derive samples from lines, and one receiver may refuse both.
type payload interface {
	Len() int
	Bytes() int
	unit() string
	signal() batch.Signals
	withReceiver(receiver uint64) payload
	deliver(ctx context.Context, to *Receiver) error
	countOut(s *Stats)
}

// samples and lines are pointers, which an interface stores without an
// allocation.
type (
	samplesPayload struct{ *batch.Metrics }
	linesPayload   struct{ *batch.Logs }
)

func (samplesPayload) unit() string          { return "samples" }
func (samplesPayload) signal() batch.Signals { return batch.SignalMetrics }
func (p samplesPayload) withReceiver(receiver uint64) payload {
	return samplesPayload{p.Metrics.Along(receiver)}
}
func (p samplesPayload) countOut(s *Stats) { s.Out.Add(uint64(p.Len())) }
func (p samplesPayload) deliver(ctx context.Context, to *Receiver) error {
	return to.ConsumeMetrics(ctx, p.Metrics)
}

func (linesPayload) unit() string          { return "lines" }
func (linesPayload) signal() batch.Signals { return batch.SignalLogs }
func (p linesPayload) withReceiver(receiver uint64) payload {
	return linesPayload{p.Logs.Along(receiver)}
}
func (p linesPayload) countOut(s *Stats) { s.LinesOut.Add(uint64(p.Len())) }
func (p linesPayload) deliver(ctx context.Context, to *Receiver) error {
	return to.ConsumeLogs(ctx, p.Logs)
}
