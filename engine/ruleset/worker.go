package ruleset

import (
	"context"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
)

// Worker is what components with rules have in common: the current version of
// the rules, and one Sender for their output. A component embeds it, and the
// component that replaces it inherits Sender and Node.
type Worker[R Rules] struct {
	component.Options
	Sender *flow.Sender

	current *Current[R]
}

// NewWorker returns the Worker of a new component, without rules. It inherits
// Sender and Node from previous, which may be nil.
func NewWorker[R Rules](o component.Options, previous component.Component) *Worker[R] {
	if before, ok := previous.(interface{ worker() *Worker[R] }); ok {
		b := before.worker()
		return &Worker[R]{Options: o, Sender: b.Sender, current: b.current.node.Follow()}
	}
	s := flow.NewSender()
	return &Worker[R]{Options: o, Sender: s, current: NewNode[R](s).Follow()}
}

// worker identifies components that embed w.
func (w *Worker[R]) worker() *Worker[R] { return w }

// Set applies new arguments. Node.Next describes same and create.
func (w *Worker[R]) Set(to []*flow.Receiver, same func(R) bool, create func() R) {
	w.current.Next(same, create)
	w.Sender.To(flow.NewOutput(w.Stats, to))
	w.current.Redirected()
}

// Load returns the version to apply; nil before the first Set.
func (w *Worker[R]) Load() *Version[R] { return w.current.Load() }

// Run sweeps until ctx ends.
func (w *Worker[R]) Run(ctx context.Context) error { return w.current.Run(ctx, w.Clock) }
