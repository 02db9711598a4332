package engine

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
)

// names are the block names that are valid in a body in addition to components:
// declares and imports. Inner bodies see the names of the bodies around them.
type names struct {
	parent   *names
	dir      string // of the file, absolute: module_path
	shown    string // dir as messages have it
	declares map[string]*declare
	imports  map[string]*imported
	broken   map[string]bool // declares and namespaces that exist but have syntax errors
	strange  bool            // they are an import's
	chain    []string        // files that import each other, down to these
}

// declare is a declare with its position.
type declare struct {
	*config.Declare
	in        *names // what its body sees
	constants *config.Scope
	strange   bool
	used      bool
	uses      []use
}

type use struct {
	d *declare
	b *config.Block
}

// imported is a namespace of an import.
type imported struct {
	block   *config.Block
	names   *names            // of modules
	catalog component.Catalog // of scripts
	refused error             // why new versions of the scripts in catalog must not run
	pending config.Pending    // there is nothing yet
	broken  bool              // there is a mistake in it
}

// newNames returns an empty body. shown is its directory; "" is that of the
// parent.
func newNames(parent *names, shown string) *names {
	n := &names{parent: parent, shown: shown}
	if parent != nil {
		n.strange, n.chain = parent.strange, parent.chain
	}
	if shown == "" && parent != nil {
		n.shown, n.dir = parent.shown, parent.dir
		return n
	}
	n.dir = shown
	if abs, err := filepath.Abs(shown); err == nil {
		n.dir = abs
	}
	return n
}

// isBroken registers the IDs of blocks with syntax errors.
func (n *names) isBroken(ids []string) {
	for _, id := range ids {
		for _, prefix := range []string{"declare.", "import.file.", "import.git.", "import.http.", "import.oci.", "import.scripts.", "import.string."} {
			if name, ok := strings.CutPrefix(id, prefix); ok {
				if n.broken == nil {
					n.broken = map[string]bool{}
				}
				n.broken[name] = true
			}
		}
	}
}

// meaning is the meaning of a block's name. The zero value means that it is
// unknown in the body.
type meaning struct {
	declare *declare
	catalog component.Catalog
	refused error          // why new versions in the catalog must not run
	pending config.Pending // it is an import's that is not there yet
	broken  bool           // there is a mistake in it
}

// find returns the meaning of a block's name in a body.
func (n *names) find(name string) meaning {
	space, rest, dotted := strings.Cut(name, ".")
	for ; n != nil; n = n.parent {
		if d := n.declares[name]; d != nil {
			return meaning{declare: d}
		}
		if n.broken[space] {
			return meaning{broken: true}
		}
		im := n.imports[space]
		switch {
		case im == nil || !dotted:
			continue
		case im.broken:
			return meaning{broken: true}
		case im.pending != "":
			return meaning{pending: im.pending}
		}
		if im.names != nil { // what is remote can have both
			if d := im.names.declares[rest]; d != nil {
				return meaning{declare: d}
			}
			if im.names.broken[rest] {
				return meaning{broken: true}
			}
		}
		if im.catalog != nil {
			if _, ok := im.catalog.Lookup(name); ok {
				return meaning{catalog: im.catalog, refused: im.refused}
			}
		}
		return meaning{}
	}
	return meaning{}
}

// catalogs returns those of imports that could know a block's name.
func (n *names) catalogs(name string) (out []component.Catalog) {
	space, _, _ := strings.Cut(name, ".")
	for ; n != nil; n = n.parent {
		if im := n.imports[space]; im != nil && im.catalog != nil {
			out = append(out, im.catalog)
		}
	}
	return out
}

// all returns the names that find knows.
func (n *names) all() (out []string) {
	for ; n != nil; n = n.parent {
		for name := range n.declares {
			out = append(out, name)
		}
		for space, im := range n.imports {
			if im.catalog != nil {
				out = append(out, im.catalog.Names()...)
			}
			if im.names != nil {
				for name := range im.names.declares {
					out = append(out, space+"."+name)
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

// declare registers a declare, which is expanded where it is used.
func (x *planner) declare(m *module, b *config.Block) {
	w := &wanted{m: m, block: b}
	c := x.parsed[b]
	first := c == nil
	if first {
		var ds config.Diagnostics
		c, ds = b.Declare()
		x.parsed[b] = c
		x.report(w, ds)
	}
	if b.Label == "" {
		return
	}
	d := &declare{Declare: c, in: m.names, constants: m.scope, strange: m.names.strange}
	if m.names.declares == nil {
		m.names.declares = map[string]*declare{}
	}
	m.names.declares[b.Label] = d
	switch {
	case !first:
		return
	case d.strange:
		x.strange = append(x.strange, d)
	default:
		x.checks = append(x.checks, func() { x.checkDeclare(d) })
	}
	x.report(w, c.CheckDefaults(m.scope))
	x.collide(w, b.Label)
}

// signature returns a hint with the arguments of a declare.
func (d *declare) signature() string {
	if len(d.Arguments) == 0 {
		return fmt.Sprintf("declare %q at %s takes no arguments", d.Label, d.Span)
	}
	return fmt.Sprintf("declare %q at %s takes %s", d.Label, d.Span, strings.Join(d.ArgumentNames(), ", "))
}

// collide reports a name of a declare or a namespace that is already in use.
func (x *planner) collide(w *wanted, name string) {
	b, e := w.block, x.e
	if x.mode.running {
		return // the existing name was defined later
	}
	what := fmt.Sprintf("declare %q", name)
	if b.IsImport() {
		what = fmt.Sprintf("namespace %q", name)
	}
	if im := w.m.names.imports[name]; im != nil && im.block != b {
		x.mistaken(w.m, w, b.Span, fmt.Sprintf("%s is the name of an import, too", what), fmt.Sprintf("first at %s; give one of them another label", im.block.Span))
		return
	}
	if d := w.m.names.declares[name]; d != nil && d.Block != b {
		x.mistaken(w.m, w, b.Span, fmt.Sprintf("%s is the name of a declare, too", what), fmt.Sprintf("first at %s; give one of them another label", d.Span))
		return
	}
	if config.IsBlock(name) {
		x.mistaken(w.m, w, b.Span, fmt.Sprintf("%s has the name of a block that weir knows", what), "give it another label")
		return
	}
	for _, s := range e.services {
		if s.def.Block == name {
			x.mistaken(w.m, w, b.Span, fmt.Sprintf("%s has the name of a block that weir knows", what), "give it another label")
			return
		}
	}
	for _, c := range e.lookups() {
		for _, known := range c.Names() {
			space, _, _ := strings.Cut(known, ".")
			if known != name && (!b.IsImport() || space != name) {
				continue
			}
			is := "built in"
			if r, _ := c.Lookup(known); len(existing(r.Sources)) > 0 {
				is = "a script (" + nearby(existing(r.Sources)[0]) + ")"
			}
			msg := fmt.Sprintf("%s is the name of a component, too: %s is %s", what, known, is)
			if known != name {
				msg = fmt.Sprintf("%s is that of components, too: %s is %s", what, known, is)
			}
			x.mistaken(w.m, w, b.Span, msg, "give it another label")
			return
		}
	}
}

// check checks declares and templates by themselves, whether or not they are
// used.
func (x *planner) check() {
	for len(x.checks) > 0 {
		todo := x.checks
		x.checks = nil
		for _, f := range todo {
			f()
		}
	}
	// An import's declares are looked at after all that may use them.
	for {
		i := slices.IndexFunc(x.strange, func(d *declare) bool { return d.used })
		if i < 0 {
			break
		}
		d := x.strange[i]
		x.strange = slices.Delete(x.strange, i, i+1)
		x.checkDeclare(d)
	}
	for _, d := range x.strange {
		x.checkDeclare(d)
	}
	x.recursion()
}

// checkDeclare checks a declare by itself, for any arguments.
func (x *planner) checkDeclare(d *declare) {
	y := x.aside()
	id := "declare." + d.Label
	m := &module{id: id, blocks: d.Blocks, decl: d, abstract: true}
	m.scope = x.p.scope.Apart(id + "/")
	m.names = newNames(d.in, "")
	m.scope.SetVariable("module_path", "", config.Value{V: m.names.dir})
	for _, a := range d.Arguments {
		m.scope.SetObject("argument."+a.Name, []string{"value"})
		m.scope.SetVariable("argument."+a.Name+".value", "", config.Value{Err: config.ErrUnknown})
	}
	for _, v := range d.Exports {
		y.value(&wanted{id: id + "/export." + v.Name, m: m, x: v, from: m.scope, scope: x.p.scope.Apart(""), name: v.Name, block: d.Block})
	}
	x.checkBody(y, m, d.Blocks, d)
}

// aside returns a planner for checking only.
func (x *planner) aside() *planner {
	y := &planner{e: x.e, p: newPlan(x.p.cfg), mode: x.mode, parsed: map[*config.Block]*config.Declare{}, files: x.files}
	y.p.scope, y.p.lock, y.p.lockErr, y.p.policy, y.p.verdicts = x.p.scope, x.p.lock, x.p.lockErr, x.p.policy, x.p.verdicts
	return y
}

// checkBody expands a body that is not used and copies its errors.
func (x *planner) checkBody(y *planner, m *module, blocks []*config.Block, strange *declare) {
	y.body(m, blocks)
	y.finish()
	y.connect()
	for _, f := range y.found {
		f.checked = true
		if f.strange = strange; strange != nil && !strange.strange {
			f.strange = nil
		}
		x.found = append(x.found, f)
	}
	maps.Copy(x.p.files, y.p.files)
	maps.Copy(x.p.watch, y.p.watch)
	x.p.broken = append(x.p.broken, y.p.broken...)
	x.checks = append(x.checks, y.checks...)
	x.strange = append(x.strange, y.strange...)
	x.seen = append(x.seen, m.decl)
}

// recursion reports declares that depend on themselves, each cycle once.
func (x *planner) recursion() {
	reported := map[*declare]bool{}
	for _, start := range x.seen {
		if start == nil || reported[start] {
			continue
		}
		path := circle(start, start, map[*declare]bool{})
		if path == nil {
			continue
		}
		var names []string
		for _, u := range path {
			reported[u.d] = true
			names = append(names, u.d.Label)
		}
		d := config.Diagnostic{Span: path[0].b.Span, Msg: fmt.Sprintf("declare %s needs itself: %s", start.Label, strings.Join(append([]string{start.Label}, names...), " → "))}
		x.found = append(x.found, mistake{Diagnostic: d, checked: true})
	}
}

// circle returns a path from a declare to another through the declares that
// they use.
func circle(from, to *declare, seen map[*declare]bool) []use {
	for _, u := range from.uses {
		if u.d == to {
			return []use{u}
		}
		if seen[u.d] {
			continue
		}
		seen[u.d] = true
		if rest := circle(u.d, to, seen); rest != nil {
			return append([]use{u}, rest...)
		}
	}
	return nil
}
