package engine

import (
	"fmt"
	"maps"
	"slices"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
)

// checkContents warns about sinks that drop Contents that a block creates. A
// component in between may drop them too; the plan does not show that.
func (x *planner) checkContents(w *wanted) {
	maker, ok := w.args.(component.Maker)
	if !ok || w.failed {
		return
	}
	makes := maker.Makes()
	if len(makes) == 0 {
		return
	}
	seen := map[*wanted]bool{}
	var visit func(from *wanted)
	visit = func(from *wanted) {
		for _, r := range from.refs {
			to := x.p.wanted[r.Receiver.Node()]
			if to == nil || seen[to] {
				continue
			}
			seen[to] = true
			if loser, ok := to.args.(component.Loser); ok && !to.failed {
				for _, c := range slices.Sorted(maps.Keys(makes)) {
					x.report(to, losses(w, to, c, makes[c], loser.Loses(c)))
				}
			}
			visit(to)
		}
	}
	visit(w)
}

func losses(from, to *wanted, c component.Content, because string, ls []component.Loss) (ds config.Diagnostics) {
	ids := to.m.locals([]string{to.id, from.id})
	for _, l := range ls {
		ds = append(ds, config.Diagnostic{
			Span: to.block.SpanOf(l.Path), Severity: config.Warning, Hint: l.Hint,
			Msg: fmt.Sprintf("%s drops %s, which %s makes (%s): %s", ids[0], c, ids[1], because, l.Why),
		})
	}
	return ds
}
