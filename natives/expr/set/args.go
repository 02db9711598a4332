package set

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/natives/expr/internal/clause"
)

// Arguments of expr.set. All expressions read the original record: for a sample, name,
// labels, value, type and time (Unix ms); for a log line, line, labels, meta (the
// structured metadata) and time. A missing label is "". If the block sets or uses a
// field that only samples have, it accepts samples. If it sets or uses a field that only
// log lines have, it accepts log lines. Otherwise, it accepts the same signals as its
// receivers. 'weir help expr' describes expressions.
type Arguments struct {
	// Expression for the metric's name, a string. 'weir help expr' describes
	// expressions.
	Name *clause.SampleText `alloy:"name,attr,optional"`
	// Expression for the value of a sample, a number. Staleness markers and native
	// histograms keep their values.
	Value *clause.SampleNumber `alloy:"value,attr,optional"`
	// Expression for the text of a log line, a string.
	Line *clause.LineText `alloy:"line,attr,optional"`
	// Labels to set, one block per label.
	Labels []*Label `alloy:"label,block,optional"`
	// Structured metadata of log lines to set, one block per name.
	Meta []*Meta `alloy:"meta,block,optional"`
	// Receivers of the samples and log lines.
	ForwardTo []*flow.Receiver `alloy:"forward_to,attr"`
}

// Label is a label to set.
type Label struct {
	Name string `alloy:",label"`
	// Expression for the label's value, a string; an empty string removes the label. For
	// samples, an expression that reads the value or the time creates a new series
	// whenever its result changes. The previous series gets no staleness marker, so
	// queries return both for five minutes. For log lines, an expression that reads the
	// line, its metadata or the time creates one stream per result.
	Value clause.Text `alloy:"value,attr"`
}

// Meta is a value of the structured metadata to set.
type Meta struct {
	Name string `alloy:",label"`
	// Expression for the value, a string; an empty string removes it.
	Value clause.LineText `alloy:"value,attr"`
}

// SetToDefault leaves all arguments unset.
func (a *Arguments) SetToDefault() { *a = Arguments{} }

// Validate returns all errors in the arguments, joined.
func (a *Arguments) Validate() error {
	if a.Name == nil && a.Value == nil && a.Line == nil && len(a.Labels) == 0 && len(a.Meta) == 0 {
		return errors.New("there is nothing to set: write name, value, line or a label or meta block")
	}
	var errs []error
	seen := map[string]bool{}
	for _, l := range a.Labels {
		switch {
		case l.Name == batch.NameLabel:
			errs = append(errs, errors.New("label \"__name__\" is the metric's name: set name instead"))
		case seen[l.Name]:
			errs = append(errs, fmt.Errorf("label %q is set twice", l.Name))
		}
		seen[l.Name] = true
	}
	clear(seen)
	for _, m := range a.Meta {
		if seen[m.Name] {
			errs = append(errs, fmt.Errorf("meta %q is set twice", m.Name))
		}
		seen[m.Name] = true
	}
	errs = append(errs, a.fit().Err())
	return errors.Join(errs...)
}

// same reports whether b has the same expressions and targets.
func (a *Arguments) same(b *Arguments) bool {
	without := func(a Arguments) Arguments { a.ForwardTo = nil; return a }
	return reflect.DeepEqual(without(*a), without(*b))
}

// fit returns the signals that the arguments support.
func (a *Arguments) fit() *clause.Fit {
	var fit clause.Fit
	if a.Name != nil {
		fit.Sets("name", batch.SignalMetrics)
	}
	if a.Value != nil {
		fit.Sets("value", batch.SignalMetrics)
	}
	if a.Line != nil {
		fit.Sets("line", batch.SignalLogs)
	}
	for _, l := range a.Labels {
		if l.Value != "" { // an empty expression has been reported already
			fit.Reads(fmt.Sprintf("label %q", l.Name), l.Value.Compile())
		}
	}
	for _, m := range a.Meta {
		fit.Sets(fmt.Sprintf("meta %q", m.Name), batch.SignalLogs)
	}
	return &fit
}

// passes implements Registration.Passes.
func passes(args any) (batch.Signals, string) { return args.(*Arguments).fit().Signals() }

// Exports of expr.set.
type Exports struct {
	// Receiver of the samples and log lines to change.
	Receiver *flow.Receiver `alloy:"receiver,attr"`
}
