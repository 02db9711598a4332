package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/graph"
	"github.com/weir-run/weir/engine/service"
)

// serviceNode is a service as a node of the graph.
type serviceNode struct {
	svc service.Service
	def service.Definition

	state atomic.Pointer[service.Info]
	mu    sync.Mutex // orders writers of state

	args any // the worker's: what it was updated with last
}

// orderServices returns the services, each after those it depends on.
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
	for _, s := range byName {
		for _, d := range s.def.DependsOn {
			if byName[d] == nil {
				return nil, fmt.Errorf("BUG: service %s needs %s, which is not there", s.def.Name, d)
			}
			g.Depend(s.def.Name, d)
		}
	}
	if c := g.Cycles(); len(c) > 0 {
		return nil, fmt.Errorf("BUG: services need each other: %w", c[0])
	}
	var out []*serviceNode
	for _, name := range g.Order() {
		out = append(out, byName[name])
	}
	return out, nil
}

func (s *serviceNode) info() service.Info { return *s.state.Load() }

func (s *serviceNode) change(f func(i *service.Info)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := *s.state.Load()
	f(&i)
	s.state.Store(&i)
}

// startServices configures and runs the services. stop ends them in reverse
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
		var args any
		if s.def.Block != "" {
			args = s.def.NewConfig()
			if w := p.wanted[s.def.Block]; w != nil && w.service == s && !w.block.Provisional(p.scope) {
				args = w.args
			}
		}
		err = guard(func() error { return s.svc.Update(args) })
		s.args = args
		s.change(func(i *service.Info) {
			i.Health = component.Health{State: component.Healthy, Message: "running", Time: e.clock.Now()}
			i.Arguments = args
		})
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

func (e *Engine) runService(ctx context.Context, s *serviceNode) {
	err := guard(func() error { return s.svc.Run(ctx, e) })
	if ctx.Err() != nil {
		return
	}
	h := component.Health{State: component.Exited, Message: "it is done", Time: e.clock.Now()}
	if err != nil {
		h.State, h.Message = component.Unhealthy, err.Error()
		attrs := []any{"service", s.def.Name, "err", err}
		if p, ok := errors.AsType[*panicError](err); ok {
			attrs = append(attrs, "stack", string(p.stack))
		}
		e.log.Error("service failed", attrs...)
	}
	s.change(func(i *service.Info) { i.Health = h })
}

// reconcileService updates a service when its block says something else.
func (e *Engine) reconcileService(w *wanted) {
	s := w.service
	s.change(func(i *service.Info) {
		i.Position = fmt.Sprintf("%s:%d", w.block.File, w.block.Line)
		i.DependsOn = w.deps
	})
	args := w.newArgs()
	if ds := w.block.Decode(e.plan.scope, args); ds.HasErrors() {
		e.serviceFailed(s, ds.Err())
		return
	}
	e.updateService(s, args)
}

// resetServices gives the services without a block their defaults.
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
	if equal(s.args, args) {
		return
	}
	if err := guard(func() error { return s.svc.Update(args) }); err != nil {
		e.serviceFailed(s, fmt.Errorf("cannot update: %w", err))
		return
	}
	s.args = args
	s.change(func(i *service.Info) {
		i.Arguments = args
		i.Health = component.Health{State: component.Healthy, Message: "running", Time: e.clock.Now()}
	})
}

func (e *Engine) serviceFailed(s *serviceNode, err error) {
	e.log.Error("cannot configure service, it keeps what it had", "service", s.def.Name, "err", err)
	s.change(func(i *service.Info) {
		i.Health = component.Health{State: component.Unhealthy, Message: err.Error(), Time: e.clock.Now()}
	})
}

// serviceData is Options.Service.
func (e *Engine) serviceData(needs []string, name string) (any, error) {
	if !slices.Contains(needs, name) {
		return nil, fmt.Errorf("cannot use service %s: the registration needs only %s", name, strings.Join(needs, ", "))
	}
	s := e.byName[name]
	if s == nil {
		return nil, fmt.Errorf("cannot use service %s: there is none", name)
	}
	return s.svc.Data(), nil
}
