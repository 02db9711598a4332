package set

import (
	"errors"
	"fmt"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/natives/expr/clause"
)

// Arguments of expr.set. All expressions see the sample as it came: name,
// labels, value, type and time (Unix ms); a missing label is "".
type Arguments struct {
	// Expression for the metric's name, a string.
	Name *clause.Text `alloy:"name,attr,optional"`
	// Expression for the value, a number. Staleness markers and native
	// histograms keep theirs.
	Value *clause.Number `alloy:"value,attr,optional"`
	// Labels to set, each by its name.
	Labels []*Label `alloy:"label,block,optional"`
	// Receivers to send the samples to.
	ForwardTo []*flow.Receiver `alloy:"forward_to,attr"`
}

// Label is a label to set.
type Label struct {
	Name string `alloy:",label"`
	// Expression for the label's value, a string; an empty one removes the
	// label. One that reads the value or the time makes another series each
	// time that its result changes; the one before gets no staleness marker,
	// so that queries see both for five minutes.
	Value clause.Text `alloy:"value,attr"`
}

// SetToDefault leaves everything unset.
func (a *Arguments) SetToDefault() { *a = Arguments{} }

// Validate returns all that is wrong with the arguments, joined.
func (a *Arguments) Validate() error {
	if a.Name == nil && a.Value == nil && len(a.Labels) == 0 {
		return errors.New("there is nothing to set: write name, value or a label block")
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
	return errors.Join(errs...)
}

// Exports of expr.set.
type Exports struct {
	// Where samples to be changed go.
	Receiver *flow.Receiver `alloy:"receiver,attr"`
}
