package engine

import (
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
)

// substitute makes a node want the version that its registration names instead of
// itself. If the registration is broken, that is the pinned version, or the last good
// version, which is needed only if nothing runs.
func (x *planner) substitute(w *wanted, running *node) {
	if w.reg.Instead == nil {
		return
	}
	r := w.reg.Instead(w.id)
	if r == nil || w.err != nil && !r.Pinned && running != nil && running.current != nil {
		return
	}
	unfit := x.mode.unfit[w.id]
	switch {
	case unfit != nil && w.err == nil:
		err := newRefused(running, r.Version, component.StepCheck, unfit)
		err.running = w.reg.Version
		w.err, w.instead = err, true
	case unfit != nil:
	case w.err != nil:
		err := newRefused(nil, w.reg.Version, component.StepCompile, w.err)
		err.running = r.Version
		w.reg, w.err, w.instead = *r, err, true
	default:
		w.reg, w.instead = *r, true
	}
}

// planFitting plans a config. Versions that run instead of the ones on disk and do not
// fit the config are left out, and added to mode.unfit.
func (e *Engine) planFitting(cfg *config.Config, mode planMode) (*plan, config.Diagnostics) {
	for {
		p, ds := e.makePlan(cfg, mode)
		if !ds.HasErrors() || !mode.leaveOut(p, ds) {
			return p, ds
		}
	}
}

// leaveOut marks the versions that do not fit, and reports whether there were any.
func (mode planMode) leaveOut(p *plan, ds config.Diagnostics) (found bool) {
	for _, own := range []bool{true, false} { // the mistake may be in another block
		for _, w := range p.list {
			if w.instead && mode.unfit[w.id] == nil && (!own || w.found.HasErrors()) {
				found = true
				if mode.unfit[w.id] = ds.Err(); own {
					mode.unfit[w.id] = w.found.Err()
				}
			}
		}
		if found {
			return true
		}
	}
	return false
}
