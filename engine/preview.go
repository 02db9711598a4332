package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/files"
	"github.com/weir-run/weir/engine/service"
)

// previewTime limits how long a preview waits for new versions to be compiled and
// compared.
const previewTime = 30 * time.Second

// PreviewReload returns the changes that a reload would make with the config at path and
// the scripts in a folder, "" for those that run, and makes none. No tests are run. New
// versions are compared with the running ones if their registrations can do that. The
// error is a config.Diagnostics if the config would be refused.
func (e *Engine) PreviewReload(ctx context.Context, path, scripts string) (service.Preview, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, previewTime, fmt.Errorf("the preview took longer than %s", previewTime))
	defer cancel()
	catalogs, err := e.catalogsWith(scripts)
	if err != nil {
		return service.Preview{}, err
	}
	for {
		var v preview
		err := e.runOnWorker(ctx, func() (err error) {
			e.others = catalogs
			defer func() { e.others = nil }()
			v, err = e.previewReload(ctx, path)
			return err
		})
		if err != nil {
			return service.Preview{}, err
		}
		if v.awaitCompiled(ctx) {
			return v.compare(ctx), nil
		}
	}
}

// catalogsWith returns the catalogs with the scripts in another folder; nil if that is "".
func (e *Engine) catalogsWith(scripts string) ([]component.Catalog, error) {
	if scripts == "" {
		return nil, nil
	}
	if e.o.Scripts == nil {
		return nil, errors.New("this program has no scripts")
	}
	if _, err := files.StatSoon(scripts); err != nil {
		return nil, fmt.Errorf("cannot read scripts: %w", err)
	}
	other, err := e.o.Scripts("", scripts)
	if err != nil {
		return nil, err
	}
	if c, ok := other.(component.Changing); ok {
		c.OnChange(func([]string) {}) // so that the worker does not wait for compilations
	}
	catalogs := slices.Clone(e.o.Catalogs)
	for i, c := range catalogs {
		if _, ok := c.(component.Extensible); ok {
			catalogs[i] = other
		}
	}
	return catalogs, nil
}

// preview is a preview of a reload that the worker has made.
type preview struct {
	service.Preview
	comparisons []comparison
	compiling   []<-chan struct{} // closed when new versions are compiled
}

// comparison is the comparison of the new version of a node with the running one.
type comparison struct {
	node int // in the preview
	reg  component.Registration
	t    component.Trial
}

// previewReload implements PreviewReload on the worker.
func (e *Engine) previewReload(ctx context.Context, path string) (preview, error) {
	if ctx.Err() != nil {
		return preview{}, context.Cause(ctx) // nobody waits for it
	}
	if path == "" {
		path = *e.path.Load()
	}
	e.refreshCatalogs(nil)
	cfg, ds := e.readConfig(path)
	p, more := e.makePlan(cfg, planMode{})
	defer maps.DeleteFunc(e.folders, func(key string, _ component.Catalog) bool { return e.plan.folders[key] == nil })
	if err := e.mask(p, append(append(ds, more...), e.checkServices(p)...).Sort()).Err(); err != nil {
		return preview{}, err
	}
	return e.preview(p), nil
}

// preview compares a plan without mistakes with the graph that runs.
func (e *Engine) preview(p *plan) preview {
	out := preview{Preview: service.Preview{Nodes: []service.PreviewNode{}}}
	touched := map[string]bool{}
	for _, id := range p.order {
		w := p.wanted[id]
		if w.kind != kindComponent {
			continue
		}
		n := service.PreviewNode{ID: id, To: w.reg.Version}
		running, t := e.nodes[id], e.tried[id]
		if running != nil && running.current != nil {
			n.From = running.current.reg.Version
		}
		switch {
		case running == nil:
			n.Action, n.Why = "added", "its block is new: "+w.position()
		case w.err != nil:
			n.Action, n.Why = "refused", w.err.Error()
		case w.answer != nil:
			n.Action, n.Why = "unknown", "its new version is still being compiled"
			out.compiling = append(out.compiling, w.answer)
		case n.From != n.To && t != nil && t.of(w) && !t.ended():
			n.Action, n.Why = "in progress", fmt.Sprintf("version %s → %s is being tried", component.ShortVersion(n.From), component.ShortVersion(n.To))
			if now := e.history.trialOf(id); now != nil {
				n.Why += " (step " + now.Step + ")"
			}
		case n.From != n.To && t != nil && t.of(w) && t.rejection != nil:
			n.Action, n.Why = "refused", newRefused(running, n.To, t.rejection.Step, t.rejection.Err).Error()
		case running.current == nil:
			n.Action, n.Why = "rebuilt", "it does not run"
		default:
			n.Action, n.Why = w.previewChange(running.current, touched)
		}
		if n.Action == "" {
			out.Untouched++
			continue
		}
		if w.reg.Compare != nil && w.certain && n.From != n.To && running != nil && running.current != nil {
			out.comparisons = append(out.comparisons, comparison{len(out.Nodes), w.reg, component.Trial{Node: id, Args: w.args, Running: running.current.c}})
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

// awaitCompiled waits for versions that are being compiled, and reports whether there
// are none. When ctx ends, the preview is as good as it can be.
func (v *preview) awaitCompiled(ctx context.Context) bool {
	for _, done := range v.compiling {
		select {
		case <-done:
		case <-ctx.Done():
			return true
		}
	}
	return len(v.compiling) == 0
}

// compare adds how new versions differ from the running ones.
func (v *preview) compare(ctx context.Context) service.Preview {
	var wg sync.WaitGroup
	for _, c := range v.comparisons {
		n := &v.Nodes[c.node]
		wg.Go(func() {
			err := guard(func() error {
				difference, rejection := c.reg.Compare(ctx, c.t)
				if difference != nil {
					n.Shadow = difference
				}
				if rejection != nil && n.Action != "refused" {
					refused := refusedError{running: n.From, version: n.To, step: rejection.Step, err: rejection.Err}
					n.Action, n.Why = "refused", refused.Error()
				}
				return nil
			})
			if err != nil {
				n.Why += "; cannot compare the versions: " + err.Error()
			}
		})
	}
	wg.Wait()
	return v.Preview
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
