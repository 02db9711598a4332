package discovery

import (
	"fmt"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/discovery/targetgroup"
)

// The limits for the targets of a component. An update that exceeds one is
// ignored, and the known targets stay.
const (
	// MaxTargets is the maximum number of targets. It is also the default
	// target_limit of a scrape.
	MaxTargets = 100_000
	// MaxLabels is the maximum size of their labels in bytes, including
	// labelBytes for each label.
	MaxLabels  = 256 << 20
	labelBytes = 32
)

var (
	errTargets = fmt.Errorf("more than %d targets were found: narrow the discovery, or divide it among several blocks", MaxTargets)
	errLabels  = fmt.Errorf("the labels of the targets that were found are larger than %d MiB: narrow the discovery, or divide it among several blocks", MaxLabels>>20)
)

// size returns the size in bytes of the labels of all targets of a group. Each
// target includes the labels of the group, so a short text can result in very
// large targets.
func size(g *targetgroup.Group) int {
	bytes := len(g.Targets) * labelsSize(g.Labels)
	for _, t := range g.Targets {
		bytes += labelsSize(t)
	}
	return bytes
}

func labelsSize(ls model.LabelSet) (bytes int) {
	for n, v := range ls {
		bytes += len(n) + len(v) + labelBytes
	}
	return bytes
}

// check returns an error if groups would exceed a limit: together with the known
// sources that they do not contain, or else by themselves.
func (s *Set) check(groups []*targetgroup.Group, together bool) error {
	targets, bytes := 0, 0
	if together {
		targets, bytes = s.targets, s.size
	}
	for _, g := range groups {
		if g == nil {
			continue
		}
		if old := s.groups[g.Source]; together && old != nil {
			targets, bytes = targets-len(old.entries), bytes-old.size
		}
		targets, bytes = targets+len(g.Targets), bytes+size(g)
	}
	switch {
	case targets > MaxTargets:
		return errTargets
	case bytes > MaxLabels:
		return errLabels
	}
	return nil
}
