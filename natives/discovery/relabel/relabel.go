// Package relabel is discovery.relabel: it changes and drops targets by their
// labels.
//
// The result for a target is cached as long as the target exists. If one of
// thousands of targets changes, only that target is processed, and the other
// targets are the same maps for downstream components.
package relabel

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/rule"
)

// Registration describes discovery.relabel.
func Registration() component.Registration {
	return component.Registration{
		Name:    "discovery.relabel",
		NewArgs: func() any { a := new(Arguments); a.SetToDefault(); return a },
		Exports: Exports{},
		Pure:    true,
		Build: func(o component.Options, args any, _ component.Component) (component.Component, error) {
			c := &Component{opts: o}
			return c, c.Update(args)
		},
	}
}

// Component is the component of a discovery.relabel node.
type Component struct {
	opts component.Options

	mu    sync.Mutex
	rules []*rule.Rule
	cfgs  []*relabel.Config
	made  map[uintptr]made
	info  Info
}

// made is the result of the rules for a target.
type made struct {
	from map[string]string // retains the map, so that its address is not reused
	to   map[string]string // nil if it was dropped
}

var (
	_ component.Component       = (*Component)(nil)
	_ component.Updater         = (*Component)(nil)
	_ component.Debugger        = (*Component)(nil)
	_ component.TargetExplainer = (*Component)(nil)
)

// Update relabels the targets of args.
func (c *Component) Update(args any) error {
	a := args.(*Arguments)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.made == nil || !reflect.DeepEqual(a.Rules, c.rules) {
		c.rules, c.cfgs, c.made = a.Rules, rule.Configs(a.Rules), nil
	}
	b := labels.NewBuilder(labels.EmptyLabels())
	out := make([]map[string]string, 0, len(a.Targets))
	next := make(map[uintptr]made, len(a.Targets))
	for _, t := range a.Targets {
		address := reflect.ValueOf(t).Pointer()
		m, ok := c.made[address]
		if !ok {
			m = made{t, apply(b, t, c.cfgs)}
		}
		next[address] = m
		if m.to != nil {
			out = append(out, m.to)
		}
	}
	c.made = next
	c.info = Info{Targets: len(a.Targets), Kept: len(out)}
	c.opts.Export(Exports{Output: out, Rules: rule.Rules(slices.Clone(a.Rules))})
	c.opts.Health(component.Health{
		State: component.Healthy, Message: fmt.Sprintf("kept %d of %d targets", len(out), len(a.Targets)), Time: c.opts.Clock.Now(),
	})
	return nil
}

// apply applies the rules to t. It returns t itself if they change nothing, and
// nil if they drop it.
func apply(b *labels.Builder, t map[string]string, cfgs []*relabel.Config) map[string]string {
	if len(cfgs) == 0 {
		return t
	}
	b.Reset(labels.FromMap(t)) // sorted: if two labels are mapped to one name, the last one is used
	if !relabel.ProcessBuilder(b, cfgs...) {
		return nil
	}
	out := make(map[string]string, len(t))
	same := true
	b.Range(func(l labels.Label) {
		out[l.Name] = l.Value
		same = same && t[l.Name] == l.Value
	})
	if same && len(out) == len(t) {
		return t
	}
	return out
}

// ExplainTarget returns the rules that change or drop a target.
func (c *Component) ExplainTarget(target map[string]string) component.TargetResult {
	c.mu.Lock()
	rules, cfgs := c.rules, c.cfgs
	c.mu.Unlock()
	out := apply(labels.NewBuilder(labels.EmptyLabels()), target, cfgs)
	switch {
	case out == nil:
		return component.TargetResult{Result: "dropped", Steps: rule.ExplainTarget(rules, target)}
	case maps.Equal(out, target):
		return component.TargetResult{Result: "unchanged", After: out}
	}
	return component.TargetResult{Result: "changed", After: out, Steps: rule.ExplainTarget(rules, target)}
}

// Run waits until ctx ends.
func (c *Component) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// Info is the result of DebugInfo.
type Info struct {
	Targets int `json:"targets"`
	Kept    int `json:"kept"`
}

// DebugInfo returns an Info.
func (c *Component) DebugInfo() any {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.info
}
