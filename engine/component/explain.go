package component

import (
	"context"
	"maps"
	"slices"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/flow"
)

// Explainer is a Component that can tell which of its steps change or drop a record.
type Explainer interface {
	// Explain returns the steps that change or drop a record, in order, those that may
	// have dropped it or decide where it goes, and errors. one has a single row, which must not be modified. Explain has
	// no effect: it changes no state, sends nothing and counts nothing. It is called
	// from any goroutine, also while the component processes batches. The error is why
	// the component cannot explain the record.
	Explain(ctx context.Context, one flow.Batches) ([]Step, error)
}

// StepError is the Kind of a step that is an error, of a script for example.
const StepError = "error"

// StepRoute is the Kind of a step that decides where a record goes.
const StepRoute = "route"

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

// TargetExplainer is a Component that can tell what it does with the targets in its
// arguments.
type TargetExplainer interface {
	// ExplainTarget returns the result for a target with these labels. It has no effect
	// and is called from any goroutine.
	ExplainTarget(target map[string]string) TargetResult
}

// TargetResult is what a component does with a target.
type TargetResult struct {
	// Result is unchanged, changed or dropped; or up, down, unknown (it was not scraped
	// yet) or invalid, if the component scrapes targets.
	Result string
	Reason string
	// After is the target that the component exports; nil if there is none.
	After map[string]string
	// Steps are the steps that changed or dropped the target, as in Explainer. Its
	// records are TargetRecords.
	Steps []Step
}

// TargetRecord returns a target as a sample with the labels of the target.
func TargetRecord(target map[string]string) flow.Batches {
	var ls []batch.Label
	for _, name := range slices.Sorted(maps.Keys(target)) {
		if target[name] != "" {
			ls = append(ls, batch.Label{Name: name, Value: target[name]})
		}
	}
	return flow.Batches{Metrics: []*batch.Metrics{{Series: []*batch.Series{batch.NewSeries(ls)}, T: []int64{0}, V: []float64{0}}}}
}
