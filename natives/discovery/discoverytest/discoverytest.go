// Package discoverytest compares a discovery component with Prometheus's own
// discovery. It is for the tests of the components below natives/discovery.
package discoverytest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/promslog"
	sd "github.com/prometheus/prometheus/discovery"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"go.yaml.in/yaml/v2"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/natives/discovery/internal/discovery"
)

// Decode decodes the body of a block as `weir check` does, and returns the
// arguments and the diagnostics.
func Decode(t testing.TB, r component.Registration, body string) (args any, mistakes []string) {
	t.Helper()
	c, ds := config.Parse(map[string]string{"c.alloy": r.Name + " \"default\" {\n" + body + "\n}\n"})
	if len(ds) > 0 {
		t.Fatal(ds)
	}
	args = r.NewArgs()
	for _, d := range c.Blocks[0].Decode(c.NewScope("v0.0.0"), args) {
		mistakes = append(mistakes, d.Error())
	}
	return args, mistakes
}

// Mistakes fails the test unless the diagnostics for the body of a block contain
// each of want. Without want, there must be none.
func Mistakes(t testing.TB, r component.Registration, body string, want ...string) {
	t.Helper()
	_, got := Decode(t, r, body)
	if len(got) != len(want) {
		t.Errorf("%s: got %q, want %q", body, got, want)
		return
	}
	for i := range want {
		if !strings.Contains(got[i], want[i]) {
			t.Errorf("%s: got %q, want %q", body, got[i], want[i])
		}
	}
}

// Node is a running component.
type Node struct {
	*componenttest.Node
	Component *discovery.Component
	Stop      func()
	r         component.Registration
}

// Run decodes the body of a block and runs the component until the test ends.
func Run(t testing.TB, r component.Registration, body string) *Node {
	t.Helper()
	args, mistakes := Decode(t, r, body)
	if len(mistakes) > 0 {
		t.Fatal(mistakes)
	}
	n := &Node{Node: componenttest.New(t, r.Name+".default"), r: r}
	n.Component = n.Build(t, r, args).(*discovery.Component)
	n.Stop = n.Run(t, n.Component)
	return n
}

// Update applies other arguments to the component.
func (n *Node) Update(t testing.TB, body string) {
	t.Helper()
	args, mistakes := Decode(t, n.r, body)
	if len(mistakes) > 0 {
		t.Fatal(mistakes)
	}
	if err := n.Component.Update(args); err != nil {
		t.Fatal(err)
	}
}

// Targets returns the targets that the component currently exports.
func (n *Node) Targets() []map[string]string {
	e, _ := n.Exports().(discovery.Exports)
	return e.Targets
}

// Await waits until ok returns true for the exported targets and returns them. It
// advances the clock of the node.
func (n *Node) Await(t testing.TB, what string, ok func([]map[string]string) bool) []map[string]string {
	t.Helper()
	n.await(t, what, func() bool { return ok(n.Targets()) })
	return n.Targets()
}

// AwaitHealth waits until the component has a state whose message contains text.
func (n *Node) AwaitHealth(t testing.TB, state component.HealthState, text string) {
	t.Helper()
	n.await(t, fmt.Sprintf("%s: %s", state, text), func() bool {
		h := n.Health()
		return h.State == state && strings.Contains(h.Message, text)
	})
}

func (n *Node) await(t testing.TB, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.NewTimer(2 * time.Minute) // the machine may be busy
	defer deadline.Stop()
	for !ok() {
		select {
		case <-tick.C:
			n.Clock.Advance(250 * time.Millisecond)
		case <-deadline.C:
			t.Fatalf("waited in vain for %s; health %+v, targets %v, log:\n%s", what, n.Health(), n.Targets(), n.Logs())
		}
	}
}

// Same fails the test unless the component finds the same n targets as Prometheus
// with a discovery config in YAML, which is decoded into cfg. It returns the
// component, which continues to run.
func Same(t testing.TB, r component.Registration, body string, cfg sd.Config, text string, n int) *Node {
	t.Helper()
	want := Prometheus(t, cfg, text, n)
	node := Run(t, r, body)
	got := node.Await(t, fmt.Sprintf("%d targets", n), func(ts []map[string]string) bool { return len(ts) == n })
	if diff := cmp.Diff(sorted(want), sorted(got)); diff != "" {
		t.Errorf("targets (-Prometheus +got):\n%s", diff)
	}
	return node
}

func sorted(ts []map[string]string) []map[string]string {
	ts = slices.Clone(ts)
	slices.SortFunc(ts, func(a, b map[string]string) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return ts
}

// Prometheus returns the targets of Prometheus's own discoverer when there are n
// of them.
func Prometheus(t testing.TB, cfg sd.Config, text string, n int) []map[string]string {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(text), cfg); err != nil {
		t.Fatal(err)
	}
	reg := prometheus.NewRegistry()
	refresh := sd.NewRefreshMetrics(reg)
	d, err := cfg.NewDiscoverer(sd.DiscovererOptions{
		Logger: promslog.NewNopLogger(), Metrics: cfg.NewDiscovererMetrics(reg, refresh), SetName: "test",
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	up := make(chan []*targetgroup.Group)
	done := make(chan struct{})
	go func() {
		defer close(done)
		d.Run(ctx, up)
	}()
	defer func() {
		cancel()
		<-done
	}()
	deadline := time.NewTimer(2 * time.Minute) // the machine may be busy
	defer deadline.Stop()
	groups := map[string]*targetgroup.Group{}
	for {
		select {
		case gs := <-up:
			for _, g := range gs {
				groups[g.Source] = g
			}
		case <-deadline.C:
			t.Fatalf("Prometheus does not find %d targets, but %d", n, len(flatten(groups)))
		}
		if ts := flatten(groups); len(ts) == n {
			return ts
		}
	}
}

// flatten returns the targets for groups like Prometheus's
// scrape.TargetsFromGroup, before relabelling.
func flatten(groups map[string]*targetgroup.Group) (ts []map[string]string) {
	for _, g := range groups {
		for _, set := range g.Targets {
			all := map[string]string{}
			for n, v := range set {
				all[string(n)] = string(v)
			}
			for n, v := range g.Labels {
				if _, ok := set[n]; !ok {
					all[string(n)] = string(v)
				}
			}
			ts = append(ts, all)
		}
	}
	return ts
}
