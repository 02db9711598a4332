package enrich

import (
	"errors"
	"slices"

	"github.com/weir-run/weir/engine/flow"
)

// Arguments of prometheus.enrich.
type Arguments struct {
	// Targets to take labels from, such as those that a discovery exports. Of
	// several that match a series, the last counts.
	Targets []map[string]string `alloy:"targets,attr"`
	// Labels that must be equal and not empty, all of them: those of the target
	// as keys, those of the series as values. It wins over target_match_label.
	TargetToMetricMatch map[string]string `alloy:"target_to_metric_match,attr,optional"`
	// One label of the target that must be equal; older than
	// target_to_metric_match.
	TargetMatchLabel string `alloy:"target_match_label,attr,optional"`
	// The label of the series that target_match_label is compared with.
	// Default: the same name.
	MetricsMatchLabel string `alloy:"metrics_match_label,attr,optional"`
	// Labels of the target to copy; those it does not have stay as they are on
	// the series. Default: all, those that begin with __ too.
	LabelsToCopy []string `alloy:"labels_to_copy,attr,optional"`
	// Receivers to send the samples to.
	ForwardTo []*flow.Receiver `alloy:"forward_to,attr"`
}

// SetToDefault leaves everything unset.
func (a *Arguments) SetToDefault() { *a = Arguments{} }

// Validate wants something to match by.
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

// Warnings tells of what target_to_metric_match wins over.
func (a *Arguments) Warnings() (ws []string) {
	if len(a.TargetToMetricMatch) == 0 {
		return nil
	}
	if a.TargetMatchLabel != "" {
		ws = append(ws, "target_match_label has no effect beside target_to_metric_match")
	}
	if a.MetricsMatchLabel != "" {
		ws = append(ws, "metrics_match_label has no effect beside target_to_metric_match")
	}
	return ws
}

// match returns the labels to compare: of the target as keys, of the series as
// values.
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
	// Where samples to be enriched go.
	Receiver *flow.Receiver `alloy:"receiver,attr"`
}
