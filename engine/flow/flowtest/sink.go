// Package flowtest contains a receiver for tests that keeps the batches it
// gets.
package flowtest

import (
	"context"
	"errors"
	"sync"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/flow"
)

// Sink accepts batches and keeps them. It is safe for concurrent use.
type Sink struct {
	receiver *flow.Receiver

	mu      sync.Mutex
	batches []*batch.Metrics
	logs    []*batch.Logs
	err     error
	arrived chan struct{} // closed and replaced when a batch is accepted
}

// NewSink returns an empty Sink behind its own gate.
func NewSink(node string) *Sink {
	s := &Sink{arrived: make(chan struct{})}
	s.receiver = flow.NewReceiver(node, batch.SignalMetrics|batch.SignalLogs, nil, nil)
	s.receiver.Set(s)
	return s
}

// Receiver returns the gate, for an argument forward_to.
func (s *Sink) Receiver() *flow.Receiver { return s.receiver }

// Refuse makes the sink refuse later batches with err. With nil, it accepts
// batches again.
func (s *Sink) Refuse(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

// ErrRefused is an error to pass to Refuse.
var ErrRefused = errors.New("refused")

// ConsumeMetrics keeps b.
func (s *Sink) ConsumeMetrics(_ context.Context, b *batch.Metrics) error {
	return s.keep(func() { s.batches = append(s.batches, b) })
}

// ConsumeLogs keeps b.
func (s *Sink) ConsumeLogs(_ context.Context, b *batch.Logs) error {
	return s.keep(func() { s.logs = append(s.logs, b) })
}

func (s *Sink) keep(add func()) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	add()
	close(s.arrived)
	s.arrived = make(chan struct{})
	return nil
}

// Logs returns the accepted batches of log lines, in order.
func (s *Sink) Logs() []*batch.Logs {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*batch.Logs(nil), s.logs...)
}

// Batches returns the accepted batches of samples, in order.
func (s *Sink) Batches() []*batch.Metrics {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*batch.Metrics(nil), s.batches...)
}

// Last returns the last accepted batch of samples, or nil if there is none.
func (s *Sink) Last() *batch.Metrics {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.batches) == 0 {
		return nil
	}
	return s.batches[len(s.batches)-1]
}

// LastLogs returns the last accepted batch of log lines, or nil if there is
// none.
func (s *Sink) LastLogs() *batch.Logs {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.logs) == 0 {
		return nil
	}
	return s.logs[len(s.logs)-1]
}

// Wait waits for n batches of samples and returns the first n, or ctx's error.
func (s *Sink) Wait(ctx context.Context, n int) ([]*batch.Metrics, error) {
	for {
		s.mu.Lock()
		got, arrived := s.batches, s.arrived
		s.mu.Unlock()
		if len(got) >= n {
			return append([]*batch.Metrics(nil), got[:n]...), nil
		}
		select {
		case <-arrived:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// WaitLines waits until the batches of log lines have n lines in total and
// returns them. If ctx ends first, it returns ctx's error and the lines so far.
func (s *Sink) WaitLines(ctx context.Context, n int) ([]*batch.Logs, error) {
	for {
		s.mu.Lock()
		got, arrived := append([]*batch.Logs(nil), s.logs...), s.arrived
		s.mu.Unlock()
		lines := 0
		for _, b := range got {
			lines += b.Len()
		}
		if lines >= n {
			return got, nil
		}
		select {
		case <-arrived:
		case <-ctx.Done():
			return got, context.Cause(ctx)
		}
	}
}

// Forget removes all kept batches.
func (s *Sink) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.batches = nil
}
