package scrape

import (
	"fmt"
	"maps"
	"reflect"

	"github.com/weir-run/weir/engine/component"
)

var _ component.TargetExplainer = (*Component)(nil)

// limits are the outcomes of a scrape that exceeded a limit.
var limits = map[string]bool{
	outcomeBodySize: true, outcomeSampleLimit: true, outcomeBucketLimit: true, outcomeLabelLimit: true, outcomeTargetLimit: true,
}

// ExplainTarget returns whether a target is up, or why it is not scraped. If the last
// scrape exceeded a limit, that is its step.
func (c *Component) ExplainTarget(target map[string]string) component.TargetResult {
	c.mu.Lock()
	p := c.want
	m, ok := p.targets.find(target)
	var loops []*loop
	for _, t := range m.to {
		if l := c.loops[t.key]; l != nil {
			loops = append(loops, l)
		}
	}
	c.mu.Unlock()
	switch {
	case !ok && p.targets.surplus > 0:
		return component.TargetResult{Result: "dropped", Reason: fmt.Sprintf("there are too many targets: %d are scraped, and %d more are not; a higher target_limit allows more", len(p.targets.all), p.targets.surplus)}
	case !ok:
		return component.TargetResult{Result: "unknown", Reason: "the component does not have this target yet"}
	case m.err != nil:
		return component.TargetResult{Result: "invalid", Reason: component.HideURLs(m.err.Error())}
	case len(loops) == 0:
		return component.TargetResult{Result: "unknown", Reason: "it was not scraped yet"}
	}
	var out component.TargetResult
	for _, l := range loops { // usually one
		if out.Result != "down" {
			out = l.result(target)
		}
	}
	return out
}

// find returns the result of a label map.
func (ts *targets) find(labels map[string]string) (made, bool) {
	if m, ok := ts.made[reflect.ValueOf(labels).Pointer()]; ok {
		return m, true
	}
	for _, m := range ts.made {
		if maps.Equal(m.from, labels) {
			return m, true
		}
	}
	return made{}, false
}

func (l *loop) result(target map[string]string) component.TargetResult {
	info := l.info()
	out := component.TargetResult{Result: info.Health}
	switch info.Health {
	case "up":
		out.Reason = fmt.Sprintf("%s returned %d samples", info.URL, info.Samples)
	case "down":
		out.Reason = fmt.Sprintf("%s: %s", info.URL, info.Error)
		l.mu.Lock()
		name := outcome(l.err)
		l.mu.Unlock()
		if limits[name] {
			out.Reason = info.URL
			out.Steps = []component.Step{{Kind: "limit", Name: name, Detail: info.Error, After: component.TargetRecord(target)}}
		}
	default:
		out.Reason = info.URL + " was not scraped yet"
	}
	return out
}
