package engine

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"runtime/pprof"
	"sync/atomic"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/stall"
)

// instance is a component that was built for a node. A new instance is swapped
// in behind the gate.
type instance struct {
	n        *node
	reg      component.Registration
	args     any // the worker's
	c        component.Component
	files    []string // that c read when it was built
	registry *registry
	started  time.Time // the worker's
	crashed  bool      // the worker's
	stuck    bool      // its Update was given up; the worker's
	// after must be closed before Run is called. It belongs to the worker.
	after []<-chan struct{}

	// ctx is Run's. It ends with a cause. It is stored because the engine may end
	// an instance before it calls Run, and waits for both.
	ctx    context.Context
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when Run has returned and everything has ended

	// Under n.mu: reports of the component before it was swapped in.
	exports any
	own     []component.Health

	ending *stall.Op // under n.mu: from the end of ctx until Run has returned

	hung [questions]atomic.Int64 // questions that c has not answered in time
}

func (n *node) newInstance(reg component.Registration, args any) *instance {
	g := &instance{n: n, reg: reg, args: args, registry: newRegistry(n.id, n.e.log), done: make(chan struct{})}
	g.ctx, g.cancel = context.WithCancelCause(flow.Labelled(n.e.hard, n.id))
	return g
}

// gated reports whether the component is behind the node's gate.
func (g *instance) gated() bool { return g.reg.Accepts != 0 }

// overlaps reports whether the component may run at the same time as the previous and
// the next instance.
func (g *instance) overlaps() bool { return g.gated() || g.reg.Overlaps }

// build builds the component. After an error, nothing of it is left. It runs in a
// goroutine of its own.
func (g *instance) build(previous component.Component) error {
	n := g.n
	pprof.SetGoroutineLabels(g.ctx)
	o := component.Options{
		ID:          n.id,
		Position:    func() string { return n.shown.Load().position() },
		Logger:      n.e.log.With("component_id", n.id),
		Registerer:  g.registry,
		DataPath:    filepath.Join(n.e.o.StoragePath, filepath.FromSlash(n.id)),
		StoragePath: n.e.o.StoragePath,
		UserAgent:   "weir/" + n.e.o.Version,
		Clock:       n.e.clock,
		Stats:       n.stats,
		Export:      g.export,
		Health:      g.health,
		Watch:       n.watch,
		Service:     func(name string) (any, error) { return n.e.serviceData(g.reg.NeedsServices, name) },
	}
	start := time.Now()
	op := n.watch.Begin("build", 0)
	defer op.End()
	err := guard(func() (err error) {
		g.c, err = g.reg.Build(o, g.args, previous)
		return err
	})
	switch {
	case err != nil:
	case g.c == nil:
		err = errors.New("BUG: Build returned no component")
	case !reflect.ValueOf(g.c).Comparable():
		err = fmt.Errorf("BUG: Build returned a %T, which == cannot tell from another: use a pointer", g.c)
	}
	op.End()
	n.e.metrics.built(time.Since(start), err)
	if err != nil {
		g.cancel(err)
		return err
	}
	g.files = g.sourced()
	return nil
}

// export implements Options.Export.
func (g *instance) export(exports any) {
	n := g.n
	if !sameType(exports, g.reg.Exports) {
		n.e.log.Error("BUG: component exports another type than it declared", "component_id", n.id, "type", fmt.Sprintf("%T", exports))
		return
	}
	exports = config.WithReceiver(exports, n.recv)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.visible != g {
		g.exports = exports // known after Build, or from a replaced instance and ignored
		return
	}
	if s := n.state.Load(); s.exported && equal(s.exports, exports) {
		return
	}
	n.changeLocked(func(s *state) { s.exports, s.exported = exports, true })
	n.e.box.mark(n.id)
}

// health implements Options.Health.
func (g *instance) health(h component.Health) {
	if h.Time.IsZero() {
		h.Time = g.n.e.clock.Now()
	}
	n := g.n
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.visible != g {
		g.own = replaceReport(g.own, h)
		return
	}
	n.changeLocked(func(s *state) { s.own = replaceReport(s.own, h) })
}

// sourced returns the files that the component reads. It calls into the component, so it
// runs outside the worker.
func (g *instance) sourced() (files []string) {
	if s, ok := g.c.(component.Sourced); ok {
		op := g.n.watch.Begin("ask for its files", 0)
		defer op.End()
		if err := guard(func() error { files = s.Sourced(); return nil }); err != nil {
			g.n.e.log.Error("cannot ask for the files a component reads", "component_id", g.n.id, "err", err)
		}
	}
	return files
}

// swap makes g the node's instance and runs it. The previous instance finishes
// its calls and ends. It returns false, and nothing of g is left, if the node
// or the engine has been stopped in the meantime.
func (n *node) swap(g *instance) bool {
	n.mu.Lock()
	if n.removed {
		n.mu.Unlock()
		g.cancel(errStopping)
		return false
	}
	old := n.current
	n.current, n.visible = g, g
	n.age++
	n.instances[g] = n.age
	n.changeLocked(func(s *state) {
		switch {
		case g.exports != nil:
			if !s.exported || !equal(s.exports, g.exports) {
				n.e.box.mark(n.id)
			}
			s.exports, s.exported = g.exports, true
		case !sameType(s.exports, g.reg.Exports):
			s.exports, s.exported = config.WithReceiver(g.reg.Exports, n.recv), false
			n.e.box.mark(n.id)
		}
		s.reg, s.args, s.instance, s.component, s.sourced = g.reg, g.args, g, g.c, g.files
		s.own = g.own
		s.builds++
	})
	if old == nil {
		n.e.box.mark(n.id) // there is a working version now, whatever it exports
	}
	n.mu.Unlock()
	n.e.change.swaps[n.id] = swapped{to: g.reg.Version}
	if old != nil {
		n.e.change.swaps[n.id] = swapped{old.reg.Version, g.reg.Version}
	}
	g.started = n.e.clock.Now()
	n.activated(g.reg, g.started)
	n.e.tryPostponed(n.id)

	if old == nil {
		// A node with this ID may just have left the graph and still hold its files.
		g.after = n.e.leaving[n.id]
	} else if !old.overlaps() || !g.overlaps() || old.crashed {
		// old may still be waiting for the previous instance. In that case, it ends
		// without having run.
		g.after = append(live(old.after), old.done)
	}
	after := g.after
	if g.gated() && len(after) == 0 {
		n.running(g)
		n.e.wg.Go(g.run)
		left := n.recv.Set(g.c)
		if old != nil {
			n.retire(old, left, component.ErrReplaced)
		}
		return true
	}
	left := n.recv.Set(nil)
	if old != nil {
		n.retire(old, left, component.ErrReplaced)
	}
	n.e.wg.Go(func() {
		for _, c := range after {
			select {
			case <-c:
			case <-g.ctx.Done():
			}
		}
		n.running(g)
		if g.gated() {
			n.mu.Lock()
			if n.visible == g && !n.removed {
				n.recv.Set(g.c)
			}
			n.mu.Unlock()
		}
		g.run()
	})
	return true
}

// activated tells a registration that it became active on the node.
func (n *node) activated(reg component.Registration, at time.Time) {
	if reg.Activated == nil {
		return
	}
	n.e.wg.Go(func() {
		if err := guard(func() error { reg.Activated(n.id, at); return nil }); err != nil {
			n.e.log.Error("cannot note that a version became active", "component_id", n.id, "err", err)
		}
	})
}

// running records that the component's Run is about to be called.
func (n *node) running(g *instance) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.visible == g {
		n.changeLocked(func(s *state) {
			s.run = component.Health{State: component.Healthy, Message: "running", Time: n.e.clock.Now()}
		})
	}
}

// run runs a component until it ends.
func (g *instance) run() {
	n := g.n
	defer close(g.done)
	defer n.forget(g)
	if g.ctx.Err() != nil {
		return
	}
	pprof.SetGoroutineLabels(g.ctx) // which its goroutines inherit
	err := guard(func() error { return g.c.Run(g.ctx) })
	if g.ctx.Err() != nil {
		if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, context.Cause(g.ctx)) {
			n.e.log.Warn("component stopped with an error", "component_id", n.id, "err", err)
		}
		return
	}
	if err == nil {
		n.mu.Lock()
		if n.visible == g {
			n.changeLocked(func(s *state) {
				s.run = component.Health{State: component.Exited, Message: "component exited without an error; it is not restarted", Time: n.e.clock.Now()}
			})
		}
		n.mu.Unlock()
		// Its metrics and its debug information stay until it is replaced.
		<-g.ctx.Done()
		return
	}
	n.e.box.post(func() { n.crash(g, err) })
	<-g.ctx.Done()
}

// forget removes an instance that has returned, and its metrics.
func (n *node) forget(g *instance) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.instances, g)
	g.ending.End()
	if n.visible == g && g.ctx.Err() != nil {
		n.visible = nil
	}
}

// retire ends an instance when its calls in flight have returned.
func (n *node) retire(g *instance, left <-chan struct{}, cause error) {
	n.drains = append(live(n.drains), g.done)
	if !g.gated() {
		g.end(cause)
		return
	}
	n.e.wg.Go(func() {
		select {
		case <-left:
		case <-g.ctx.Done():
		}
		g.end(cause)
	})
}

// end tells the component to return, and watches that it does.
func (g *instance) end(cause error) {
	n := g.n
	n.mu.Lock()
	if _, ok := n.instances[g]; ok && g.ending == nil {
		g.ending = n.watch.Begin("stop", 0)
	}
	n.mu.Unlock()
	g.cancel(cause)
}

// errStopping is the cause with which components end when weir stops.
var errStopping = errors.New("weir is stopping")
