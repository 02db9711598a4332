package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/block"
)

// canary is a new version of a transform that gets a share of the batches of the
// running version: an instance of its own, which the engine does not know. It
// processes its share and sends nothing; the running version sends.
type canary struct {
	stable   *Component
	inner    *Component
	settings block.Canary
	division *sharding
	// router sends what both versions have made of a batch. The number that goes with it is
	// inner's: series that only one version makes end with a staleness marker when the
	// canary begins and when it ends.
	router   router
	entrance entrance // of the calls of inner

	since, until time.Time
	decisions    chan decision // of users
	followed     chan struct{} // of the decision that ended it; nil: none did
	changed      chan struct{} // capacity 1: inner has processed something
	promotedAt   time.Time     // set before promoted
	promoted     atomic.Bool   // its version takes over, and it goes on until then

	output, stableOutput outputSeries

	mu     sync.Mutex
	series map[uint64]bool // hashes of those that inner has got

	once sync.Once // of end
}

// maxCanarySeries is how many series a canary counts.
const maxCanarySeries = 100_000

// decision is what a user decided about a canary.
type decision struct {
	promote  bool
	followed chan struct{} // closed once the canary is promoted or has ended
}

// errRolledBack is why a version that a user rolled back does not run.
var errRolledBack = errors.New("it was rolled back with 'weir rollback'")

// Canary gives a new version of c's script, with arguments, a share of the batches of
// the node if its block has a canary. It returns nil when the new version is to take over:
// after its time, if the guards hold, when a user promotes it, or at once if there is
// nothing to compare it with. Otherwise the error says why not. begin is called when
// the canary begins.
//
// A canary that is promoted goes on until the new version takes over.
func (c *Component) Canary(ctx context.Context, s *Script, args any, begin func()) error {
	m := c.mem
	select {
	case m.canaryTurn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-m.canaryTurn }()
	stable := cmp.Or(m.newest(), c)
	if old := stable.canary.Load(); old != nil {
		old.end(ctx) // it was promoted, and another version is wanted now
	}
	settings := block.ArgumentsOf(s.Definition, args).Script.Canary
	if settings == nil || stable.script.Version == s.Version {
		return nil
	}
	if works, err := stable.works(ctx); !works {
		return err
	}
	begin()
	now := c.opts.Clock.Now()
	timer := c.opts.Clock.NewTimer(settings.For)
	defer timer.Stop()
	decisions := make(chan decision)
	for {
		cn, err := newCanary(ctx, cmp.Or(m.newest(), c), s, args)
		if err != nil {
			return err
		}
		cn.since, cn.until, cn.decisions = now, now.Add(settings.For), decisions
		cn.begin(ctx)
		err = cn.await(ctx, timer.C())
		if err == nil {
			cn.promote(ctx)
		} else {
			cn.end(ctx)
		}
		if cn.followed != nil {
			close(cn.followed)
		}
		if !errors.Is(err, errReplaced) { // else the canary moves to the instance that has taken over
			return err
		}
	}
}

// promote has the canary go on until another instance takes over.
func (cn *canary) promote(ctx context.Context) {
	cn.stable.opts.Logger.InfoContext(ctx, "the canary is promoted", cn.attrs()...)
	cn.promotedAt = cn.stable.opts.Clock.Now()
	cn.promoted.Store(true)
	if cn.stable.admission.ends() {
		cn.end(ctx) // Run of the running version may have looked before
	}
}

// works waits until it is known whether c lets batches in and processes them. The
// error is the context's.
func (c *Component) works(ctx context.Context) (bool, error) {
	for {
		p := c.progress
		p.mu.Lock()
		opened, failed, changed := p.opened, p.failed, p.changed
		p.mu.Unlock()
		switch {
		case opened:
			return !c.holding.any(), nil
		case failed != nil:
			return false, nil
		}
		select {
		case <-changed:
		case <-c.admission.replaced:
			c = c.mem.newest()
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}

// newCanary builds a canary of a version for the running one, and runs its setup.
func newCanary(ctx context.Context, stable *Component, s *Script, args any) (*canary, error) {
	if err := checkCanary(stable.script.Definition, s.Definition); err != nil {
		return nil, err
	}
	o := stable.opts
	o.Registerer = prometheus.NewRegistry() // the counters are the node's
	o.Logger = o.Logger.With("canary", component.ShortVersion(s.Version))
	o.Health, o.Export = func(component.Health) {}, func(any) {}
	inner, err := New(s, o, args, &Component{mem: stable.mem.ofCanary()})
	if err != nil {
		return nil, err
	}
	inner.pools.vms = func(int64) {}
	inner.router.exits, inner.router.sets, inner.router.all = stable.router.exits, stable.router.sets, stable.router.all
	cn := &canary{
		stable: stable, inner: inner, settings: *inner.block.Canary, division: newDivision(&inner.block), router: stable.router,
		entrance: entrance{left: make(chan struct{})}, changed: make(chan struct{}, 1), series: map[uint64]bool{},
	}
	cn.router.sends |= inner.router.sends
	inner.onHold = cn.notify
	if stable.block.Concurrency == block.ConcurrencySingle || inner.block.Concurrency == block.ConcurrencySingle {
		if err := cn.takeTurns(ctx); err != nil {
			cn.close()
			return nil, err
		}
	}
	if s.Definition.Setup {
		if err := inner.runHook(ctx, &scripting.Hook{Name: "setup"}); err != nil {
			cn.close()
			return nil, err
		}
	}
	inner.admission.open()
	return cn, nil
}

// checkCanary returns why a version cannot have a canary while another one runs.
func checkCanary(running, wanted *scripting.Definition) error {
	const do = "; to let it take over without a canary, remove the block canary from the block script"
	declarations := func(d *scripting.Definition) (out []any) {
		for _, s := range d.State {
			out = append(out, s.Decl)
		}
		return out
	}
	switch {
	case !slices.Equal(declarations(running), declarations(wanted)) || len(wanted.State) > 0 && running.Version != wanted.Version:
		return errors.New("cannot begin a canary: the new version declares its state in another way than the running version, and both would use it" + do)
	case !slices.Equal(running.Outputs, wanted.Outputs):
		return fmt.Errorf("cannot begin a canary: the outputs of the new version are %q, those of the running version %q%s", wanted.Outputs, running.Outputs, do)
	}
	return nil
}

// ofCanary returns the memory of a canary of the node: it shares what is counted and
// stored, and has no receivers.
func (m *memory) ofCanary() *memory {
	out := newMemory()
	out.metrics, out.quarantine, out.held = m.metrics, m.quarantine, m.held
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last++
	out.state, out.last = m.state, m.last-1
	return out
}

// takeTurns makes the calls of the two versions wait for each other.
func (cn *canary) takeTurns(ctx context.Context) error {
	turn := make(chan struct{}, 1)
	cn.inner.pools.shared.turn.Store(&turn)
	cn.stable.pools.shared.turn.Store(&turn)
	w, err := cn.stable.pools.shared.get(ctx) // the call that had begun before has ended
	if err != nil {
		return err
	}
	cn.stable.pools.put(w)
	return nil
}

// begin gives the canary its share.
func (cn *canary) begin(ctx context.Context) {
	cn.stable.canary.Store(cn)
	cn.stable.opts.Logger.InfoContext(ctx, "a canary begins", cn.attrs()...)
}

func (cn *canary) attrs() []any {
	return []any{
		"running", component.ShortVersion(cn.stable.script.Version), "version", component.ShortVersion(cn.inner.script.Version),
		"share", cn.settings.Share, "records", cn.inner.counts.records.Load(),
	}
}

// await returns nil if the version is promoted, errReplaced if another instance has
// taken over from the running one, or why the version is rolled back.
func (cn *canary) await(ctx context.Context, over <-chan time.Time) error {
	sweep := cn.stable.opts.Clock.NewTimer(sweepInterval)
	defer sweep.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-cn.stable.admission.replaced:
			return errReplaced
		case <-over:
			return cn.check(true)
		case d := <-cn.decisions:
			if cn.followed = d.followed; d.promote {
				return nil
			}
			return errRolledBack
		case <-cn.changed:
			if err := cn.check(false); err != nil {
				return err
			}
		case <-sweep.C():
			cn.inner.instance.Sweep()
			cn.inner.report.forgetIdleSources()
			cn.inner.pools.shrink()
			cn.division.known.Sweep()
			sweep.Reset(sweepInterval)
		}
	}
}

// end takes its share from the canary. Calls in flight finish, and records that it
// holds go to the running version. It may be called again. ctx may have ended.
func (cn *canary) end(ctx context.Context) {
	cn.once.Do(func() {
		cn.stable.canary.CompareAndSwap(cn, nil)
		close(cn.inner.admission.replaced)
		<-cn.entrance.close() // calls are bounded
		if cn.inner.script.Definition.Teardown {
			cn.inner.tearDown(ctx)
		}
		cn.close()
	})
}

func (cn *canary) close() {
	cn.stable.pools.shared.turn.Store(nil)
	cn.inner.world.Close()
	cn.stable.mem.retireCanary(cn.inner.instance)
}

// retireCanary is retire for the instance of a canary.
func (m *memory) retireCanary(g *instance) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.running == 0 {
		g.close()
		return
	}
	m.retired = append(m.retired, g)
}

// inVain reports whether the version was promoted and has not taken over for long.
func (cn *canary) inVain(now time.Time) bool {
	return cn != nil && cn.promoted.Load() && now.Sub(cn.promotedAt) > sweepInterval
}

// takes reports whether the canary gets a share of the batches of a signal.
func (cn *canary) takes(signal batch.Signals) bool {
	return cn.inner.script.Definition.Accepts()&signal != 0
}

// notify has await look at the guards.
func (cn *canary) notify() {
	select {
	case cn.changed <- struct{}{}:
	default:
	}
}

// noteSeries notes which series the canary has got.
func (cn *canary) noteSeries(column []*batch.Series) {
	cn.mu.Lock()
	defer cn.mu.Unlock()
	for _, s := range column {
		if len(cn.series) < maxCanarySeries {
			cn.series[s.Hash()] = true
		}
	}
}

func (cn *canary) countSeries() int {
	cn.mu.Lock()
	defer cn.mu.Unlock()
	return len(cn.series)
}
