package engine

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/service"
)

// Graph returns the nodes of the config at path, as far as they are known
// without running it, and the services that have a block. The rest is as with
// Check.
func (e *Engine) Graph(path string) (nodes, services []service.Info, cfg *config.Config, ds config.Diagnostics) {
	cfg, ds = config.Load(path)
	p, more := e.makePlan(cfg, planMode{})
	for _, b := range cfg.Blocks {
		w := p.wanted[b.ID]
		if w == nil {
			continue
		}
		i := service.Info{ID: w.id, Name: b.Name, Position: fmt.Sprintf("%s:%d", b.File, b.Line), DependsOn: w.deps, SendsTo: sendsTo(w.args)}
		if w.service != nil {
			services = append(services, i)
		} else {
			nodes = append(nodes, i)
		}
	}
	return nodes, services, cfg, append(ds, more...).Sort()
}

// sendsTo returns the IDs of the nodes whose receivers are in arguments, each
// once, in order of the fields; those of maps in order of their names.
func sendsTo(args any) (ids []string) {
	refs := config.Receivers(args)
	slices.SortStableFunc(refs, func(a, b config.ReceiverRef) int { return cmp.Compare(a.Path, b.Path) })
	for _, r := range refs {
		if id := r.Receiver.Node(); !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}
