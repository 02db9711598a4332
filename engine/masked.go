package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/weir-run/weir/engine/config"
)

// RunningConfig returns the files of the config that runs and of the modules that it
// imports, by path, as config.Masker masks them. Modules whose content is a secret are left
// out.
func (e *Engine) RunningConfig(ctx context.Context) (map[string]string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, previewTime, fmt.Errorf("weir is busy for more than %s", previewTime))
	defer cancel()
	var files map[string]string
	var m config.Masker
	err := e.runOnWorker(ctx, func() error {
		files = maps.Clone(e.plan.files)
		m = e.masker(e.plan)
		return nil
	})
	if err != nil {
		return nil, err
	}
	masked, _ := m.Mask(files)
	return masked, nil
}

// CheckMasked is like Check. It returns the files of the config and the diagnostics as
// config.Masker masks them, and refuses a FIFO, which may have been read already.
func (e *Engine) CheckMasked(path string) (map[string]string, config.Diagnostics) {
	cfg, ds := new(config.Config).Reload(path)
	p, ds := e.check(cfg, ds)
	masked, hide := e.masker(p).Mask(p.files)
	return masked, hidden(ds, hide)
}

// mask returns diagnostics of a plan without secrets, and sets its shown, from which source
// lines are quoted.
func (e *Engine) mask(p *plan, ds config.Diagnostics) config.Diagnostics {
	if len(ds) == 0 {
		return ds
	}
	m := e.masker(p)
	if e.plan != nil { // a mistake in the new config may hide that a value is a secret
		m.Secrets = append(m.Secrets, e.masker(e.plan).Secrets...)
	}
	shown, hide := m.Mask(p.files)
	p.shown = shown
	return hidden(ds, hide)
}

// hidden returns a copy of diagnostics with other texts.
func hidden(ds config.Diagnostics, hide func(string) string) config.Diagnostics {
	ds = slices.Clone(ds)
	for i := range ds {
		d := &ds[i]
		d.Msg, d.Hint, d.Detail = hide(d.Msg), hide(d.Hint), hide(d.Detail)
	}
	return ds
}

// masker returns what masks the files of a plan.
func (e *Engine) masker(p *plan) config.Masker {
	m := config.Masker{}
	known := map[string]func() any{}
	for _, s := range e.services {
		if s.def.Block != "" {
			known[s.def.Block] = s.def.NewConfig
		}
	}
	for _, w := range p.list {
		if w.kind == kindComponent && w.reg.NewArgs != nil {
			known[w.block.Name] = w.reg.NewArgs
		}
		config.Secrets(w.args, func(s string) { m.Secrets = append(m.Secrets, s) })
	}
	m.Args = func(name string) any {
		if newArgs := known[name]; newArgs != nil {
			return newArgs()
		}
		for _, c := range e.o.Catalogs { // a declare may have blocks that no node was made of
			if r, ok := c.Lookup(name); ok && r.NewArgs != nil {
				return r.NewArgs()
			}
		}
		return nil
	}
	return m
}
