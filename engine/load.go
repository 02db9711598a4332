package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/files"
	"github.com/weir-run/weir/engine/lastgood"
)

// planMode specifies how a plan is made.
type planMode struct {
	// running plans after a change of files or exports, while the accepted config
	// stays: an error affects only the block that causes it.
	running bool
	// tolerant is like running, for a new config that does not fit the current
	// exports of some nodes.
	tolerant bool
	// unknown plans as if nothing ran: no exports of nodes are known.
	unknown bool
	// same reuses the contents of imports that were read before, except those with
	// errors.
	same bool
	// locking plans for writing weir.lock, so that remote imports need no entries in it.
	locking bool
	// demoted are the nodes, by ID, whose new registration caused errors, and kept
	// the imports whose new content did.
	demoted, kept map[string]error
	// awaits are the nodes whose exports may be the cause of these errors.
	awaits map[string]bool
	// unfit are the nodes, by ID, to which the version that Registration.Instead
	// returns does not fit, and why.
	unfit map[string]error
	// rejected are the nodes, by ID, whose new registration failed its trial.
	rejected map[string]*rejected
	// modules are the modules of the last good config, by absolute path, which are used in
	// the place of those on disk.
	modules map[string]lastgood.Tree
	// tried is the plan of their trials. Nodes that do not run yet keep its receivers,
	// which are in the arguments of the trials.
	tried *plan
}

// load reads and plans a config. The error is a config.Diagnostics. Trials end
// with ctx.
func (e *Engine) load(ctx context.Context, path string) (*config.Config, *plan, error) {
	cfg, ds := e.readConfig(path)
	p, err := e.planConfig(ctx, cfg, ds, planMode{})
	return cfg, p, err
}

// planConfig plans a config that was read with ds. The error is a config.Diagnostics.
// Trials end with ctx.
func (e *Engine) planConfig(ctx context.Context, cfg *config.Config, ds config.Diagnostics, mode planMode) (*plan, error) {
	mode.unfit = map[string]error{}
	p, more := e.planFitting(cfg, mode)
	if !ds.HasErrors() && more.HasErrors() && e.plan != nil {
		if q, err := e.planTolerantly(cfg); err == nil {
			p, more = q, nil
		}
	} else if !ds.HasErrors() && !more.HasErrors() {
		p = e.choose(ctx, p, mode)
	}
	ds = append(ds, more...)
	ds = e.mask(p, append(ds, e.checkServices(p)...).Sort())
	e.warn(ds)
	return p, ds.Err()
}

// readConfig reads the config.
func (e *Engine) readConfig(path string) (*config.Config, config.Diagnostics) {
	read := config.Load
	if e.plan != nil {
		read = e.plan.cfg.Reload
	}
	cfg, ds := readSoon(e, path, read)
	if cfg == nil {
		cfg = &config.Config{Path: path}
	}
	if e.instead != nil && len(ds)+len(cfg.Blocks) == 0 {
		ds = config.Diagnostics{{Span: config.Span{File: path}, Msg: "the config contains no blocks",
			Hint: "to run without blocks, start weir with --config.last-good=false"}}
	}
	return cfg, ds
}

// readSoon reads files of the config. While the config runs, the worker does
// not wait long: if a file system does not respond soon, that is an error, and
// the files are read again when it has responded.
func readSoon[T any](e *Engine, path string, read func(path string) (T, config.Diagnostics)) (T, config.Diagnostics) {
	if e.phase.Load() != phaseReady {
		return read(path)
	}
	type result struct {
		v  T
		ds config.Diagnostics
	}
	r, err := files.Soon(path, "reading", func() (r result, err error) {
		r.v, r.ds = read(path)
		return r, nil
	}, e.changedLate(path))
	if err != nil {
		r.ds = config.Diagnostics{{Span: config.Span{File: path}, Msg: fmt.Sprintf("cannot read the config: %v", err)}}
	}
	return r.v, r.ds
}

// changedLate returns a function that makes the worker read a path again.
func (e *Engine) changedLate(path string) func() {
	return func() { e.postFilesChanged([]string{absolute(path)}) }
}

// postFilesChanged is like FilesChanged, for callers that do not wait: the
// worker reports the errors.
func (e *Engine) postFilesChanged(paths []string) {
	e.box.post(func() { _ = e.filesChanged(paths, time.Time{}) })
}

// planTolerantly plans a config that a start would accept, but that does not
// fit the current exports of nodes. This is not an error in the config, and the
// change may even correct it. Nodes that cannot follow are unhealthy.
func (e *Engine) planTolerantly(cfg *config.Config) (*plan, error) {
	if _, ds := e.makePlan(cfg, planMode{unknown: true}); ds.HasErrors() {
		return nil, ds.Err()
	}
	return e.plans(cfg, planMode{running: true, tolerant: true})
}

func (e *Engine) warn(ds config.Diagnostics) {
	for _, d := range ds {
		if d.Severity == config.Warning {
			e.log.Warn(d.Msg, "position", d.Span.String())
		}
	}
}

// planRunning plans the running config with the current answers of the
// catalogs, imported files and exports. New registrations and contents that
// cause errors are left out, one after another.
func (e *Engine) planRunning(same bool) (*plan, error) {
	return e.plans(e.plan.cfg, planMode{running: true, same: same})
}

func (e *Engine) plans(cfg *config.Config, mode planMode) (*plan, error) {
	mode.demoted, mode.kept, mode.awaits = map[string]error{}, map[string]error{}, map[string]bool{}
	for {
		p, ds := e.makePlan(cfg, mode)
		switch {
		case !ds.HasErrors():
			p = e.release(p, mode)
			p.awaits = mode.awaits
			return e.choose(e.hard, p, mode), nil
		case e.blame(p, ds, mode):
		case mode.tolerant:
			return p, e.mask(p, ds).Err()
		default: // exports are the cause
			mode.tolerant = true
		}
	}
}

// release includes changes again that were left out because of errors in other
// changes.
func (e *Engine) release(p *plan, mode planMode) *plan {
	if len(mode.kept) < 2 || len(mode.kept) > maxReleases {
		return p
	}
	for _, id := range slices.Sorted(maps.Keys(mode.kept)) {
		delete(mode.kept, id)
		if q, ds := e.makePlan(p.cfg, mode); ds.HasErrors() {
			mode.kept[id] = e.withSource(q, ds[0]) // which was caused by this one
		} else {
			p = q
		}
	}
	for id, why := range mode.kept {
		if s := p.sources[id]; s != nil {
			s.err = why
		}
	}
	return p
}

// maxReleases is the maximum number of plans for one release.
const maxReleases = 16

// blame adds to mode the new registrations and contents that have an error or
// are referred to by a block with an error. It reports whether it found any.
func (e *Engine) blame(p *plan, ds config.Diagnostics, mode planMode) bool {
	before := len(mode.demoted) + len(mode.kept)
	found := func() bool {
		if len(mode.demoted)+len(mode.kept) == before {
			return false
		}
		for _, w := range p.list {
			if w.found.HasErrors() {
				for _, id := range w.deps {
					mode.awaits[id] = true
				}
			}
		}
		return true
	}
	for _, d := range ds {
		for id, s := range p.sources {
			if _, in := s.files[d.File]; in && d.Severity == config.Error && e.freshSource(id, s) && mode.kept[id] == nil {
				mode.kept[id] = e.withSource(p, d)
			}
		}
	}
	if found() {
		return true
	}
	for _, w := range p.list {
		if !w.found.HasErrors() {
			continue
		}
		for _, id := range append([]string{w.id}, w.deps...) {
			if e.freshRegistration(p.wanted[id]) && mode.demoted[id] == nil {
				mode.demoted[id] = e.mask(p, w.found).Err()
				break
			}
		}
	}
	if found() {
		return true
	}
	// The error is in the use of an import.
	err := ds.Err()
	for id, s := range p.sources {
		if e.freshSource(id, s) && mode.kept[id] == nil {
			mode.kept[id] = e.withSource(p, err.(config.Diagnostics)[0])
		}
	}
	return found()
}

// withSource returns a diagnostic with its source line, without secrets.
func (e *Engine) withSource(p *plan, d config.Diagnostic) config.Diagnostic {
	d = e.mask(p, config.Diagnostics{d})[0]
	if src := snippet(p.shown[d.File], d.Line); src != "" && d.Detail == "" {
		d.Detail = fmt.Sprintf("%d | %s", d.Line, src)
	}
	return d
}

// freshRegistration reports whether a node's registration differs from the
// running one.
func (e *Engine) freshRegistration(w *wanted) bool {
	if w == nil || w.kind != kindComponent || w.err != nil && !w.instead {
		return false
	}
	n := e.nodes[w.id]
	return n == nil || n.current == nil || n.current.reg.Version != w.reg.Version
}

// freshSource reports whether an import's content differs from the running one.
func (e *Engine) freshSource(id string, s *source) bool {
	old := e.plan.sources[id]
	return s.files != nil && (old == nil || !maps.Equal(old.files, s.files))
}

// makePlan returns the plan for cfg, and all errors in it. A plan with errors
// must not be applied.
func (e *Engine) makePlan(cfg *config.Config, mode planMode) (*plan, config.Diagnostics) {
	x := &planner{e: e, p: newPlan(cfg), mode: mode, said: map[saying]bool{},
		parsed: map[*config.Block]*config.Declare{}, files: map[string]*names{}}
	root := x.root(cfg)
	x.p.scope = root.scope
	x.readPolicy(root, cfg.Blocks)
	x.body(root, cfg.Blocks)
	x.finish()
	x.connect()
	x.check()
	return x.p, x.diagnostics()
}
