package engine

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/service"
)

// PreviewReload returns the changes that a reload would make with the config at path, ""
// for the config that runs, and makes none. No tests are run. The error is a
// config.Diagnostics if the config would be refused.
func (e *Engine) PreviewReload(ctx context.Context, path string) (service.Preview, error) {
	found := make(chan service.Preview, 1)
	err := e.runOnWorker(ctx, func() error {
		if path == "" {
			path = *e.path.Load()
		}
		e.refreshCatalogs(nil)
		cfg, ds := e.readConfig(path)
		p, more := e.makePlan(cfg, planMode{})
		if err := append(append(ds, more...), e.checkServices(p)...).Sort().Err(); err != nil {
			return err
		}
		found <- e.preview(p)
		return nil
	})
	if err != nil {
		return service.Preview{}, err
	}
	return <-found, nil
}

// preview compares a plan without mistakes with the graph that runs.
func (e *Engine) preview(p *plan) service.Preview {
	out := service.Preview{Nodes: []service.PreviewNode{}}
	touched := map[string]bool{}
	for _, id := range p.order {
		w := p.wanted[id]
		if w.kind != kindComponent {
			continue
		}
		n := service.PreviewNode{ID: id, To: w.reg.Version}
		running := e.nodes[id]
		switch {
		case running == nil:
			n.Action, n.Why = "added", "its block is new: "+w.position()
		case w.err != nil:
			n.Action, n.Why = "refused", w.err.Error()
		case w.answer != nil:
			n.Action, n.Why = "unknown", "its new version is still being compiled"
		case running.current == nil:
			n.Action, n.Why = "rebuilt", "it does not run"
		default:
			n.From = running.current.reg.Version
			n.Action, n.Why = w.previewChange(running.current, touched)
		}
		if n.Action == "" {
			out.Untouched++
			continue
		}
		touched[id] = true
		out.Nodes = append(out.Nodes, n)
	}
	for _, w := range e.plan.list {
		if now := p.wanted[w.id]; w.kind == kindComponent && e.nodes[w.id] != nil && (now == nil || now.kind != kindComponent) {
			out.Nodes = append(out.Nodes, service.PreviewNode{ID: w.id, Action: "removed", From: w.reg.Version, Why: "its block is gone: " + w.position()})
		}
	}
	return out
}

// previewChange returns what a reload does to a node that runs, and why; "" if nothing.
// touched are the nodes that the reload changes.
func (w *wanted) previewChange(g *instance, touched map[string]bool) (action, why string) {
	if w.reg.Version != g.reg.Version {
		why = fmt.Sprintf("version %s → %s", component.ShortVersion(g.reg.Version), component.ShortVersion(w.reg.Version))
		if len(w.reg.Sources) > 0 {
			why = nearby(w.reg.Sources[0]) + " or a file that it uses changed: " + why
		}
		return "rebuilt", why
	}
	if !w.certain || equal(g.args, w.args) {
		// A receiver stays the same when its node changes. Other exports may not.
		sends := w.sendsTo()
		if i := slices.IndexFunc(w.deps, func(id string) bool { return touched[id] && !slices.Contains(sends, id) }); i >= 0 {
			return "unknown", "it follows the exports of " + w.deps[i]
		}
		return "", ""
	}
	action = "rebuilt"
	if _, ok := g.c.(component.Updater); ok {
		action = "updated"
	}
	return action, "arguments changed: " + strings.Join(changedArguments(reflect.ValueOf(g.args), reflect.ValueOf(w.args)), ", ")
}

// changedArguments returns the names of the arguments in which two pointers to structs of
// arguments, or two such structs, differ.
func changedArguments(a, b reflect.Value) (names []string) {
	a, b = reflect.Indirect(a), reflect.Indirect(b)
	if a.Kind() != reflect.Struct || a.Type() != b.Type() {
		return nil
	}
	for i := range a.NumField() {
		if equalValues(a.Field(i), b.Field(i), 0) {
			continue
		}
		switch name, _, _ := strings.Cut(a.Type().Field(i).Tag.Get("alloy"), ","); name {
		case "":
			names = append(names, changedArguments(a.Field(i), b.Field(i))...)
		default:
			names = append(names, name)
		}
	}
	return names
}
