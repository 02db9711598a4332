package node

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/journal"
	"github.com/weir-run/weir/engine/outbox"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/block"
)

// sink is a component that receives data and delivers it to an external system.
// It uses the node's queue, which accepts batches independently of the delivery
// of earlier ones and passes them to the hook send.
type sink struct {
	c        *Component
	settings outbox.QueueSettings
	session  *outbox.Session // set by begin; nil without a journal

	// divisions are the running searches, by shard. Calls for one shard do not
	// overlap.
	divisions [2 * outbox.MaxInFlight]*division

	mu    sync.Mutex
	state sinkState
	since time.Time // when the state began
	why   error     // of the last failure
}

// sinkState is the result of the last attempt.
type sinkState uint8

const (
	sinkDelivers sinkState = iota
	sinkRetries
	sinkRejects
)

// newSink opens nothing. An outage continues across a reload: until something
// is delivered, the sink has the state of the previous component of the node.
func newSink(c *Component, a block.Arguments, previous component.Component) *sink {
	s := &sink{c: c, settings: outbox.QueueSettings{
		// The arguments determine the destination and the user. Data that was
		// accepted for another destination must not be sent to this one.
		Owner:      journal.Owner{Endpoint: c.script.Name, Node: c.opts.ID, Tenant: c.argsHash},
		Limits:     a.Journal.Limits(),
		MaxRecords: a.Batch.MaxRecords, MaxBytes: int(a.Batch.MaxBytes), MaxWait: a.Batch.MaxWait, InFlight: a.Batch.InFlight,
	}}
	switch c.block.Concurrency {
	case block.ConcurrencySingle:
		s.settings.InFlight = 1
	case block.ConcurrencyParallel:
		s.settings.Split.Series = true
	case block.ConcurrencyPartition:
		s.settings.Split.By = c.block.By
		s.settings.InFlight = min(s.settings.InFlight, len(c.pools.shards))
	}
	if c.block.OnError == scripting.OnErrorHold {
		c.report.says = sinkHoldsSays
	}
	if p, ok := previous.(*Component); ok {
		if before, ok := p.kind.(*sink); ok {
			before.mu.Lock()
			s.state, s.since, s.why = before.state, before.since, before.why
			before.mu.Unlock()
			s.report() // immediately, so that the node's health does not change in between
		}
	}
	return s
}

// openOutbox creates the node's queue unless it exists.
func (m *memory) openOutbox(o component.Options) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.outbox != nil {
		return
	}
	m.outbox = outbox.NewQueue(outbox.QueueOptions{
		Root: outbox.Root(o.StoragePath), Clock: o.Clock, Logger: o.Logger,
		Reasons: []string{reasonRejected, reasonError, reasonScript}, Metrics: queueMetrics, Changed: m.outboxChanged,
	})
	m.sent = &sinkMetrics{queue: m.outbox, o: o}
}

// outboxChanged informs the running component that the journal was opened or
// closed.
func (m *memory) outboxChanged() {
	c := m.newest()
	if c == nil {
		return
	}
	if s, ok := c.kind.(*sink); ok {
		s.report()
	}
}

// accept returns when the batch is in the journal, or, without storage, when it
// is delivered.
func (s *sink) accept(ctx context.Context, b payload) error {
	if s.c.opts.StoragePath == "" {
		_, err := s.sendNow(ctx, b.Batch, s.c.newTerms(ctx))
		if errors.Is(err, errReplaced) {
			next, err := s.c.admission.successor(ctx)
			if err != nil {
				return err
			}
			return next.kind.accept(ctx, b)
		}
		return err
	}
	err := s.c.mem.outbox.Accept(ctx, s.c.admission.stopped, b.Batch)
	if errors.Is(err, outbox.ErrStopped) {
		return fmt.Errorf("%s: %w", s.c.opts.ID, flow.ErrStopped)
	}
	return err
}

// begin begins the use of the queue, and opens the journal if necessary. ctx is
// Run's. The returned function ends the use.
func (s *sink) begin(ctx context.Context) (end func()) {
	if s.c.opts.StoragePath == "" {
		return func() {}
	}
	s.session = s.c.mem.outbox.Begin(s.c.instance.number, s.settings)
	keep, stop := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	wg.Go(func() { s.session.Keep(keep) })
	return func() {
		stop()
		wg.Wait()
		s.session.End()
		s.c.mem.sent.updateStats()
	}
}

// work runs the timers, and delivers the data in the journal.
func (s *sink) work(life, run context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { s.c.timers.run(life, run) })
	if s.c.opts.StoragePath != "" {
		wg.Go(func() { s.send(life, run) })
		wg.Go(func() { s.watch(life) })
		wg.Go(func() { s.tendOrphans(life) })
	}
	wg.Wait()
}

func (s *sink) finish(context.Context) {}

// send delivers the data in the journal until life ends, and then the rest,
// unless another instance continues. After a panic, it waits a second and
// continues.
func (s *sink) send(life, run context.Context) {
	c := s.c
	stop := func() outbox.Stop {
		select {
		case <-c.admission.replaced:
			return outbox.Stop{Replaced: true, Grace: c.block.Limits.Wait}
		default:
		}
		if errors.Is(context.Cause(run), component.ErrReplaced) {
			return outbox.Stop{Replaced: true, Grace: c.block.Limits.Wait}
		}
		return outbox.Stop{Grace: outbox.Grace}
	}
	for {
		err := s.session.Send(life, s.deliver, stop)
		for shard := range s.divisions {
			s.endDivision(shard)
		}
		if err == nil {
			return
		}
		c.report.errored(&scripting.Error{File: c.script.File.Name, Hook: scripting.HookSend, Err: err})
		s.ended(sinkRetries, err)
		if clock.Sleep(life, c.opts.Clock, time.Second) != nil {
			return
		}
	}
}

// watch updates the node's statistics and the sink's health every few seconds,
// and manages journals that no node claims.
func (s *sink) watch(life context.Context) {
	c := s.c
	for clock.Sleep(life, c.opts.Clock, 5*time.Second) == nil {
		c.mem.sent.updateStats()
		s.report()
	}
}

// tendOrphans manages journals that no node claims.
func (s *sink) tendOrphans(life context.Context) {
	o := &s.c.opts
	orphans := outbox.Orphans{Storage: o.StoragePath, Clock: o.Clock, Logger: o.Logger}
	orphans.Run(life)
}

// ended records the result of an attempt. It logs changes of state only.
func (s *sink) ended(state sinkState, why error) {
	now := s.c.opts.Clock.Now()
	s.mu.Lock()
	was, since := s.state, s.since
	if why != nil {
		s.why = why
	}
	if was == state {
		s.mu.Unlock()
		return
	}
	s.state, s.since = state, now
	s.mu.Unlock()
	log := s.c.opts.Logger
	switch state {
	case sinkRetries:
		log.Warn("cannot send; records wait in the journal", "err", why)
	case sinkRejects:
		log.Error("the sink rejects records; they are lost and counted", "err", why)
	default:
		if was == sinkRetries {
			log.Info("the sink sends again", "after", now.Sub(since))
		}
	}
	s.report()
}

// report reports the sink's health.
func (s *sink) report() {
	h := component.Health{State: component.Healthy, Time: s.c.opts.Clock.Now()}
	if err := s.problem(h.Time); err != nil {
		h.State, h.Message = component.Unhealthy, err.Error()
	}
	s.c.health.set(aspectSink, h)
}

// problem returns why the sink is not healthy, or nil if it is.
func (s *sink) problem(now time.Time) error {
	if err := s.c.mem.outbox.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.state == sinkRetries && now.Sub(s.since) >= outbox.UnhealthyAfter:
		return fmt.Errorf("cannot send since %s: %w", s.since.UTC().Format(time.RFC3339), s.why)
	case s.state == sinkRejects:
		return fmt.Errorf("the sink rejects records: %w", s.why)
	}
	return nil
}
