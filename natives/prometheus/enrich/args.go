package enrich

import (
	"errors"
	"slices"

	"github.com/weir-run/weir/engine/flow"
)

// Arguments of prometheus.enrich.
type Arguments struct {
	// Targets to copy labels from, such as the targets that a discovery component
	// exports. If several targets match a series, the last one is used.
	Targets []map[string]string `alloy:"targets,attr"`
	// Pairs of labels that must be equal and not empty: labels of the target as keys,
	// labels of the series as values. It takes precedence over target_match_label.
	TargetToMetricMatch map[string]string `alloy:"target_to_metric_match,attr,optional"`
	// Label of the target to compare, if only one label is compared. Prefer
	// target_to_metric_match.
	TargetMatchLabel string `alloy:"target_match_label,attr,optional"`
	// Label of the series to compare with target_match_label. Default: the same name.
	MetricsMatchLabel string `alloy:"metrics_match_label,attr,optional"`
	// Labels of the target to copy. If the target does not have a label, the label of
	// the series is kept. Default: all labels, including those that begin with __.
	LabelsToCopy []string `alloy:"labels_to_copy,attr,optional"`
	// Receivers of the samples.
	ForwardTo []*flow.Receiver `alloy:"forward_to,attr"`
}

// SetToDefault leaves all arguments unset.
func (a *Arguments) SetToDefault() { *a = Arguments{} }

// Validate checks that there is a label to match.
func (a *Arguments) Validate() error {
	for of, label := range a.TargetToMetricMatch {
		if of == "" || label == "" {
			return errors.New("target_to_metric_match has a label without a name, which nothing matches")
		}
	}
	switch {
	case slices.Contains(a.LabelsToCopy, ""):
		return errors.New("labels_to_copy has a label without a name")
	case len(a.TargetToMetricMatch) > 0:
		return nil
	case a.TargetMatchLabel == "" && a.MetricsMatchLabel == "":
		return errors.New("there is nothing to match by: set target_to_metric_match, or target_match_label")
	case a.TargetMatchLabel == "":
		return errors.New("metrics_match_label needs target_match_label, or target_to_metric_match in place of both")
	}
	return nil
}

// Warnings names arguments that target_to_metric_match overrides.
func (a *Arguments) Warnings() (ws []string) {
	if len(a.TargetToMetricMatch) == 0 {
		return nil
	}
	if a.TargetMatchLabel != "" {
		ws = append(ws, "target_match_label has no effect when target_to_metric_match is set")
	}
	if a.MetricsMatchLabel != "" {
		ws = append(ws, "metrics_match_label has no effect when target_to_metric_match is set")
	}
	return ws
}

// match returns the labels to compare, with labels of the target as keys and
// labels of the series as values.
func (a *Arguments) match() map[string]string {
	switch {
	case len(a.TargetToMetricMatch) > 0:
		return a.TargetToMetricMatch
	case a.MetricsMatchLabel == "":
		return map[string]string{a.TargetMatchLabel: a.TargetMatchLabel}
	}
	return map[string]string{a.TargetMatchLabel: a.MetricsMatchLabel}
}

// Exports of prometheus.enrich.
type Exports struct {
	// Receiver of the samples to enrich.
	Receiver *flow.Receiver `alloy:"receiver,attr"`
}
