package engine

import (
	"cmp"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/service"
)

// Graph returns the nodes of the config at path, as far as they are known
// without running it, and the services that have a block. The other results are
// those of Check.
func (e *Engine) Graph(path string) (nodes, services []service.Info, cfg *config.Config, ds config.Diagnostics) {
	cfg, ds = config.Load(path)
	p, more := e.makePlan(cfg, planMode{})
	cfg.Files = p.files
	for _, w := range p.list {
		if w.block == nil {
			continue
		}
		i := service.Info{ID: w.id, Name: w.block.Name, Position: w.position(), DependsOn: w.deps, SendsTo: w.sendsTo()}
		switch w.kind {
		case kindService:
			services = append(services, i)
		case kindComponent, kindInstance, kindForeach, kindImport:
			nodes = append(nodes, i)
		}
	}
	return nodes, services, cfg, append(ds, more...).Sort()
}

// sendsTo returns the IDs of the nodes whose receivers are in the arguments,
// without duplicates, in the order of the attribute names. If the registration
// is broken, there are no arguments, and it returns the nodes to whose
// receivers the block refers.
func (w *wanted) sendsTo() (ids []string) {
	add := func(id string) {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	if w.args == nil && w.block != nil {
		for _, r := range w.block.References() {
			if id, ok := strings.CutSuffix(w.m.prefix()+r.String(), ".receiver"); ok && slices.Contains(w.deps, id) {
				add(id)
			}
		}
		return ids
	}
	refs := slices.Clone(w.refs)
	slices.SortStableFunc(refs, func(a, b config.ReceiverRef) int { return cmp.Compare(a.Path, b.Path) })
	for _, r := range refs {
		add(r.Receiver.Node())
	}
	return ids
}
