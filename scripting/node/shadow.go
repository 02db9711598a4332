package node

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/view"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/block"
)

// Shadow is Compare. The node also keeps and logs the difference.
func (c *Component) Shadow(ctx context.Context, s *Script, args any) (d *Difference, err error) {
	d, err = c.Compare(ctx, s, args)
	c.mem.shadowed.Store(d)
	c.opts.Logger.Info("compared a new version with the running version", d.attrs()...)
	return d, err
}

// Compare has a new version of the script of c process the recent input of the node,
// and the version of c as well, and compares their results. Neither has an effect
// outside of the call: both have copies of the state, no receiver and no journal, and
// cannot reach external systems. args are the arguments of the new version. The error
// is why that must not take over, or that ctx has ended; d is never nil.
func (c *Component) Compare(ctx context.Context, s *Script, args any) (d *Difference, err error) {
	limits := block.ArgumentsOf(s.Definition, args).Script.Shadow
	d = &Difference{Running: c.script.Version, Version: s.Version}
	defer func() {
		if err != nil {
			d.Refused = err.Error()
		}
	}()
	input := c.mem.recent.all()
	if len(input) == 0 {
		d.Note = "the node has no recent input yet"
		return d, nil
	}
	now := stopped{c.opts.Clock, c.opts.Clock.Now()}
	stage := rehearsalOptions{what: "the step shadow", clock: now, log: slog.New(slog.DiscardHandler)}
	before, err := c.newRehearsal(ctx, c.script, c.args, stage)
	if err != nil {
		d.Note = "cannot start a copy of the running version: " + err.Error()
		return d, nil
	}
	defer before.close()
	after, err := c.newRehearsal(ctx, s, args, stage)
	if err != nil {
		if d.External = after.outside.exceeds(before.outside); d.External != "" {
			d.Note = "setup needs an external system: " + err.Error()
			err = nil
		}
		return d, err
	}
	defer after.close()
	x := comparison{d: d, limits: limits, before: before, after: after}
	for began := time.Now(); len(input) > 0 && !x.refuses(); input = input[1:] {
		if ctx.Err() != nil {
			return d, context.Cause(ctx)
		}
		if time.Since(began) > limits.MaxTime {
			d.Note = fmt.Sprintf("%d of %d batches were compared within max_time", d.Batches, d.Batches+len(input))
			break
		}
		if err := x.compare(ctx, input[0]); err != nil {
			return d, err
		}
	}
	return d, x.verdict(s)
}

// LastDifference returns what the last call of Shadow for the node has found; nil if
// there was none.
func (c *Component) LastDifference() *Difference { return c.mem.shadowed.Load() }

// stopped is a clock that stands still, and on which nobody waits.
type stopped struct {
	clock.Clock
	at time.Time
}

// Now returns the time at which the clock stands.
func (s stopped) Now() time.Time { return s.at }

// Sleep returns at once.
func (s stopped) Sleep(ctx context.Context, _ time.Duration) error { return context.Cause(ctx) }

// rehearsal is a version that processes input without effect.
type rehearsal struct {
	c       *Component
	outside *replayed
	errors  int // of hooks, in batches that were compared
	first   *scripting.Error
	took    time.Duration // in batches that were compared
}

// rehearsalOptions are the surroundings of a rehearsal.
type rehearsalOptions struct {
	what     string // for errors
	clock    clock.Clock
	log      *slog.Logger
	debugged bool // see Component
}

// newRehearsal builds a version apart from the graph, with a copy of the node's state.
// The result is there even with an error.
func (c *Component) newRehearsal(ctx context.Context, s *Script, args any, ro rehearsalOptions) (*rehearsal, error) {
	r := &rehearsal{outside: &replayed{answers: &c.mem.answers, what: ro.what, refused: map[answerKey]string{}}}
	script := *s
	script.Outside.HTTP, script.Outside.Exec = r.outside, r.outside.exec
	o := component.Options{
		ID: c.opts.ID, Position: c.opts.Position, Logger: ro.log, Registerer: prometheus.NewRegistry(),
		UserAgent: c.opts.UserAgent, Clock: ro.clock, Stats: new(flow.Stats), Health: func(component.Health) {}, Export: func(any) {},
	}
	mem := newMemory()
	mem.quarantine = newQuarantined(o)
	if c.state != nil {
		mem.state = &nodeState{store: c.state.store.Copy(ro.clock.Now().UnixMilli()), loaded: true}
	}
	var err error
	if r.c, err = New(&script, o, args, &Component{mem: mem}); err != nil {
		return r, err
	}
	r.c.debugged = ro.debugged
	if s.Definition.Setup {
		if err := r.c.runHook(ctx, &scripting.Hook{Name: "setup"}); err != nil {
			r.close()
			return r, err
		}
	}
	return r, nil
}

func (r *rehearsal) close() {
	r.c.world.Close()
	r.c.instance.close()
}

// rehearsed is what a version made of a batch. Its windows are open until close.
type rehearsed[B records] struct {
	k      *call
	all    B       // what leaves by any way
	other  payload // what was emitted of the other signal; empty for nothing
	took   time.Duration
	errors []*scripting.Error
}

// rehearse has the hooks process a batch, as run and apply do, but sends nothing. x
// follows the edits; nil: nobody does.
func (p *pipeline[B]) rehearse(ctx context.Context, b B, x *explanation) (r *rehearsed[B], err error) {
	c := p.c
	w, err := c.pools.shared.get(ctx)
	if err != nil {
		return nil, err
	}
	r = &rehearsed[B]{}
	r.k = c.newCall(ctx, w, terms{
		on: x.onError(), final: true,
		observe: func(e *scripting.Error) {
			r.errors = append(r.errors, e)
			x.failed(e)
		},
	})
	x.begin(r.k)
	labels, whole := p.signal.hooks(c.script.Definition)
	if err := p.callHooks(r.k, b, labels, whole); err != nil {
		r.k.fail(b.Len(), scripting.AsError(err))
	}
	if err := w.vm.End(); err != nil {
		r.k.reportError(scripting.AsError(err))
	}
	x.end()
	p.edits(r.k, b)
	x.finish()
	r.took = time.Since(r.k.began)
	r.all = p.signal.window(w).Part(view.AllWays)
	switch r.k.opened &^ p.signal.bit() {
	case batch.SignalMetrics:
		r.other.Metrics = w.win.Part(view.AllWays)
	case batch.SignalLogs:
		r.other.Logs = w.lines.Part(view.AllWays)
	}
	return r, nil
}

func (r *rehearsed[B]) close() {
	w := r.k.w
	r.k.closeWindows()
	r.k.done()
	w.pool.put(w)
}
