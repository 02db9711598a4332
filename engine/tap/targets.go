package tap

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/expr"
)

// Target is a target with its labels.
type Target = map[string]string

// TargetNode is a node that has targets.
type TargetNode struct {
	ID, Component, Position string
	In, Out                 []Target // in its arguments and in its exports
	// Explainer is the component that runs, or nil if it cannot explain.
	Explainer component.TargetExplainer
}

// Targets finds the ways of targets from their discovery to the nodes that scrape them.
type Targets struct {
	follower *Follower // for matches, masks and steps
	nodes    []TargetNode
	depends  map[string][]string
	seen     map[string]bool // a node with a target

	// Examined is the number of targets that were compared with the expression.
	Examined int
}

// NewTargets returns the targets of nodes that where selects. dependsOn are the names
// of the nodes that a node or a module refers to. Secrets are masked.
func NewTargets(where *expr.Programs, secrets []string, nodes []TargetNode, dependsOn map[string][]string) *Targets {
	f := NewFollower(where)
	f.Mask(secrets)
	return &Targets{follower: f, nodes: nodes, depends: dependsOn, seen: map[string]bool{}}
}

// Failure is that of Follower.
func (t *Targets) Failure() error { return t.follower.Failure() }

// Paths returns at most limit paths of targets that match at the node, or at any node
// if it is "*".
func (t *Targets) Paths(ctx context.Context, node string, limit int) (paths []Path) {
	for i := range t.nodes {
		n := &t.nodes[i]
		if node != "*" && node != n.ID {
			continue
		}
		for k, list := range [][]Target{n.In, n.Out} {
			for _, x := range list {
				if len(paths) == limit || ctx.Err() != nil {
					return paths
				}
				t.Examined++
				if !t.follower.where.matches(targetRow(x)) || t.seen[place(n, x)] {
					continue
				}
				from, in, out := t.root(ctx, n, x, k == 1)
				first := t.follower.where.masks.row(targetRow(cmpTarget(in, out)))
				p := Path{Kind: "path", Record: targetRecord(first), Text: string(batch.AppendStream(nil, first.series))}
				t.follow(&p, from, in, out, "", 0)
				t.seen[place(n, x)] = true
				paths = append(paths, p)
			}
		}
	}
	return paths
}

func cmpTarget(a, b Target) Target {
	if a != nil {
		return a
	}
	return b
}

// place identifies a target at a node.
func place(n *TargetNode, x Target) string {
	return n.ID + "\x00" + string(batch.AppendStream(nil, targetRow(x).series))
}

func targetRow(x Target) row { return metricsRow(component.TargetRecord(x).Metrics[0], 0) }

// targetRecord returns a row for a target without the value and the time.
func targetRecord(r row) *record {
	out := r.record()
	out.Value, out.Time = "", time.Time{}
	return out
}

// root returns where the way of a target at a node begins. in is nil if the node is
// not known to have received it.
func (t *Targets) root(ctx context.Context, n *TargetNode, x Target, exported bool) (from *TargetNode, in, out Target) {
	for range maxDepth {
		if exported {
			if in = n.origin(ctx, x); in == nil {
				return n, nil, x
			}
			x = in
		}
		above := t.parent(n, x)
		if above == nil {
			break
		}
		n, exported = above, true
	}
	return n, x, nil
}

// origin returns the target in the arguments that became x, or nil.
func (n *TargetNode) origin(ctx context.Context, x Target) Target {
	for _, in := range n.In {
		if ctx.Err() != nil {
			return nil
		}
		if n.Explainer == nil && equalTargets(in, x) || n.Explainer != nil && equalTargets(n.Explainer.ExplainTarget(in).After, x) {
			return in
		}
	}
	return nil
}

// parent returns a node that exports a target to n, or nil.
func (t *Targets) parent(n *TargetNode, x Target) *TargetNode {
	for i := range t.nodes {
		if a := &t.nodes[i]; t.refers(n.ID, a.ID) && has(a.Out, x) {
			return a
		}
	}
	return nil
}

// refers reports whether the node id refers to another one, or a module around one of
// them does.
func (t *Targets) refers(id, to string) bool {
	for a := id; ; a = a[:strings.LastIndexByte(a, '/')] {
		for b := to; ; b = b[:strings.LastIndexByte(b, '/')] {
			if slices.Contains(t.depends[a], b) {
				return true
			}
			if !strings.Contains(b, "/") {
				break
			}
		}
		if !strings.Contains(a, "/") {
			return false
		}
	}
}

func has(list []Target, x Target) bool {
	return slices.ContainsFunc(list, func(y Target) bool { return equalTargets(x, y) })
}

func equalTargets(a, b Target) bool {
	return len(a) == len(b) && a != nil && b != nil && (reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer() || maps.Equal(a, b))
}

// follow appends what a node does with a target, and then the nodes that get it.
func (t *Targets) follow(p *Path, n *TargetNode, in, out Target, from string, depth int) {
	if depth == maxDepth || len(p.Nodes) == maxSteps {
		return
	}
	step := PathNode{Node: n.ID, Component: n.Component, Position: n.Position, From: from}
	if in == nil {
		step.Result = "discovered"
	} else {
		t.seen[place(n, in)] = true
		out = t.explain(&step, n, in)
	}
	at := len(p.Nodes)
	p.Nodes = append(p.Nodes, step)
	if out == nil {
		return
	}
	t.seen[place(n, out)] = true
	for i := range t.nodes {
		if below := &t.nodes[i]; t.refers(below.ID, n.ID) && has(below.In, out) {
			t.follow(p, below, out, nil, n.ID, depth+1)
		}
	}
	if len(p.Nodes) == at+1 {
		p.Nodes[at].Reason = "no other node has this target in its arguments"
	}
}

// explain sets what a node does with a target, and returns the target that it exports.
func (t *Targets) explain(step *PathNode, n *TargetNode, in Target) (out Target) {
	masks := t.follower.where.masks
	before := masks.row(targetRow(in))
	step.Before = targetRecord(before)
	if n.Explainer == nil {
		switch {
		case has(n.Out, in):
			step.Result = "unchanged"
			return in
		case len(n.Out) > 0:
			step.Result, step.Reason = "missing", "the node does not export it: it dropped or changed it"
		default:
			step.Result = "received"
		}
		return nil
	}
	r := n.Explainer.ExplainTarget(in)
	step.Result, step.Reason = r.Result, masks.mask(r.Reason)
	if r.After != nil {
		after := masks.row(targetRow(r.After))
		step.After, step.Changes = targetRecord(after), changes(before, after)
	}
	t.follower.where.steps(step, targetRow(in), r.Steps)
	for i := range step.Steps {
		for _, of := range []*record{step.Steps[i].Before, step.Steps[i].After} {
			if of != nil {
				of.Value, of.Time = "", time.Time{}
			}
		}
	}
	return r.After
}
