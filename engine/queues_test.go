package engine_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/component"
)

// queuer is a component with a queue.
type queuer struct {
	component.Component
	waiting, patience *atomic.Int64
	queues            func() []component.Queue
}

func (q *queuer) Backlog() component.Backlog {
	b := component.Backlog{Journal: true, Samples: q.waiting.Load(), Patience: time.Duration(q.patience.Load())}
	if q.queues != nil {
		b.Queues = q.queues()
	}
	return b
}

// A queue in which data waits, and that nothing leaves, makes its node unhealthy
// until something does.
func TestQueueDoesNotDrain(t *testing.T) {
	bubble(t, func(l *harness) {
		var waiting, patience atomic.Int64
		l.catalog.add(component.Registration{Name: "test.queue"})
		r, _ := l.catalog.Lookup("test.queue")
		build := r.Build
		r.Build = func(o component.Options, args any, previous component.Component) (component.Component, error) {
			c, err := build(o, args, previous)
			return &queuer{c, &waiting, &patience, nil}, err
		}
		l.catalog.regs["test.queue"] = r
		l.start(`test.queue "a" { }`)
		stats := l.fake("test.queue.a").o.Stats
		healthy := func() {
			t.Helper()
			l.wantProblem("test.queue.a", "", "", time.Time{})
		}
		unhealthy := func() {
			t.Helper()
			l.wantHealth("test.queue.a", component.Unhealthy, "its queue does not drain: nothing has left it since ")
			l.wantMetric(`weir_component_unhealthy_since_timestamp_seconds{component_id="test.queue.a",reason="queue_not_draining"}`)
		}
		time.Sleep(5 * time.Minute) // empty
		healthy()
		waiting.Store(3)
		time.Sleep(50 * time.Second)
		healthy()
		time.Sleep(20 * time.Second)
		unhealthy()
		stats.Out.Add(1) // more comes as fast as it is sent
		time.Sleep(10 * time.Second)
		healthy()
		time.Sleep(70 * time.Second)
		unhealthy()
		waiting.Store(0)
		time.Sleep(10 * time.Second)
		healthy()
		patience.Store(int64(10 * time.Minute)) // it waits on purpose
		waiting.Store(1)
		time.Sleep(10 * time.Minute)
		healthy()
		time.Sleep(2 * time.Minute)
		unhealthy()
		stats.Drop("too_old", 1)
		time.Sleep(10 * time.Second)
		healthy()
	})
}

// One of several queues that does not drain makes the node unhealthy, and is named,
// while another drains.
func TestOneOfSeveralQueuesDoesNotDrain(t *testing.T) {
	bubble(t, func(l *harness) {
		var waiting, patience, left, dead atomic.Int64
		l.catalog.add(component.Registration{Name: "test.queue"})
		r, _ := l.catalog.Lookup("test.queue")
		build := r.Build
		r.Build = func(o component.Options, args any, previous component.Component) (component.Component, error) {
			c, err := build(o, args, previous)
			return &queuer{c, &waiting, &patience, func() []component.Queue {
				return []component.Queue{
					{Name: "endpoint alive", Waiting: 5, Left: uint64(left.Add(10))},
					{Name: "endpoint dead", Waiting: dead.Load()},
				}
			}}, err
		}
		l.catalog.regs["test.queue"] = r
		l.start(`test.queue "a" { }`)
		time.Sleep(5 * time.Minute)
		l.wantProblem("test.queue.a", "", "", time.Time{})
		dead.Store(7)
		time.Sleep(2 * time.Minute)
		l.wantHealth("test.queue.a", component.Unhealthy, "its queue to endpoint dead does not drain: nothing has left it since ")
		l.wantMetric(`weir_component_unhealthy_since_timestamp_seconds{component_id="test.queue.a",reason="queue_not_draining"}`)
		dead.Store(0)
		time.Sleep(10 * time.Second)
		l.wantProblem("test.queue.a", "", "", time.Time{})
	})
}
