package engine

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/graph"
)

// plan is what a config means, with what the catalogs say now.
type plan struct {
	cfg    *config.Config
	graph  graph.Graph
	order  []string // of the graph
	wanted map[string]*wanted
	scope  *config.Scope
}

// wanted is one block of a plan.
type wanted struct {
	id     string
	block  *config.Block
	deps   []string
	args   any  // decoded with what is known; nil when reg is not usable
	failed bool // there were mistakes in the block

	service *serviceNode // else a component:
	reg     component.Registration
	recv    *flow.Receiver
	stats   *flow.Stats
	// err says why reg is not what the catalogs have now, but the last good
	// one, or unusable when there never was one.
	err error
}

// usable reports whether there is a component to build.
func (w *wanted) usable() bool { return w.service != nil || w.reg.Build != nil }

// planMode says how a plan is made.
type planMode struct {
	// files makes a plan after a change of files while the config, which has
	// been accepted, stays: a mistake costs only the node that made it.
	files bool
	// demoted are the nodes, by ID, whose new registration made mistakes.
	demoted map[string]error
}

// brokenExports are those of a registration with an error that never was good:
// others may wait for its receiver.
type brokenExports struct {
	Receiver *flow.Receiver `alloy:"receiver,attr"`
}

// anySignal is what a receiver takes of which nobody knows better.
const anySignal = batch.SignalMetrics | batch.SignalLogs

// load reads and plans a config. The error is a config.Diagnostics.
func (e *Engine) load(path string, mode planMode) (*config.Config, *plan, error) {
	cfg, ds := config.Load(path)
	p, more := e.makePlan(cfg, mode)
	ds = append(ds, more...)
	ds = append(ds, e.checkServices(p)...).Sort()
	e.warn(ds)
	return cfg, p, ds.Err()
}

func (e *Engine) warn(ds config.Diagnostics) {
	for _, d := range ds {
		if d.Severity == config.Warning {
			e.log.Warn(d.Msg, "position", d.Span.String())
		}
	}
}

// planFiles plans the config that runs with what the catalogs say now. New
// registrations that make mistakes are left out, one after the other.
func (e *Engine) planFiles(cfg *config.Config) (*plan, error) {
	mode := planMode{files: true, demoted: map[string]error{}}
	for {
		p, ds := e.makePlan(cfg, mode)
		if !ds.HasErrors() {
			return p, nil
		}
		if before := len(mode.demoted); e.blame(p, ds, mode.demoted) == before {
			return p, ds.Err()
		}
	}
}

// blame adds to demoted the nodes with a new registration that have a mistake,
// or that a block with a mistake refers to, and returns how many there are.
func (e *Engine) blame(p *plan, ds config.Diagnostics, demoted map[string]error) int {
	fresh := func(id string) bool {
		w := p.wanted[id]
		if w == nil || w.service != nil || w.err != nil || demoted[id] != nil {
			return false
		}
		n := e.nodes[id]
		return n == nil || n.gen == nil || n.gen.reg.Version != w.reg.Version
	}
	for _, d := range ds {
		if d.Severity != config.Error {
			continue
		}
		w := p.at(d.Span)
		if w == nil {
			continue
		}
		for _, id := range append([]string{w.id}, w.deps...) {
			if fresh(id) {
				demoted[id] = d
				break
			}
		}
	}
	return len(demoted)
}

// at returns the block that a diagnostic is about.
func (p *plan) at(s config.Span) (found *wanted) {
	for _, w := range p.wanted {
		if w.block.File == s.File && w.block.Line <= s.Line && (found == nil || found.block.Line < w.block.Line) {
			found = w
		}
	}
	return found
}

// makePlan returns what cfg means, and every mistake in it. With mistakes the
// plan is for looking at only.
func (e *Engine) makePlan(cfg *config.Config, mode planMode) (*plan, config.Diagnostics) {
	p := &plan{cfg: cfg, wanted: map[string]*wanted{}, scope: cfg.NewScope(e.o.Version)}
	names := e.blockNames()
	var ds config.Diagnostics
	for _, b := range cfg.Blocks {
		w, errs := e.lookup(b, names, mode)
		ds = append(ds, errs...)
		if w == nil {
			p.scope.SetUnknown(b.ID)
			continue
		}
		p.wanted[b.ID] = w
		p.graph.Add(b.ID)
	}
	for _, b := range cfg.Blocks {
		if w := p.wanted[b.ID]; w != nil {
			e.declare(p, w)
		}
	}
	for _, b := range cfg.Blocks {
		w := p.wanted[b.ID]
		if w == nil {
			continue
		}
		ids, errs := b.Resolve(p.scope)
		ds = append(ds, errs...)
		for _, id := range ids {
			if p.wanted[id] != nil {
				w.deps = append(w.deps, id)
				p.graph.Depend(w.id, id)
			}
		}
		if !w.usable() {
			continue
		}
		args := w.newArgs()
		errs = b.Decode(p.scope, args)
		w.args, w.failed = args, errs.HasErrors()
		if !mode.files || w.service == nil { // a service's block is as it was, and what it refers to is its own matter
			ds = append(ds, errs...)
		}
		ds = append(ds, p.checkSignals(w)...)
	}
	if p.order = p.graph.Order(); len(p.order) < p.graph.Len() {
		for _, c := range p.graph.Cycles() {
			ds = append(ds, config.Diagnostic{Span: p.wanted[c.Path[0]].block.Span,
				Msg: "blocks need each other: " + strings.Join(c.Path, " → ")})
		}
	}
	return p, ds
}

// roots returns the folders that catalogs are made from, to be read by people.
func (e *Engine) roots() (dirs []string) {
	for _, c := range e.o.Catalogs {
		for _, dir := range c.Roots() {
			dirs = append(dirs, nearby(dir))
		}
	}
	return dirs
}

// blockNames returns all names a block can have.
func (e *Engine) blockNames() (names []string) {
	for _, c := range e.o.Catalogs {
		names = append(names, c.Names()...)
	}
	for _, s := range e.services {
		if s.def.Block != "" {
			names = append(names, s.def.Block)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// lookup returns what a block means; nil when that is nothing.
func (e *Engine) lookup(b *config.Block, names []string, mode planMode) (*wanted, config.Diagnostics) {
	w := &wanted{id: b.ID, block: b}
	for _, s := range e.services {
		if s.def.Block != "" && s.def.Block == b.Name {
			w.service = s
			return w, b.CheckLabel(config.LabelForbidden)
		}
	}
	running := e.node(b.ID)
	known, ds := b.Check(names, e.roots()...)
	switch {
	case known:
		w.reg, w.err = e.register(b.Name)
		if _, ok := errors.AsType[collisionError](w.err); ok && !mode.files {
			ds = append(ds, config.Diagnostic{Span: b.Span, Msg: w.err.Error(), Hint: "rename the script"})
			w.err = nil
		}
		if err := mode.demoted[b.ID]; err != nil {
			w.reg, w.err = component.Registration{Name: b.Name, Version: w.reg.Version, Sources: w.reg.Sources}, err
		}
	case !ds.HasErrors():
		return nil, ds // it has no effect
	case mode.files && running != nil:
		w.reg, w.err = component.Registration{Name: b.Name}, errors.New("its component is no longer there")
		ds = nil
	default:
		return nil, ds
	}
	if running != nil {
		w.recv, w.stats = running.recv, running.stats
		if w.reg.Build == nil && running.gen != nil {
			w.reg = running.gen.reg
		}
	} else {
		w.stats = new(flow.Stats)
		w.recv = flow.NewReceiver(b.ID, anySignal, w.stats, func(p *flow.PanicError) { e.gatePanic(b.ID, p) })
	}
	if w.reg.Build != nil {
		rule := config.LabelRequired
		if w.reg.Unique {
			rule = config.LabelForbidden
		}
		ds = append(ds, b.CheckLabel(rule)...)
	}
	return w, ds
}

// collisionError says that two catalogs know a name.
type collisionError struct {
	name    string
	sources []string
}

func (c collisionError) Error() string {
	return fmt.Sprintf("component %s is built in and also a script (%s)", c.name, strings.Join(c.sources, ", "))
}

// register asks the catalogs for a name. With an error the registration is
// that of the first catalog for a name that two know, and else without Build.
func (e *Engine) register(name string) (r component.Registration, err error) {
	found := false
	for _, c := range e.o.Catalogs {
		next, ok := c.Lookup(name)
		switch {
		case ok && found:
			return r, collisionError{name, existing(next.Sources)}
		case ok:
			r, found, err = next, true, next.Err
		}
	}
	switch {
	case !found:
		// It was among the names a moment ago.
		return component.Registration{Name: name}, fmt.Errorf("there is no component %s", name)
	case err != nil:
		r = component.Registration{Name: r.Name, Version: r.Version, Sources: r.Sources}
	}
	return r, err
}

// declare says in the scope what a block exports, as far as it is known.
func (e *Engine) declare(p *plan, w *wanted) {
	switch running := e.node(w.id); {
	case w.service != nil:
		p.scope.Set(w.id, nil)
	case !w.usable():
		if onlyReceiver(p.cfg, w.id) {
			p.scope.SetProvisional(w.id, brokenExports{w.recv})
		} else {
			p.scope.SetUnknown(w.id)
		}
	case running != nil && running.gen != nil && sameType(running.exports(), w.reg.Exports):
		p.scope.Set(w.id, running.exports())
	default:
		p.scope.SetProvisional(w.id, config.WithReceiver(w.reg.Exports, w.recv))
	}
}

// onlyReceiver reports whether nobody refers to another export than receiver.
func onlyReceiver(cfg *config.Config, id string) bool {
	for _, b := range cfg.Blocks {
		for _, r := range b.References() {
			if rest, ok := strings.CutPrefix(r.String(), id+"."); ok && rest != "receiver" {
				return false
			}
		}
	}
	return true
}

func (w *wanted) newArgs() any {
	if w.service != nil {
		return w.service.def.NewConfig()
	}
	return w.reg.NewArgs()
}

// checkSignals returns a mistake for each receiver in a block's arguments that
// takes nothing of what the block sends.
func (p *plan) checkSignals(w *wanted) (ds config.Diagnostics) {
	if w.service != nil {
		return nil
	}
	said := map[string]bool{}
	for _, r := range config.Receivers(w.args) {
		to := p.wanted[r.Receiver.Node()]
		if to == nil || !to.usable() || said[r.Path+to.id] {
			continue
		}
		if w.reg.Sends&to.reg.Accepts == 0 {
			said[r.Path+to.id] = true
			ds = append(ds, config.Diagnostic{Span: w.block.SpanOf(r.Path),
				Msg: fmt.Sprintf("%s: %s accepts %s, but %s sends %s", r.Path, to.id, to.reg.Accepts, w.id, w.reg.Sends)})
		}
	}
	return ds
}

// sources returns the files that the plan's registrations were made from.
func (p *plan) sources() map[string]bool {
	files := map[string]bool{}
	for _, w := range p.wanted {
		for _, f := range w.reg.Sources {
			files[f] = true
		}
	}
	return files
}

// consumers returns the IDs of the components that need a service, sorted.
func (p *plan) consumers(service string) (ids []string) {
	for _, id := range slices.Sorted(maps.Keys(p.wanted)) {
		if slices.Contains(p.wanted[id].reg.NeedsServices, service) {
			ids = append(ids, id)
		}
	}
	return ids
}
