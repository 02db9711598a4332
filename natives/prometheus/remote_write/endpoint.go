package remotewrite

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/journal"
	"github.com/weir-run/weir/engine/outbox"
	"github.com/weir-run/weir/natives/prometheus/internal/valid"
)

// endpoint sends to one URL from one journal.
type endpoint struct {
	*outbox.Remote
	settings atomic.Pointer[settings]
	fallback atomic.Pointer[fallback]
	meta     *metadata
	stats    stats

	toldCustomBuckets atomic.Bool

	shards *shards // set before the first batch

	inflight  inflight
	spreading atomic.Int64 // number of shards that are spread
	answers   atomic.Int64 // number of requests that were not retried
	failures  atomic.Int64 // requests that were retried
	took      atomic.Int64 // moving average of their duration, in ns

	mu      sync.Mutex
	state   string    // result of the last request: "", "retry", "partial", "rejected"
	since   time.Time // when this state began
	lastErr error
	logged  map[string]time.Time // the time at which each state was last logged
}

// outboxes is the kind of outbox of all endpoints.
var outboxes = &outbox.Kind{
	Rows: "samples", Stopping: errors.New("remote_write is stopping"), Metrics: outbox.NewMetrics("remote_write", "samples", ""), Signal: batch.SignalMetrics,
	Reasons: append([]string{
		"cannot_encode", "corrupt", "disk_full", "header_invalid", "header_values", "max_age", "max_size", "native_histogram",
		reasonCustomBuckets, "partial_write", "rejected", "too_old", "unknown_kind", "write_relabel",
	}, valid.HistogramReasons...),
}

// consumer consumes the batches of an endpoint, after its gate. stop is closed
// when the endpoint stops; this ends calls that wait for space.
type consumer struct {
	e    *endpoint
	stop <-chan struct{}
}

// ConsumeMetrics returns when the batch is in the journal.
func (c consumer) ConsumeMetrics(ctx context.Context, b *batch.Metrics) error {
	e := c.e
	if !e.Enter() {
		return outboxes.Stopping
	}
	defer e.Leave()
	s := e.settings.Load()
	if e.Journal.Full() {
		if err := e.Room(ctx, c.stop); err != nil {
			return err
		}
	}
	if s.args.Metadata.Send && e.message(s) == v1 {
		e.meta.collect(s, b)
	}
	return e.shards.add(s, b)
}

// discard replaces the consumer of an endpoint that was removed. It accepts and
// drops the batches that the endpoint refused before.
type discard struct{ stats *flow.Stats }

// ConsumeMetrics drops the batch.
func (d discard) ConsumeMetrics(_ context.Context, b *batch.Metrics) error {
	d.stats.Drop("endpoint_removed", b.Len())
	return nil
}

// Run sends until ctx ends. When it returns, everything that was accepted is in
// the journal, and the journal is closed.
func (e *endpoint) Run(ctx context.Context) {
	e.Serve(ctx, outbox.Work{
		Opened: func() (gather []func(context.Context)) {
			e.shards = newShards(e)
			for _, g := range e.shards.gatherers {
				gather = append(gather, g.Run)
			}
			return gather
		},
		Consumer: func(stop <-chan struct{}) any { return consumer{e, stop} },
		Send:     e.send,
		Aside:    e.sendMetadata,
		Sweep:    func() { e.settings.Load().removeIdle() },
	})
}

// measured records the duration of a request that was not retried.
func (e *endpoint) measured(took time.Duration) {
	before := e.took.Load()
	if e.answers.Add(1) == 1 {
		before = int64(took)
	}
	e.took.Store(before + (int64(took)-before)/8) // if two calls are concurrent, one is lost
}

// latency returns the average duration of requests, or 0 if it is not known yet.
func (e *endpoint) latency() time.Duration { return time.Duration(e.took.Load()) }

// Using returns the current settings.
func (e *endpoint) Using() *settings { return e.settings.Load() }

// Use sets the current settings.
func (e *endpoint) Use(s *settings) {
	e.settings.Store(s)
	e.Update(&s.RemoteSettings)
}

// answered stores the state of the endpoint: "", "retry", "partial" or
// "rejected". It logs only changes of the state. If samples are lost, the log
// line contains a series of p.
func (e *endpoint) answered(s *settings, state string, err error, p *writeRequest) {
	if state == "retry" {
		e.failures.Add(1)
		e.Failed(err)
	} else {
		e.Answered(state != "rejected", err)
	}
	now := e.Clock.Now()
	e.mu.Lock()
	was, since := e.state, e.since
	if err != nil {
		e.lastErr = err
	}
	if was == state {
		e.mu.Unlock()
		return
	}
	e.state, e.since = state, now
	quiet := now.Sub(e.logged[state]) < time.Minute // the results of different shards may alternate
	if !quiet {
		if e.logged == nil {
			e.logged = map[string]time.Time{}
		}
		e.logged[state] = now
	}
	e.mu.Unlock()
	defer e.Report()
	if quiet {
		return
	}
	url := journal.PublicURL(s.args.URL)
	switch state {
	case "retry":
		e.Log.Warn("cannot send; samples wait in the journal", "url", url, "err", err)
	case "rejected":
		e.Log.Error("the endpoint rejects samples; they are dropped and counted", "url", url, "err", err, "first_series", p.firstSeries())
	case "partial":
		e.Log.Error("the endpoint rejects some of the samples; they are dropped and counted", "url", url, "err", err, "first_series", p.firstSeries())
	default:
		if !since.IsZero() {
			e.Log.Info("the endpoint accepts samples again", "url", url, "after", now.Sub(since))
		}
	}
}

// Problem returns the reason why the endpoint is unhealthy, or nil.
func (e *endpoint) Problem() error {
	if err := e.JournalProblem(); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.state == "retry" && e.Clock.Now().Sub(e.since) >= outbox.UnhealthyAfter:
		return fmt.Errorf("endpoint %s has been unreachable since %s (%w)", e.Label(), e.since.UTC().Format(time.RFC3339), e.lastErr)
	case e.state == "rejected":
		return fmt.Errorf("endpoint %s rejects samples: %w", e.Label(), e.lastErr)
	}
	return nil
}
