package engine

import (
	"fmt"
	"strings"

	"github.com/weir-run/weir/engine/config"
)

// mistake is a diagnostic and what it is about.
type mistake struct {
	config.Diagnostic
	w *wanted // may be nil
	m *module
	// checked is set when it was found by looking at a declare or a template
	// alone.
	checked bool
	strange *declare // an import's, which may have it while nobody uses it
}

// saying is what a mistake is told from others by.
type saying struct {
	config.Span
	msg string
}

// report notes mistakes in something wanted. While the graph runs, those of an
// item of a foreach are its own.
func (x *planner) report(w *wanted, ds config.Diagnostics) {
	for _, d := range ds {
		x.found = append(x.found, mistake{Diagnostic: d, w: w, m: w.m})
	}
	w.found = append(w.found, ds...)
}

func (x *planner) mistaken(m *module, w *wanted, at config.Span, msg, hint string) {
	d := config.Diagnostic{Span: at, Msg: msg, Hint: hint}
	if w != nil {
		x.report(w, config.Diagnostics{d})
		return
	}
	x.found = append(x.found, mistake{Diagnostic: d, m: m})
}

// diagnostics returns what was found: what is wrong with a declare or a
// template once, where it is, and what is wrong with one of its instances at
// what makes it wrong.
func (x *planner) diagnostics() (ds config.Diagnostics) {
	fresh := !x.mode.running || x.freshSources()
	for _, m := range x.found {
		if m.checked && fresh {
			x.said[saying{m.Span, m.Msg}] = true
			if m.strange != nil && !m.strange.used {
				m.Severity = config.Warning
				m.Msg = fmt.Sprintf("declare %s cannot be used: %s", m.strange.Label, m.Msg)
			}
			ds = append(ds, m.Diagnostic)
		}
	}
	more := map[saying]int{} // index in ds
	count := map[saying]int{}
	for _, m := range x.found {
		if m.checked || x.said[saying{m.Span, m.Msg}] {
			continue
		}
		if x.ownMatter(m) {
			if !m.w.failed { // of arguments, which are evaluated again
				m.w.mistake = m.Diagnostic
			}
			continue
		}
		d := m.blame()
		key := saying{d.Span, d.Msg}
		if count[key]++; count[key] == 1 {
			more[key] = len(ds)
			ds = append(ds, d)
		}
	}
	for key, n := range count {
		if d := &ds[more[key]]; n > 1 && d.Detail != "" {
			d.Detail += fmt.Sprintf("\nand in %d more", n-1)
		}
	}
	return ds.Sort()
}

// ownMatter reports whether a mistake costs only what has it, which cannot follow
// what others export: the config has been accepted.
func (x *planner) ownMatter(m mistake) bool {
	if !x.mode.running || m.w == nil || m.Severity != config.Error || m.w.kind != kindComponent && m.w.kind != kindValue {
		return false
	}
	return x.mode.tolerant && !x.e.freshRegistration(m.w) || x.e.hasMistake(m) || m.m.inItem() && !x.fresh(m)
}

// hasMistake reports whether what runs has a mistake already, which values made.
func (e *Engine) hasMistake(m mistake) bool {
	var err error
	if n := e.nodes[m.w.id]; n != nil {
		err = n.failed
	} else if old := e.plan.wanted[m.w.id]; old != nil && old.kind == kindValue && m.w.kind == kindValue {
		err = old.scope.Variable(old.name).Err
	}
	return err != nil && strings.Contains(err.Error(), m.Msg)
}

// fresh reports whether a mistake may be that of a component's new version or
// an import's new content, which can be left out.
func (x *planner) fresh(m mistake) bool {
	if x.e.freshRegistration(m.w) {
		return true
	}
	return x.freshSources()
}

// freshSources reports whether an import has another content than in the plan
// that runs.
func (x *planner) freshSources() bool {
	for id, s := range x.p.sources {
		if x.e.freshSource(id, s) {
			return true
		}
	}
	return false
}

// blame returns the diagnostic of a mistake that one instance has: at the
// instance's argument that makes it, if one does.
func (m mistake) blame() config.Diagnostic {
	d := m.Diagnostic
	if m.m == nil || m.m.block == nil || m.w == nil || d.Severity != config.Error {
		return d
	}
	at, mod := d.Span, m.m
	mentions := func(name string) bool { return m.w.block.Mentions(at, name) }
	if m.w.kind == kindValue {
		mentions = m.w.x.Mentions
	}
	moved := ""
	for mod.outer != nil {
		if mod.block.kind == kindForeach {
			if v := mod.block.loop.f.Var; v != "" && mentions(v) {
				break // the item is to blame, which is a value and has no place
			}
			mod = mod.outer
			continue
		}
		arg := mod.argument(mentions)
		if arg == nil {
			break
		}
		if moved == "" {
			d.Detail = fmt.Sprintf("at %s, in %s", d.Span, m.w.id)
		}
		moved, at = arg.Name, arg.Span
		mentions = arg.Mentions
		mod = mod.outer
	}
	if moved != "" {
		d.Span, d.Hint = at, ""
		d.Msg = fmt.Sprintf("argument %s does not fit: %s", moved, d.Msg)
	} else if d.Detail == "" {
		d.Detail = "in " + m.m.id
	}
	return d
}

// argument returns the argument of an instance that something in it mentions,
// nil without or when it has none of that name.
func (m *module) argument(mentions func(name string) bool) *config.Expression {
	given, _ := m.block.block.Attributes()
	for _, a := range m.decl.Arguments {
		if given[a.Name] != nil && mentions("argument."+a.Name) {
			return given[a.Name]
		}
	}
	return nil
}
