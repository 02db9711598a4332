package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/graph"
	"github.com/weir-run/weir/engine/service"
)

// serviceNode is a service as a node of the graph.
type serviceNode struct {
	svc service.Service
	def service.Definition

	state atomic.Pointer[service.Info]
	mu    sync.Mutex // serialises writers of state

	// These belong to the worker, once it runs.
	args   any  // of the last update
	wanted any  // of the last requested update
	failed bool // it was not
	// updating means that an update has not returned, and that the worker no
	// longer waits for it. again is set if another update is due after it.
	updating, again bool
}

// orderServices returns the services, each after its dependencies.
func orderServices(svcs []service.Service) ([]*serviceNode, error) {
	var g graph.Graph
	byName := map[string]*serviceNode{}
	for _, svc := range svcs {
		s := &serviceNode{svc: svc, def: svc.Definition()}
		s.state.Store(&service.Info{ID: s.def.Name, Name: s.def.Block})
		if byName[s.def.Name] != nil {
			return nil, fmt.Errorf("BUG: service %s is listed twice", s.def.Name)
		}
		byName[s.def.Name] = s
		g.Add(s.def.Name)
	}
	for _, svc := range svcs {
		def := svc.Definition()
		for _, d := range def.DependsOn {
			if byName[d] == nil {
				return nil, fmt.Errorf("BUG: service %s needs %s, which is not there", def.Name, d)
			}
			g.Depend(def.Name, d)
		}
	}
	if c := g.Cycles(); len(c) > 0 {
		return nil, fmt.Errorf("BUG: services depend on each other: %w", c[0])
	}
	var out []*serviceNode
	for _, name := range g.Order() {
		out = append(out, byName[name])
	}
	return out, nil
}

func (s *serviceNode) info() service.Info {
	i := *s.state.Load()
	if d, ok := s.svc.(component.Debugger); ok {
		i.Debug = func() (info any) {
			if err := guard(func() error { info = d.DebugInfo(); return nil }); err != nil {
				return map[string]string{"error": err.Error()}
			}
			return info
		}
	}
	return i
}

func (s *serviceNode) change(f func(i *service.Info)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := *s.state.Load()
	f(&i)
	s.state.Store(&i)
}

// startServices configures and runs the services. stop stops them in reverse
// order and is never nil.
func (e *Engine) startServices(ctx context.Context, p *plan) (stop func() error, err error) {
	var stops []func()
	stop = func() error {
		for _, f := range slices.Backward(stops) {
			f()
		}
		return nil
	}
	for _, s := range e.services {
		err = e.startService(s, p)
		run, cancel := context.WithCancel(context.WithoutCancel(ctx))
		if err != nil {
			cancel()
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			e.runService(run, s)
		}()
		stops = append(stops, func() {
			cancel()
			<-done
		})
		if err != nil {
			return stop, fmt.Errorf("cannot start %s: %w", s.def.Name, err)
		}
	}
	return stop, nil
}

// startService configures a service before the graph runs.
func (e *Engine) startService(s *serviceNode, p *plan) error {
	var args any
	if s.def.Block != "" {
		args = s.def.NewConfig()
	}
	w := p.wanted[s.def.Block]
	if s.def.Block == "" || w == nil || w.service != s {
		return e.configure(s, args)
	}
	if !w.block.Provisional(p.scope) {
		return e.configure(s, w.args)
	}
	if _, ok := s.svc.(service.Waiter); ok {
		return e.wait(s, w.args)
	}
	return e.configure(s, args)
}

// errOpen means that a service or component could not be configured.
var errOpen = errors.New("it refers to a node that has no working version")

// wait informs a service of a block that cannot be evaluated.
func (e *Engine) wait(s *serviceNode, args any) error {
	s.failed, s.wanted = true, args
	w, ok := s.svc.(service.Waiter)
	switch {
	case !ok:
		return nil
	case s.updating:
		s.again = true
		return nil
	}
	return guard(func() error { return w.Wait(args) })
}

// configure updates a service before the graph runs.
func (e *Engine) configure(s *serviceNode, args any) error {
	s.wanted = args
	return e.configured(s, args, guard(func() error { return s.svc.Update(args) }))
}

// configured processes the outcome of an update.
func (e *Engine) configured(s *serviceNode, args any, err error) error {
	if s.failed = err != nil; s.failed {
		return err
	}
	s.args = args
	s.change(func(i *service.Info) {
		i.Arguments = args
		i.Health = component.Health{State: component.Healthy, Message: "running", Time: e.clock.Now()}.Following(i.Health)
	})
	return nil
}

func (e *Engine) runService(ctx context.Context, s *serviceNode) {
	err := guard(func() error { return s.svc.Run(ctx, e) })
	if ctx.Err() != nil {
		return
	}
	h := component.Health{State: component.Exited, Message: "service exited without an error; it is not restarted", Time: e.clock.Now()}
	if err != nil {
		h.State, h.Message = component.Unhealthy, err.Error()
		attrs := []any{"service", s.def.Name, "err", err}
		if p, ok := errors.AsType[*panicError](err); ok {
			attrs = append(attrs, "stack", string(p.stack))
		}
		e.log.Error("service failed", attrs...)
	}
	s.change(func(i *service.Info) {
		i.Health = h.Following(i.Health)
		i.LastError = h
	})
}

// reconcileService updates a service if its block has changed.
func (e *Engine) reconcileService(w *wanted) {
	s := w.service
	s.change(func(i *service.Info) {
		i.Position = w.position()
		i.DependsOn = w.deps
	})
	args := w.newArgs()
	ds := w.block.Decode(e.plan.scope, args)
	err := ds.Err()
	why, pending := w.block.Unready(e.plan.scope).(config.Pending)
	switch {
	case err == nil && pending: // the value will be available; until then, nothing is wrong
		s.failed = true
		s.change(func(i *service.Info) {
			i.Health = component.Health{State: component.Unknown, Message: why.Error(), Time: e.clock.Now()}.Following(i.Health)
		})
	case err == nil && w.block.Provisional(e.plan.scope):
		e.serviceFailed(s, errOpen)
	case err == nil:
		e.updateService(s, args)
		return
	default:
		e.serviceFailed(s, err)
	}
	if err := e.wait(s, args); err != nil {
		e.log.Error("cannot tell a service to wait", "service", s.def.Name, "err", err)
	}
}

// resetServices sets the services without a block to their defaults.
func (e *Engine) resetServices(p *plan) {
	for _, s := range e.services {
		if w := p.wanted[s.def.Block]; s.def.Block == "" || w != nil && w.service == s {
			continue
		}
		s.change(func(i *service.Info) { i.Position, i.DependsOn = "", nil })
		e.updateService(s, s.def.NewConfig())
	}
}

func (e *Engine) updateService(s *serviceNode, args any) {
	if !s.failed && !s.updating && equal(s.args, args) {
		return
	}
	e.configureAsync(s, args, func() {})
}

// configureAsync updates a service while the engine runs, and calls done after
// a success.
func (e *Engine) configureAsync(s *serviceNode, args any, done func()) {
	s.wanted = args
	if s.updating {
		s.again = true
		return
	}
	follow := func(err error) {
		if err := e.configured(s, args, err); err != nil {
			e.serviceFailed(s, fmt.Errorf("cannot update: %w", err))
			return
		}
		done()
	}
	pending, err := e.callAsync(func() error { return guard(func() error { return s.svc.Update(args) }) }, func(err error) {
		s.updating = false
		if follow(err); s.again {
			s.again, s.failed = false, true // so that it is updated even with the same arguments
			if w := e.plan.wanted[s.def.Block]; s.def.Block != "" && w != nil && w.service == s {
				e.reconcileService(w)
			} else {
				e.updateService(s, s.def.NewConfig())
			}
		}
		e.followFiles()
	})
	if pending != nil {
		s.updating = true
		return
	}
	follow(err)
}

// serviceFailed reports that a service could not be configured.
func (e *Engine) serviceFailed(s *serviceNode, err error) {
	s.failed = true
	if h := s.info().Health; h.State == component.Unhealthy && h.Message == err.Error() {
		return
	}
	level := slog.LevelError
	if e.committing {
		level = e.announcedLevel(level)
		e.broken = append(e.broken, s.def.Name)
	}
	e.log.Log(e.hard, level, "cannot configure service, the last good version stays as far as that is safe", "service", s.def.Name, "err", err)
	s.change(func(i *service.Info) {
		i.LastError = component.Health{State: component.Unhealthy, Message: err.Error(), Time: e.clock.Now()}
		i.Health = i.LastError.Following(i.Health)
	})
}

// checkServices checks whether the services accept a plan.
func (e *Engine) checkServices(p *plan) (ds config.Diagnostics) {
	for _, s := range e.services {
		c, ok := s.svc.(service.Checker)
		if !ok {
			continue
		}
		w := p.wanted[s.def.Block]
		args, open := s.def.NewConfig(), false
		if w != nil {
			if w.failed {
				continue
			}
			args, open = w.args, w.block.Provisional(p.scope)
		}
		err := guard(func() error { return c.Check(args, open) })
		if err == nil {
			continue
		}
		d := config.Diagnostic{Msg: err.Error()}
		switch arg, ok := errors.AsType[*component.ArgumentError](err); {
		case w == nil:
			d.Span = config.Span{File: p.cfg.Path}
			d.Msg = fmt.Sprintf("block %s is gone (it was at %s): %v", s.def.Block, s.info().Position, err)
		case ok:
			d.Span = w.block.SpanOf(arg.Path)
		default:
			d.Span = w.block.Span
		}
		ds = append(ds, d)
	}
	return ds
}

// rereadService updates a service because a file that it reads has changed. done is
// called after a success.
func (e *Engine) rereadService(s *serviceNode, done func()) {
	if w := e.plan.wanted[s.def.Block]; s.failed && w != nil {
		e.reconcileService(w)
		return
	}
	e.configureAsync(s, s.wanted, func() {
		e.log.Info("service read its files again", "service", s.def.Name)
		done()
	})
}

// sourced returns the files that a service reads.
func (s *serviceNode) sourced() []string {
	if f, ok := s.svc.(service.Sourced); ok {
		return f.Sourced()
	}
	return nil
}

// serviceData implements Options.Service.
func (e *Engine) serviceData(needs []string, name string) (any, error) {
	if !slices.Contains(needs, name) {
		return nil, fmt.Errorf("cannot use service %s: the registration needs only %s", name, strings.Join(needs, ", "))
	}
	s := e.byName[name]
	if s == nil {
		return nil, fmt.Errorf("cannot use service %s: no such service", name)
	}
	return s.svc.Data(), nil
}
