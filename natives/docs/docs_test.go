package docs_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/natives"
)

// catalog contains all natives with their manuals.
var catalog = component.NewList(natives.All()...)

// TestComplete compares the manuals with the types that the config language uses:
// nothing may be missing or superfluous.
func TestComplete(t *testing.T) {
	paths := func(v any) (ps []string) {
		for _, f := range config.Describe(v) {
			if !strings.HasSuffix(f.Path, ".*") { // blocks that are described one level up
				ps = append(ps, f.Path)
			}
		}
		return ps
	}
	sort := cmp.Transformer("sort", func(s []string) []string { return slices.Sorted(slices.Values(s)) })
	for _, name := range catalog.Names() {
		r, _ := catalog.Lookup(name)
		if first, _, _ := strings.Cut(r.Doc.Summary, "\n"); !strings.HasSuffix(first, ".") {
			t.Errorf("%s: the summary's first paragraph is no sentence: %q", name, first)
		}
		if diff := cmp.Diff(paths(r.NewArgs()), slices.Collect(maps.Keys(r.Doc.Args)), sort); diff != "" {
			t.Errorf("%s: arguments (-config +manual):\n%s", name, diff)
		}
		if diff := cmp.Diff(paths(r.Exports), slices.Collect(maps.Keys(r.Doc.Exports)), sort); diff != "" {
			t.Errorf("%s: exports (-config +manual):\n%s", name, diff)
		}
		for path, text := range r.Doc.Args {
			if !strings.HasSuffix(strings.TrimSuffix(text, ")"), ".") {
				t.Errorf("%s: the comment on %s does not end in a full stop: %q", name, path, text)
			}
		}
	}
}

// TestExamples checks every example like `weir check`.
func TestExamples(t *testing.T) {
	for _, name := range catalog.Names() {
		t.Run(name, func(t *testing.T) {
			r, _ := catalog.Lookup(name)
			c, ds := config.Parse(map[string]string{"example.alloy": r.Doc.Example})
			scope := c.NewScope("v0.0.0")
			shown := false
			for _, b := range c.Blocks {
				known, more := b.Check(catalog.Names(), nil)
				ds = append(ds, more...)
				if !known {
					continue
				}
				shown = shown || b.Name == name
				reg, _ := catalog.Lookup(b.Name)
				var recv *flow.Receiver
				if reg.Accepts != 0 {
					recv = flow.NewReceiver(b.ID, reg.Accepts, nil, nil)
				}
				scope.SetProvisional(b.ID, config.WithReceiver(reg.Exports, recv))
			}
			if !shown {
				t.Errorf("the example has no block %s", name)
			}
			for _, b := range c.Blocks {
				if reg, ok := catalog.Lookup(b.Name); ok {
					_, more := b.Resolve(scope)
					ds = append(ds, more...)
					ds = append(ds, b.Decode(scope, reg.NewArgs())...)
				}
			}
			for _, d := range ds {
				t.Error(d)
			}
		})
	}
}
