package outbox

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/journal"
	"github.com/weir-run/weir/engine/stall"
)

// Grace is how long sending may go on when weir stops, at most. What is left is in
// the journal for the next start.
const Grace = 3 * time.Second

// UnhealthyAfter is how long an endpoint may fail before its node says so.
const UnhealthyAfter = 10 * time.Second

// Kind is what the outboxes of a component have in common.
type Kind struct {
	Rows     string // what it calls what it sends: "samples"
	Stopping error  // what batches get that come when it stops
	Metrics  *Metrics
	// Reasons are all for which rows are dropped, the journal's among them: a
	// counter that is there from the start shows its first increase.
	Reasons []string
	Signal  batch.Signals // of the rows
}

// RemoteSettings are those of an endpoint that its outbox works by. They are immutable
// and replaced as a whole.
type RemoteSettings struct {
	Shards   int // of a new journal
	Limits   journal.Limits
	Owner    journal.Owner
	Drain    time.Duration // how long sending may go on when weir stops
	Replaced chan struct{} // closed when other settings follow

	Client  *http.Client
	Header  http.Header   // of each request; it must not be written to
	Timeout time.Duration // of each request
}

// Remote is what an endpoint has whatever it sends, which embeds one: its gate,
// its journal, which is open while it runs, and the account of what became of
// what came. Its methods are safe for concurrent use, but for Serve, which is
// called once.
type Remote struct {
	Log   *slog.Logger
	Clock clock.Clock
	Watch *stall.Watch // of the node; nil: nobody watches
	// Journal is set before the first batch, and closed after the last.
	Journal *journal.Journal
	Account

	o          *component.Options
	kind       *Kind
	key, label string
	gate       *flow.Receiver
	settings   atomic.Pointer[RemoteSettings]
	leave      atomic.Bool // senders leave what is in the journal when they stop
	report     func()      // the health may have changed
	fail       func(error) // the component must be built anew

	// calls is held by every batch that comes. The gate counts them too, but
	// others may have taken the endpoint from behind it meanwhile.
	calls   sync.RWMutex
	stopped bool // no call may use the journal any more

	mu       sync.Mutex
	opened   *journal.Journal // Journal, for who is not called through the gate
	openErr  error
	lastErr  error
	lastTime time.Time     // of lastErr
	failing  bool          // since it took something last
	back     chan struct{} // closed and replaced when it takes something again; may be nil
}

// NewRemote returns the outbox of one of the endpoints.
func (es *Endpoints[E]) NewRemote(kind *Kind, r Ref, s *RemoteSettings) *Remote {
	key, label := r.Key(), r.Label()
	b := &Remote{
		Log: es.o.Logger.With("endpoint", label), Clock: es.o.Clock, Watch: es.o.Watch, o: es.o, kind: kind, key: key, label: label,
		gate: es.Gate(key, label), report: es.Report, fail: es.Fail,
	}
	b.settings.Store(s)
	return b
}

// Key identifies it in its component.
func (b *Remote) Key() string { return b.key }

// Label is its name for people and metrics.
func (b *Remote) Label() string { return b.label }

// Gate is what its batches come by.
func (b *Remote) Gate() *flow.Receiver { return b.gate }

// Report tells the node's health, which may have changed.
func (b *Remote) Report() { b.report() }

// Enter begins the call of a batch that comes; false: the endpoint stopped, and
// the journal must not be used. Leave ends it.
func (b *Remote) Enter() bool {
	b.calls.RLock()
	if b.stopped {
		b.calls.RUnlock()
		return false
	}
	return true
}

// Leave ends a call that Enter let in.
func (b *Remote) Leave() { b.calls.RUnlock() }

// Room waits until there is room in the journal, or stop ends.
func (b *Remote) Room(ctx, stop context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(stop, func() { cancel(b.kind.Stopping) })()
	return b.Journal.Room(ctx)
}

// Work is what an endpoint does with its outbox.
type Work struct {
	// Opened is called first, when Journal is set. It returns what gathers: each
	// runs until its ctx ends, and has written all it has when it returns.
	Opened func() []func(ctx context.Context)
	// Consumer returns what stands behind the gate; stop ends calls that wait for
	// room when the endpoint stops.
	Consumer func(stop context.Context) any
	// Send sends a shard's blocks until ctx ends, and then as long as there are any
	// and they are taken and not to be left, but not after posting has ended.
	Send func(ctx, posting context.Context, shard int)
	// Aside, if it is not nil, runs beside the senders, until ctx ends.
	Aside func(ctx context.Context)
	// Sweep is called once a minute.
	Sweep func()
}

// Serve does the work until ctx ends. It returns once everything accepted is in the
// journal and the journal is closed.
func (b *Remote) Serve(ctx context.Context, w Work) {
	gather, ok := b.open(ctx, w.Opened)
	if !ok {
		return
	}
	gathering, stopGathering := context.WithCancel(context.WithoutCancel(ctx))
	sending, stopSending := context.WithCancel(context.WithoutCancel(ctx))
	posting, stopPosting := context.WithCancel(context.WithoutCancel(ctx))
	upkeep, stopUpkeep := context.WithCancel(context.WithoutCancel(ctx))
	defer stopUpkeep()
	defer stopPosting()
	var gatherers, senders, rest sync.WaitGroup
	for _, run := range gather {
		gatherers.Go(b.Guard(func() { run(gathering) }))
	}
	for shard := range b.Journal.Shards() {
		senders.Go(b.Guard(func() { w.Send(sending, posting, shard) }))
	}
	rest.Go(b.Guard(func() { b.Journal.Run(upkeep) }))
	if w.Aside != nil {
		rest.Go(b.Guard(func() { w.Aside(sending) }))
	}
	rest.Go(b.Guard(func() { b.watch(upkeep, w.Sweep) }))
	b.gate.Set(w.Consumer(gathering))

	<-ctx.Done()
	left := b.gate.Set(nil)
	stopGathering() // writes what is open; calls in flight are answered
	gatherers.Wait()
	<-left         // those that are on their way from the gate, too
	b.calls.Lock() // and those of before, if it was taken from the gate
	b.stopped = true
	b.calls.Unlock()
	// Sends what is there, if it is taken, staleness markers last. A successor
	// goes on with the journal and should not be kept waiting for it.
	b.leave.Store(errors.Is(context.Cause(ctx), component.ErrReplaced))
	stopSending()
	done := make(chan struct{})
	go func() { senders.Wait(); close(done) }()
	t := b.Clock.NewTimer(b.settings.Load().Drain)
	select {
	case <-done:
	case <-t.C():
		stopPosting()
		<-done
	}
	t.Stop()
	stopUpkeep()
	rest.Wait()
	b.settings.Load().Client.CloseIdleConnections()
	b.Queue()
	b.mu.Lock()
	b.opened = nil
	b.mu.Unlock()
	if err := b.Journal.Close(); err != nil {
		b.Log.Error("the journal did not close well", "err", err)
	}
}

// Sending reports whether a sender goes on: until ctx ends, and then unless what
// is in the journal is left to a successor.
func (b *Remote) Sending(ctx context.Context) bool { return ctx.Err() == nil || !b.leave.Load() }

// Guard returns f, whose panic is then the component's failure.
func (b *Remote) Guard(f func()) func() {
	return func() {
		defer func() {
			if v := recover(); v != nil {
				b.fail(&flow.PanicError{Node: b.o.ID, Value: v, Stack: debug.Stack()})
			}
		}()
		f()
	}
}

// open opens the journal, again and again with back-off; not ok: ctx ended.
func (b *Remote) open(ctx context.Context, opened func() []func(context.Context)) (gather []func(context.Context), ok bool) {
	backoff := time.Second
	for {
		s := b.settings.Load()
		j, err := journal.Claim(ctx, Root(b.o.StoragePath), journal.Options{
			Shards: s.Shards, Limits: s.Limits, Clock: b.Clock, Logger: b.Log,
			Owner: s.Owner,
		})
		if ctx.Err() != nil {
			if err == nil {
				j.Close()
			}
			return nil, false
		}
		if err == nil {
			b.Journal = j
			gather = opened()
		}
		b.mu.Lock()
		first := b.openErr == nil
		b.openErr, b.opened = err, b.Journal
		b.mu.Unlock()
		b.report()
		if err == nil {
			if now := b.settings.Load(); now != s { // Update came between
				b.configure(j, now)
			}
			return gather, true
		}
		if first {
			b.Log.Error("cannot open the journal; "+b.kind.Rows+" wait", "err", err)
		}
		if clock.Sleep(ctx, b.Clock, backoff) != nil {
			return nil, false
		}
		backoff = min(2*backoff, 30*time.Second)
	}
}

// Update makes other settings take effect. Blocks that are gathered already keep
// their bytes.
func (b *Remote) Update(s *RemoteSettings) {
	old := b.settings.Swap(s)
	close(old.Replaced)
	if s.Client != old.Client {
		old.Client.CloseIdleConnections()
	}
	if j := b.current(); j != nil && (s.Limits != old.Limits || s.Owner != old.Owner) {
		b.configure(j, s)
	}
}

// current returns the journal while it is open, otherwise nil.
func (b *Remote) current() *journal.Journal {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.opened
}

func (b *Remote) configure(j *journal.Journal, s *RemoteSettings) {
	if err := j.Configure(s.Owner, s.Limits); err != nil {
		b.Log.Warn("cannot note in the journal what it is for and its limits; they are in effect", "err", err)
	}
}

// watch looks after the endpoint every few seconds.
func (b *Remote) watch(ctx context.Context, sweep func()) {
	for n := 0; clock.Sleep(ctx, b.Clock, 5*time.Second) == nil; n++ {
		b.Queue()
		if n%12 == 11 {
			sweep()
		}
		b.report()
	}
}
