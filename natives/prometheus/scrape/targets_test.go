package scrape

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/component"
)

func targetArguments() *Arguments {
	a := new(Arguments)
	a.SetToDefault()
	return a
}

func urls(ts *targets) (out []string) {
	for _, t := range ts.all {
		out = append(out, t.url)
	}
	return out
}

// TestTargetsThatAreKnown: the result for a map is reused, and a different map
// does not get it.
func TestTargetsThatAreKnown(t *testing.T) {
	cfg := targetArguments().config("job")
	maps := []map[string]string{{"__address__": "a:1"}, {"__address__": "b:1"}, {"__address__": "b:1"}, {"__address__": "no/host"}}
	first := newTargets(maps, cfg, nil, maxTargets)
	if diff := cmp.Diff([]string{"http://a:1/metrics", "http://b:1/metrics"}, urls(first)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	maps = []map[string]string{{"__address__": "new:1"}, maps[3], maps[1]}
	second := newTargets(maps, cfg, first.made, maxTargets)
	if diff := cmp.Diff([]string{"http://b:1/metrics", "http://new:1/metrics"}, urls(second)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if second.all[0] != first.all[1] {
		t.Error("a target that was known is made again")
	}
	if len(second.made) != 3 {
		t.Errorf("%d maps are remembered, want those of the last list", len(second.made))
	}
	if second.broken != 1 || !strings.Contains(second.invalid[0].Error(), "target 2 (no/host)") {
		t.Errorf("%d targets are invalid: %v", second.broken, second.invalid)
	}
}

// TestTooManyTargets: targets that are already scraped continue, new ones are
// accepted while there is room, and the rest is not kept in memory.
func TestTooManyTargets(t *testing.T) {
	cfg := targetArguments().config("job")
	const most = 10
	var maps []map[string]string
	for i := range 1000 {
		maps = append(maps, map[string]string{"__address__": fmt.Sprintf("h%d:1", i)})
	}
	before := newTargets(maps[990:995], cfg, nil, most)
	ts := newTargets(maps, cfg, before.made, most)
	want := append(urls(before), "http://h0:1/metrics", "http://h1:1/metrics", "http://h2:1/metrics", "http://h3:1/metrics", "http://h4:1/metrics")
	if diff := cmp.Diff(want, urls(ts)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if ts.surplus != 990 || len(ts.made) != most {
		t.Errorf("surplus is %d, remembered are %d", ts.surplus, len(ts.made))
	}
	h := ts.health(time.Time{})
	if h.State != component.Unhealthy || !strings.Contains(h.Message, "scraping 10 targets, not 990 more") {
		t.Errorf("health is %+v", h)
	}
}

// TestManyInvalidTargets: the number of errors that are kept and logged is
// limited.
func TestManyInvalidTargets(t *testing.T) {
	cfg := targetArguments().config("job")
	var maps []map[string]string
	for i := range 1000 {
		maps = append(maps, map[string]string{"__address__": fmt.Sprintf("no/%d", i)})
	}
	maps = append(maps, map[string]string{"__address__": "a:1"})
	ts := newTargets(maps, cfg, nil, maxTargets)
	if len(ts.all) != 1 || ts.broken != 1000 || len(ts.invalid) != maxInvalid {
		t.Errorf("%d targets, %d broken, %d reasons", len(ts.all), ts.broken, len(ts.invalid))
	}
	if ts := newTargets(maps, cfg, nil, 100); len(ts.made) != 200 || ts.surplus != 801 {
		t.Errorf("%d maps are remembered, %d left out", len(ts.made), ts.surplus)
	}
}

// TestFirstOfMany: a few targets are scraped within a second of the start; very
// many are spread over a longer time.
func TestFirstOfMany(t *testing.T) {
	now := time.Unix(1_735_689_600, 0)
	var maps []map[string]string
	for i := range 500 {
		maps = append(maps, map[string]string{"__address__": fmt.Sprintf("h%d:1", i)})
	}
	ts := newTargets(maps, targetArguments().config("job"), nil, maxTargets)
	f := func(of int, least, most time.Duration) {
		t.Helper()
		last := time.Duration(0)
		for _, tg := range ts.all {
			last = max(last, tg.first(now, of).Sub(now))
		}
		if last < least || last > most {
			t.Errorf("the last of %d is scraped after %s", of, last)
		}
	}
	f(1, 500*time.Millisecond, time.Second)
	f(5000, 500*time.Millisecond, time.Second)
	f(100_000, 15*time.Second, 20*time.Second)
	f(10_000_000, 50*time.Second, time.Minute) // limited by the interval
}

// TestExplainTargetNotScraped names why a target is not scraped.
func TestExplainTargetNotScraped(t *testing.T) {
	cfg := targetArguments().config("job")
	valid, invalid, surplus := map[string]string{"__address__": "a:1"}, map[string]string{"__address__": "no/host"}, map[string]string{"__address__": "b:1"}
	c := &Component{want: &plan{targets: newTargets([]map[string]string{valid, invalid, surplus}, cfg, nil, 1)}}
	f := func(target map[string]string, result, reason string) {
		t.Helper()
		if got := c.ExplainTarget(target); got.Result != result || got.Reason != reason {
			t.Errorf("%v: got %s: %s", target, got.Result, got.Reason)
		}
	}
	f(valid, "unknown", "it was not scraped yet")
	f(map[string]string{"__address__": "a:1"}, "unknown", "it was not scraped yet") // another map
	f(surplus, "dropped", "there are too many targets: 1 are scraped, and 2 more are not; a higher target_limit allows more")
	c.want.targets = newTargets([]map[string]string{valid, invalid}, cfg, nil, 10)
	f(invalid, "invalid", `"no/host" is not a valid hostname`)
	f(surplus, "unknown", "the component does not have this target yet")
}
