package component

import "github.com/weir-run/weir/engine/flow"

// Explainer is a Component that can tell which of its steps change or drop a record.
type Explainer interface {
	// Explain returns the steps that change or drop a record, in order. one has a single
	// row, which must not be modified. Explain has no effect: it changes no state, sends
	// nothing and counts nothing. It is called from any goroutine, also while the
	// component processes batches.
	Explain(one flow.Batches) []Step
}

// Step is one step of a component, applied to one record.
type Step struct {
	Kind   string // what it is, a word such as rule
	Index  int    // its position among its kind, from 1; 0 if there is only one
	Name   string // such as the action of a rule
	Detail string // the arguments that matter, as they are written in the config
	// After is the record after the step. It has no row if the step dropped it.
	After flow.Batches
}
