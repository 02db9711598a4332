package generation

import (
	"context"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
)

// Worker is the part of a component that is not its rules: it applies the current
// generation of them and sends what they make through one Sender. A component
// embeds it, and takes over Sender and Node from the one before it.
type Worker[R Rules] struct {
	component.Options // without Previous
	Sender            *flow.Sender

	gen *Current[R]
}

// NewWorker returns the Worker of a new component without rules; before is that
// of the component before it, nil when there was none.
func NewWorker[R Rules](o component.Options, before *Worker[R]) *Worker[R] {
	o.Previous = nil // kept, it would keep all that were before it
	w := &Worker[R]{Options: o}
	if before != nil {
		w.Sender, w.gen = before.Sender, before.gen.node.Follow()
		return w
	}
	w.Sender = flow.NewSender()
	w.gen = NewNode[R](w.Sender).Follow()
	return w
}

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
