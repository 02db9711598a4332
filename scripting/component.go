package scripting

import (
	"context"
	"errors"
	"fmt"
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
	mem      *memory
	instance *instance
	report   *reporter
	health   *healths

	admission admission
	metrics   pipeline[*batch.Metrics]
	logs      pipeline[*batch.Logs]
	router    router

	pool     *pool
	sharding *sharding // nil: batches are not split
	shards   []*pool   // one VM each, of mode partition
	runs     *pool     // of the hook run, which has a VM of its own
	pools    []*pool   // all of them

	state      *nodeState   // nil: the node has never had any
	slots      []*stateSlot // ctx.state
	stateLater bool         // it is on disk, and taken by Run

	holding  holding
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
	_ flow.LogsConsumer    = (*Component)(nil)
)

func newComponent(s *script, o component.Options, args any, previous component.Component) (*Component, error) {
	a := scriptArgs(s.def, args)
	c := &Component{
		script: s, opts: o, block: a.block, args: args, health: &healths{report: o.Health},
		progress: newProgress(), idle: make(chan struct{}),
	}
	if p, ok := previous.(*Component); ok {
		c.mem = p.mem
	} else {
		c.mem = newMemory()
		c.mem.quarantine = newQuarantined(o)
	}
	c.admission = newAdmission(o.ID, c.mem.newest)
	if s.def.Setup || s.def.Kind == Source || previous != nil && a.block.Concurrency.exclusive() {
		c.admission.wait()
	}
	c.metrics = pipeline[*batch.Metrics]{c, metricsSignal{}}
	c.logs = pipeline[*batch.Logs]{c, logsSignal{}}
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
	c.openRouter(a.ways)
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
		case <-c.admission.replaced:
			end()
		case <-life.Done():
		}
	})
	c.sweepPeriodically(ctx)
	if !errors.Is(context.Cause(ctx), component.ErrReplaced) {
		close(c.admission.stopped)
	}
	wg.Wait()
	close(c.idle)
	if c.script.def.Kind == Source && !errors.Is(context.Cause(ctx), component.ErrReplaced) {
		c.endSource(ctx, errors.Is(context.Cause(ctx), component.ErrRemoved))
	}
	if c.routes != nil {
		<-c.admission.close() // requests are bounded
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
			if c.sharding != nil {
				c.sharding.known.Sweep()
			}
			t.Reset(sweepInterval)
		}
	}
}

// ConsumeMetrics takes b through the pipeline of samples; a sink puts it into its
// journal. It returns nil once b is accepted.
func (c *Component) ConsumeMetrics(ctx context.Context, b *batch.Metrics) error {
	if b.Len() == 0 {
		return nil
	}
	if c.sink != nil {
		return c.sink.accept(ctx, outbox.Batch{Metrics: b})
	}
	return c.metrics.consume(ctx, b)
}

// ConsumeLogs is ConsumeMetrics for log lines.
func (c *Component) ConsumeLogs(ctx context.Context, b *batch.Logs) error {
	if b.Len() == 0 {
		return nil
	}
	if c.sink != nil {
		return c.sink.accept(ctx, outbox.Batch{Logs: b})
	}
	return c.logs.consume(ctx, b)
}

// consume takes a batch of either signal.
func (c *Component) consume(ctx context.Context, b payload) error {
	if b.logs != nil {
		return c.ConsumeLogs(ctx, b.logs)
	}
	return c.ConsumeMetrics(ctx, b.metrics)
}

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
