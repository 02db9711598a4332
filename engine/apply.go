package engine

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/service"
	"github.com/weir-run/weir/engine/stall"
)

// work is the worker: only it changes the graph. It returns when ctx has ended
// and its current call into a component, if any, has returned.
func (e *Engine) work(ctx context.Context, cfg *config.Config, p *plan) {
	start := time.Now()
	var op stall.Op
	defer op.End()
	e.watch.Start(&op, "the start", workerLimit)
	c := e.swap(p)
	for range maxRounds {
		if !e.propagate(nil) {
			break
		}
	}
	e.phase.CompareAndSwap(phaseStarting, phaseReady)
	c.first = true
	what := "started " + configName(cfg.Path)
	if r := e.instead; r != nil {
		e.refuse("cannot run "+configName(cfg.Path), r.remark(), start, r.err, r.files)
		what = "started the last good version of " + configName(cfg.Path)
	}
	e.report(what, start, c)
	e.applyCatalogChanges()
	stopWatch := e.startWatch(ctx)
	defer stopWatch()
	op.End()
	rest := e.clock.NewTimer(0)
	defer rest.Stop()
	for ctx.Err() == nil {
		e.watch.Start(&op, "a change of the graph", workerLimit)
		e.letGo(e.box.takeParted())
		wait := e.pace.next.Sub(e.clock.Now())
		spread := wait <= 0 && e.propagate(nil) // one round: exports that never stop must not delay jobs
		e.change = newChange(service.TriggerGraph, nil)
		job := e.box.next()
		if job != nil {
			job()
		}
		op.End()
		if job != nil || spread {
			continue
		}
		if calm := e.endChurn(); wait <= 0 || calm > 0 && calm < wait {
			wait = calm
		}
		var rested <-chan time.Time
		if wait > 0 {
			rest.Reset(wait)
			rested = rest.C()
		}
		select {
		case <-e.box.signal:
		case <-rested:
		case <-ctx.Done():
		}
	}
	for _, n := range e.nodes {
		n.cancelTry()
	}
	for _, n := range e.parting {
		n.cancelTry()
	}
}

// run applies a plan without errors to the running graph, and then the plans
// that follow from it, because exports may change which nodes there are.
func (e *Engine) run(p *plan) counts {
	c := e.commit(p)
	for range maxRounds {
		if !e.stale || e.removing.len() > maxRemoving {
			break
		}
		if p = e.planExports(); p == nil {
			break
		}
		c.add(e.commit(p))
	}
	e.keepGood()
	for _, id := range c.results[failed] {
		if n := e.nodes[id]; n == nil || n.failed == nil {
			c.results[failed] = slices.DeleteFunc(slices.Clone(c.results[failed]), func(s string) bool { return s == id })
		}
	}
	return c
}

// swap is run as a step of a change.
func (e *Engine) swap(p *plan) counts {
	defer e.change.swapping()()
	return e.run(p)
}

// recordTrials records a change that only began trials.
func (e *Engine) recordTrials(c counts, start time.Time) {
	if e.change.began {
		e.record(c, "in progress", "", time.Since(start))
	}
}

// maxRounds is the maximum number of consecutive plans that follow from a
// change.
const maxRounds = 20

// planExports plans the config with the current exports of the nodes. It
// returns nil if that is not possible.
func (e *Engine) planExports() *plan {
	e.stale = false
	p, err := e.planRunning(true)
	if err != nil {
		e.log.Error("cannot follow what components export, the graph stays", "err", err)
		return nil
	}
	return p
}

// commit applies a plan to the running graph. The plan has no errors that can
// be found before it runs.
func (e *Engine) commit(p *plan) counts {
	e.committing, e.stale, e.broken = true, false, nil
	// Many commits may follow each other. A node that the plan has is called back: the
	// arguments in the plan have its receiver.
	e.letGo(slices.DeleteFunc(e.box.takeParted(), func(n *node) bool {
		w := p.wanted[n.id]
		return w != nil && w.recv == n.recv
	}))
	clear(e.behind)
	defer func() { e.committing = false }()
	c := counts{results: map[result][]string{}}
	old := e.plan
	e.plan = p
	e.forgetLeft()
	var gone []*node
	for id, n := range e.nodes {
		if w := p.wanted[id]; w == nil || w.kind != kindComponent {
			gone = append(gone, n)
			if n.current != nil {
				e.change.swaps[id] = swapped{from: n.current.reg.Version}
			}
			delete(e.nodes, id)
			c.removed = append(c.removed, id)
		}
	}
	slices.Sort(c.removed)
	for _, id := range p.order {
		w := p.wanted[id]
		if w.kind != kindComponent {
			continue
		}
		c.nodes++
		if e.nodes[id] == nil {
			if e.nodes[id] = e.callBack(id); e.nodes[id] == nil {
				e.nodes[id] = newNode(e, w)
			}
			c.added = append(c.added, id)
		}
	}
	e.publish()
	changed := map[string]bool{} // since the plan was made
	for _, id := range p.order {
		if e.phase.Load() == phaseStopping {
			break // nodes that were built in the meantime would not be needed
		}
		w := p.wanted[id]
		same := !slices.ContainsFunc(w.needs, func(id string) bool { return changed[id] })
		switch w.kind {
		case kindComponent:
		case kindService:
			e.reconcileService(w)
			continue
		default:
			if same && w.isEvaluated() {
				e.show(w)
			} else if e.evaluate(w) {
				changed[id] = true
			}
			continue
		}
		n := e.nodes[id]
		var args any
		if same && w.certain {
			args = w.args
		}
		r := n.reconcile(w, args, false)
		c.results[r] = append(c.results[r], id)
		e.box.takeMark(id) // their dependants come later in the order
		if e.exported(n) {
			changed[id] = true
			if p.awaits[id] {
				e.stale = true
			}
		}
	}
	e.resetServices(p)
	if len(gone) > 0 {
		e.remove(gone, &old.flow)
	}
	for _, w := range p.list {
		if w.kind == kindInstance {
			e.show(w)
		}
	}
	maps.DeleteFunc(e.folders, func(dir string, _ component.Catalog) bool { return p.folders[dir] == nil })
	maps.DeleteFunc(e.packages, func(dir string, _ component.Catalog) bool { return p.packages[dir] == nil })
	maps.DeleteFunc(e.heads, func(id string, _ *head) bool { return p.wanted[id] == nil })
	c.broken = e.broken
	e.awaitAnswers(p)
	e.publish()
	e.followFiles()
	if e.phase.Load() == phaseReady {
		e.applyCatalogChanges()
	}
	return c
}

// applyCatalogChanges processes the changes that catalogs reported. At the
// start, they wait until the catalogs know the answers.
func (e *Engine) applyCatalogChanges() {
	for _, c := range e.catalogs() {
		e.applyChangesOf(c)
	}
	for _, c := range e.packages {
		e.applyChangesOf(c)
	}
}

func (e *Engine) applyChangesOf(c component.Catalog) {
	if c, ok := c.(component.Changing); ok {
		c.OnChange(e.postFilesChanged)
	}
}

// propagate re-evaluates the dependants of nodes with new exports, in the order
// of the graph. It returns false if there are none. A burst of exports is
// evaluated once; an evaluation that changes nothing ends there. Unless c is nil,
// propagate adds the results to it.
func (e *Engine) propagate(c *counts) bool {
	start := e.clock.Now()
	dirty := e.box.takeDirty()
	changed := map[string]bool{}
	for _, id := range dirty {
		if n := e.nodes[id]; n != nil {
			changed[id] = true
			e.exported(n)
			if e.plan.awaits[id] {
				e.stale = true
			}
		}
	}
	for _, id := range e.plan.graph.Affected(slices.Collect(maps.Keys(changed))...) {
		w := e.plan.wanted[id]
		if !slices.ContainsFunc(w.needs, func(d string) bool { return changed[d] }) {
			continue
		}
		if e.phase.Load() == phaseStopping {
			break
		}
		switch w.kind {
		case kindComponent:
		case kindService:
			before := w.service.args
			e.reconcileService(w)
			if c != nil && !equal(before, w.service.args) {
				c.add(counts{results: map[result][]string{updated: {w.service.def.Name}}, nodes: c.nodes})
			}
			e.followFiles()
			continue
		default:
			if e.evaluate(w) {
				changed[id] = true
			}
			continue
		}
		n := e.nodes[id]
		r := n.reconcile(w, nil, false)
		if c != nil {
			c.add(counts{results: map[result][]string{r: {id}}, nodes: c.nodes})
		}
		if e.box.takeMark(id) {
			changed[id] = true
			e.exported(n)
		}
	}
	followed := e.stale && e.removing.len() <= maxRemoving
	switch before := e.plan.collections(); {
	case followed:
		e.followExports()
		e.churned(before, e.box.marked())
	case e.stale:
		for id := range e.behind {
			e.markStuck(e.plan.wanted[id])
		}
	}
	if len(dirty) > 0 || followed {
		e.pace.followed(start, e.clock.Now(), e.box.marked())
	}
	return len(dirty) > 0 || followed
}

// followExports plans and commits again after exports changed which nodes there
// are.
func (e *Engine) followExports() {
	start := time.Now()
	p := e.planExports()
	if p == nil {
		return
	}
	before := e.failures()
	c := e.run(p)
	c.results[failed] = e.failedSince(before, c)
	if c.changed() || len(c.broken) > 0 {
		e.report("", start, c)
	}
}

// reloadConfig implements Reload on the worker.
func (e *Engine) reloadConfig() error {
	start := time.Now()
	e.change = newChange(service.TriggerRequest, nil)
	e.lastErr = "" // who asks is answered
	e.refreshCatalogs(nil)
	return e.applyConfig(start, true)
}

// applyConfig reads the config and applies it. asked is false if a changed file
// caused it; in that case, nothing is announced if nothing changed.
func (e *Engine) applyConfig(start time.Time, asked bool) error {
	path := *e.path.Load()
	planned := e.change.planning()
	_, p, err := e.load(e.hard, path)
	planned()
	if err != nil && p.undecided() {
		e.awaitConfig(p, start)
		return nil
	}
	e.undecided = false
	if err != nil {
		e.rejectConfig(p, err)
		e.followFiles()
		e.refuse("cannot reload "+configName(path), "nothing was changed", start, err, p.shown)
		return err
	}
	e.refused, e.missed, e.lacking, e.instead = false, nil, nil, nil
	e.mistake.Store(nil)
	e.metrics.current.Set(1)
	same := maps.Equal(p.files, e.plan.files)
	c := e.swap(p)
	if same && !asked && !c.changed() && e.lastErr == "" {
		e.recordTrials(c, start)
		return nil
	}
	e.lastErr = ""
	e.report("reloaded "+configName(path), start, c)
	return nil
}

// rejectConfig notes that the config on disk, whose plan is p, is not the one that runs,
// and why.
func (e *Engine) rejectConfig(p *plan, err error) {
	e.mistake.Store(new(component.HideURLs(component.Shorten(allMistakes(err, p.shown)))))
	e.refused, e.missed, e.lacking = true, p.watch, map[string]*remoteSource{}
	for key, r := range p.remotes {
		if r.missing != nil {
			e.lacking[key] = r
		}
	}
	for path := range p.polled { // only those of what runs are
		e.missed[config.Pattern(absolute(path))] = true
	}
	e.metrics.current.Set(0)
}

// filesChanged implements FilesChanged on the worker. first is when the first of the
// changes was noticed; it is zero if that is not known.
func (e *Engine) filesChanged(paths []string, first time.Time) error {
	start := time.Now()
	e.change = newChange(service.TriggerFiles, paths)
	if !first.IsZero() {
		e.change.steps[stepDetect] = e.clock.Now().Sub(first)
	}
	e.followAnswers(paths)
	e.refreshCatalogs(paths)
	if e.undecided || e.o.WatchConfig && (e.refused || slices.ContainsFunc(paths, e.isConfig)) {
		err := e.applyConfig(start, false)
		if err == nil || !slices.ContainsFunc(paths, func(p string) bool { return !e.isConfig(p) }) {
			e.filesRead(paths)
			return err
		}
		// The scripts are served as long as the config that runs can be.
	}
	err := e.applyFiles(start)
	e.filesRead(paths)
	return err
}

// applyFiles looks names up in the catalogs again and rebuilds the nodes that
// changed.
func (e *Engine) applyFiles(start time.Time) error {
	planned := e.change.planning()
	p, err := e.planRunning(false)
	planned()
	if err != nil {
		e.refuse("cannot reload scripts", "nothing was changed", start, err, p.shown)
		return err
	}
	names := p.newFiles(e.plan)
	files := len(names) > 0
	before := e.failures()
	c := e.swap(p)
	p = e.plan
	// The user saved the component, not the node.
	var broken []string
	for _, id := range p.order {
		n, w := e.nodes[id], p.wanted[id]
		switch {
		case n == nil:
		case n.failed != nil && !sameError(before[id], n.failed):
			broken = append(broken, id)
		case slices.Contains(c.results[rebuilt], id) || n.failed == nil && before[id] != nil:
			if !files && !slices.Contains(names, w.block.Name) {
				names = append(names, w.block.Name)
			}
		}
	}
	if len(broken) > 0 {
		c.results[failed] = broken
	} else {
		c.results[failed] = nil // they were reported before
	}
	if len(names) == 0 && len(broken) == 0 && len(c.broken) == 0 {
		e.recordTrials(c, start)
		return nil
	}
	what := "reloaded " + strings.Join(names, ", ")
	if len(names) == 0 {
		what = ""
	}
	e.report(what, start, c)
	return nil
}

// filesRead updates the components that read a changed file, and what depends on their
// exports.
func (e *Engine) filesRead(paths []string) {
	start := time.Now()
	changed := map[string]bool{}
	for _, p := range paths {
		changed[p] = true
	}
	reads := func(file string) bool {
		if changed[file] || changed[filepath.Dir(file)] {
			return true
		}
		return strings.Contains(filepath.Base(file), "*") && slices.ContainsFunc(paths, func(p string) bool {
			ok, err := filepath.Match(file, p)
			return ok && err == nil
		})
	}
	c := counts{results: map[result][]string{}, nodes: len(e.nodes), read: true}
	e.change = e.change.next()
	e.committing, e.broken = true, nil
	done := e.change.swapping()
	for _, id := range e.plan.order {
		n := e.nodes[id]
		if n == nil || n.current == nil || !slices.ContainsFunc(n.state.Load().sourced, reads) {
			continue
		}
		before := n.failed
		r := n.reread()
		e.exported(n)
		if r != failed || !sameError(before, n.failed) {
			c.results[r] = append(c.results[r], id)
		}
	}
	for _, s := range e.services {
		if slices.ContainsFunc(s.sourced(), func(f string) bool { return changed[f] || changed[filepath.Dir(f)] }) {
			e.rereadService(s, func() { c.results[updated] = append(c.results[updated], s.def.Name) })
		}
	}
	e.committing = false
	c.broken = e.broken
	if e.box.marked() && e.pace.next.Sub(e.clock.Now()) <= 0 {
		e.propagate(&c)
	}
	done()
	e.publish()
	e.followFiles()
	e.reportRead(c, start)
}

// reportRead reports what became of nodes that read changed files.
func (e *Engine) reportRead(c counts, start time.Time) {
	ids := append(slices.Clone(c.results[updated]), c.results[rebuilt]...)
	switch {
	case len(ids) > 0:
		e.report("updated "+listed(ids), start, c)
	case len(c.results[failed])+len(c.broken) > 0:
		e.report("", start, c)
	case len(c.results[inProgress]) > 0:
		e.record(c, "in progress", "", time.Since(start))
	}
}

func (e *Engine) refreshCatalogs(paths []string) {
	for _, c := range e.catalogs() {
		if paths == nil {
			c.Refresh(c.Roots()) // everything
		} else {
			c.Refresh(paths)
		}
	}
}

// isConfig reports whether a changed path belongs to the config.
func (e *Engine) isConfig(path string) bool {
	own, err := filepath.Abs(*e.path.Load())
	if err != nil {
		return false
	}
	return path == own || filepath.Dir(path) == own && config.IsConfigFile(path)
}

// catalogs returns the permanent catalogs, and those of imported folders.
func (e *Engine) catalogs() []component.Catalog {
	all := slices.Clone(e.o.Catalogs)
	for _, dir := range slices.Sorted(maps.Keys(e.folders)) {
		all = append(all, e.folders[dir])
	}
	return all
}
