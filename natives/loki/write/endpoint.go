package write

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
	stats    stats

	journal *journal.Journal // set before the first batch, and closed after the last
	lanes   *lanes
	leave   atomic.Bool // senders leave what is in the journal when they stop

	// calls is held by every call of ConsumeLogs. The gate counts them too,
	// but others may have taken the endpoint from behind it meanwhile.
	calls   sync.RWMutex
	stopped bool // no call may use the journal any more

	mu        sync.Mutex
	opened    *journal.Journal // journal, for who is not called through the gate
	counted   map[string]int64 // of dropped(), told to Options.Stats
	openErr   error
	lastErr   error
	lastTime  time.Time            // of lastErr
	waiting   map[int]waiting      // by lane
	rejecting error                // why all of the last request was refused, nil if it was not
	toldRetry time.Time            // when that was logged last
	toldLost  map[string]time.Time // by reason: when it was logged that lines are
	down      bool                 // it was logged that lines wait
	failing   bool                 // since it took something last
	back      chan struct{}        // closed and replaced when it takes something again; may be nil

	changed func()      // the health may have changed
	fail    func(error) // the component must be built anew
}

// Key identifies it in its component.
func (e *endpoint) Key() string { return e.key }

// Gate is what its batches come by.
func (e *endpoint) Gate() *flow.Receiver { return e.gate }

// grace is how long sending may go on when weir stops, if not less is asked for. What is left is in the
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

// ConsumeLogs returns when the batch is in the journal.
func (c consumer) ConsumeLogs(ctx context.Context, b *batch.Logs) error {
	e := c.e
	e.calls.RLock()
	defer e.calls.RUnlock()
	if e.stopped {
		return errStopping
	}
	s := e.settings.Load()
	if e.journal.Full() {
		if !s.args.Queue.BlockOnOverflow {
			e.drop("overflow", b.Len())
			return nil
		}
		if err := c.room(ctx); err != nil {
			return err
		}
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

var errStopping = errors.New("loki.write is stopping")

// discard stands behind the gate of an endpoint that was removed: batches that
// it once refused are not wanted any more.
type discard struct{ stats *flow.Stats }

// ConsumeLogs drops the batch.
func (d discard) ConsumeLogs(_ context.Context, b *batch.Logs) error {
	d.stats.DropLines("endpoint_removed", b.Len())
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
	}
	for lane := range e.journal.Lanes() {
		senders.Go(e.guard(func() { e.send(sending, posting, lane) }))
	}
	rest.Go(e.guard(func() { e.journal.Run(upkeep) }))
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
	// Sends what is there, if it is taken. A successor
	// goes on with the journal and should not be kept waiting for it.
	e.leave.Store(errors.Is(context.Cause(ctx), component.ErrReplaced))
	stopSending()
	done := make(chan struct{})
	go func() { senders.Wait(); close(done) }()
	t := e.clock.NewTimer(e.settings.Load().drain)
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
			e.log.Error("cannot open the journal; lines wait", "err", err)
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
			e.settings.Load().streams.sweep()
		}
		e.changed()
	}
}

// dropReasons are all there are, the journal's among them: a counter that is
// there from the start shows its first increase.
var dropReasons = []string{
	"blocked", "corrupt", "disk_full", "invalid_labels", "label_limit", "line_too_long", "max_age", "max_size", "max_streams",
	"metadata", "out_of_order", "overflow", "rate_limited", "rejected", "request_too_large", "retries", "stream_limit",
	"tenant_invalid", "timestamp", "unknown_kind",
}

// drop counts lines that will not be sent, for one of dropReasons.
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

// dropped returns the lines dropped by reason, and the journal's figures.
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
		e.o.Stats.DropLines(reason, int(n-e.counted[reason]))
	}
	e.counted = all
}

// waiting is a lane that the endpoint takes nothing of.
type waiting struct {
	since time.Time
	err   error
}

// retries notes that a lane's request is to be sent again. It logs the first of
// them, and not more than once a minute: lanes may disagree at every request.
func (e *endpoint) retries(s *settings, lane int, tenant string, err error) {
	now := e.clock.Now()
	e.mu.Lock()
	e.failing = true
	e.lastErr, e.lastTime = err, now
	w, ok := e.waiting[lane]
	if !ok {
		w.since = now
	}
	w.err = err
	if e.waiting == nil {
		e.waiting = map[int]waiting{}
	}
	e.waiting[lane] = w
	e.rejecting = nil
	quiet := ok || now.Sub(e.toldRetry) < time.Minute
	if !quiet {
		e.toldRetry, e.down = now, true
	}
	e.mu.Unlock()
	if quiet {
		return
	}
	e.about(s, tenant).Warn("cannot send; lines wait in the journal", "err", err)
	e.changed()
}

// answered notes that a lane's request was answered for good; lost is how many
// lines of it were not taken, by reason, and err says why.
func (e *endpoint) answered(s *settings, lane int, tenant string, err error, lost map[string]int, all bool) {
	now := e.clock.Now()
	e.mu.Lock()
	if e.failing && !all {
		e.failing = false
		if e.back != nil {
			close(e.back)
			e.back = nil
		}
	}
	since := e.waiting[lane].since
	delete(e.waiting, lane)
	again := e.down && len(e.waiting) == 0 && err == nil
	if again {
		e.down = false
	}
	was := e.rejecting
	e.rejecting = nil
	if err != nil {
		e.lastErr, e.lastTime = err, now
		if all {
			e.rejecting = err
		}
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
		e.about(s, tenant).Info("the endpoint accepts lines again", "after", now.Sub(since))
	}
	if !told {
		e.about(s, tenant).Error("the endpoint rejects lines; they are dropped and counted", "lines", lines, "err", err)
	}
	if again || changed {
		e.changed()
	}
}

// fellOff notes that a lane does not wait any more: its request fell off the journal.
func (e *endpoint) fellOff(lane int) {
	e.mu.Lock()
	delete(e.waiting, lane)
	e.mu.Unlock()
	e.changed()
}

// about returns the log for what is about requests of a tenant.
func (e *endpoint) about(s *settings, tenant string) *slog.Logger {
	log := e.log.With("url", journal.PublicURL(s.args.URL))
	if tenant == "" {
		tenant = s.tenant()
	}
	if tenant != "" {
		log = log.With("tenant", tenant)
	}
	return log
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
	if e.openErr != nil {
		return fmt.Errorf("endpoint %s: %w", label, e.openErr)
	}
	var longest waiting
	for _, w := range e.waiting {
		if longest.err == nil || w.since.Before(longest.since) {
			longest = w
		}
	}
	switch {
	case longest.err != nil && e.clock.Now().Sub(longest.since) >= unhealthyAfter:
		return fmt.Errorf("endpoint %s takes nothing since %s: %w", label, longest.since.UTC().Format(time.RFC3339), longest.err)
	case e.rejecting != nil:
		return fmt.Errorf("endpoint %s rejects lines: %w", label, e.rejecting)
	}
	return nil
}
