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
}

func (q queuer) Backlog() component.Backlog {
	return component.Backlog{Journal: true, Samples: q.waiting.Load(), Patience: time.Duration(q.patience.Load())}
}

// A queue in which data waits, and that nothing leaves, makes its node unhealthy
// until something does.
func TestQueueDoesNotDrain(t *testing.T) {
	bubble(t, func(l *lab) {
		var waiting, patience atomic.Int64
		l.catalog.add(component.Registration{Name: "test.queue"})
		r, _ := l.catalog.Lookup("test.queue")
		build := r.Build
		r.Build = func(o component.Options, args any) (component.Component, error) {
			c, err := build(o, args)
			return queuer{c, &waiting, &patience}, err
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
