package discovery_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/discovery/targetgroup"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/natives/discovery/internal/discovery"
)

// many returns a group of n targets that all have the given labels.
func many(source string, n int, labels model.LabelSet) *targetgroup.Group {
	g := &targetgroup.Group{Source: source, Labels: labels, Targets: make([]model.LabelSet, n)}
	for i := range g.Targets {
		g.Targets[i] = model.LabelSet{model.AddressLabel: model.LabelValue(fmt.Sprint("h:", i))}
	}
	return g
}

// feed is a discoverer that sends the updates from a channel.
func feed(say <-chan []*targetgroup.Group) script {
	return script{run: func(ctx context.Context, _ *slog.Logger, up chan<- []*targetgroup.Group) {
		for {
			select {
			case u := <-say:
				up <- u
			case <-ctx.Done():
				return
			}
		}
	}}
}

func TestTooManyTargets(t *testing.T) { synctest.Test(t, testTooManyTargets) }

func testTooManyTargets(t *testing.T) {
	say := make(chan []*targetgroup.Group)
	b := start(t, discovery.Kind{}, feed(say))
	refused := 0.0
	f := func(want string, u ...*targetgroup.Group) {
		t.Helper()
		say <- u
		b.pass(time.Second)
		b.wantHealth(component.Unhealthy, want)
		b.want("a:1")
		refused++
		if got := testutil.ToFloat64(gauge(b, "weir_discovery_refused_updates_total")); got != refused {
			t.Errorf("got %v refused updates, want %v", got, refused)
		}
	}
	say <- one("a", "a:1")
	b.want("a:1")

	f("more than 100000 targets", many("a", discovery.MaxTargets+1, nil))
	f("more than 100000 targets", many("a", discovery.MaxTargets, nil), many("b", 1, nil))
	// One set of labels, repeated by each target.
	wide := model.LabelSet{}
	for i := range 1000 {
		wide[model.LabelName(fmt.Sprint("l", i))] = model.LabelValue(strings.Repeat("x", 100))
	}
	f("larger than 256 MiB", many("a", 10_000, wide))
	if n := strings.Count(b.n.Logs(), "cannot use the targets"); n != 1 {
		t.Errorf("it was logged %d times, want once", n)
	}

	say <- one("b", "b:1")
	b.pass(time.Second)
	b.want("b:1")
	b.wantHealth(component.Healthy, "found 1 target")
}

func TestTooManyTargetsOfStream(t *testing.T) { synctest.Test(t, testTooManyTargetsOfStream) }

func testTooManyTargetsOfStream(t *testing.T) {
	say := make(chan []*targetgroup.Group)
	b := start(t, discovery.Kind{Stream: true, Forget: time.Minute}, feed(say))
	say <- one("a", "a:1")
	say <- []*targetgroup.Group{many("b", discovery.MaxTargets, nil)}
	b.pass(time.Second)
	b.want("a:1")
	b.wantHealth(component.Unhealthy, "more than 100000 targets")

	// The discovery is restarted after a minute, and only a complete update
	// within the limit is accepted.
	for range 61 {
		b.pass(time.Second)
	}
	say <- one("a", "a:1")
	b.wantHealth(component.Unhealthy, "more than 100000 targets")
	say <- one("b", "b:1")
	b.pass(time.Second)
	b.pass(time.Second)
	b.want("a:1", "b:1")
	b.wantHealth(component.Healthy, "found 2 targets")
}

func TestParseJSON(t *testing.T) {
	f := func(text string, groups int, want string) {
		t.Helper()
		got, err := discovery.ParseJSON([]byte(text))
		switch {
		case want == "" && (err != nil || len(got) != groups):
			t.Errorf("%.60s: got %d groups, %v, want %d", text, len(got), err, groups)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%.60s: got %v, want %q", text, err, want)
		}
	}
	f(`[]`, 0, "")
	f(` null `, 0, "")
	f(`[{"targets": ["a:1"], "labels": null}, {}]`, 2, "")
	f(``, 0, "unexpected end of JSON input")
	f(`{}`, 0, "not a JSON list")
	f(`[{"targets": ["a:1"]}`, 0, "unexpected end of JSON input")
	f(`[] []`, 0, "unexpected [ after the list")
	f(`[{"target": []}]`, 0, "unknown field")
	f(`[null]`, 0, "nil target group item found")
	f(`[`+strings.Repeat(`{},`, discovery.MaxTargets)+`{}]`, 0, "more than 100000 targets")
	f(`[{"targets": [`+strings.Repeat(`"",`, discovery.MaxTargets)+`""]}]`, 0, "more than 100000 targets")
}
