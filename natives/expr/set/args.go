package set

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/natives/expr/internal/clause"
)

// Arguments of expr.set. All expressions see the record as it came: for a sample
// name, labels, value, type and time (Unix ms), for a log line, line, labels, meta
// (the structured metadata) and time. A label that is missing is "". A block that
// sets or uses something that only samples have takes samples, one that sets or
// uses something that only lines have takes lines; any other takes what its
// receivers take. 'weir help expr' describes expressions.
type Arguments struct {
	// Expression for the metric's name, a string. 'weir help expr' describes
	// expressions.
	Name *clause.SampleText `alloy:"name,attr,optional"`
	// Expression for a sample's value, a number. Staleness markers and native
	// histograms keep theirs.
	Value *clause.SampleNumber `alloy:"value,attr,optional"`
	// Expression for the text of a log line, a string.
	Line *clause.LineText `alloy:"line,attr,optional"`
	// Labels to set, each by its name.
	Labels []*Label `alloy:"label,block,optional"`
	// Structured metadata of log lines to set, each by its name.
	Meta []*Meta `alloy:"meta,block,optional"`
	// Receivers to send the samples and lines to.
	ForwardTo []*flow.Receiver `alloy:"forward_to,attr"`
}

// Label is a label to set.
type Label struct {
	Name string `alloy:",label"`
	// Expression for the label's value, a string; an empty one removes the
	// label. Of samples, one that reads the value or the time makes another series
	// each time that its result changes; the one before gets no staleness marker,
	// so that queries see both for five minutes. Of lines, one that reads the line,
	// its metadata or the time makes a stream for each of its results.
	Value clause.Text `alloy:"value,attr"`
}

// Meta is a value of the structured metadata to set.
type Meta struct {
	Name string `alloy:",label"`
	// Expression for the value, a string; an empty one removes it.
	Value clause.LineText `alloy:"value,attr"`
}

// SetToDefault leaves everything unset.
func (a *Arguments) SetToDefault() { *a = Arguments{} }

// Validate returns all that is wrong with the arguments, joined.
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

// same reports whether b sets the same to the same.
func (a *Arguments) same(b *Arguments) bool {
	without := func(a Arguments) Arguments { a.ForwardTo = nil; return a }
	return reflect.DeepEqual(without(*a), without(*b))
}

// fit is what the arguments are for.
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
		if l.Value != "" { // else there is a mistake in it
			fit.Reads(fmt.Sprintf("label %q", l.Name), l.Value.Compile())
		}
	}
	for _, m := range a.Meta {
		fit.Sets(fmt.Sprintf("meta %q", m.Name), batch.SignalLogs)
	}
	return &fit
}

// passes is Registration.Passes.
func passes(args any) (batch.Signals, string) { return args.(*Arguments).fit().Signals() }

// Exports of expr.set.
type Exports struct {
	// Where samples and lines to be changed go.
	Receiver *flow.Receiver `alloy:"receiver,attr"`
}
