package filter

import (
	"errors"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/natives/expr/internal/clause"
)

// Arguments of expr.filter.
type Arguments struct {
	// Boolean expression; samples and log lines for which it is true are dropped. For a
	// sample, it can use name, labels, value, type and time (Unix ms); for a log line,
	// it can use line, labels, meta (the structured metadata) and time. A missing label
	// is "". If the expression uses name, value or type, the block accepts only samples.
	// If it uses line or meta, the block accepts only log lines. Otherwise, the block
	// accepts the same signals as its receivers. 'weir help expr' describes expressions.
	Drop *clause.Predicate `alloy:"drop,attr,optional"`
	// Boolean expression; samples and log lines for which it is false are dropped. Set
	// exactly one of drop and keep.
	Keep *clause.Predicate `alloy:"keep,attr,optional"`
	// Receivers of the remaining samples and log lines.
	ForwardTo []*flow.Receiver `alloy:"forward_to,attr"`
}

// SetToDefault leaves all arguments unset.
func (a *Arguments) SetToDefault() { *a = Arguments{} }

// Validate checks that exactly one expression is set.
func (a *Arguments) Validate() error {
	switch {
	case a.Drop == nil && a.Keep == nil:
		return errors.New("one of drop and keep must be set")
	case a.Drop != nil && a.Keep != nil:
		return errors.New("drop and keep cannot both be set: drop what is true, or keep only that")
	}
	return nil
}

// source returns the expression that is set, or nil, and whether it is drop.
func (a *Arguments) source() (src *clause.Predicate, drop bool) {
	if a.Drop != nil {
		return a.Drop, true
	}
	return a.Keep, false
}

// passes implements Registration.Passes.
func passes(args any) (batch.Signals, string) {
	var fit clause.Fit
	if src, drop := args.(*Arguments).source(); src != nil {
		fit.Reads(argument(drop), src.Compile())
	}
	return fit.Signals()
}

// argument returns the name of the argument with the expression.
func argument(drop bool) string {
	if drop {
		return "drop"
	}
	return "keep"
}

// Exports of expr.filter.
type Exports struct {
	// Receiver of the samples and log lines to filter.
	Receiver *flow.Receiver `alloy:"receiver,attr"`
}
