package remotewrite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/journal"
	"github.com/weir-run/weir/natives/journaling"
)

// endpoint sends to one URL from one journal.
type endpoint struct {
	key      string
	o        *component.Options
	log      *slog.Logger
	clock    clock.Clock
	gate     *flow.Receiver
	settings atomic.Pointer[settings]
	fallback atomic.Pointer[fallback]
	meta     *metadata
	stats    stats

	journal *journal.Journal // set before the first batch, and closed after the last
	lanes   *lanes
	leave   atomic.Bool // senders leave what is in the journal when they stop

	// calls is held by every call of ConsumeMetrics. The gate counts them too,
	// but others may have taken the endpoint from behind it meanwhile.
	calls   sync.RWMutex
	stopped bool // no call may use the journal any more

	mu       sync.Mutex
	opened   *journal.Journal // journal, for who is not called through the gate
	counted  map[string]int64 // of dropped(), told to Options.Stats
	openErr  error
	state    string    // of the last answer: "", "retry", "partial", "rejected"
	since    time.Time // when that began
	lastErr  error
	lastTime time.Time            // of lastErr
	logged   map[string]time.Time // states, when they were logged last
	failing  bool                 // since it took something last
	back     chan struct{}        // closed and replaced when it takes something again; may be nil

	changed func()      // the health may have changed
	fail    func(error) // the component must be built anew
}

// Key identifies it in its component.
func (e *endpoint) Key() string { return e.key }

// Gate is what its batches come by.
func (e *endpoint) Gate() *flow.Receiver { return e.gate }

// grace is how long sending may go on when weir stops. What is left is in the
// journal for the next start.
const grace = 3 * time.Second

// unhealthyAfter is how long an endpoint may fail before its node says so.
const unhealthyAfter = 10 * time.Second

// consumer is what stands behind an endpoint's gate; ctx ends calls that wait
// for room when the endpoint stops.
type consumer struct {
	e    *endpoint
	stop context.Context
}

// ConsumeMetrics returns when the batch is in the journal.
func (c consumer) ConsumeMetrics(ctx context.Context, b *batch.Metrics) error {
	e := c.e
	e.calls.RLock()
	defer e.calls.RUnlock()
	if e.stopped {
		return errStopping
	}
	s := e.settings.Load()
	if e.journal.Full() {
		if err := c.room(ctx); err != nil {
			return err
		}
	}
	if s.args.Metadata.Send && e.message(s) == v1 {
		e.meta.collect(s, b)
	}
	return e.lanes.add(s, b)
}

// room waits until there is room in the journal.
func (c consumer) room(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.stop, func() { cancel(errStopping) })()
	return c.e.journal.Room(ctx)
}

var errStopping = errors.New("remote_write is stopping")

// discard stands behind the gate of an endpoint that was removed: batches that
// it once refused are not wanted any more.
type discard struct{ stats *flow.Stats }

// ConsumeMetrics drops the batch.
func (d discard) ConsumeMetrics(_ context.Context, b *batch.Metrics) error {
	d.stats.Drop("endpoint_removed", b.Len())
	return nil
}

// Run sends until ctx ends. It returns once everything accepted is in the
// journal and the journal is closed.
func (e *endpoint) Run(ctx context.Context) {
	if !e.open(ctx) {
		return
	}
	gathering, stopGathering := context.WithCancel(context.WithoutCancel(ctx))
	sending, stopSending := context.WithCancel(context.WithoutCancel(ctx))
	posting, stopPosting := context.WithCancel(context.WithoutCancel(ctx))
	upkeep, stopUpkeep := context.WithCancel(context.WithoutCancel(ctx))
	defer stopUpkeep()
	defer stopPosting()
	var gatherers, senders, rest sync.WaitGroup
	for _, g := range e.lanes.gatherers {
		gatherers.Go(e.guard(func() { g.run(gathering) }))
		senders.Go(e.guard(func() { e.send(sending, posting, g.lane) }))
	}
	rest.Go(e.guard(func() { e.journal.Run(upkeep) }))
	rest.Go(e.guard(func() { e.sendMetadata(sending) }))
	rest.Go(e.guard(func() { e.watch(upkeep) }))
	e.gate.Set(consumer{e: e, stop: gathering})

	<-ctx.Done()
	left := e.gate.Set(nil)
	stopGathering() // writes what is open; calls in flight are answered
	gatherers.Wait()
	<-left         // those that are on their way from the gate, too
	e.calls.Lock() // and those of before, if it was taken from the gate
	e.stopped = true
	e.calls.Unlock()
	// Sends what is there, staleness markers last, if it is taken. A successor
	// goes on with the journal and should not be kept waiting for it.
	e.leave.Store(errors.Is(context.Cause(ctx), component.ErrReplaced))
	stopSending()
	done := make(chan struct{})
	go func() { senders.Wait(); close(done) }()
	t := e.clock.NewTimer(grace)
	select {
	case <-done:
	case <-t.C():
		stopPosting()
		<-done
	}
	t.Stop()
	stopUpkeep()
	rest.Wait()
	e.settings.Load().client.CloseIdleConnections()
	e.count()
	e.mu.Lock()
	e.opened = nil
	e.mu.Unlock()
	if err := e.journal.Close(); err != nil {
		e.log.Error("the journal did not close well", "err", err)
	}
}

// guard makes a panic of f the component's failure.
func (e *endpoint) guard(f func()) func() {
	return func() {
		defer func() {
			if v := recover(); v != nil {
				e.fail(&flow.PanicError{Node: e.o.ID, Value: v, Stack: debug.Stack()})
			}
		}()
		f()
	}
}

// open opens the journal, again and again with back-off; false: ctx ended.
func (e *endpoint) open(ctx context.Context) bool {
	backoff := time.Second
	for {
		s := e.settings.Load()
		j, err := journal.Claim(ctx, journaling.Root(e.o.StoragePath), journal.Options{
			Lanes: s.args.Queue.lanes(), Limits: s.limits, Clock: e.clock, Logger: e.log,
			Owner: s.owner,
		})
		if ctx.Err() != nil {
			if err == nil {
				j.Close()
			}
			return false
		}
		e.mu.Lock()
		first := e.openErr == nil
		e.openErr = err
		if err == nil {
			e.journal, e.opened = j, j
			e.lanes = newLanes(e)
		}
		e.mu.Unlock()
		e.changed()
		if err == nil {
			if now := e.settings.Load(); now != s { // Update came between
				err := j.Configure(now.owner, now.limits)
				e.logConfigure(err)
			}
			return true
		}
		if first {
			e.log.Error("cannot open the journal; samples wait", "err", err)
		}
		if clock.Sleep(ctx, e.clock, backoff) != nil {
			return false
		}
		backoff = min(2*backoff, 30*time.Second)
	}
}

// update makes other settings take effect. Blocks that are gathered already
// keep their bytes.
func (e *endpoint) update(s *settings) {
	old := e.settings.Swap(s)
	close(old.replaced)
	if s.client != old.client {
		old.client.CloseIdleConnections()
	}
	e.mu.Lock()
	j := e.opened
	e.mu.Unlock()
	if j != nil && (s.limits != old.limits || s.owner != old.owner) {
		e.logConfigure(j.Configure(s.owner, s.limits))
	}
}

func (e *endpoint) logConfigure(err error) {
	if err != nil {
		e.log.Warn("cannot note in the journal what it is for and its limits; they are in effect", "err", err)
	}
}

// watch looks after the endpoint every few seconds.
func (e *endpoint) watch(ctx context.Context) {
	for n := 0; clock.Sleep(ctx, e.clock, 5*time.Second) == nil; n++ {
		e.count()
		if n%12 == 11 {
			e.settings.Load().sweep()
		}
		e.changed()
	}
}

// dropReasons are all there are, the journal's among them: a counter that is
// there from the start shows its first increase.
var dropReasons = []string{
	"cannot_encode", "corrupt", "disk_full", "header_invalid", "header_values", "max_age", "max_size", "native_histogram",
	"partial_write", "rejected", "too_old", "unknown_kind", "write_relabel",
}

// drop counts samples that will not be sent, for one of dropReasons.
func (e *endpoint) drop(reason string, n int) {
	if n == 0 {
		return
	}
	e.stats.mu.Lock()
	defer e.stats.mu.Unlock()
	if e.stats.dropped == nil {
		e.stats.dropped = map[string]int64{}
	}
	e.stats.dropped[reason] += int64(n)
}

// dropped returns the samples dropped by reason, and the journal's figures.
func (e *endpoint) dropped() (map[string]int64, journal.Stats) {
	e.mu.Lock()
	j := e.opened
	e.mu.Unlock()
	var st journal.Stats
	if j != nil {
		st = j.Stats()
	}
	e.stats.mu.Lock()
	defer e.stats.mu.Unlock()
	all := make(map[string]int64, len(dropReasons))
	for _, reason := range dropReasons {
		all[reason] = 0
	}
	maps.Copy(all, e.stats.dropped)
	for reason, n := range st.DroppedSamples {
		all[reason] += n
	}
	return all, st
}

// count tells the node's figures what was dropped since the last call. One
// goroutine at a time calls it.
func (e *endpoint) count() {
	all, _ := e.dropped()
	for reason, n := range all {
		e.o.Stats.Drop(reason, int(n-e.counted[reason]))
	}
	e.counted = all
}

// answered keeps the state of the endpoint; state is "", "retry", "partial" or
// "rejected". It logs changes of state only, with a series of p where something
// of that is lost.
func (e *endpoint) answered(s *settings, state string, err error, p *parcel) {
	now := e.clock.Now()
	e.mu.Lock()
	was, since := e.state, e.since
	switch {
	case state == "retry":
		e.failing = true
	case e.failing && state != "rejected":
		e.failing = false
		if e.back != nil {
			close(e.back)
			e.back = nil
		}
	}
	if err != nil {
		e.lastErr, e.lastTime = err, now
	}
	if was == state {
		e.mu.Unlock()
		return
	}
	e.state, e.since = state, now
	quiet := now.Sub(e.logged[state]) < time.Minute // lanes may disagree at every block
	if !quiet {
		if e.logged == nil {
			e.logged = map[string]time.Time{}
		}
		e.logged[state] = now
	}
	e.mu.Unlock()
	defer e.changed()
	if quiet {
		return
	}
	url := journal.PublicURL(s.args.URL)
	switch state {
	case "retry":
		e.log.Warn("cannot send; samples wait in the journal", "url", url, "err", err)
	case "rejected":
		e.log.Error("the endpoint rejects samples; they are dropped and counted", "url", url, "err", err, "first_series", p.firstSeries())
	case "partial":
		e.log.Error("the endpoint rejects some of the samples; they are dropped and counted", "url", url, "err", err, "first_series", p.firstSeries())
	default:
		if !since.IsZero() {
			e.log.Info("the endpoint accepts samples again", "url", url, "after", now.Sub(since))
		}
	}
}

// comeback returns a channel that is closed when the endpoint next takes
// something after it did not.
func (e *endpoint) comeback() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.back == nil {
		e.back = make(chan struct{})
	}
	return e.back
}

// Problem says why the endpoint is not healthy, nil if it is.
func (e *endpoint) Problem() error {
	label := e.settings.Load().args.label()
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.openErr != nil:
		return fmt.Errorf("endpoint %s: %w", label, e.openErr)
	case e.state == "retry" && e.clock.Now().Sub(e.since) >= unhealthyAfter:
		return fmt.Errorf("endpoint %s cannot be reached since %s: %w", label, e.since.UTC().Format(time.RFC3339), e.lastErr)
	case e.state == "rejected":
		return fmt.Errorf("endpoint %s rejects samples: %w", label, e.lastErr)
	}
	return nil
}
