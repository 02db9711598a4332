// Package generation is what nodes have in common that make other series of
// those that come: sets of rules that follow each other while batches are on
// their way, and what each of them remembers of series.
//
// It is not a component. A component takes a Node from the one before it
// (Options.Previous), asks it for the generation of its rules, and lets it Run.
// A rule set that was replaced is kept for a while: the staleness markers that
// its series are owed should find the same handles in the memos downstream.
package generation

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/flow"
)

// sweepInterval is how often released series are forgotten.
const sweepInterval = time.Minute

// Rules is a set of rules and what it remembers of series. Its methods are
// called beside those that apply it.
type Rules interface {
	// Sweep forgets released series.
	Sweep()
	// Close gives back all that was derived; what is asked after it is derived
	// anew. Batches that hold the handles stay valid.
	Close()
}

// Sends is what batches leave through: a *flow.Sender, or several.
type Sends interface {
	EndLeaving(ctx context.Context)
	Sweep()
}

var _ Sends = (*flow.Sender)(nil)

// Generation is a set of rules and the number that it has to itself.
type Generation[R Rules] struct {
	Number uint64
	Rules  R
}

// Node is what the components of one node hand down: a rebuild is no change of
// rules. Its methods are safe for concurrent use.
type Node[R Rules] struct {
	sends Sends

	mu      sync.Mutex
	current *Generation[R] // nil before the first
	retired []R            // replaced since the last sweep
	dying   []R            // replaced before that
	running int
}

// NewNode returns a Node without rules, whose batches leave through sends.
func NewNode[R Rules](sends Sends) *Node[R] { return &Node[R]{sends: sends} }

// Next returns the current generation when its rules are the same, and else a
// new one of what made returns.
func (n *Node[R]) Next(same func(R) bool, made func() R) *Generation[R] {
	n.mu.Lock()
	defer n.mu.Unlock()
	number := uint64(1)
	if n.current != nil {
		if same(n.current.Rules) {
			return n.current
		}
		n.retired = append(n.retired, n.current.Rules)
		number = n.current.Number + 1
	}
	n.current = &Generation[R]{Number: number, Rules: made()}
	return n.current
}

// Run sweeps until ctx ends, and ends the series at receivers that are not
// sent to any more a while after it began and after each value of redirected.
// It returns nil.
func (n *Node[R]) Run(ctx context.Context, c clock.Clock, redirected <-chan struct{}) error {
	n.enter()
	defer n.leave()
	select {
	case <-redirected: // before it began
	default:
	}
	t := c.NewTimer(sweepInterval)
	defer t.Stop()
	end := c.NewTimer(flow.EndAfter)
	defer end.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-redirected:
			end.Reset(flow.EndAfter)
		case <-end.C():
			n.sends.EndLeaving(ctx)
		case <-t.C():
			n.sweep()
			t.Reset(sweepInterval)
		}
	}
}

// Current is the generation that one component of a Node works by. Its methods
// are safe for concurrent use.
type Current[R Rules] struct {
	node       *Node[R]
	gen        atomic.Pointer[Generation[R]]
	redirected chan struct{} // capacity 1
}

// Follow returns the Current of a new component; it has no generation yet.
func (n *Node[R]) Follow() *Current[R] {
	return &Current[R]{node: n, redirected: make(chan struct{}, 1)}
}

// Next makes Node.Next the generation to work by.
func (c *Current[R]) Next(same func(R) bool, made func() R) { c.gen.Store(c.node.Next(same, made)) }

// Load returns the generation to work by; nil before the first Next.
func (c *Current[R]) Load() *Generation[R] { return c.gen.Load() }

// Redirected says that the receivers may be others now. It does not block.
func (c *Current[R]) Redirected() {
	select {
	case c.redirected <- struct{}{}:
	default:
	}
}

// Run is Node.Run, which hears of Redirected.
func (c *Current[R]) Run(ctx context.Context, clk clock.Clock) error {
	return c.node.Run(ctx, clk, c.redirected)
}

func (n *Node[R]) enter() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.running++
}

// leave gives back what was derived once the node's last component stopped.
func (n *Node[R]) leave() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.running--; n.running > 0 {
		return
	}
	closeAll(n.dying)
	closeAll(n.retired)
	n.dying, n.retired = nil, nil
	n.current.Rules.Close()
}

func (n *Node[R]) sweep() {
	n.mu.Lock()
	defer n.mu.Unlock()
	closeAll(n.dying)
	n.dying, n.retired = n.retired, nil
	for _, r := range n.dying {
		r.Sweep()
	}
	n.current.Rules.Sweep()
	n.sends.Sweep()
}

func closeAll[R Rules](rs []R) {
	for _, r := range rs {
		r.Close()
	}
}
