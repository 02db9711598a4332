package engine

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/flow"
)

// planner expands a config to a plan.
type planner struct {
	e    *Engine
	p    *plan
	mode planMode
	// later are expansions that need values which are not known yet. Each returns
	// whether it is done; with final, it does what it can.
	later []func(final bool) bool
	// checks check blocks that are not expanded, or are expanded with different
	// arguments each time: declares and templates.
	checks  []func()
	strange []*declare // declares of imports, which are checked when they are used
	seen    []*declare // checked
	parsed  map[*config.Block]*config.Declare
	files   map[string]*names // imported files by path

	found []mistake
	said  map[saying]bool // by checks
	full  bool
}

// root returns the module of the config itself.
func (x *planner) root(cfg *config.Config) *module {
	dir := cfg.Dir()
	m := &module{scope: cfg.NewScope(x.e.o.Version), blocks: cfg.Blocks}
	if x.e.o.Getenv != nil {
		m.scope.SetEnv(x.e.o.Getenv)
	}
	m.scope.SetUnsupported(x.e.o.Unsupported)
	m.names = newNames(nil, dir)
	m.names.isBroken(cfg.Broken)
	m.scope.SetVariable("module_path", "", config.Value{V: m.names.dir})
	return m
}

// body expands the blocks of a module.
func (x *planner) body(m *module, blocks []*config.Block) {
	for _, b := range blocks {
		switch {
		case b.Name == "declare":
			x.declare(m, b)
		case b.IsImport():
			x.importing(m, b)
		case b.Name == "policy":
			x.misplacedPolicy(m, b)
		}
	}
	for _, b := range blocks {
		if b.Name != "declare" && b.Name != "policy" && !b.IsImport() {
			x.block(m, b)
		}
	}
}

// finish runs the expansions that had to wait for values.
func (x *planner) finish() {
	for len(x.later) > 0 {
		todo := x.later
		x.later = nil
		progress := false
		var left []func(bool) bool
		for _, f := range todo {
			if f(false) {
				progress = true
			} else {
				left = append(left, f)
			}
		}
		if !progress {
			left[0](true)
			left = left[1:]
		}
		x.later = append(left, x.later...)
	}
}

// block expands a block that is neither a declare nor an import.
func (x *planner) block(m *module, b *config.Block) {
	if len(x.p.list) >= maxNodes {
		if !x.full {
			x.mistaken(m, nil, b.Span, fmt.Sprintf("the config comes to more than %d nodes", maxNodes), "")
		}
		x.full = true
		return
	}
	for _, s := range x.e.services {
		if s.def.Block != "" && s.def.Block == b.Name {
			x.service(m, b, s)
			return
		}
	}
	if b.Name == "foreach" {
		x.foreach(m, b)
		return
	}
	means := m.names.find(b.Name)
	switch {
	case means.pending != "":
		m.scope.SetPending(b.ID, means.pending)
		x.later = append(x.later, func(final bool) bool {
			if m.names.find(b.Name).pending == "" {
				x.block(m, b)
				return true
			}
			return final
		})
	case means.broken:
		m.scope.SetUnknown(b.ID)
	case means.declare != nil:
		x.instance(m, b, means.declare)
	default:
		x.component(m, b, means)
	}
}

func (x *planner) add(w *wanted) {
	x.p.wanted[w.id] = w
	x.p.list = append(x.p.list, w)
}

func (x *planner) service(m *module, b *config.Block, s *serviceNode) {
	if m.id != "" {
		x.mistaken(m, nil, b.Span, fmt.Sprintf("block %s belongs at the top level of the config", b.Name), "")
		m.scope.SetUnknown(b.ID)
		return
	}
	w := &wanted{kind: kindService, id: b.ID, m: m, block: b, service: s}
	x.add(w)
	x.report(w, b.CheckLabel(config.LabelForbidden))
	m.scope.Set(b.ID, nil)
}

// component expands a block that is a component or unknown.
func (x *planner) component(m *module, b *config.Block, means meaning) {
	w := &wanted{id: m.prefix() + b.ID, m: m, block: b}
	e := x.e
	running := e.node(w.id)
	start, step := time.Now(), component.StepCompile
	switch {
	case means.catalog != nil:
		w.reg, w.err = lookup(b.Name, means.catalog)
		if means.refused != nil && w.err == nil {
			w.reg, w.err, step = unless(means.refused, w.reg, b.Name), means.refused, component.StepCheck
		}
	case e.hasName(b.Name):
		w.reg, w.err = e.register(b.Name)
		if _, ok := errors.AsType[collisionError](w.err); ok && !x.mode.running {
			x.mistaken(m, w, b.Span, w.err.Error(), "rename the script")
			w.err = nil
		}
	default:
		_, ds := b.Check(append(m.names.all(), e.blockNames()...), e.o.Unsupported, e.newFiles(b.Name)...)
		if !ds.HasErrors() { // it has no effect
			x.report(w, ds)
			m.scope.SetUnknown(b.ID)
			return
		}
		if w.reg, w.err = x.removed(m, w, running); w.err == nil {
			x.report(w, ds)
			m.scope.SetUnknown(b.ID)
			return
		}
	}
	e.change.since(component.StepCompile, start)
	w.await(running)
	x.substitute(w, running)
	if _, collides := errors.AsType[collisionError](w.err); w.err != nil && !w.instead && !collides {
		w.err = refuse(running, w.reg.Version, step, w.err)
	}
	if err := x.mode.demoted[w.id]; err != nil {
		w.reg, w.err = component.Registration{Name: b.Name, Version: w.reg.Version, Sources: w.reg.Sources}, refuse(running, w.reg.Version, component.StepCheck, err)
	}
	if r := x.mode.rejected[w.id]; r != nil && w.err == nil {
		r.replace(w, running)
	}
	x.add(w)
	if running != nil {
		w.recv, w.stats = running.recv, running.stats
		if w.reg.Build == nil && running.current != nil {
			w.reg = running.current.reg
		}
	} else if before := x.mode.before(w.id); before != nil {
		w.recv, w.stats = before.recv, before.stats
	} else {
		w.stats = new(flow.Stats)
		w.recv = flow.NewReceiver(w.id, anySignal, w.stats, func(p *flow.PanicError) { e.gatePanic(w.id, p) })
	}
	if w.reg.Build != nil {
		rule := config.LabelRequired
		if w.reg.Unique {
			rule = config.LabelForbidden
		}
		x.report(w, b.CheckLabel(rule))
	}
	x.exports(w, running)
}

// removed returns the registration of a component that the catalogs do not know any more.
// The error is nil if the config must be refused: the node is new, or nothing can run
// on it.
func (x *planner) removed(m *module, w *wanted, running *node) (component.Registration, error) {
	name := w.block.Name
	for _, c := range append(m.names.catalogs(name), x.e.o.Catalogs...) {
		h, ok := c.(component.Historic)
		if !ok {
			continue
		}
		r, ok := h.Removed(name)
		if ok && (running != nil || (x.e.plan == nil || x.mode.running) && r.Instead(w.id) != nil) {
			return unless(r.Err, r, name), r.Err
		}
	}
	if !x.mode.running || running == nil {
		return component.Registration{}, nil
	}
	err := fmt.Errorf("component %s is no longer there", name)
	if gen := running.current; gen != nil && len(gen.reg.Sources) > 0 && isGone(gen.reg.Sources[0]) {
		err = fmt.Errorf("%w: %s is gone", err, nearby(gen.reg.Sources[0]))
	}
	return component.Registration{Name: name}, err
}

// exports sets the exports of a component in the scope, as far as they are
// known.
func (x *planner) exports(w *wanted, running *node) {
	scope, id := w.m.scope, w.block.ID
	switch {
	case !w.usable():
		if w.m.onlyReceiver(id) {
			scope.SetProvisional(id, brokenExports{w.recv})
		} else if w.waits != "" {
			scope.SetPending(id, w.waits)
		} else {
			scope.SetUnknown(id)
		}
	case !x.mode.unknown && running != nil && running.current != nil && sameType(running.exports(), w.reg.Exports):
		if running.state.Load().awaitsExports() {
			scope.SetWaiting(id, running.exports(), config.Pending(running.id))
		} else {
			scope.Set(id, running.exports())
		}
	default:
		scope.SetProvisional(id, config.WithReceiver(w.reg.Exports, w.recv))
	}
}

// instance expands a block that is an instance of a declare.
func (x *planner) instance(m *module, b *config.Block, d *declare) {
	w := &wanted{kind: kindInstance, id: m.prefix() + b.ID, m: m, block: b}
	if m.abstract && m.decl != nil {
		m.decl.uses = append(m.decl.uses, use{d, b})
	}
	if !m.abstract || m.decl == nil || m.decl.used {
		d.used = true
	}
	x.report(w, b.CheckLabel(config.LabelRequired))
	given := x.instanceArguments(w, d)
	if len(m.chain) >= maxDepth {
		x.mistaken(m, w, b.Span, fmt.Sprintf("instances are nested deeper than %d", maxDepth), "")
		return
	}
	if b.Label == "" {
		return
	}
	m.scope.SetObject(b.ID, d.ExportNames())
	if m.abstract || slices.Contains(m.chain, d) { // recursion is reported where it is checked
		for _, name := range d.ExportNames() {
			m.scope.SetVariable(b.ID+"."+name, "", config.Value{Err: config.ErrUnknown})
		}
		for _, a := range d.Arguments {
			if arg := given[a.Name]; arg != nil {
				x.value(&wanted{id: w.id + "/argument." + a.Name, m: m, block: b, x: arg, from: m.scope, scope: m.scope.Apart(""), name: a.Name})
			}
		}
		return
	}
	x.add(w)
	in := &module{id: w.id, scope: m.scope.Apart(w.id + "/"), blocks: d.Blocks, decl: d, outer: m, block: w,
		chain: append(slices.Clip(m.chain), d), muted: m.muted}
	in.names = newNames(d.in, "")
	in.scope.SetVariable("module_path", "", config.Value{V: in.names.dir})
	w.inner = in
	for _, a := range d.Arguments {
		in.scope.SetObject("argument."+a.Name, []string{"value"})
		name := "argument." + a.Name + ".value"
		switch arg := given[a.Name]; {
		case arg != nil:
			x.value(&wanted{id: w.id + "/argument." + a.Name, m: m, x: arg, from: m.scope, scope: in.scope, name: name, of: w, block: b})
		case a.Default != nil && a.Optional:
			in.scope.SetLazy(name, "", func() config.Value { return a.Default.Evaluate(d.constants) })
		case a.Optional:
			in.scope.SetVariable(name, "", config.Value{})
		default: // it is missing, which was reported
			in.scope.SetVariable(name, "", config.Value{Err: config.ErrUnknown})
		}
	}
	for _, v := range d.Exports {
		x.value(&wanted{id: w.id + "/export." + v.Name, m: in, x: v, from: in.scope, scope: m.scope, name: b.ID + "." + v.Name, of: w, block: d.Block})
	}
	x.body(in, d.Blocks)
}

// instanceArguments returns the arguments of an instance, and reports unknown
// and missing ones.
func (x *planner) instanceArguments(w *wanted, d *declare) map[string]*config.Expression {
	given, ds := w.block.Attributes()
	names := d.ArgumentNames()
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if d.Argument(name) == nil {
			hint := config.DidYouMean(name, names)
			if hint == "" {
				hint = d.signature()
			}
			ds = append(ds, config.Diagnostic{Span: given[name].NameSpan, Msg: fmt.Sprintf("unknown attribute %s", name), Hint: hint})
			delete(given, name)
		}
	}
	for _, a := range d.Arguments {
		if given[a.Name] == nil && !a.Optional {
			ds = append(ds, config.Diagnostic{Span: w.block.Span, Msg: fmt.Sprintf("missing required attribute %s", a.Name), Hint: fmt.Sprintf("it is an argument of declare %q at %s", d.Label, a.Span)})
		}
	}
	x.report(w, ds)
	return given
}

// value adds a variable for the value of an expression.
func (x *planner) value(w *wanted) {
	w.kind = kindValue
	w.scope.SetLazy(w.name, w.id, func() config.Value { return w.x.Evaluate(w.from) })
	x.add(w)
}

// lookups returns the catalogs that resolve block names outside of imports.
func (e *Engine) lookups() []component.Catalog {
	if e.others != nil {
		return e.others
	}
	return e.o.Catalogs
}

// hasName reports whether a catalog knows a name.
func (e *Engine) hasName(name string) bool {
	for _, c := range e.lookups() {
		if _, ok := c.Lookup(name); ok {
			return true
		}
	}
	return false
}

// newFiles returns the paths of files that would define a component called
// name, in the form shown to people.
func (e *Engine) newFiles(name string) (paths []string) {
	for _, c := range e.lookups() {
		if c, ok := c.(component.Extensible); ok {
			if path := c.NewFile(name); path != "" {
				paths = append(paths, nearby(path))
			}
		}
	}
	return paths
}

// blockNames returns all valid block names.
func (e *Engine) blockNames() (names []string) {
	for _, c := range e.lookups() {
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

// collisionError says that two catalogs know a name.
type collisionError struct {
	name    string
	sources []string
}

func (c collisionError) Error() string {
	return fmt.Sprintf("component %s is built in and also a script (%s)", c.name, strings.Join(c.sources, ", "))
}

// register looks up a name in the catalogs. If there is an error, the
// registration is that of the first catalog if two know the name, and otherwise
// has no Build.
func (e *Engine) register(name string) (r component.Registration, err error) {
	found := false
	for _, c := range e.lookups() {
		next, ok := c.Lookup(name)
		switch {
		case ok && found:
			return r, collisionError{name, existing(next.Sources)}
		case ok:
			r, found, err = next, true, next.Err
		}
	}
	if !found { // it existed a moment ago
		err = fmt.Errorf("there is no component %s", name)
	}
	return unless(err, r, name), err
}

// lookup looks up a name in a folder's catalog.
func lookup(name string, c component.Catalog) (component.Registration, error) {
	r, ok := c.Lookup(name)
	if !ok { // it existed a moment ago
		r.Err = fmt.Errorf("there is no component %s", name)
	}
	return unless(r.Err, r, name), r.Err
}

// unless returns the usable part of a registration with an error.
func unless(err error, r component.Registration, name string) component.Registration {
	if err == nil {
		return r
	}
	return component.Registration{Name: name, Version: r.Version, Sources: r.Sources, Instead: r.Instead}
}
