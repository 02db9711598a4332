// Package flowtest has a receiver for tests that keeps what it gets.
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
	arrived chan struct{} // closed and replaced when a batch was accepted
}

// NewSink returns an empty Sink behind a gate of its own.
func NewSink(node string) *Sink {
	s := &Sink{arrived: make(chan struct{})}
	s.receiver = flow.NewReceiver(node, batch.SignalMetrics|batch.SignalLogs, nil, nil)
	s.receiver.Set(s)
	return s
}

// Receiver returns the gate, for an argument forward_to.
func (s *Sink) Receiver() *flow.Receiver { return s.receiver }

// Refuse makes later batches come back with err; nil accepts again.
func (s *Sink) Refuse(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

// ErrRefused is an error to Refuse with.
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

// Logs returns the batches of log lines that were accepted, in order.
func (s *Sink) Logs() []*batch.Logs {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*batch.Logs(nil), s.logs...)
}

// Batches returns the batches of samples that were accepted, in order.
func (s *Sink) Batches() []*batch.Metrics {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*batch.Metrics(nil), s.batches...)
}

// Last returns the batch of samples accepted last, nil when there is none.
func (s *Sink) Last() *batch.Metrics {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.batches) == 0 {
		return nil
	}
	return s.batches[len(s.batches)-1]
}

// LastLogs returns the batch of log lines accepted last, nil when there is none.
func (s *Sink) LastLogs() *batch.Logs {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.logs) == 0 {
		return nil
	}
	return s.logs[len(s.logs)-1]
}

// Wait returns the first n batches of samples once there are so many, or ctx's error.
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

// WaitLines returns the batches of log lines once they have n lines, or ctx's
// error with what came.
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

// Forget drops the batches so far.
func (s *Sink) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.batches = nil
}
