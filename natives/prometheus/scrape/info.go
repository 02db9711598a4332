package scrape

import (
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir/engine/component"
)

// TargetInfo is a target in the result of DebugInfo.
type TargetInfo struct {
	URL        string            `json:"url"`
	Labels     map[string]string `json:"labels"`
	Health     string            `json:"health"` // "unknown", "up" or "down"
	Error      string            `json:"error,omitempty"`
	LastScrape time.Time         `json:"last_scrape,omitzero"`
	Seconds    float64           `json:"last_scrape_seconds"`
	Samples    int               `json:"last_scrape_samples"`
}

// maxShown is the maximum number of targets in an Info. Targets that are down
// come first.
const maxShown = 1000

// Info is the result of DebugInfo.
type Info struct {
	Targets []TargetInfo `json:"targets"`
	More    int          `json:"more_targets,omitempty"` // number of targets that are not in Targets
	Invalid []string     `json:"invalid,omitempty"`      // the first reasons why targets are not scraped
	Surplus int          `json:"surplus,omitempty"`      // number of targets that are not scraped because there are too many
}

// DebugInfo returns an Info.
func (c *Component) DebugInfo() any {
	c.mu.Lock()
	p := c.want
	loops := make([]*loop, 0, len(p.targets.all))
	for _, t := range p.targets.all {
		if l := c.loops[t.key]; l != nil {
			loops = append(loops, l)
		}
	}
	c.mu.Unlock()
	info := Info{Surplus: p.targets.surplus}
	for _, err := range p.targets.invalid {
		info.Invalid = append(info.Invalid, err.Error())
	}
	if len(loops) > maxShown {
		info.More = len(loops) - maxShown
		loops = downFirst(loops)[:maxShown]
	}
	for _, l := range loops {
		info.Targets = append(info.Targets, l.info())
	}
	slices.SortStableFunc(info.Targets, func(a, b TargetInfo) int { return strings.Compare(a.URL, b.URL) })
	return info
}

// downFirst returns the loops whose targets are down, followed by the other
// loops.
func downFirst(loops []*loop) []*loop {
	var down, others []*loop
	for _, l := range loops {
		l.mu.Lock()
		failed := l.err != nil
		l.mu.Unlock()
		if failed {
			down = append(down, l)
		} else {
			others = append(others, l)
		}
	}
	return append(down, others...)
}

func (l *loop) info() TargetInfo {
	j := l.job.Load()
	t := TargetInfo{URL: j.redacted, Labels: make(map[string]string, len(j.tags)), Health: "unknown"}
	for _, tag := range j.tags {
		t.Labels[tag.Name] = tag.Value
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last.IsZero() {
		return t
	}
	t.Health, t.LastScrape, t.Seconds, t.Samples = "up", l.last, l.took.Seconds(), l.samples
	if l.err != nil {
		t.Health, t.Error = "down", component.HideURLs(l.err.Error())
	}
	return t
}
