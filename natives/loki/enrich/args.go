package enrich

import (
	"errors"
	"slices"

	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/inventory"
)

// Arguments of loki.enrich.
type Arguments struct {
	// Targets to copy labels from, such as the targets that a discovery component
	// exports. If several targets match a stream, the last one is used.
	Targets []map[string]string `alloy:"targets,attr"`
	// Label of the target to compare. It must not be empty.
	TargetMatchLabel string `alloy:"target_match_label,attr"`
	// Label of the stream to compare with target_match_label. Default: the same name.
	LogsMatchLabel string `alloy:"logs_match_label,attr,optional"`
	// Labels of the target to copy. If the target does not have a label, or it is empty,
	// the label of the stream is kept. Default: all labels, including those that begin
	// with __.
	LabelsToCopy []string `alloy:"labels_to_copy,attr,optional"`
	// Receivers of the lines.
	ForwardTo []*flow.Receiver `alloy:"forward_to,attr"`
}

// SetToDefault leaves all arguments unset.
func (a *Arguments) SetToDefault() { *a = Arguments{} }

// Validate checks that the label names are not empty.
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

// spec returns which labels are copied, and to which.
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
	// Receiver of the lines to enrich.
	Receiver *flow.Receiver `alloy:"receiver,attr"`
}
