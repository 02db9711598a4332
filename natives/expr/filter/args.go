package filter

import (
	"errors"

	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/natives/expr/clause"
)

// Arguments of expr.filter.
type Arguments struct {
	// Expression; samples for which it is true are dropped. It sees name,
	// labels, value, type and time (Unix ms). A missing label is "".
	Drop *clause.Predicate `alloy:"drop,attr,optional"`
	// Expression; samples for which it is false are dropped. Exactly one of
	// drop and keep is set.
	Keep *clause.Predicate `alloy:"keep,attr,optional"`
	// Receivers to send the samples to that are left.
	ForwardTo []*flow.Receiver `alloy:"forward_to,attr"`
}

// SetToDefault leaves everything unset.
func (a *Arguments) SetToDefault() { *a = Arguments{} }

// Validate wants exactly one expression.
func (a *Arguments) Validate() error {
	switch {
	case a.Drop == nil && a.Keep == nil:
		return errors.New("one of drop and keep must be set")
	case a.Drop != nil && a.Keep != nil:
		return errors.New("drop and keep cannot both be set: drop what is true, or keep only that")
	}
	return nil
}

// Exports of expr.filter.
type Exports struct {
	// Where samples to be filtered go.
	Receiver *flow.Receiver `alloy:"receiver,attr"`
}
