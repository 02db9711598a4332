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

// Kind is the configuration that the outboxes of a component share.
type Kind struct {
	Rows     string // the name of its records: "samples"
	Stopping error  // the error for batches that arrive when it stops
	Metrics  *Metrics
	// Reasons are all reasons why rows are dropped, including those of the
	// journal. The counters exist from the start, so that their first increase is
	// visible.
	Reasons []string
	Signal  batch.Signals // of the rows
}

// RemoteSettings are the settings of an endpoint's outbox. They are immutable
// and are replaced as a whole.
type RemoteSettings struct {
	Shards   int // of a new journal
	Limits   journal.Limits
	Owner    journal.Owner
	Drain    time.Duration // maximum time for sending when weir stops
	Replaced chan struct{} // closed when the settings are replaced

	Client  *http.Client
	Header  http.Header   // of each request; must not be modified
	Timeout time.Duration // of each request
}

// Remote is the outbox of one HTTP endpoint. The endpoint of a native component
// embeds it. It has the gate for the endpoint's batches. Its methods are safe
// for concurrent use, except Serve, which is called once.
type Remote struct {
	Outbox
	Watch *stall.Watch // of the node; nil if operations are not watched

	o          *component.Options
	kind       *Kind
	key, label string
	gate       *flow.Receiver
	settings   atomic.Pointer[RemoteSettings]
	leave      atomic.Bool // senders leave the rest of the journal when they stop
	report     func()      // called when the health may have changed
	fail       func(error) // called if the component must be built again

	mu       sync.Mutex
	lastErr  error
	lastTime time.Time // of lastErr
}

// NewRemote returns the outbox of one endpoint.
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

// Key identifies the endpoint in its component.
func (b *Remote) Key() string { return b.key }

// Label returns its name for people and metrics.
func (b *Remote) Label() string { return b.label }

// Gate returns the gate for its batches.
func (b *Remote) Gate() *flow.Receiver { return b.gate }

// Report reports the node's health, which may have changed.
func (b *Remote) Report() { b.report() }

// Work contains the functions of an endpoint that use its outbox.
type Work struct {
	// Opened is called first, when Journal is set. It returns the functions that
	// gather. Each runs until its ctx ends, and has written everything when it
	// returns.
	Opened func() []func(ctx context.Context)
	// Consumer returns the consumer behind the gate. stop is closed when the
	// endpoint stops; calls that wait for room must then return.
	Consumer func(stop <-chan struct{}) any
	// Send sends a shard's blocks until ctx ends. After that, it continues as long
	// as Sending returns true and blocks are accepted, but not after posting has
	// ended.
	Send func(ctx, posting context.Context, shard int)
	// Aside, if it is not nil, runs concurrently with the senders until ctx ends.
	Aside func(ctx context.Context)
	// Sweep is called once a minute.
	Sweep func()
}

// Serve runs w until ctx ends. It returns when everything accepted is in the
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
	stopGathering() // writes the open groups and answers calls in flight
	gatherers.Wait()
	<-left // including those that are between the gate and the consumer
	// The gate counts the calls behind it. But a successor may have replaced the
	// consumer already, and calls on the old one may still be in flight.
	b.refuse()
	// Send the rest as long as it is accepted, staleness markers last. A successor
	// continues with the journal and should not have to wait.
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

// Sending reports whether a sender should continue. It is true until ctx ends,
// and after that unless the rest of the journal is left to a successor.
func (b *Remote) Sending(ctx context.Context) bool { return ctx.Err() == nil || !b.leave.Load() }

// Guard returns f with panics converted to failures of the component.
func (b *Remote) Guard(f func()) func() { return guard(f, b.panicked) }

func (b *Remote) panicked(p *flow.PanicError) {
	p.Node = b.o.ID
	b.fail(p)
}

// Update applies new settings. Blocks that are already gathered do not change.
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

// Queue returns the number of records in the journal that are not done, and the
// number that have left it. It adds the records sent and dropped since the last
// call to the node's Stats.
func (b *Remote) Queue() component.Queue {
	st := b.ReportTo(b.o.Stats)
	q := component.Queue{Name: "endpoint " + b.label, Waiting: st.Waiting, Left: uint64(st.Sent), Oldest: st.Journal.Oldest}
	for _, n := range st.Lost {
		q.Left += uint64(n)
	}
	return q
}

// Collect sends the metrics of the endpoint and of its journal.
func (b *Remote) Collect(ch chan<- prometheus.Metric) {
	b.collect(ch, b.kind.Metrics, b.label, b.label)
}

// JournalProblem returns why the journal cannot be opened or written, or nil if
// it can.
func (b *Remote) JournalProblem() error {
	if err := b.Err(); err != nil {
		return fmt.Errorf("endpoint %s: %w", b.label, err)
	}
	return nil
}

// Failed records that data must be sent again, and why.
func (b *Remote) Failed(err error) {
	b.comeback.fail()
	b.setLastErr(err)
}

// Answered records that a request got a final response. taken reports whether
// some of its data was accepted. err is why not all of it was, or nil if it
// was.
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

// Debug is the state that the web UI shows of an endpoint of any kind.
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

// watch checks the endpoint every few seconds.
func (b *Remote) watch(ctx context.Context, sweep func()) {
	for n := 0; clock.Sleep(ctx, b.Clock, 5*time.Second) == nil; n++ {
		b.Queue()
		if n%12 == 11 {
			sweep()
		}
		b.report()
	}
}
