package generation

import (
	"context"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
)

// Worker is the part of a component that is not its rules: it applies the current
// generation of them and sends what they make through one Sender. A component
// embeds it; Sender and Node go from one to the next.
type Worker[R Rules] struct {
	component.Options // without Previous
	Sender            *flow.Sender

	gen *Current[R]
}

// NewWorker returns the Worker of a new component, without rules. It goes on
// where that of the component before it is, if there was one.
func NewWorker[R Rules](o component.Options) *Worker[R] {
	before, ok := o.Previous.(interface{ worker() *Worker[R] })
	o.Previous = nil // kept, it would keep all that were before it
	if ok {
		b := before.worker()
		return &Worker[R]{Options: o, Sender: b.Sender, gen: b.gen.node.Follow()}
	}
	s := flow.NewSender()
	return &Worker[R]{Options: o, Sender: s, gen: NewNode[R](s).Follow()}
}

// worker is what a component that embeds w is known by.
func (w *Worker[R]) worker() *Worker[R] { return w }

// Set takes new arguments: Node.Next says what becomes of the rules.
func (w *Worker[R]) Set(to []*flow.Receiver, same func(R) bool, made func() R) {
	w.gen.Next(same, made)
	w.Sender.To(flow.NewOutput(w.Stats, to))
	w.gen.Redirected()
}

// Load returns the generation to work by; nil before the first Set.
func (w *Worker[R]) Load() *Generation[R] { return w.gen.Load() }

// Run sweeps until ctx ends.
func (w *Worker[R]) Run(ctx context.Context) error { return w.gen.Run(ctx, w.Clock) }
