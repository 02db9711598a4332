package engine

import (
	"slices"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/graph"
	"github.com/weir-run/weir/engine/service"
)

// snapshot is the graph as visible to other goroutines. It is immutable, as is
// each state of a node.
type snapshot struct {
	nodes     []*node // in config order
	heads     []*head // of instances and other virtual blocks
	all       []lister
	byID      map[string]*node
	flow      *graph.Graph        // of the plan
	consumers map[string][]string // by service: IDs
}

// dependants returns the nodes that directly depend on a node.
func (s *snapshot) dependants(id string) (out []*node) {
	for _, id := range s.flow.Dependants(id) {
		if d := s.byID[id]; d != nil {
			out = append(out, d)
		}
	}
	return out
}

// publish makes the current graph visible.
func (e *Engine) publish() {
	s := &snapshot{flow: &e.plan.flow, consumers: map[string][]string{}}
	for _, w := range e.plan.list {
		if n := e.nodes[w.id]; n != nil {
			s.nodes = append(s.nodes, n)
			s.all = append(s.all, n)
		} else if h := e.heads[w.id]; h != nil {
			s.heads = append(s.heads, h)
			s.all = append(s.all, h)
		}
	}
	if before := e.graph.Load(); before != nil && slices.Equal(before.nodes, s.nodes) {
		s.byID = before.byID
	} else {
		s.byID = make(map[string]*node, len(s.nodes))
		for _, n := range s.nodes {
			s.byID[n.id] = n
		}
	}
	for _, svc := range e.services {
		s.consumers[svc.def.Name] = e.plan.consumers(svc.def.Name)
	}
	e.graph.Store(s)
}

// GetComponent returns the running component of a node.
func (e *Engine) GetComponent(id string) (component.Component, bool) {
	n := e.graph.Load().byID[id]
	if n == nil {
		return nil, false
	}
	c := n.state.Load().component
	return c, c != nil
}

// lister is a node, an instance, a foreach or an import.
type lister interface{ info() service.Info }

func (h *head) info() service.Info { return *h.state.Load() }

// ListComponents returns the nodes in config order, and the blocks that they
// were expanded from: instances of declares, foreach and import blocks.
func (e *Engine) ListComponents() []service.Info {
	snap := e.graph.Load()
	out := make([]service.Info, 0, len(snap.all))
	for _, l := range snap.all {
		out = append(out, l.info())
	}
	return out
}

// GetServiceConsumers returns the IDs of the nodes whose registration needs a
// service, sorted.
func (e *Engine) GetServiceConsumers(name string) []string {
	return slices.Clone(e.graph.Load().consumers[name])
}

// Overview returns the state of weir as a whole.
func (e *Engine) Overview() service.Overview {
	o := service.Overview{Time: e.clock.Now(), Version: e.o.Version, Ready: e.phase.Load() == phaseReady, Stopping: e.phase.Load() == phaseStopping}
	if t := e.started.Load(); t != nil {
		o.Started = *t
	}
	if p := e.path.Load(); p != nil {
		o.Config = *p
	}
	if m := e.mistake.Load(); m != nil {
		o.ConfigError = *m
	}
	if r := e.reload.Load(); r != nil {
		o.Reload = *r
	}
	o.Stalled = *e.stalledOwn.Load()
	for _, s := range e.services {
		o.Services = append(o.Services, s.info())
	}
	return o
}

func (n *node) info() service.Info {
	s := n.state.Load()
	w := n.shown.Load()
	i := service.Info{
		ID: n.id, Name: w.block.Name, Health: s.health, LastError: s.lastError, Stats: n.stats, Position: w.position(),
		Trial: n.e.history.trialOf(n.id), DependsOn: w.deps, SendsTo: w.sendsTo(), Version: s.reg.Version, Builds: s.builds, Restarts: s.restarts,
		Arguments: s.args, Exports: s.exports,
	}
	i.Problems, i.Playground = s.problems, playable(w)
	if len(w.reg.Sources) > 0 {
		i.Sources = func() []string { return existing(w.reg.Sources) }
	}
	if q, ok := s.component.(component.Queuer); ok {
		var err error
		if i.Backlog, err = s.instance.backlog(q); err != nil && err != errNoAnswer {
			n.e.log.Error("cannot ask for what a component keeps", "component_id", n.id, "err", err)
		}
	}
	if d, ok := s.component.(component.Debugger); ok {
		i.Debug = func() any {
			info, err := ask(s.instance, askDebug, d.DebugInfo)
			if err != nil {
				return map[string]string{"error": err.Error()}
			}
			return info
		}
	}
	return i
}

var _ service.Host = (*Engine)(nil)
