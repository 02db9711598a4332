package tap

import (
	"slices"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
)

// explained is a line of AppendExplained: a line in the format json, with the steps of
// the node as in a Path. A record that is not changed has the kind "unchanged". Secrets are
// masked.
type explained struct {
	event
	Reason string     `json:"reason,omitempty"`
	Steps  []PathStep `json:"steps,omitempty"`
}

// AppendExplained appends what a call did to each record, as lines of JSON. steps are
// those of the first records of the input, in order, as a component.Explainer returns
// them. Records that are unchanged are only counted unless they have steps.
func (p *Printer) AppendExplained(dst []byte, o flow.Tapped, steps [][]component.Step) []byte {
	in, out := slices.Collect(rowsOf(o.In)), slices.Collect(rowsOf(o.Out))
	for _, q := range matchAs(in, expected(in, steps), out) {
		if q.in < 0 {
			if p.room() {
				dst = p.appendRow(dst, "added", o.Time, out[q.out])
			}
			continue
		}
		var became *row
		if q.out >= 0 {
			became = &out[q.out]
		}
		var of []component.Step
		if q.in < len(steps) {
			of = steps[q.in]
		}
		e := p.explain(in[q.in], became, of, q.in < len(steps))
		if e.Kind == "unchanged" && len(e.Steps) == 0 {
			p.unchanged++
		} else if p.room() {
			e.Time = o.Time.UTC()
			dst = appendEvent(dst, e)
		}
	}
	return dst
}

// expected returns what the steps make of each row. A row without steps, or that is dropped
// or divided, is expected as it is.
func expected(in []row, steps [][]component.Step) []row {
	all := slices.Clone(in)
	for i, of := range steps[:min(len(steps), len(in))] {
		if len(of) == 0 {
			continue
		}
		if after := slices.Collect(rowsOf(of[len(of)-1].After)); len(after) == 1 {
			all[i] = after[0]
		}
	}
	return all
}

// explain returns what happened to a row, which became out or was dropped. known
// reports whether its steps are known.
func (p *Printer) explain(in row, out *row, steps []component.Step, known bool) explained {
	before := p.masks.row(in)
	e := explained{event: event{Kind: "dropped", Record: before.record()}}
	if out != nil && same(in, *out) {
		e.Kind = "unchanged"
	} else if out != nil {
		after := p.masks.row(*out)
		e.Kind, e.Becomes, e.Changes = "changed", after.record(), changes(before, after)
	}
	if known {
		var n PathNode
		p.name(&n, in, out, steps)
		e.Reason, e.Steps = n.Reason, n.Steps
	}
	return e
}
