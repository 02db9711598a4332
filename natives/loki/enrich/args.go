package enrich

import (
	"errors"
	"slices"

	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/inventory"
)

// Arguments of loki.enrich.
type Arguments struct {
	// Targets to take labels from, such as those that a discovery exports. Of
	// several that match a stream, the last counts.
	Targets []map[string]string `alloy:"targets,attr"`
	// Label of the target that must be equal and not empty.
	TargetMatchLabel string `alloy:"target_match_label,attr"`
	// The label of the stream that target_match_label is compared with. Default:
	// the same name.
	LogsMatchLabel string `alloy:"logs_match_label,attr,optional"`
	// Labels of the target to copy; those it does not have, or has empty, stay
	// as they are on the stream. Default: all, those that begin with __ too.
	LabelsToCopy []string `alloy:"labels_to_copy,attr,optional"`
	// Receivers to send the lines to.
	ForwardTo []*flow.Receiver `alloy:"forward_to,attr"`
}

// SetToDefault leaves everything unset.
func (a *Arguments) SetToDefault() { *a = Arguments{} }

// Validate wants labels with names.
func (a *Arguments) Validate() error {
	var errs []error
	if a.TargetMatchLabel == "" {
		errs = append(errs, errors.New("target_match_label is empty: there is nothing to match by"))
	}
	if slices.Contains(a.LabelsToCopy, "") {
		errs = append(errs, errors.New("labels_to_copy has a label without a name"))
	}
	return errors.Join(errs...)
}

// spec returns what is copied to what.
func (a *Arguments) spec() inventory.Spec {
	of := a.LogsMatchLabel
	if of == "" {
		of = a.TargetMatchLabel
	}
	return inventory.Spec{
		Targets: a.Targets, Match: map[string]string{a.TargetMatchLabel: of},
		Copy: a.LabelsToCopy, KeepForEmpty: true,
	}
}

// Exports of loki.enrich.
type Exports struct {
	// Where lines to be enriched go.
	Receiver *flow.Receiver `alloy:"receiver,attr"`
}
