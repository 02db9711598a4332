// Package history records what the nodes did in the last hour: rates, queues and changes
// of health, in memory.
//
// A Recorder reads the counters of all nodes every 10 seconds. Nodes are known by their
// IDs, so that they keep their history when a reload rebuilds them. The history of a
// removed node goes after an hour. 500 nodes need less than 10 MB.
//
// It is not a database: the history ends with the process. Metrics that are to be kept
// belong to a Prometheus.
package history

import (
	"context"
	"sync"
	"time"

	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/service"
)

const (
	// Step is the time between two points.
	Step = 10 * time.Second
	// Points is the number of points that are kept: an hour.
	Points = 360

	recent        = 6 // points: Rates are those of about a minute
	maxNodes      = 2000
	maxEvents     = 2000
	maxNodeEvents = 50      // so that one node does not displace the others
	maxMessage    = 1 << 10 // bytes
)

// Recorder records the history of all nodes. Its methods are safe for concurrent use.
type Recorder struct {
	clock clock.Clock

	mu      sync.Mutex
	points  int           // that were taken; point n is in slot n % Points
	times   [Points]int64 // Unix milliseconds
	total   series
	process process
	nodes   map[string]*node
	omitted int // nodes that are not recorded because there are too many
	health  map[string]*health
	events  []Event // oldest first
}

// node is the history of a node.
type node struct {
	series
	last   counts
	recent [recent]counts // of the last points; that of point n is at n % recent
}

// health is the last known health of a node or of a service.
type health struct {
	now       component.Health
	lastError time.Time
	point     int // when it was seen
	events    int
}

// New returns a Recorder without points.
func New(c clock.Clock) *Recorder {
	return &Recorder{clock: c, process: newProcess(), nodes: map[string]*node{}, health: map[string]*health{}}
}

// Run takes a point every 10 seconds until ctx ends.
func (r *Recorder) Run(ctx context.Context, host service.Host) {
	timer := r.clock.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C():
			r.Take(host)
			timer.Reset(Step)
		case <-ctx.Done():
			return
		}
	}
}

// Take takes a point.
func (r *Recorder) Take(host service.Host) {
	// Components are asked for their queues, so nothing is locked.
	infos, overview, changes := host.ListComponents(), host.Overview(), host.Reloads()
	r.mu.Lock()
	defer r.mu.Unlock()
	now := overview.Time
	slot := r.points % Points
	r.times[slot] = now.UnixMilli()
	r.total.clear(slot)
	for _, n := range r.nodes {
		n.clear(slot)
	}
	fed := map[string]bool{}
	for _, i := range infos {
		for _, id := range i.SendsTo {
			fed[id] = true
		}
	}
	var sum total
	var fromLines Value // log lines per second from sources
	r.omitted = 0
	for _, i := range infos {
		if i.Stats == nil {
			continue
		}
		n := r.nodes[i.ID]
		if n == nil {
			if len(r.nodes) >= maxNodes && !r.forget(slot) {
				r.omitted++
				continue
			}
			n = &node{}
			r.nodes[i.ID] = n
		}
		before := n.last
		n.last = countsOf(i, now, r.points)
		n.recent[r.points%recent] = n.last
		p, ok := n.last.since(before)
		if !ok {
			continue // there is no rate yet
		}
		n.set(slot, p)
		sum.add(p, !fed[i.ID], len(i.SendsTo) == 0)
		if !fed[i.ID] {
			fromLines += n.last.linesSince(before)
		}
	}
	if r.points > 0 {
		r.total.set(slot, sum.point())
	}
	for id, n := range r.nodes {
		if n.last.point != r.points && !n.any() {
			delete(r.nodes, id)
		}
	}
	infos = append(infos, overview.Services...)
	r.process.take(slot, now, max(sum[in]-fromLines, 0), fromLines, infos, changes)
	r.takeHealth(infos, now)
	r.points++
}

// forget removes the node that has been gone for the longest, and reports whether there
// was one.
func (r *Recorder) forget(slot int) bool {
	var gone string
	for id, n := range r.nodes {
		if n.last.point < r.points-1 && (gone == "" || n.last.point < r.nodes[gone].last.point) {
			gone = id
		}
	}
	delete(r.nodes, gone)
	return gone != ""
}
