// Package ruleset replaces the rules of a node while batches flow through it,
// and caches the series that the rules derived. Components that transform series
// (relabel, enrich, expr.*, loki.process) share it.
//
// A component inherits the Node of the component it replaces, sets its rules with Next, and calls Run. Replaced rules are
// kept for one to two sweeps, so that the staleness markers of their series still
// find the same handles in the caches downstream.
package ruleset

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

// Rules is a set of rules and its cache of derived series. Its methods are
// called concurrently with those that apply the rules.
type Rules interface {
	// Sweep forgets released series.
	Sweep()
	// Close releases all derived series; later calls derive them again. Batches
	// that hold the handles stay valid.
	Close()
}

// Sends is the output of a node: a *flow.Sender, or several.
type Sends interface {
	EndLeaving(ctx context.Context)
	Sweep()
}

var _ Sends = (*flow.Sender)(nil)

// Version is a set of rules with a number that no other rules of the node had.
type Version[R Rules] struct {
	Number uint64
	Rules  R
}

// Node holds the rules of a node of the graph. Each rebuilt component of the node
// inherits it, so that a rebuild with equal rules changes nothing. Its methods are
// safe for concurrent use.
type Node[R Rules] struct {
	sends Sends

	mu      sync.Mutex
	current *Version[R] // nil before the first
	retired []R         // replaced since the last sweep
	dying   []R         // replaced before that
	running int
}

// NewNode returns a Node without rules that sends its batches to sends.
func NewNode[R Rules](sends Sends) *Node[R] { return &Node[R]{sends: sends} }

// Next returns the current version if same reports that its rules are equal, and
// otherwise a new version with the rules that create returns.
func (n *Node[R]) Next(same func(R) bool, create func() R) *Version[R] {
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
	n.current = &Version[R]{Number: number, Rules: create()}
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

// Current is the version that one component of a Node applies. Its methods are
// safe for concurrent use.
type Current[R Rules] struct {
	node       *Node[R]
	version    atomic.Pointer[Version[R]]
	redirected chan struct{} // capacity 1
}

// Follow returns the Current of a new component; it has no version yet.
func (n *Node[R]) Follow() *Current[R] {
	return &Current[R]{node: n, redirected: make(chan struct{}, 1)}
}

// Next sets the version to the result of Node.Next.
func (c *Current[R]) Next(same func(R) bool, create func() R) {
	c.version.Store(c.node.Next(same, create))
}

// Load returns the version to apply; nil before the first Next.
func (c *Current[R]) Load() *Version[R] { return c.version.Load() }

// Redirected reports that the receivers may have changed. It does not block.
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
