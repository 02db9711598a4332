package engine

import (
	"fmt"
	"strings"
	"time"

	"github.com/weir-run/weir/engine/component"
)

const (
	// queueInterval is the interval at which queues are checked.
	queueInterval = 5 * time.Second
	// queueLimit is the time after which a queue with waiting data that none
	// leaves is unhealthy, in addition to the intended waiting time of the
	// component.
	queueLimit = time.Minute
)

// drain is the state of a node's queue when data last left it.
type drain struct {
	left    uint64 // sent and dropped so far
	waiting int64
	since   time.Time
}

// queueKey identifies a queue of a node; name is empty if there is only one.
type queueKey struct {
	n    *node
	name string
}

// describe returns a message about a stuck queue.
func (d drain) describe(name string) string {
	if name != "" {
		name = " to " + name
	}
	return fmt.Sprintf("its queue%s does not drain: nothing has left it since %s, while %d samples and lines wait", name, d.since.UTC().Format(time.RFC3339), d.waiting)
}

// queues detects queues that do not drain. It belongs to watchStalls.
type queues struct {
	next   time.Time
	drains map[queueKey]drain
}

// checkQueues makes nodes unhealthy if data waits in a queue and none leaves
// it.
func (q *queues) checkQueues(nodes []*node, now time.Time) {
	if now.Before(q.next) {
		return
	}
	q.next = now.Add(queueInterval)
	seen := map[queueKey]drain{}
	for _, n := range nodes {
		s := n.state.Load()
		c, ok := s.component.(component.Queuer)
		if !ok {
			continue
		}
		b, err := s.instance.backlog(c)
		if err != nil {
			continue // reported where it is asked for
		}
		all := b.Queues
		if len(all) == 0 {
			all = []component.Queue{{Waiting: b.Samples + b.Lines, Left: n.left()}}
		}
		var stuck []string
		var h component.Health
		for _, one := range all {
			key := queueKey{n, one.Name}
			d := drain{left: one.Left, waiting: one.Waiting, since: now}
			before, known := q.drains[key]
			if known && d.waiting > 0 && d.left == before.left && d.waiting >= before.waiting {
				d.since = before.since
			}
			seen[key] = d
			if now.Sub(d.since) < queueLimit+b.Patience {
				continue
			}
			if stuck = append(stuck, d.describe(one.Name)); len(stuck) == 1 || d.since.Before(h.Time) {
				h.Time = d.since
			}
		}
		if len(stuck) > 0 {
			h.State, h.Message = component.Unhealthy, strings.Join(stuck, "; ")
		}
		if before := n.state.Load().queue; before.State != h.State || h.State == component.Unhealthy && before.Message != h.Message {
			n.change(func(s *state) { s.queue = h })
		}
	}
	q.drains = seen
}

// backlog returns the backlog of a component.
func (g *instance) backlog(c component.Queuer) (component.Backlog, error) {
	return ask(g, askBacklog, c.Backlog)
}

// left returns the amount of data that has left the node in any way.
func (n *node) left() uint64 {
	return n.stats.Out.Load() + n.stats.LinesOut.Load() + n.stats.Lost()
}
