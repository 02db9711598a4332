package scripting

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/outbox"
	"github.com/weir-run/weir/engine/server"
	"github.com/weir-run/weir/engine/view"
	"github.com/weir-run/weir/scripting/quarantine"
)

// sweepInterval is how often what was remembered of released series is
// forgotten.
const sweepInterval = time.Minute

// Component is one instance of a scripted node: a version of the script with
// one set of arguments. A change of either makes a new one, which takes over
// the memory of the one before; calls in flight finish on the old one.
type Component struct {
	script   *script
	opts     component.Options
	block    ScriptBlock
	exits    []flow.Exit
	sets     []uint64 // the ways of exits, each once, after that of forward_to alone
	mem      *memory
	instance *instance
	report   *reporter
	health   *healths

	pool     *pool
	splitter *splitter // nil: batches are not split
	shards   []*pool   // one VM each, of mode partition
	runs     *pool     // of the hook run, which has a VM of its own
	pools    []*pool   // all of them

	state      *nodeState   // nil: the node has never had any
	slots      []*stateSlot // ctx.state
	stateLater bool         // it is on disk, and taken by Run

	holding  holding
	entrance entrance      // of process and timers
	ready    chan struct{} // closed when batches are let in; nil: they always are
	replaced chan struct{} // closed when another component takes over
	stopped  chan struct{} // closed when Run ends and no other component takes over

	progress *progress
	trust    trust

	beats []beat // the timers, and poll
	sink  *sink  // nil: it is none

	routes *routes           // of a source; nil has none
	listen *server.Arguments // of the node's own address; nil without
	idle   chan struct{}     // closed when no job goes on any more

	// jobs go on from when the component is open until life ends, which it does
	// when another instance takes over, or when run, which is Run's, ends. Each
	// kind has its own beside the timers.
	jobs []func(life, run context.Context)

	args     any // as Build got them
	argsHash string
	world    *world
}

var (
	_ component.Sourced    = (*Component)(nil)
	_ component.Component  = (*Component)(nil)
	_ component.Updater    = (*Component)(nil)
	_ component.Debugger   = (*Component)(nil)
	_ component.Queuer     = (*Component)(nil)
	_ flow.MetricsConsumer = (*Component)(nil)
)

func newComponent(s *script, o component.Options, args any, previous component.Component) (*Component, error) {
	a := scriptArgs(s.def, args)
	c := &Component{
		script: s, opts: o, block: a.block, args: args, health: &healths{report: o.Health},
		entrance: entrance{left: make(chan struct{})}, replaced: make(chan struct{}), stopped: make(chan struct{}),
		progress: newProgress(), idle: make(chan struct{}),
	}
	if s.def.Setup || s.def.Kind == Source || previous != nil && a.block.Concurrency.exclusive() {
		c.ready = make(chan struct{})
	}
	if p, ok := previous.(*Component); ok {
		c.mem = p.mem
	} else {
		c.mem = newMemory()
		c.mem.quarantine = newQuarantined(o)
	}
	if err := a.block.checkState(s.name, s.def); err != nil {
		return nil, err
	}
	c.prepareState()
	exprs := exprValues(s.def.Args, a.values)
	if err := checkExprs(s.program, exprs); err != nil {
		return nil, err
	}
	var err error
	if c.world, err = c.openWorld(); err != nil {
		return nil, err
	}
	c.argsHash = hashArgs(a.values)
	if s.def.Kind == Sink {
		c.mem.openOutbox(o)
	}
	c.instance = c.mem.next(view.Options{Args: exprs, Outputs: len(s.def.Outputs), MaxMade: int64(a.block.Limits.Output)})
	o.Health = func(h component.Health) {
		if h.Reason != "" {
			c.opts.Health(h)
			return
		}
		c.health.set(aspectErrors, h)
	}
	c.report = newReporter(o, s.name, c.mem.metrics)
	c.report.says = onErrorSays[a.block.OnError]
	c.openPools(func() (*worker, error) { return c.newWorker(a.values) })
	// The first VM shows whether there can be any.
	w, err := c.pool.get(context.Background()) // a free slot is sure, nothing waits
	if err != nil {
		return nil, err
	}
	c.pool.put(w)
	c.mem.metrics.hooks(s.def)
	if err := c.mem.register(o.Registerer, s.def, a.block.OnError); err != nil {
		return nil, err
	}
	if !c.stateLater {
		// Nobody can give up a build: what migrate waits for is bounded.
		if err := c.takeState(context.Background()); err != nil {
			return nil, err
		}
	}
	c.openExits(a.ways)
	for _, e := range s.def.Every {
		c.beats = append(c.beats, beat{key: e.Key, interval: e.Interval, hook: Hook{Name: "every", Key: e.Key}})
	}
	switch s.def.Kind {
	case Source:
		if err := c.openSource(a); err != nil {
			return nil, err
		}
	case Sink:
		c.openSink(a, previous)
		if a.block.OnError == OnErrorHold {
			c.report.says = sinkHoldsSays
		}
		c.jobs = append(c.jobs, c.runTimers)
	default:
		c.jobs = append(c.jobs, c.runTimers)
	}
	return c, nil
}

// newWorker makes a VM, whose ctx is about the worker's call at hand.
func (c *Component) newWorker(args map[string]any) (w *worker, err error) {
	w = newWorker()
	w.vm, err = c.script.program.NewVM(Host{Args: args, Log: c.report.log, Context: newContext(c.host(w), c.slots, c.world, c.script.def)})
	return w, err
}

// Update asks for a new instance: what was remembered of series depends on
// the arguments. With the same ones, a file that may be read has changed: that
// is of matter if setup has read it, all else reads it again anyway.
func (c *Component) Update(args any) error {
	if args == c.args && !c.world.changed() {
		return c.mem.listener.update(c)
	}
	return component.ErrRebuild
}

// Sourced returns the files that the script may read, and the certificates of
// the node's own address.
func (c *Component) Sourced() []string {
	files := c.world.sourced()
	if c.listen != nil {
		files = append(files, c.listen.Files()...)
	}
	return files
}

// Run sets up, runs timers and sweeps until ctx ends, and tears down.
func (c *Component) Run(ctx context.Context) error {
	before := c.mem.beginRun(c)
	if c.block.OnError.stores() {
		c.mem.quarantine.store.Configure(quarantine.Limits{MaxSize: int64(c.block.Quarantine.MaxSize), MaxAge: c.block.Quarantine.MaxAge})
	}
	defer func() { c.mem.retire(c.instance, errors.Is(context.Cause(ctx), component.ErrReplaced)) }()
	c.mem.listener.addComponent(c)
	defer c.mem.listener.removeComponent(ctx, c)
	defer c.world.close()
	c.report.forgetIdleSources() // reports healthy
	if c.sink != nil {
		defer c.sink.begin(ctx)()
	}
	life, end := context.WithCancel(ctx)
	defer end()
	opened := false
	var wg sync.WaitGroup
	wg.Go(func() {
		if opened = c.open(life, before); opened {
			wg.Go(func() { c.state.maintain(ctx, c.opts.Clock) })
			if !c.alone(life, before) {
				return
			}
			for _, job := range c.jobs {
				wg.Go(func() { job(life, ctx) })
			}
		}
	})
	wg.Go(func() {
		select {
		case <-c.replaced:
			end()
		case <-life.Done():
		}
	})
	c.sweepPeriodically(ctx)
	if !errors.Is(context.Cause(ctx), component.ErrReplaced) {
		close(c.stopped)
	}
	wg.Wait()
	close(c.idle)
	if c.script.def.Kind == Source && !errors.Is(context.Cause(ctx), component.ErrReplaced) {
		c.endSource(ctx, errors.Is(context.Cause(ctx), component.ErrRemoved))
	}
	if c.routes != nil {
		<-c.entrance.close() // requests are bounded
	}
	if c.script.def.Teardown && opened {
		c.tearDown(ctx)
	}
	return nil
}

// sweepPeriodically forgets what is no longer needed until ctx ends.
func (c *Component) sweepPeriodically(ctx context.Context) {
	t := c.opts.Clock.NewTimer(sweepInterval)
	defer t.Stop()
	end := c.opts.Clock.NewTimer(flow.EndAfter)
	defer end.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-end.C():
			c.mem.exits.EndLeaving(ctx)
		case <-t.C():
			c.mem.sweep(c.instance)
			c.state.expire(c.opts.Clock.Now())
			c.mem.quarantine.store.Sweep()
			c.report.forgetIdleSources()
			for _, p := range c.pools {
				p.shrink()
			}
			if c.splitter != nil {
				c.splitter.known.Sweep()
			}
			t.Reset(sweepInterval)
		}
	}
}

// ConsumeMetrics runs the hooks on b and sends what they leave.
func (c *Component) ConsumeMetrics(ctx context.Context, b *batch.Metrics) error {
	if b.Len() == 0 {
		return nil
	}
	if c.sink != nil {
		return c.sink.accept(ctx, outbox.Batch{Metrics: b})
	}
	if c.ready != nil {
		to, err := c.admit(ctx)
		if err != nil {
			return err
		}
		if to != c {
			return to.ConsumeMetrics(ctx, b)
		}
	}
	c.instance.addCall()
	defer c.instance.endCall()
	out, ok := c.remembered(b)
	if !ok {
		var err error
		var next *Component
		if out, next, err = c.make(ctx, b); err != nil {
			return err
		}
		if next != nil {
			return next.ConsumeMetrics(ctx, b)
		}
		// Before it is sent on, or what was sent could show more than what a
		// process that dies here still knows.
		c.state.flush()
	}
	return c.send(ctx, out, slices.Max(b.T))
}

// make returns what the script makes of b, or the component that is to have it.
func (c *Component) make(ctx context.Context, b *batch.Metrics) (out result, next *Component, err error) {
	out, err = c.process(ctx, b)
	if e, ok := err.(*heldError); ok {
		out, next, err = held(ctx, c, b.Source, c.piecesOf(b), e)
	}
	if errors.Is(err, errReplaced) {
		next, err = c.findSuccessor(ctx)
	}
	return out, next, err
}

// remembered returns what the script makes of b when no hook needs to be asked.
func (c *Component) remembered(b *batch.Metrics) (result, bool) {
	def := c.script.def
	if def.Metrics || def.Sends&batch.SignalMetrics == 0 {
		return result{}, false
	}
	res, ok := c.instance.Remembered(b)
	if !ok {
		return result{}, false
	}
	c.report.done(b.Source, nil)
	c.mem.metrics.collisions.Add(float64(res.Collisions))
	c.opts.Stats.Drop("script", res.Dropped)
	return result{samples: c.divideOutput(res.Batch, nil)}, true
}

// call is one batch in a script.
type call struct {
	hookCall
	c       *Component
	w       *worker
	ctx     context.Context // of who sent the batch: what host functions wait within
	run     *runner         // it is the hook run
	observe func(*Error)    // nil: nobody asked
	dropped int             // rows lost to errors
	first   *Error          // of the call

	replay bool       // out of the quarantine
	on     OnError    // what becomes of data that the script fails on
	final  bool       // it is asked no more in parts
	sends  *sending   // nil: it is not of a sink's send
	held   *heldError // the batch stays where it is

	outside bool       // it used the outside
	kept    []failures // for the quarantine
	stored  int        // rows that go there
}

// reportError reports an error of the call.
func (k *call) reportError(e *Error) {
	if !k.replay {
		k.c.report.errored(e)
	}
	if k.observe != nil {
		k.observe(e)
	}
	k.first = cmp.Or(k.first, e)
}

// failed notes an error that costs the record in a row.
func (k *call) failed(row int, e *Error) (drop bool) {
	k.reportError(e)
	if k.sends != nil {
		k.sends.failed = append(k.sends.failed, failedRow{row, e})
		return true
	}
	switch {
	case k.replay:
		if k.held == nil {
			k.held = &heldError{err: e}
		}
	case k.on == OnErrorDrop:
		k.dropped++
		return true
	case k.on == OnErrorQuarantine, k.on == OnErrorHold:
		k.quarantineRecord(row, e)
		k.stored++
		return true
	}
	return false
}

// newCall begins a call on a worker. It is valid until the next one on it.
func (c *Component) newCall(ctx context.Context, w *worker) *call {
	w.at = call{c: c, w: w, ctx: ctx, observe: observer(ctx), replay: isReplay(ctx)}
	w.at.now, w.at.clock = c.opts.Clock.Now(), c.opts.Clock
	w.at.on, w.at.final = c.onError(ctx)
	w.call = &w.at
	w.begin(c)
	return w.call
}

// callName is what an operation of a script is called, and callGrace what it may
// take beyond the script's own limits: they count the time that the call had the
// CPU, which on a busy machine is less than what went by.
const (
	callName  = "a call of the script"
	callGrace = 5 * time.Second
)

// begin makes the node unhealthy when the call does not return in time: functions
// of the host may take longer than the limits that the VM looks after.
func (w *worker) begin(c *Component) {
	c.opts.Watch.Start(&w.op, callName, c.block.Limits.Time+callGrace)
}

// done ends the call: it holds nothing of whoever sent the batch.
func (k *call) done() {
	k.w.op.End()
	k.ctx, k.observe, k.sends, k.w.call = nil, nil, nil, nil
}

// limits are those of a call for so many records.
func (k *call) limits(records int) *Call {
	c, w := k.c, k.w
	w.limits = Call{Time: c.block.Limits.Time, Memory: int64(c.block.Limits.Memory), Records: records, Emit: shareOf(k.ctx, records, c.block.emitLimit(c.script.def.Kind, records)), Now: k.now, Failed: w.failed}
	if k.run != nil {
		w.limits.Pause, w.limits.Resume = k.run.pause, k.run.resume
	}
	return &w.limits
}

// run returns what the script makes of b, and the first error in it. err is why
// nothing of b may go on: a *heldError, or that it could not be stored.
func (c *Component) run(ctx context.Context, w *worker, b *batch.Metrics) (out result, first *Error, err error) {
	started := time.Now()
	k := c.newCall(ctx, w)
	var whole *Error
	res, lines, err := k.hooks(b)
	if err != nil {
		whole = AsError(err)
		res, lines = k.recover(b, whole), view.LogsResult{}
	}
	if err := w.vm.End(); err != nil {
		k.reportError(AsError(err))
	}
	m := c.mem.metrics
	m.seconds.Add(time.Since(started).Seconds())
	if err = k.secure(payload{metrics: b}, whole); err == nil {
		m.emitted.Add(float64(res.Emitted))
		m.collisions.Add(float64(res.Collisions))
		c.opts.Stats.Drop("script_error", k.dropped)
		c.opts.Stats.Drop("script", res.Dropped-k.dropped-k.stored)
		c.routed(&w.win)
		out.samples = c.divideOutput(res.Batch, &w.win)
		c.unsent(out.samples)
		if lines.Emitted > 0 {
			m.emittedLines.Add(float64(lines.Emitted))
			out.lines = c.madeLines(lines.Batch, &w.lines)
			c.routedLines(&w.lines)
		}
	}
	k.proved(err)
	w.win.Done()
	if c.script.def.Sends&batch.SignalLogs != 0 {
		w.lines.Done()
	}
	first = k.first
	k.done()
	return out, first, err
}

// hooks runs the hooks of one batch. The error costs the batch.
func (k *call) hooks(b *batch.Metrics) (res view.Result, lines view.LogsResult, err error) {
	c, w := k.c, k.w
	// A panic of ours must cost one batch and one VM, not the node.
	defer func() {
		if v := recover(); v != nil {
			w.vm = brokenVM{w.vm}
			err = &Error{Script: c.script.name, File: c.script.file.Name, Hook: "metrics", Err: panicError(v)}
		}
	}()
	w.win.Reset(b, c.instance.Cache, k.now)
	w.win.Limit(shareOf(k.ctx, b.Len(), int64(c.block.Limits.Output)))
	call := k.limits(b.Len())
	call.Logs = k.logLines(b.Source, b.Way)
	w.vm.Begin(call)
	if c.script.def.Series {
		if err := w.win.RunSeries(w.series); err != nil {
			return res, lines, err
		}
	}
	if c.script.def.Metrics {
		c.mem.metrics.calls.WithLabelValues("metrics").Inc()
		if err := w.vm.Metrics(&w.win); err != nil {
			return res, lines, err
		}
	}
	if k.holdsRows(b.Len()) {
		return res, lines, nil // it is asked again
	}
	if call.Logs != nil {
		lines = call.Logs.Apply()
	}
	return w.win.Apply(), lines, nil
}

// series runs the series hook on one new series. Its error costs the record;
// the next batch asks again.
func (k *call) series(row int, s *view.Series) error {
	k.c.mem.metrics.calls.WithLabelValues("series").Inc()
	k.remembering = true
	defer func() { k.remembering = false }()
	return k.skipped(k.w.vm.Series(s), &k.w.win.Window, func() string { return k.w.win.Batch().Series[row].String() }, row)
}

// cost is what becomes of a batch whose hook failed.
type cost uint8

const (
	costsEdits   cost = iota // it goes on without them
	costsAll                 // nothing of it goes on
	costsNothing             // it is held
)

// costs notes an error that costs all of a batch of n records.
func (k *call) costs(n int, e *Error) cost {
	k.dropped, k.stored = 0, 0
	if k.replay || k.asksAgain(n) {
		observe := k.observe
		k.observe = nil // what comes of it is not known yet
		k.reportError(e)
		k.observe = observe
		k.held = &heldError{err: e, outside: k.outsideFailed || errors.Is(e, errWaited)}
		return costsNothing
	}
	k.reportError(e)
	switch k.on {
	case OnErrorDrop:
		k.dropped = n
		return costsAll
	case OnErrorQuarantine:
		k.stored = n
		return costsAll
	}
	return costsEdits
}

// recover is what becomes of a batch whose hook failed. What the series hook
// decided stands, as it does not depend on the batch: without it series would
// pass that are dropped or have other labels on all other days.
func (k *call) recover(b *batch.Metrics, e *Error) view.Result {
	w := k.w
	w.win.Reset(b, k.c.instance.Cache, k.now)
	switch k.costs(b.Len(), e) {
	case costsNothing:
		return view.Result{}
	case costsAll:
		w.win.DropAll()
		return w.win.Apply()
	}
	if k.c.script.def.Series {
		// The error of a skipped row is never seen: RunSeries knows ErrSkip.
		if err := w.win.RunSeries(func(int, *view.Series) error { return view.ErrSkip }); err != nil {
			panic("BUG: " + err.Error())
		}
	}
	return w.win.Apply()
}

// brokenVM is a VM after a panic in a host function.
type brokenVM struct{ VM }

func (brokenVM) Broken() bool { return true }

// Backlog returns what waits in the journal of a sink, and what is in quarantine.
func (c *Component) Backlog() (b component.Backlog) {
	if c.sink != nil && c.opts.StoragePath != "" {
		st := c.mem.sent.updateStats()
		b = component.Backlog{Journal: true, Samples: st.Samples.Waiting, Lines: st.Lines.Waiting, Patience: c.sink.settings.MaxWait}
	}
	if q := c.mem.quarantine; q != nil {
		b.Quarantined = q.store.Records()
	}
	return b
}

// DebugInfo tells what runs.
func (c *Component) DebugInfo() any {
	return struct {
		File       string `json:"file"`
		Generation uint64 `json:"generation"`
		VMs        int64  `json:"vms"`
		Listening  string `json:"listening,omitempty"` // address of its own

		Timers []timerSummary `json:"timers,omitempty"`
		State  []StateSummary `json:"state,omitempty"`
		Sink   *sinkInfo      `json:"sink,omitempty"`
		Error  *Error         `json:"error,omitempty"` // the last one since all was well
	}{c.script.file.Name, c.instance.number, c.vms(), c.mem.listener.address(), c.timerSummaries(), c.stateSummaries(), c.sink.debug(), c.report.lastError()}
}

// String names the component for messages.
func (c *Component) String() string { return fmt.Sprintf("%s (%s)", c.opts.ID, c.script.file.Name) }
