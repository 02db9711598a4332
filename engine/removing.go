package engine

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/weir-run/weir/engine/stall"
)

// leavers are the nodes that were removed and have not stopped. The zero value
// is ready to use. All methods are safe for concurrent use.
type leavers struct {
	mu    sync.Mutex
	since map[*node]time.Time
}

func (l *leavers) add(n *node, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.since == nil {
		l.since = map[*node]time.Time{}
	}
	l.since[n] = now
}

// remove removes a node and returns the number of remaining nodes.
func (l *leavers) remove(n *node) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.since, n)
	return len(l.since)
}

func (l *leavers) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.since)
}

// each yields them in any order.
func (l *leavers) each(yield func(*node) bool) {
	l.mu.Lock()
	all := slices.Collect(maps.Keys(l.since))
	l.mu.Unlock()
	for _, n := range all {
		if !yield(n) {
			return
		}
	}
}

// senders returns them by the nodes that they depend on, and may still send to.
func (l *leavers) senders() map[string][]*node {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := map[string][]*node{}
	for n := range l.since {
		for _, id := range n.shown.Load().deps {
			all[id] = append(all[id], n)
		}
	}
	return all
}

// abandoned returns the nodes that should have stopped by now.
func (l *leavers) abandoned(now time.Time) (nodes []*node) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for n, since := range l.since {
		if now.Sub(since) > stall.DefaultLimit {
			nodes = append(nodes, n)
		}
	}
	return nodes
}
