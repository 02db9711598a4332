package filter

import (
	"errors"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/natives/expr/clause"
)

// Arguments of expr.filter.
type Arguments struct {
	// Expression; samples and log lines for which it is true are dropped. Of a
	// sample it sees name, labels, value, type and time (Unix ms); of a line, line,
	// labels, meta (its structured metadata) and time. What is missing is "". A
	// block with an expression that reads name, value or type takes samples only,
	// with one that reads line or meta lines only, else what its receivers take.
	Drop *clause.Predicate `alloy:"drop,attr,optional"`
	// Expression; samples and lines for which it is false are dropped. Exactly one
	// of drop and keep is set.
	Keep *clause.Predicate `alloy:"keep,attr,optional"`
	// Receivers to send to what is left.
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

// source returns the expression that is set, nil while none is known, and whether
// it is drop.
func (a *Arguments) source() (src *clause.Predicate, drop bool) {
	if a.Drop != nil {
		return a.Drop, true
	}
	return a.Keep, false
}

// passes is Registration.Passes.
func passes(args any) (batch.Signals, string) {
	var fit clause.Fit
	if src, drop := args.(*Arguments).source(); src != nil {
		fit.Reads(argument(drop), src.Compile())
	}
	return fit.Signals()
}

// argument is what the expression is called.
func argument(drop bool) string {
	if drop {
		return "drop"
	}
	return "keep"
}

// Exports of expr.filter.
type Exports struct {
	// Where samples and lines to be filtered go.
	Receiver *flow.Receiver `alloy:"receiver,attr"`
}
