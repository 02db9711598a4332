package scripttest

import (
	"cmp"
	"context"
	"fmt"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/scripting"
)

// Sources under test. Nothing of them happens by itself: a test polls them, or
// sets the clock forward.

// poll polls a source once.
func (n *node) poll(ctx context.Context) (*output, error) {
	c, ok := n.comp.(*scripting.Component)
	if !ok {
		return nil, fmt.Errorf("cannot poll %s: it is no scripted source", n.name)
	}
	before := n.begin()
	if err := c.Poll(scripting.Observe(ctx, n.failed)); err != nil {
		return nil, err
	}
	if _, err := n.settled(ctx); err != nil {
		return nil, err
	}
	return n.output(&batch.Metrics{}, before), nil
}

// export keeps what the component exports.
func (n *node) export(v any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.exports = v
}

// made is what the hooks of a component have made, as a batch of a test. An
// error in the script fails the test.
func (s *session) made(out *output, err error) (scripting.Value, error) {
	if err := cmp.Or(s.mocks.takeDenied(), err); err != nil {
		return nil, err
	}
	if len(out.errors) > 0 {
		return nil, &scriptFailure{out.errors[0]}
	}
	out.typ = batchType
	return &scripting.Object{Type: batchType, Data: out}, nil
}

// ready returns an error for a component that has ended, and lets chaos have
// its way with another.
func (s *session) ready(n *node) error { return cmp.Or(s.usable(n), s.chaos.before(s.ctx, n)) }

// sourceMethods are those of a source under test.
func (s *session) sourceMethods() []scripting.Function {
	return []scripting.Function{
		{Name: "poll", Doc: "Polls a source once and returns what comes out of it. It is not polled by itself, but by advance, when its interval has passed. An error in the script fails the test.",
			Result: scripting.Result{Kind: scripting.KindObject, Type: batchType},
			Fn: func(a []scripting.Value) (scripting.Value, error) {
				n := a[0].(*node)
				if err := s.ready(n); err != nil {
					return nil, err
				}
				return s.made(n.poll(s.ctx))
			}},
	}
}
