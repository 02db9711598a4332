package tap

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
)

// Path is the way of one record through the nodes. Secrets are masked.
type Path struct {
	Kind string    `json:"kind"` // "path"; other kinds are those of a Note
	Time time.Time `json:"time,omitzero"`
	// Record is the record where the path begins, and Text is its text form.
	Record *record `json:"record,omitempty"`
	Text   string  `json:"text"`
	// Nodes are the nodes that the record reached, a node before those that it sends to.
	Nodes []PathNode `json:"nodes,omitempty"`
}

// PathNode is what one node did to the record.
type PathNode struct {
	Node      string `json:"node"`
	Component string `json:"component"`
	Position  string `json:"position,omitempty"` // file:line of the block
	From      string `json:"from,omitempty"`     // the node that sent the record
	// Result is sent (a source), added, unchanged, changed, missing (not sent in the
	// same call), dropped, refused, or accepted (by a node that sends to no other node).
	Result  string     `json:"result"`
	Reason  string     `json:"reason,omitempty"`
	Before  *record    `json:"before,omitempty"`
	After   *record    `json:"after,omitempty"`
	Changes []string   `json:"changes,omitempty"`
	Steps   []PathStep `json:"steps,omitempty"`
}

// PathStep is a step of a node that changed or dropped the record, or that may have
// dropped it.
type PathStep struct {
	Within  string   `json:"within,omitempty"` // the step that contains it, such as "stage 3 match"
	Kind    string   `json:"kind"`             // such as rule
	Index   int      `json:"index,omitempty"`  // from 1
	Name    string   `json:"name,omitempty"`
	Detail  string   `json:"detail,omitempty"`
	Dropped bool     `json:"dropped,omitempty"`
	Before  *record  `json:"before,omitempty"`
	After   *record  `json:"after,omitempty"`
	Changes []string `json:"changes,omitempty"`
	// Depends is what the result of the step depends on that is unknown. Unless Dropped
	// is set, the step may have dropped the record, or, if Later is set, kept it to send
	// it later.
	Depends string `json:"depends,omitempty"`
	Later   bool   `json:"later,omitempty"`
}

// PathLine returns a value of the type of a line, for its description.
func PathLine() any { return Path{} }

// AppendPath appends a path as a line of JSON.
func AppendPath(dst []byte, p Path) []byte { return appendEvent(dst, p) }

// Note appends a line that is not a path. kind is a word.
func (f *Follower) Note(dst []byte, kind, text string) []byte { return f.where.Note(dst, kind, text) }

func (f *Follower) path(ctx context.Context, o *observation, in, out int) Path {
	first := o.out
	i := out
	if in >= 0 {
		first, i = o.in, in
	}
	r := f.where.masks.row(first[i])
	p := Path{Kind: "path", Time: o.t.Time.UTC(), Record: r.record(), Text: string(r.appendText(nil))}
	f.follow(ctx, &p, o, in, out, "", 0)
	return p
}

// follow appends what the node of o did to a row, and then the nodes below.
func (f *Follower) follow(ctx context.Context, p *Path, o *observation, in, out int, from string, depth int) {
	if depth == maxDepth || len(p.Nodes) == maxSteps {
		return
	}
	o.pair()
	if in >= 0 {
		o.inDone[in] = true
		out = o.to[in]
	}
	n := f.nodes[o.node]
	step := PathNode{Node: o.node, Component: n.Component, Position: n.Position, From: from}
	switch {
	case in < 0 && len(o.in) == 0:
		step.Result = "sent"
	case in < 0:
		step.Result = "added"
	default:
		f.explain(ctx, &step, o, n, in, out)
	}
	p.Nodes = append(p.Nodes, step)
	if out < 0 {
		return
	}
	o.outDone[out] = true
	at, rows := f.receivers(o, o.out[out])
	for k := range at {
		f.follow(ctx, p, at[k], rows[k], -1, o.node, depth+1)
	}
}

// explain sets what a node did to the input row in, which became out or -1.
func (f *Follower) explain(ctx context.Context, step *PathNode, o *observation, n Followed, in, out int) {
	before := f.where.masks.row(o.in[in])
	step.Before = before.record()
	switch {
	case o.t.Err != nil:
		step.Result, step.Reason = "refused", component.HideURLs(f.where.masks.mask(o.t.Err.Error()))
		return
	case out >= 0 && same(o.in[in], o.out[out]):
		step.Result = "unchanged"
		if n.Explainer != nil {
			f.noted(ctx, step, o.in[in], n.Explainer)
		}
		return
	case out >= 0:
		step.Result = "changed"
		after := f.where.masks.row(o.out[out])
		step.After, step.Changes = after.record(), changes(before, after)
	case len(n.SendsTo) == 0:
		step.Result = "accepted"
		return
	default:
		step.Result, step.Reason = "missing", "the node did not send it in this call: it dropped it, or sends it later"
	}
	if n.Explainer == nil {
		return
	}
	steps, err := n.Explainer.Explain(ctx, o.in[in].alone())
	if err != nil {
		step.Reason = component.HideURLs(f.where.masks.mask(fmt.Sprintf("cannot name the steps of the node: %v", err)))
		return
	}
	var became *row
	if out >= 0 {
		became = &o.out[out]
	}
	f.where.name(step, o.in[in], became, steps)
}

// name sets the steps of a node that changed or dropped a row, as the component explains
// them. out is what the row became, or nil.
func (p *Printer) name(step *PathNode, in row, out *row, steps []component.Step) {
	last := in.alone()
	for _, s := range steps {
		last = s.After
	}
	left := slices.Collect(rowsOf(last))
	made := slices.Clone(left) // also the records that the steps added
	for _, s := range steps {
		made = slices.AppendSeq(made, rowsOf(s.Added))
	}
	doubts := slices.DeleteFunc(slices.Clone(steps), func(s component.Step) bool { return s.Depends == "" })
	switch {
	case out == nil && len(left) == 0:
		step.Result, step.Reason = "dropped", ""
	case out == nil && len(doubts) == 1 && !doubts[0].Later:
		// All other steps let the record pass.
		step.Result, step.Reason = "dropped", ""
		steps = steps[:slices.IndexFunc(steps, func(s component.Step) bool { return s.Depends != "" })+1]
		steps[len(steps)-1].After = flow.Batches{}
	case out == nil && len(doubts) == 1:
		step.Reason = "a step keeps the record and may send it later"
	case out == nil && len(doubts) > 0:
		step.Reason = "the node did not send it in this call: a step dropped it, or sends it later"
	case out != nil && slices.ContainsFunc(made, func(r row) bool { return sameButTime(r, *out) }):
		steps = slices.DeleteFunc(steps, func(s component.Step) bool { return s.Depends != "" })
	case len(doubts) > 0:
		step.Reason = "the result of a step depends on other records"
	default:
		step.Reason = "cannot name the steps of the node: for the record alone, they have another result now. The result depends on other records or a state, or the arguments have changed"
		return
	}
	p.steps(step, in, steps)
}

// noted sets the steps of a node that sent a row on unchanged: those that failed, and
// those that decided where it goes.
func (f *Follower) noted(ctx context.Context, step *PathNode, r row, by component.Explainer) {
	steps, err := by.Explain(ctx, r.alone())
	if err != nil {
		return // nothing was to be explained
	}
	f.where.steps(step, r, slices.DeleteFunc(steps, func(s component.Step) bool { return s.Kind != component.StepError && s.Kind != component.StepRoute }))
}

// steps appends steps of a node to those of a path, where now is the row before them.
func (p *Printer) steps(step *PathNode, now row, steps []component.Step) {
	for _, s := range steps {
		a := p.masks.row(now)
		ps := PathStep{Within: s.Within, Kind: s.Kind, Index: s.Index, Name: s.Name, Detail: p.masks.mask(s.Detail), Before: a.record(),
			Depends: s.Depends, Later: s.Later}
		if after := slices.Collect(rowsOf(s.After)); len(after) > 0 {
			now = after[0]
			b := p.masks.row(now)
			ps.After, ps.Changes = b.record(), changes(a, b)
			if len(after) > 1 {
				ps.Changes = append(ps.Changes, fmt.Sprintf("divided into %d records", len(after)))
			}
		} else {
			ps.Dropped = true
		}
		for r := range rowsOf(s.Added) {
			ps.Changes = append(ps.Changes, "added "+string(p.masks.row(r).appendText(nil)))
		}
		for _, text := range s.Also {
			ps.Changes = append(ps.Changes, p.masks.mask(text))
		}
		step.Steps = append(step.Steps, ps)
	}
}

// sameButTime is like same, but ignores the time, which a step may have taken from the
// clock.
func sameButTime(a, b row) bool {
	a.t = b.t
	return same(a, b)
}

// alone returns the row as a batch.
func (r row) alone() flow.Batches {
	if r.l != nil {
		return flow.Batches{Logs: []*batch.Logs{r.l.Rows([]int{r.i})}}
	}
	return flow.Batches{Metrics: []*batch.Metrics{r.m.Rows([]int{r.i})}}
}
