package component

import (
	"context"

	"github.com/weir-run/weir/engine/flow"
)

// Explainer is a Component that can tell which of its steps change or drop a record.
type Explainer interface {
	// Explain returns the steps that change or drop a record, in order, those that may
	// have dropped it, and errors. one has a single row, which must not be modified. Explain has
	// no effect: it changes no state, sends nothing and counts nothing. It is called
	// from any goroutine, also while the component processes batches. The error is why
	// the component cannot explain the record.
	Explain(ctx context.Context, one flow.Batches) ([]Step, error)
}

// StepError is the Kind of a step that is an error, of a script for example.
const StepError = "error"

// Step is one step of a component, applied to one record.
type Step struct {
	Within string // the step that contains it, such as "stage 3 match"
	Kind   string // what it is, a word such as rule
	Index  int    // its position among its kind, from 1; 0 if there is only one
	Name   string // such as the action of a rule
	Detail string // the arguments that matter, as they are written in the config
	// After is the record after the step. It has no row if the step dropped it, and
	// several if the step divided it.
	After flow.Batches
	// Added are the records that the step added.
	Added flow.Batches
	// Also are changes that After does not show, such as "extracted level=\"debug\"".
	Also []string
	// Depends is what the result depends on that is unknown, such as "the rate of
	// lines". The step may have dropped the record, or, if Later is set, it may send the
	// record later. After is then the record as the step lets it pass.
	Depends string
	Later   bool
}
