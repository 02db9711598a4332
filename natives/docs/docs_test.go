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
	"github.com/weir-run/weir/natives/docs"
	"github.com/weir-run/weir/natives/local/file"
	"github.com/weir-run/weir/natives/prometheus/echo"
	"github.com/weir-run/weir/natives/prometheus/exporter/self"
	"github.com/weir-run/weir/natives/prometheus/exporter/unix"
	"github.com/weir-run/weir/natives/prometheus/relabel"
	remotewrite "github.com/weir-run/weir/natives/prometheus/remote_write"
	"github.com/weir-run/weir/natives/prometheus/scrape"
)

// natives are all there are, with their manuals.
var natives = component.NewList(
	docs.Of(file.Registration()),
	docs.Of(echo.Registration()),
	docs.Of(self.Registration()),
	docs.Of(unix.Registration()),
	docs.Of(relabel.Registration()),
	docs.Of(remotewrite.Registration()),
	docs.Of(scrape.Registration()),
)

// TestComplete holds the manuals against the types that the config language
// sees: nothing is missing, nothing is left over.
func TestComplete(t *testing.T) {
	paths := func(v any) (ps []string) {
		for _, f := range config.Describe(v) {
			ps = append(ps, f.Path)
		}
		return ps
	}
	sort := cmp.Transformer("sort", func(s []string) []string { return slices.Sorted(slices.Values(s)) })
	for _, name := range natives.Names() {
		r, _ := natives.Lookup(name)
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
			if !strings.HasSuffix(text, ".") {
				t.Errorf("%s: the comment on %s does not end in a full stop: %q", name, path, text)
			}
		}
	}
}

// TestExamples checks every example as `weir check` would.
func TestExamples(t *testing.T) {
	for _, name := range natives.Names() {
		t.Run(name, func(t *testing.T) {
			r, _ := natives.Lookup(name)
			c, ds := config.Parse(map[string]string{"example.alloy": r.Doc.Example})
			scope := c.NewScope("v0.0.0")
			shown := false
			for _, b := range c.Blocks {
				known, more := b.Check(natives.Names(), nil)
				ds = append(ds, more...)
				if !known {
					continue
				}
				shown = shown || b.Name == name
				reg, _ := natives.Lookup(b.Name)
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
				if reg, ok := natives.Lookup(b.Name); ok {
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
