package engine

import (
	"errors"
	"fmt"
	"strings"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
)

// mistake is a diagnostic with its cause.
type mistake struct {
	config.Diagnostic
	w *wanted // may be nil
	m *module
	// checked means that it was found by checking a declare or a template alone.
	checked bool
	strange *declare // of an import; ignored while the declare is not used
}

// saying identifies a mistake.
type saying struct {
	config.Span
	msg string
}

// report adds the errors in a block. While the graph runs, the errors in an
// item of a foreach affect only that item.
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

// diagnostics returns the errors that were found: an error in a declare or a
// template once, where it is, and an error in one of its instances at its
// cause.
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

// ownMatter reports whether an error affects only its block, which cannot
// follow new exports, because the config has been accepted.
func (x *planner) ownMatter(m mistake) bool {
	if !x.mode.running || m.w == nil || m.Severity != config.Error || m.w.kind != kindComponent && m.w.kind != kindValue {
		return false
	}
	return x.mode.tolerant && !x.e.freshRegistration(m.w) || x.e.hasMistake(m) || m.m.inItem() && !x.fresh(m)
}

// hasMistake reports whether the running graph already has an error, which
// values caused. An error because of which a version was refused is not one.
func (e *Engine) hasMistake(m mistake) bool {
	var err error
	if n := e.nodes[m.w.id]; n != nil {
		if r, ok := errors.AsType[*refusedError](n.failed); !ok || r.step != component.StepCheck {
			err = n.failed
		}
	} else if old := e.plan.wanted[m.w.id]; old != nil && old.kind == kindValue && m.w.kind == kindValue {
		err = old.scope.Variable(old.name).Err
	}
	return err != nil && strings.Contains(err.Error(), m.Msg)
}

// fresh reports whether an error may be caused by a component's new version or
// an import's new content, which can be left out.
func (x *planner) fresh(m mistake) bool {
	if x.e.freshRegistration(m.w) {
		return true
	}
	return x.freshSources()
}

// freshSources reports whether the content of an import differs from the
// running plan.
func (x *planner) freshSources() bool {
	for id, s := range x.p.sources {
		if x.e.freshSource(id, s) {
			return true
		}
	}
	return false
}

// blame returns the diagnostic of an error in one instance, at the instance's
// argument that causes it, if any.
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

// argument returns the argument of an instance that an expression mentions, or
// nil if there is none.
func (m *module) argument(mentions func(name string) bool) *config.Expression {
	given, _ := m.block.block.Attributes()
	for _, a := range m.decl.Arguments {
		if given[a.Name] != nil && mentions("argument."+a.Name) {
			return given[a.Name]
		}
	}
	return nil
}
