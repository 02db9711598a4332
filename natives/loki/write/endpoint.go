package write

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/journal"
	"github.com/weir-run/weir/engine/outbox"
)

// endpoint sends to one URL from one journal.
type endpoint struct {
	*outbox.Remote
	settings atomic.Pointer[settings]
	shards   *shards // set before the first batch

	mu        sync.Mutex
	waiting   map[int]waiting      // shards that wait, by number
	rejecting error                // why the last request was refused completely, or nil
	toldRetry time.Time            // the time of the last log line about it
	toldLost  map[string]time.Time // by reason: the time of the last log line about lost lines
	down      bool                 // it was logged that lines wait
}

// outboxes is the kind of outbox of all endpoints.
var outboxes = &outbox.Kind{
	Rows: "lines", Stopping: errors.New("loki.write is stopping"), Signal: batch.SignalLogs,
	Metrics: outbox.NewMetrics("loki_write", "lines", " Of what Loki refuses in part of a request, these are those that its answer tells of."),
	Reasons: []string{
		"blocked", "corrupt", "disk_full", "invalid_labels", "label_limit", "line_too_long", "max_age", "max_size", "max_streams",
		"metadata", "out_of_order", "overflow", "rate_limited", "rejected", "request_too_large", "retries", "stream_limit",
		"tenant_invalid", "timestamp", "unknown_kind",
	},
}

// consumer consumes the batches of an endpoint, after its gate. stop is closed
// when the endpoint stops; this ends calls that wait for space.
type consumer struct {
	e    *endpoint
	stop <-chan struct{}
}

// ConsumeLogs returns when the batch is in the journal.
func (c consumer) ConsumeLogs(ctx context.Context, b *batch.Logs) error {
	e := c.e
	if !e.Enter() {
		return outboxes.Stopping
	}
	defer e.Leave()
	s := e.settings.Load()
	if e.Journal.Full() {
		if !s.args.Queue.BlockOnOverflow {
			e.Drop("overflow", b.Len())
			return nil
		}
		if err := e.Room(ctx, c.stop); err != nil {
			return err
		}
	}
	return e.shards.add(s, b)
}

// discard replaces the consumer of an endpoint that was removed. It accepts and
// drops the batches that the endpoint refused before.
type discard struct{ stats *flow.Stats }

// ConsumeLogs drops the batch.
func (d discard) ConsumeLogs(_ context.Context, b *batch.Logs) error {
	d.stats.DropLines("endpoint_removed", b.Len())
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
		Sweep:    func() { e.settings.Load().streams.removeIdle() },
	})
}

// Using returns the current settings.
func (e *endpoint) Using() *settings { return e.settings.Load() }

// Use sets the current settings.
func (e *endpoint) Use(s *settings) {
	e.settings.Store(s)
	e.Update(&s.RemoteSettings)
}

// waiting is a shard whose requests the endpoint does not accept.
type waiting struct {
	since time.Time
	err   error
}

// retries records that the request of a shard is to be sent again. It logs the
// first retry, and at most one per minute, because the results of different
// shards may alternate.
func (e *endpoint) retries(s *settings, shard int, tenant string, err error) {
	e.Failed(err)
	now := e.Clock.Now()
	e.mu.Lock()
	w, ok := e.waiting[shard]
	if !ok {
		w.since = now
	}
	w.err = err
	if e.waiting == nil {
		e.waiting = map[int]waiting{}
	}
	e.waiting[shard] = w
	e.rejecting = nil
	quiet := ok || now.Sub(e.toldRetry) < time.Minute
	if !quiet {
		e.toldRetry, e.down = now, true
	}
	e.mu.Unlock()
	if quiet {
		return
	}
	e.tenantLog(s, tenant).Warn("cannot send; lines wait in the journal", "err", err)
	e.Report()
}

// answered records that the request of a shard is done. lost is the number of
// refused lines, by reason, and err is the error.
func (e *endpoint) answered(s *settings, shard int, tenant string, err error, lost map[string]int, all bool) {
	e.Answered(!all, err)
	now := e.Clock.Now()
	e.mu.Lock()
	since := e.waiting[shard].since
	delete(e.waiting, shard)
	again := e.down && len(e.waiting) == 0 && err == nil
	if again {
		e.down = false
	}
	was := e.rejecting
	e.rejecting = nil
	if all {
		e.rejecting = err
	}
	told, lines := true, 0
	for reason, n := range lost {
		lines += n
		if at, ok := e.toldLost[reason]; !ok || now.Sub(at) >= time.Minute {
			e.toldLost[reason] = now
			told = false
		}
	}
	changed := (was == nil) != (e.rejecting == nil)
	e.mu.Unlock()
	if again {
		e.tenantLog(s, tenant).Info("the endpoint accepts lines again", "after", now.Sub(since))
	}
	if !told {
		e.tenantLog(s, tenant).Error("the endpoint rejects lines; they are dropped and counted", "lines", lines, "err", err)
	}
	if again || changed {
		e.Report()
	}
}

// fellOff records that a shard does not wait any more, because the journal
// dropped its request.
func (e *endpoint) fellOff(shard int) {
	e.mu.Lock()
	delete(e.waiting, shard)
	e.mu.Unlock()
	e.Report()
}

// tenantLog returns the log for messages about the requests of a tenant.
func (e *endpoint) tenantLog(s *settings, tenant string) *slog.Logger {
	log := e.Log.With("url", journal.PublicURL(s.args.URL))
	if tenant == "" {
		tenant = s.tenant()
	}
	if tenant != "" {
		log = log.With("tenant", tenant)
	}
	return log
}

// Problem returns the reason why the endpoint is unhealthy, or nil.
func (e *endpoint) Problem() error {
	if err := e.JournalProblem(); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	var longest waiting
	for _, w := range e.waiting {
		if longest.err == nil || w.since.Before(longest.since) {
			longest = w
		}
	}
	switch {
	case longest.err != nil && e.Clock.Now().Sub(longest.since) >= outbox.UnhealthyAfter:
		return fmt.Errorf("endpoint %s has accepted nothing since %s (%w)", e.Label(), longest.since.UTC().Format(time.RFC3339), longest.err)
	case e.rejecting != nil:
		return fmt.Errorf("endpoint %s rejects lines: %w", e.Label(), e.rejecting)
	}
	return nil
}
