package outbox

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/journal"
	"github.com/weir-run/weir/engine/stall"
)

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

// Remote is the outbox of one HTTP endpoint: a native component's endpoint embeds
// one. It has the gate that batches come by. Its methods are safe for concurrent
// use, except for Serve, which is called once.
type Remote struct {
	Outbox
	Watch *stall.Watch // of the node; nil: nobody watches

	o          *component.Options
	kind       *Kind
	key, label string
	gate       *flow.Receiver
	settings   atomic.Pointer[RemoteSettings]
	leave      atomic.Bool // senders leave what is in the journal when they stop
	report     func()      // the health may have changed
	fail       func(error) // the component must be built again

	mu       sync.Mutex
	lastErr  error
	lastTime time.Time // of lastErr
}

// NewRemote returns the outbox of one of the endpoints.
func (es *Endpoints[E]) NewRemote(kind *Kind, r Ref, s *RemoteSettings) *Remote {
	key, label := r.Key(), r.Label()
	b := &Remote{Watch: es.o.Watch, o: es.o, kind: kind, key: key, label: label, gate: es.Gate(key, label), report: es.Report, fail: es.Fail}
	b.init(options{root: Root(es.o.StoragePath), rows: kind.Rows, stopping: kind.Stopping, changed: es.Report},
		es.o.Logger.With("endpoint", label), es.o.Clock, kind.Reasons, func(uint8) batch.Signals { return kind.Signal })
	b.configure(s.config())
	b.settings.Store(s)
	return b
}

func (s *RemoteSettings) config() config { return config{owner: s.Owner, limits: s.Limits} }

// Key identifies it in its component.
func (b *Remote) Key() string { return b.key }

// Label is its name for people and metrics.
func (b *Remote) Label() string { return b.label }

// Gate is what its batches come by.
func (b *Remote) Gate() *flow.Receiver { return b.gate }

// Report tells the node's health, which may have changed.
func (b *Remote) Report() { b.report() }

// Work is what an endpoint does with its outbox.
type Work struct {
	// Opened is called first, when Journal is set. It returns what gathers: each
	// runs until its ctx ends, and has written all it has when it returns.
	Opened func() []func(ctx context.Context)
	// Consumer returns the consumer behind the gate. stop is closed when the endpoint
	// stops: calls that wait for room must end.
	Consumer func(stop <-chan struct{}) any
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
	var gather []func(context.Context)
	if !b.open(ctx, func() int { return b.settings.Load().Shards }, func() { gather = w.Opened() }) {
		return
	}
	gathering, stopGathering := context.WithCancel(context.WithoutCancel(ctx))
	sending, stopSending := context.WithCancel(context.WithoutCancel(ctx))
	upkeep, stopUpkeep := context.WithCancel(context.WithoutCancel(ctx))
	defer stopUpkeep()
	var gatherers, rest sync.WaitGroup
	for _, run := range gather {
		gatherers.Go(b.Guard(func() { run(gathering) }))
	}
	send := startSenders(sending, b.Journal.Shards(), func(posting context.Context, shard int) { w.Send(sending, posting, shard) }, b.panicked)
	rest.Go(b.Guard(func() { b.Journal.Run(upkeep) }))
	if w.Aside != nil {
		rest.Go(b.Guard(func() { w.Aside(sending) }))
	}
	rest.Go(b.Guard(func() { b.watch(upkeep, w.Sweep) }))
	b.gate.Set(w.Consumer(gathering.Done()))

	<-ctx.Done()
	left := b.gate.Set(nil)
	stopGathering() // writes what is open; calls in flight are answered
	gatherers.Wait()
	<-left // those that are on their way from the gate, too
	// The gate counts the calls behind it, but a successor may have taken the
	// endpoint from behind the gate meanwhile, and calls may be left from before.
	b.refuse()
	// Sends what is there, if it is taken, staleness markers last. A successor
	// goes on with the journal and should not be kept waiting for it.
	b.leave.Store(errors.Is(context.Cause(ctx), component.ErrReplaced))
	stopSending()
	send.drain(b.Clock, b.settings.Load().Drain)
	stopUpkeep()
	rest.Wait()
	b.settings.Load().Client.CloseIdleConnections()
	b.ReportTo(b.o.Stats)
	b.calls.Lock()
	defer b.calls.Unlock()
	b.close()
}

// Sending reports whether a sender goes on: until ctx ends, and then unless what
// is in the journal is left to a successor.
func (b *Remote) Sending(ctx context.Context) bool { return ctx.Err() == nil || !b.leave.Load() }

// Guard returns f, whose panic is then the component's failure.
func (b *Remote) Guard(f func()) func() { return guard(f, b.panicked) }

func (b *Remote) panicked(p *flow.PanicError) {
	p.Node = b.o.ID
	b.fail(p)
}

// Update makes other settings take effect. Blocks that are gathered already keep
// their bytes.
func (b *Remote) Update(s *RemoteSettings) {
	old := b.settings.Swap(s)
	close(old.Replaced)
	if s.Client != old.Client {
		old.Client.CloseIdleConnections()
	}
	b.configure(s.config())
}

// CountSent counts records that the endpoint accepted.
func (b *Remote) CountSent(n int) { b.Account.CountSent(b.kind.Signal, n) }

// Drop counts records that will not be sent, for one of the Kind's reasons.
func (b *Remote) Drop(reason string, n int) { b.CountLost(b.kind.Signal, reason, n) }

// Queue returns how many records are in the journal and not done, and how many have
// left it. It adds to the node's figures what was sent and dropped since the last call.
func (b *Remote) Queue() component.Queue {
	st := b.ReportTo(b.o.Stats)
	q := component.Queue{Name: "endpoint " + b.label, Waiting: st.Waiting, Left: uint64(st.Sent)}
	for _, n := range st.Lost {
		q.Left += uint64(n)
	}
	return q
}

// Collect sends the metrics of the endpoint and of its journal.
func (b *Remote) Collect(ch chan<- prometheus.Metric) {
	b.collect(ch, b.kind.Metrics, b.label, b.label)
}

// JournalProblem returns why the journal cannot be opened or written, nil if it can.
func (b *Remote) JournalProblem() error {
	if err := b.Err(); err != nil {
		return fmt.Errorf("endpoint %s: %w", b.label, err)
	}
	return nil
}

// Failed records that something is to be sent again, and why.
func (b *Remote) Failed(err error) {
	b.comeback.fail()
	b.setLastErr(err)
}

// Answered records that a request was answered for good: whether some of it was
// taken, and why not all of it, nil if all was.
func (b *Remote) Answered(taken bool, err error) {
	if taken {
		b.comeback.succeed()
	}
	if err != nil {
		b.setLastErr(err)
	}
}

func (b *Remote) setLastErr(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lastErr, b.lastTime = err, b.Clock.Now()
}

// Debug is what the page shows of an endpoint, whatever it sends.
type Debug struct {
	Stats
	Journal       string // its directory, "" while it is not open
	OldestAge     string
	LastError     string
	LastErrorTime time.Time
}

// Debug returns the state.
func (b *Remote) Debug() Debug {
	d := Debug{Stats: b.Stats(), Journal: b.Dir()}
	d.OldestAge = b.OldestAge(d.Stats)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lastErr != nil {
		d.LastError, d.LastErrorTime = component.HideURLs(b.lastErr.Error()), b.lastTime
	} else if err := b.Err(); err != nil {
		d.LastError = err.Error()
	}
	return d
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
