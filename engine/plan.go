package engine

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/graph"
	"github.com/weir-run/weir/engine/pkg"
)

// plan is an expanded config with the current answers of the catalogs and the
// current exports: instances of declares and items of foreach are expanded, so
// that it is one flat graph.
type plan struct {
	cfg    *config.Config
	files  map[string]string // contents by path, including imports
	shown  map[string]string // the same without secrets, for messages; nil while there is no mistake
	graph  graph.Graph       // of everything that is evaluated
	flow   graph.Graph       // of components and services alone
	order  []string          // of graph
	wanted map[string]*wanted
	list   []*wanted // in config order
	broken []*wanted // with broken registrations, including those in declares only
	scope  *config.Scope
	// sources, by import, and loops, by foreach, are the inputs of the expansion.
	sources map[string]*source
	loops   map[string]*loop
	// watch are the paths of imports, folders those of import.scripts.
	watch   map[string]bool
	folders map[string]component.Catalog
	polled  map[string]*source // by path
	// remotes are the sources of remote imports, packages the catalogs of their scripts.
	remotes  map[string]*remoteSource
	packages map[string]component.Catalog
	lock     *pkg.Lock // weir.lock, if there are remote imports
	lockErr  error     // why it cannot be read
	// policy restricts imports and grants. It is never nil. verdicts are what it says about
	// local files and folders, by absolute path.
	policy   *pkg.Policy
	verdicts map[string]error
	// awaits are the nodes whose exports may be why a new version was left out.
	awaits map[string]bool
}

func newPlan(cfg *config.Config) *plan {
	return &plan{cfg: cfg, files: maps.Clone(cfg.Files), wanted: map[string]*wanted{},
		sources: map[string]*source{}, loops: map[string]*loop{}, watch: map[string]bool{},
		folders: map[string]component.Catalog{}, polled: map[string]*source{}, remotes: map[string]*remoteSource{}, packages: map[string]component.Catalog{}, verdicts: map[string]error{}}
}

// kind is the kind of a wanted.
type kind uint8

const (
	kindComponent kind = iota
	kindService
	kindValue    // an argument or an export of an instance
	kindItem     // the variable of a foreach
	kindInstance // of a declare
	kindForeach
	kindImport
)

// wanted is one block of a plan, or a value that blocks refer to.
type wanted struct {
	kind  kind
	id    string
	m     *module // where it is
	block *config.Block
	needs []string // what it refers to
	deps  []string // the components and services that it depends on, including through values

	// Of a component or a service:
	args    any                  // decoded with what is known; nil when reg is not usable
	refs    []config.ReceiverRef // in args
	failed  bool                 // there were errors in them
	certain bool                 // everything that they refer to was known, so they are final
	service *serviceNode
	reg     component.Registration
	recv    *flow.Receiver
	stats   *flow.Stats
	signal  signals // the signals that it accepts and sends
	// err is why reg is not the current registration of the catalogs, but the last
	// good one, or unusable if there never was one.
	err error
	// instead says that reg is not the version that the catalog has, but the one that
	// Registration.Instead returned.
	instead bool
	// mistake says what is wrong with the arguments since values changed.
	mistake error
	// waits is what the node waits for, without changes, although its arguments
	// are known.
	waits config.Pending
	// answer is closed when the catalog knows what the block's name means; nil if it
	// does.
	answer <-chan struct{}

	// Of a value: its expression, the scope of its evaluation, and its variable.
	x     *config.Expression
	from  *config.Scope
	scope *config.Scope
	name  string
	of    *wanted // the instance

	loop   *loop   // of a foreach and its items
	item   int     // of an item: which one
	source *source // of an import
	inner  *module // of an instance

	found config.Diagnostics // the mistakes in it
}

// usable reports whether there is a component to build.
func (w *wanted) usable() bool { return w.service != nil || w.reg.Build != nil }

// virtual reports whether it is neither a component nor a service.
func (w *wanted) virtual() bool { return w.kind != kindComponent && w.kind != kindService }

// values returns the scope in which the block's arguments are evaluated.
func (w *wanted) values() *config.Scope { return w.m.scope }

func (w *wanted) newArgs() any {
	if w.service != nil {
		return w.service.def.NewConfig()
	}
	return w.reg.NewArgs()
}

// module is an expanded body of blocks: the config itself, an instance of a
// declare, or an item of a foreach.
type module struct {
	id       string // "" of the config
	names    *names
	scope    *config.Scope
	blocks   []*config.Block
	decl     *declare // the declare that contains the body; nil for the config
	outer    *module  // contains its block; nil for the config
	block    *wanted  // the instance or foreach that it is of
	item     int      // which one, of a foreach
	chain    []*declare
	abstract bool // for checking only: its arguments are not known
	muted    bool // its nodes show no metrics
}

func (m *module) prefix() string {
	if m.id == "" {
		return ""
	}
	return m.id + "/"
}

// inItem reports whether it is, or is inside, an item of a foreach.
func (m *module) inItem() bool {
	for ; m != nil; m = m.outer {
		if m.block != nil && m.block.kind == kindForeach {
			return true
		}
	}
	return false
}

// brokenExports are the exports of a registration with an error that never was
// good: other nodes may wait for its receiver.
type brokenExports struct {
	Receiver *flow.Receiver `alloy:"receiver,attr"`
}

// Limits for the expansion of a config: instances multiply, and IDs are as long
// as instances are deep.
const (
	maxNodes = 100_000
	maxDepth = 32
)

// connect resolves all references and decodes all arguments. It creates the
// graph.
func (x *planner) connect() {
	p := x.p
	for _, w := range p.list {
		if w.kind != kindInstance {
			p.graph.Add(w.id)
		}
	}
	for _, w := range p.list {
		needs, ds := x.resolve(w)
		x.report(w, ds)
		for _, id := range needs {
			if n := p.wanted[id]; n != nil && n.kind != kindInstance {
				w.needs = append(w.needs, id)
				p.graph.Depend(w.id, id)
			}
		}
	}
	for _, w := range p.list {
		switch w.kind {
		case kindComponent, kindService:
			if w.err != nil {
				p.broken = append(p.broken, w)
			}
			if w.usable() {
				ds := x.decode(w)
				if ds.OnlyUnknown() {
					ds = append(ds, w.checked(x.e.storage, x.p.policy)...)
				}
				w.failed = ds.HasErrors()
				w.certain = !w.failed && w.block.Unready(w.values()) == nil
				// While the graph runs, a service's block is unchanged, and its references
				// affect only the service.
				if !x.mode.running || w.service == nil {
					x.report(w, ds)
				}
			}
		case kindValue:
			if ds, ok := errors.AsType[config.Diagnostics](w.scope.Variable(w.name).Err); ok {
				x.report(w, ds)
			}
		}
	}
	p.findSignals()
	for _, w := range p.list {
		x.report(w, p.checkSignals(w))
		x.checkContents(w)
	}
	if p.order = p.graph.Order(); len(p.order) < p.graph.Len() {
		for _, c := range p.graph.Cycles() {
			first := p.wanted[c.Path[0]]
			x.report(first, config.Diagnostics{{Span: first.span(), Msg: "blocks need each other: " + strings.Join(first.m.locals(c.Path), " → ")}})
		}
	}
	p.connectFlow()
}

// decode sets the arguments of a component or a service and the receivers in them, and
// returns what is wrong with them. Most blocks of a config stay as they are when it changes, and decoding is half of
// the work of a reload, so a block takes over the arguments that it had if they cannot be
// different.
func (x *planner) decode(w *wanted) config.Diagnostics {
	w.args = w.newArgs()
	if old := x.unchanged(w); old != nil {
		w.args, w.refs = old.args, old.refs
		return nil
	}
	ds := w.withOrigin(w.block.Decode(w.values(), w.args))
	w.refs = w.values().Receivers(w.args)
	return ds
}

// unchanged returns what a component was in the plan that runs if its block, which must
// have had no mistakes or warnings, would be decoded with the same result: it was written
// in the same way, and it refers to nothing but receivers that are the same.
func (x *planner) unchanged(w *wanted) *wanted {
	if x.e.plan == nil || x.mode.unknown || w.kind != kindComponent || w.m.id != "" || w.err != nil {
		return nil
	}
	old := x.e.plan.wanted[w.id]
	if old == nil || old.kind != kindComponent || !old.certain || old.err != nil || old.mistake != nil || len(old.found) > 0 ||
		old.reg.Name != w.reg.Name || old.reg.Version != w.reg.Version || !sameType(old.args, w.args) || !w.block.SameText(old.block) {
		return nil
	}
	if w.block.RefersTo(func(name string) bool {
		id, ok := strings.CutSuffix(name, ".receiver")
		now, before := x.p.wanted[id], x.e.plan.wanted[id]
		return !ok || now == nil || before == nil || now.kind != kindComponent || now.recv != before.recv
	}) {
		return nil
	}
	return old
}

// withOrigin says in mistakes about the names of arguments where the component
// declares them.
func (w *wanted) withOrigin(ds config.Diagnostics) config.Diagnostics {
	if w.reg.Origin == "" {
		return ds
	}
	for i := range ds {
		d := &ds[i]
		_, name, _ := strings.Cut(d.Msg, "attribute ")
		switch unknown := strings.HasPrefix(d.Msg, "unknown "); {
		case d.Severity != config.Error, !unknown && !strings.HasPrefix(d.Msg, "missing required "),
			!unknown && !strings.Contains(w.reg.Origin, " "+name+" (required)"), // an argument of every block, such as forward_to
			strings.HasPrefix(d.Hint, "it belongs "), strings.Contains(d.Msg, " script."):
		case d.Hint == "", strings.HasPrefix(d.Hint, w.reg.Name+" has "), strings.HasPrefix(d.Hint, "'weir components "):
			d.Hint = w.reg.Origin
		default:
			d.Hint += "; " + w.reg.Origin
		}
	}
	return ds
}

// checked returns the errors in the arguments that the registration and the
// arguments themselves report for the storage directory, which is "" if it is
// not known, and the grants that the policy denies.
func (w *wanted) checked(storage string, policy *pkg.Policy) (ds config.Diagnostics) {
	es := deniedGrants(policy, w.reg, w.args)
	if w.reg.Check != nil {
		es = append(es, w.reg.Check(w.args, func(name string) bool { return w.block.Settled(w.values(), name) })...)
	}
	if c, ok := w.args.(component.StorageChecker); ok && storage != "" {
		es = append(es, c.CheckStorage(storage)...)
	}
	for _, e := range es {
		d := config.Diagnostic{Span: w.block.SpanOf(e.Path), Msg: e.Error(), Detail: e.Detail}
		if e.Warning {
			d.Severity = config.Warning
		}
		ds = append(ds, d)
	}
	return ds
}

// position returns the position of the block for people.
func (w *wanted) position() string { return fmt.Sprintf("%s:%d", w.block.File, w.block.Line) }

func (w *wanted) span() config.Span {
	if w.x != nil {
		return w.x.Span
	}
	return w.block.Span
}

// locals returns IDs as written inside the module, if all are in it.
func (m *module) locals(ids []string) []string {
	var out []string
	for _, id := range ids {
		rest, ok := strings.CutPrefix(id, m.prefix())
		if !ok {
			return ids
		}
		out = append(out, rest)
	}
	return out
}

func (x *planner) resolve(w *wanted) ([]string, config.Diagnostics) {
	switch w.kind {
	case kindComponent, kindService:
		return w.block.Resolve(w.values())
	case kindValue:
		return w.x.Resolve(w.from)
	case kindItem:
		return []string{w.loop.id}, nil
	case kindForeach:
		if w.loop.f.Collection != nil {
			return w.loop.f.Collection.Resolve(w.values())
		}
	case kindImport:
		if w.source.im.Content != nil {
			return w.source.im.Content.Resolve(w.values())
		}
	}
	return nil, nil
}

// connectFlow determines the components that each block depends on, through
// values.
func (p *plan) connectFlow() {
	resolve := func(w *wanted) (ids []string) {
		add := func(id string) {
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
		for _, id := range w.needs {
			if n := p.wanted[id]; n.virtual() {
				for _, d := range n.deps {
					add(d)
				}
			} else {
				add(id)
			}
		}
		return ids
	}
	for _, w := range p.list {
		if !w.virtual() {
			p.flow.Add(w.id)
		}
	}
	for _, id := range p.order {
		w := p.wanted[id]
		if w.deps = resolve(w); w.virtual() {
			continue
		}
		for _, d := range w.deps {
			p.flow.Depend(id, d)
		}
	}
}

// onlyReceiver reports whether all references in the module are to the export
// receiver.
func (m *module) onlyReceiver(id string) bool {
	other := func(r config.Reference) bool {
		rest, ok := strings.CutPrefix(r.String(), id+".")
		return ok && rest != "receiver"
	}
	for _, b := range m.blocks {
		if slices.ContainsFunc(b.References(), other) {
			return false
		}
	}
	if m.decl != nil {
		return !slices.ContainsFunc(m.decl.Block.References(), other)
	}
	return true
}

// registered returns the files of the plan's registrations.
func (p *plan) registered() map[string]bool {
	files := map[string]bool{}
	for _, w := range p.list {
		for _, f := range w.reg.Sources {
			files[f] = true
		}
	}
	return files
}

// consumers returns the IDs of the components that need a service, sorted.
func (p *plan) consumers(service string) (ids []string) {
	for _, w := range p.list {
		if slices.Contains(w.reg.NeedsServices, service) {
			ids = append(ids, w.id)
		}
	}
	slices.Sort(ids)
	return ids
}
