// Package scrape is prometheus.scrape: it scrapes the metrics of targets and
// sends one batch per target and scrape.
//
// It uses the target, label and parser packages of Prometheus and makes the same
// decisions: labels, limits, timestamps, staleness and the report series (up and
// related ones) are equal, and a test compares them. The loop differs in three
// ways. A target is scraped within a second of its start and then in its own slot
// of the interval. A batch that is refused is sent again until the next scrape is
// due. A target that is removed gets its staleness markers immediately. As in
// Prometheus, series get no markers when weir stops: the next process continues
// them.
//
// The body of a target repeats, so most of it is not parsed at all: see layout.
package scrape

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
	"sync"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/service"
)

// Registration describes prometheus.scrape.
func Registration() component.Registration {
	return component.Registration{
		Name:    "prometheus.scrape",
		Sends:   batch.SignalMetrics,
		NewArgs: func() any { a := new(Arguments); a.SetToDefault(); return a },
		Build: func(o component.Options, args any, previous component.Component) (component.Component, error) {
			return build(o, args.(*Arguments), previous)
		},
		NeedsServices: []string{"http"},
		Doc: component.Doc{
			Summary: "Scrapes Prometheus metrics from targets and forwards the samples.",
		},
	}
}

// Component is the component of a prometheus.scrape node.
type Component struct {
	opts    component.Options
	http    service.HTTPData
	metrics *metrics
	prev    *Component

	changed chan struct{} // has a value if want was changed
	ended   chan struct{} // closed when no loop runs any more
	failed  chan error

	mu      sync.Mutex
	want    *plan
	started bool
	loops   map[string]*loop
	left    map[string]*state // for the component that takes over
}

// plan is the arguments with the targets that result from them.
type plan struct {
	set     *settings
	targets *targets
}

var (
	_ component.Component = (*Component)(nil)
	_ component.Updater   = (*Component)(nil)
	_ component.Sourced   = (*Component)(nil)
	_ component.Debugger  = (*Component)(nil)
)

func build(o component.Options, a *Arguments, previous component.Component) (*Component, error) {
	data, err := o.Service("http")
	if err != nil {
		return nil, err
	}
	http, ok := data.(service.HTTPData)
	if !ok {
		return nil, fmt.Errorf("BUG: service http has data of type %T", data)
	}
	c := &Component{
		opts: o, http: http, metrics: newMetrics(),
		changed: make(chan struct{}, 1), ended: make(chan struct{}), failed: make(chan error, 1),
		loops: map[string]*loop{},
	}
	c.prev, _ = previous.(*Component)
	if c.prev != nil {
		c.metrics = c.prev.metrics
	}
	if c.want, err = c.plan(a); err != nil {
		return nil, err
	}
	if err := component.Register(o.Registerer, c.metrics.all()...); err != nil {
		return nil, fmt.Errorf("cannot register metrics: %w", err)
	}
	return c, nil
}

func (c *Component) plan(a *Arguments) (*plan, error) {
	c.mu.Lock()
	before := c.want
	c.mu.Unlock()
	var old *settings
	if before != nil {
		old = before.set
	}
	set, err := newSettings(c.opts, a, c.http, old)
	if err != nil {
		return nil, err
	}
	var known map[uintptr]made
	if before != nil && reflect.DeepEqual(before.set.cfg, set.cfg) {
		known = before.targets.made
	}
	limit := int(a.TargetLimit)
	ts := newTargets(a.Targets, set.cfg, known, max(maxTargets, limit))
	if found := len(ts.all) + ts.surplus; limit > 0 && found > limit {
		ts.limitErr = fmt.Errorf("%w: %d targets, target_limit is %d", errTargetLimit, found, limit)
	}
	return &plan{set, ts}, nil
}

var errTargetLimit = errors.New("target limit exceeded")

// Update applies new arguments. Targets that continue keep their schedule and
// their series; removed targets get staleness markers.
func (c *Component) Update(args any) error {
	p, err := c.plan(args.(*Arguments))
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.want = p
	c.mu.Unlock()
	select {
	case c.changed <- struct{}{}:
	default:
	}
	return nil
}

// Sourced returns the paths of the files that the HTTP client reads.
func (c *Component) Sourced() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.want.set.args.Client.Files()
}

// Run scrapes until ctx ends. If another component takes over, it gets the
// targets with their state. If the node is removed or fails, all series end. If
// weir stops, they do not end, because the next process scrapes the same targets.
func (c *Component) Run(ctx context.Context) error {
	c.mu.Lock()
	c.started = true
	c.mu.Unlock()
	left := c.takeOver(ctx)

	// The contexts of the loops end when it is known how their series end, not
	// together with ctx.
	base := context.WithoutCancel(ctx)
	r := &run{
		c: c, ending: map[string]*loop{},
		since: c.opts.Clock.Now(), removed: map[string]time.Time{},
	}
	r.reconcile(base, left)
	for {
		select {
		case <-c.changed:
			r.reconcile(base, nil)
		case err := <-c.failed:
			r.stop(errRemoved) // the next component starts without state, and perhaps not soon
			return err
		case <-ctx.Done():
			switch cause := context.Cause(ctx); {
			case errors.Is(cause, component.ErrReplaced):
				r.stop(errHandedOver)
			case errors.Is(cause, component.ErrRemoved):
				r.stop(errRemoved)
			default:
				r.stop(errStopped)
			}
			return nil
		}
	}
}

// takeOver waits until the previous component has stopped scraping and returns
// its targets.
func (c *Component) takeOver(ctx context.Context) map[string]*state {
	p := c.prev
	c.prev = nil
	if p == nil {
		return nil
	}
	p.mu.Lock()
	started := p.started
	p.mu.Unlock()
	if !started { // it will never start
		return p.takeOver(ctx)
	}
	select {
	case <-p.ended:
	default: // both channels may be ready, and the state must not be lost
		select {
		case <-p.ended:
		case <-ctx.Done():
			return nil
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	left := p.left
	p.left = nil
	return left
}

// run is the state of Run.
type run struct {
	c      *Component
	set    *settings
	ending map[string]*loop // removed, but not done yet
	wg     sync.WaitGroup

	since   time.Time            // the time since which all removed targets are known
	removed map[string]time.Time // the times at which targets were removed
}

// maxRemoved is the maximum number of removed targets that are remembered.
const maxRemoved = 10_000

// latest returns the time up to which a new target may have samples. It is
// unknown what was scraped before this run.
func (r *run) latest(key string) int64 {
	if at, ok := r.removed[key]; ok {
		return at.UnixMilli()
	}
	return r.since.UnixMilli()
}

func (r *run) remove(key string) {
	now := r.c.opts.Clock.Now()
	if len(r.removed) >= maxRemoved {
		clear(r.removed)
		r.since = now
	}
	r.removed[key] = now
}

// reconcile starts and ends loops according to the current plan. left contains
// the state of targets to continue. ctx is the context of the loops.
func (r *run) reconcile(ctx context.Context, left map[string]*state) {
	c := r.c
	c.mu.Lock()
	p := c.want
	c.mu.Unlock()
	if p.set != r.set {
		if err := p.set.open(r.set); err != nil {
			c.opts.Logger.Error("scrapes go on without a failure log", "err", err)
		}
	}
	for _, err := range p.targets.invalid {
		c.opts.Logger.Error("target is not scraped", "err", err)
	}
	if more := p.targets.broken - len(p.targets.invalid); more > 0 {
		c.opts.Logger.Error("further targets are not scraped, for such reasons", "targets", more)
	}
	if p.targets.surplus > 0 {
		c.opts.Logger.Error("there are too many targets; the last of them are not scraped (a higher target_limit allows more)",
			"targets", len(p.targets.all)+p.targets.surplus, "scraped", len(p.targets.all))
	}

	wanted := make(map[string]*target, len(p.targets.all))
	for _, t := range p.targets.all {
		wanted[t.key] = t
	}
	c.mu.Lock()
	for key, l := range r.ending {
		select {
		case <-l.done:
			delete(r.ending, key)
		default:
		}
	}
	for key, l := range c.loops {
		if wanted[key] == nil {
			delete(c.loops, key)
			r.ending[key] = l
			l.cancel(errRemoved)
			r.remove(key)
		}
	}
	for _, t := range p.targets.all {
		j := &job{target: t, plan: p}
		if l := c.loops[t.key]; l != nil {
			l.job.Store(j)
			select {
			case l.wake <- struct{}{}:
			default:
			}
			continue
		}
		st := left[t.key]
		delete(left, t.key)
		c.loops[t.key] = r.start(ctx, j, st, r.ending[t.key])
	}
	for key, st := range left { // targets of the previous component that are not wanted any more
		j := &job{target: &target{key: key, redacted: "a removed target", interval: time.Hour}, plan: p}
		l := r.start(ctx, j, st, nil)
		r.ending[key] = l
		l.cancel(errRemoved)
	}
	c.mu.Unlock()
	c.metrics.targets.Set(float64(len(p.targets.all)))
	c.metrics.unscraped.Set(float64(p.targets.broken + p.targets.surplus))
	c.opts.Health(p.targets.health(c.opts.Clock.Now()))
	if old := r.set; old != nil && old != p.set {
		old.close(p.set)
	}
	r.set = p.set
}

// health returns the health, which includes the number of targets that are not
// scraped.
func (ts *targets) health(now time.Time) component.Health {
	h := component.Health{State: component.Healthy, Message: fmt.Sprintf("scraping %d targets", len(ts.all)), Time: now}
	if ts.broken > 0 {
		h.Message += fmt.Sprintf(", %d cannot be: %v", ts.broken, ts.invalid[0])
	}
	if ts.surplus > 0 {
		h.State = component.Unhealthy
		h.Message += fmt.Sprintf(", not %d more: there are too many (a higher target_limit allows more)", ts.surplus)
	}
	return h
}

// start starts a loop. It waits until before, the previous loop for the same
// target, is done.
func (r *run) start(ctx context.Context, j *job, st *state, before *loop) *loop {
	if st == nil {
		st = newState(r.latest(j.key))
	}
	ctx, cancel := context.WithCancelCause(ctx)
	l := &loop{
		state: st, clock: r.c.opts.Clock, log: r.c.opts.Logger, metrics: r.c.metrics, stats: r.c.opts.Stats,
		wake: make(chan struct{}, 1), cancel: cancel, done: make(chan struct{}),
	}
	l.job.Store(j)
	r.wg.Go(func() {
		defer close(l.done)
		defer cancel(nil)
		defer func() {
			if v := recover(); v != nil {
				l.state = newState(l.clock.Now().UnixMilli()) // the old state is not reliable after a failure
				select {
				case r.c.failed <- fmt.Errorf("scraping %s panicked: %v\n%s", j.redacted, v, debug.Stack()):
				default:
				}
			}
		}()
		if before != nil {
			<-before.done
		}
		l.run(ctx)
	})
	return l
}

// stop ends all loops and waits for them.
func (r *run) stop(why error) {
	c := r.c
	c.mu.Lock()
	loops := c.loops
	c.loops = map[string]*loop{}
	c.mu.Unlock()
	for _, l := range loops {
		l.cancel(why)
	}
	r.wg.Wait()
	r.set.close(nil)
	c.mu.Lock()
	if errors.Is(why, errHandedOver) {
		c.left = make(map[string]*state, len(loops))
		for key, l := range loops {
			c.left[key] = l.state
		}
	}
	c.mu.Unlock()
	close(c.ended)
}
