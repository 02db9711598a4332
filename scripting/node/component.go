package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/outbox"
	"github.com/weir-run/weir/engine/server"
	"github.com/weir-run/weir/engine/view"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/block"
	"github.com/weir-run/weir/scripting/host"
	"github.com/weir-run/weir/scripting/quarantine"
)

// sweepInterval is the interval at which cached data of released series is
// removed.
const sweepInterval = time.Minute

// Component is one instance of a scripted node: a version of the script with
// one set of arguments. A change of either creates a new instance, which takes
// over the memory of the previous one. Calls in flight finish on the old
// instance.
type Component struct {
	script   *Script
	opts     component.Options
	block    block.Script
	mem      *memory
	instance *instance
	views    view.Options // of instance
	debugged bool         // it is a copy for a debugger, which makes it slower
	rules    uint64       // the version of the rules in batch.Outputs
	report   *reporter
	health   *healths

	kind      kind
	admission admission
	router    router
	timers    timers

	pools    pools
	sharding *sharding // nil: batches are not split

	state      *nodeState        // nil if the node has never had state
	slots      []*host.StateSlot // ctx.state
	stateLater bool              // the state is on disk, and Run loads it

	canary atomic.Pointer[canary] // that gets a share of the batches; nil: there is none
	counts versionCounts
	onHold func() // set for a canary: it is about to hold records

	holding  holding
	progress *progress
	trust    trust

	idle chan struct{} // closed when the work of the kind has returned

	args     any // as passed to Build
	argsHash string
	world    *host.Access
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

// New builds an instance. If previous is a Component, the instance takes over
// its memory.
func New(s *Script, o component.Options, args any, previous component.Component) (*Component, error) {
	a := block.ArgumentsOf(s.Definition, args)
	c := &Component{
		script: s, opts: o, block: a.Script, args: args, health: &healths{report: o.Health},
		progress: newProgress(), idle: make(chan struct{}),
	}
	if p, ok := previous.(*Component); ok {
		c.mem = p.mem
	} else {
		c.mem = newMemory()
		c.mem.quarantine = newQuarantined(o)
	}
	c.admission = newAdmission(o.ID, c.mem.newest)
	if s.Definition.Setup || s.Definition.Kind == scripting.Source || previous != nil && a.Script.Concurrency.Exclusive() {
		c.admission.wait()
	}
	if err := a.Script.CheckState(s.Name, s.Definition); err != nil {
		return nil, err
	}
	c.prepareState()
	exprs := scripting.ExprValues(s.Definition.Args, a.Values)
	if err := scripting.CheckExprs(s.Program, exprs); err != nil {
		return nil, err
	}
	var err error
	if c.world, err = c.openWorld(); err != nil {
		return nil, err
	}
	c.argsHash = hashArgs(a.Values)
	if s.Definition.Kind == scripting.Sink {
		c.mem.openOutbox(o)
	}
	c.views = view.Options{Args: exprs, Outputs: len(s.Definition.Outputs), MaxMade: int64(a.Script.Limits.Output)}
	c.instance = c.mem.next(c.views)
	c.rules = c.instance.number
	o.Health = func(h component.Health) {
		if h.Reason != "" {
			c.opts.Health(h)
			return
		}
		c.health.set(aspectErrors, h)
	}
	c.report = newReporter(o, s.Name, c.mem.metrics)
	c.report.says = onErrorSays[a.Script.OnError]
	c.openPools(func() (*worker, error) { return c.newWorker(a.Values) })
	// Creating the first VM shows errors early.
	w, err := c.pools.shared.get(context.Background()) // a slot is free, so get does not wait
	if err != nil {
		return nil, err
	}
	c.pools.put(w)
	c.mem.metrics.hooks(s.Definition)
	if err := c.mem.register(o.Registerer, s.Definition, &a.Script); err != nil {
		return nil, err
	}
	if !c.stateLater {
		// A build cannot be cancelled, but the wait time of migrate is limited.
		if err := c.takeState(context.Background()); err != nil {
			return nil, err
		}
	}
	c.openRouter(a.Receivers)
	c.timers.c = c
	for _, e := range s.Definition.Every {
		c.timers.add(beat{key: e.Key, interval: e.Interval, hook: scripting.Hook{Name: "every", Key: e.Key}})
	}
	switch s.Definition.Kind {
	case scripting.Source:
		c.kind, err = newSource(c, a)
	case scripting.Sink:
		c.kind = newSink(c, a, previous)
	default:
		c.kind = newTransform(c)
	}
	return c, err
}

// KeepRules states that c has the same script and arguments as previous, so that series
// which previous has sent and c does not send need no staleness marker. Call it before Run.
func (c *Component) KeepRules(previous *Component) { c.rules = previous.rules }

// newWorker creates a VM, whose ctx refers to the worker's current call.
func (c *Component) newWorker(args map[string]any) (w *worker, err error) {
	return c.newLoggingWorker(args, c.report.log)
}

func (c *Component) newLoggingWorker(args map[string]any, log func(level slog.Level, pos, msg string, fields []any)) (w *worker, err error) {
	w = newWorker()
	w.vm, err = c.script.Program.NewVM(scripting.Host{Args: args, Log: log, Context: host.NewContext(c.host(w), c.slots, c.world, c.script.Definition)})
	return w, err
}

// Update requests a new instance, because cached decisions depend on the
// arguments. If the arguments are the same, a file that the script may read has
// changed. That matters only if setup has read it, because all other hooks read
// it again anyway.
func (c *Component) Update(args any) error {
	if args == c.args && !c.world.Changed() {
		return c.mem.listener.update(c)
	}
	return component.ErrRebuild
}

// Sourced returns the files that the script may read, and the certificates for
// the node's own address.
func (c *Component) Sourced() []string {
	files := c.world.Sourced()
	if a := c.ownAddress(); a != nil {
		files = append(files, a.Files()...)
	}
	return files
}

// ownAddress returns the settings of the node's own address, or nil if it has
// none.
func (c *Component) ownAddress() *server.Arguments {
	if s, ok := c.kind.(*source); ok {
		return s.listen
	}
	return nil
}

// Run runs setup, then timers and sweeps until ctx ends, and then teardown.
func (c *Component) Run(ctx context.Context) error {
	before := c.mem.beginRun(c)
	if !c.shadows() {
		c.mem.recent.clear()
		c.mem.answers.clear()
	}
	if c.block.OnError.Stores() {
		c.mem.quarantine.store.Configure(quarantine.Limits{MaxSize: int64(c.block.Quarantine.MaxSize), MaxAge: c.block.Quarantine.MaxAge})
	}
	defer func() { c.mem.retire(c.instance, errors.Is(context.Cause(ctx), component.ErrReplaced)) }()
	c.mem.listener.addComponent(c)
	defer c.mem.listener.removeComponent(ctx, c)
	defer c.world.Close()
	c.report.forgetIdleSources() // reports healthy
	defer c.kind.begin(ctx)()
	life, end := context.WithCancel(ctx)
	defer end()
	opened := false
	var wg sync.WaitGroup
	wg.Go(func() {
		if opened = c.open(life, before); opened {
			wg.Go(func() { c.state.maintain(ctx, c.opts.Clock) })
			if c.alone(life, before) {
				c.kind.work(life, ctx)
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
	if cn := c.canary.Load(); cn != nil && cn.promoted.Load() {
		cn.end(ctx)
	}
	close(c.idle)
	c.kind.finish(ctx)
	if c.script.Definition.Teardown && opened {
		c.tearDown(ctx)
	}
	return nil
}

// sweepPeriodically removes cached data that is no longer needed, until ctx
// ends.
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
			c.pools.shrink()
			if cn := c.canary.Load(); cn.inVain(c.opts.Clock.Now()) {
				cn.end(ctx)
			}
			if c.sharding != nil {
				c.sharding.known.Sweep()
			}
			t.Reset(sweepInterval)
		}
	}
}

// ConsumeMetrics returns nil once b is accepted: by all receivers, or by the
// journal of a sink.
func (c *Component) ConsumeMetrics(ctx context.Context, b *batch.Metrics) error {
	if b.Len() == 0 {
		return nil
	}
	return c.accept(ctx, payload{outbox.Batch{Metrics: b}})
}

// ConsumeLogs is like ConsumeMetrics, for log lines.
func (c *Component) ConsumeLogs(ctx context.Context, b *batch.Logs) error {
	if b.Len() == 0 {
		return nil
	}
	return c.accept(ctx, payload{outbox.Batch{Logs: b}})
}

// accept returns nil once b is accepted. The step shadow keeps batches then, so that
// one that its source sends again is kept once.
func (c *Component) accept(ctx context.Context, b payload) error {
	if d := c.mem.debugger.Load(); d != nil {
		d.offer(b)
	}
	err := c.kind.accept(ctx, b)
	if err == nil && c.shadows() {
		c.mem.recent.add(b, int64(c.block.Shadow.InputSize))
	}
	return err
}

// shadows reports whether a new version has to process recent input first.
func (c *Component) shadows() bool { return c.block.OnReload == block.OnReloadShadow }

// Backlog returns what waits in the journal of a sink, and what is in quarantine.
func (c *Component) Backlog() (b component.Backlog) {
	if s, ok := c.kind.(*sink); ok && c.opts.StoragePath != "" {
		st := c.mem.sent.updateStats()
		b = component.Backlog{Journal: true, Samples: st.Samples.Waiting, Lines: st.Lines.Waiting, Oldest: st.Journal.Oldest, Patience: s.settings.MaxWait}
	}
	if q := c.mem.quarantine; q != nil {
		b.Quarantined = q.store.Records()
	}
	return b
}

// DebugInfo returns details about the instance.
func (c *Component) DebugInfo() any {
	sink, _ := c.kind.(*sink)
	canary, shadow := c.canary.Load().debug(c), c.mem.shadowed.Load()
	return struct {
		File       string `json:"file"`
		Generation uint64 `json:"generation"`
		VMs        int64  `json:"vms"`
		Listening  string `json:"listening,omitempty"` // its own address

		Timers []timerSummary      `json:"timers,omitempty"`
		State  []host.StateSummary `json:"state,omitempty"`
		Sink   *sinkInfo           `json:"sink,omitempty"`
		Canary *canaryInfo         `json:"canary,omitempty"`
		Shadow *Difference         `json:"shadow,omitempty"` // of the last new version
		Error  *scripting.Error    `json:"error,omitempty"`  // the last one since all was well

		Reports []textReport `json:"reports,omitempty"`
	}{c.script.File.Name, c.instance.number, c.pools.count(), c.mem.listener.address(), c.timers.summaries(), c.stateSummaries(), sink.debug(), canary, shadow, c.report.lastError(), reports(canary, shadow)}
}

// textReport is a report for people in the debug info.
type textReport struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// reports returns the reports about new versions.
func reports(canary *canaryInfo, shadow *Difference) (out []textReport) {
	if canary != nil {
		out = append(out, textReport{"canary", canary.String()})
	}
	if shadow != nil {
		text := fmt.Sprintf("version %s, compared with %s on recent input\n%s", component.ShortVersion(shadow.Version), component.ShortVersion(shadow.Running), shadow)
		if shadow.Refused != "" {
			text += "\nrefused: " + shadow.Refused
		}
		out = append(out, textReport{"shadow", text})
	}
	return out
}

// String returns a name of the component for messages.
func (c *Component) String() string { return fmt.Sprintf("%s (%s)", c.opts.ID, c.script.File.Name) }
