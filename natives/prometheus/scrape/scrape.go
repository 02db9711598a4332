// Package scrape is prometheus.scrape: it scrapes the metrics of targets and sends one
// batch per target and scrape.
//
// It decides as Prometheus's scrape package does, of which it uses the target,
// label and parser parts: labels, limits, timestamps, staleness and the report
// series (up and its kin) come out equal, and a test compares them. The loop
// differs in three things. A target is scraped within a second of its start
// and then at its own place in the interval. A batch that is refused is sent
// again until the next scrape is due. A target that is removed gets its
// staleness markers at once. When weir stops, no series gets any, as in
// Prometheus: the next process continues them.
//
// A target's body repeats, so most of it is not parsed at all: see layout.
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

// Component is one prometheus.scrape.
type Component struct {
	opts    component.Options
	http    service.HTTPData
	metrics *metrics
	prev    *Component

	changed chan struct{} // holds a signal when want was changed
	ended   chan struct{} // closed when no loop runs any more
	failed  chan error

	mu      sync.Mutex
	want    *plan
	started bool
	loops   map[string]*loop
	left    map[string]*state // for the component that takes over
}

// plan is what arguments ask for.
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

// Update takes new arguments. Targets that continue keep their schedule and
// their series; those that are gone get their markers.
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

// Sourced returns the files the HTTP client reads.
func (c *Component) Sourced() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.want.set.args.Client.Files()
}

// Run scrapes until ctx ends. A component that takes over gets the targets with
// their state. When the node is removed, or after a failure, all series end.
// When weir stops, they do not: the next process scrapes the same targets.
func (c *Component) Run(ctx context.Context) error {
	c.mu.Lock()
	c.started = true
	c.mu.Unlock()
	left := c.takeOver(ctx)

	// The loops' contexts do not end with ctx but when their end was decided.
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
			r.stop(errRemoved) // the next component starts from scratch, and maybe not soon
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

// takeOver returns the targets of the component before, which scrapes them no
// longer.
func (c *Component) takeOver(ctx context.Context) map[string]*state {
	p := c.prev
	c.prev = nil
	if p == nil {
		return nil
	}
	p.mu.Lock()
	started := p.started
	p.mu.Unlock()
	if !started { // nor will it be
		return p.takeOver(ctx)
	}
	select {
	case <-p.ended:
	default: // both may be ready, and what was left must not be
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

// run is one running of a component.
type run struct {
	c      *Component
	set    *settings
	ending map[string]*loop // removed, but not done yet
	wg     sync.WaitGroup

	since   time.Time            // when it began, or forgot when
	removed map[string]time.Time // targets were removed
}

// maxRemoved bounds the targets whose end is remembered.
const maxRemoved = 10_000

// latest returns a time after which there are no samples of a target that is
// new: nobody knows what was scraped before this run.
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

// reconcile makes the loops those of the current plan. left are targets to go
// on with. The loops get ctx.
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
	for key, st := range left { // of the component before, and not wanted any more
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

// health says what is scraped and what is not.
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

// start starts a loop, once the one before for the same target is done.
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
				l.state = newState(l.clock.Now().UnixMilli()) // nobody knows what the old one is worth
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
