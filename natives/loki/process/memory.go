package process

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/ruleset"
)

// memory is the state that the components of a node pass on.
type memory struct {
	sender  *flow.Sender
	node    *ruleset.Node[*pipeline]
	dropped *prometheus.CounterVec
	counts  *counts
	custom  *custom
	geo     geoFiles
	maxKept int           // maximum bytes of text in the groups of a stage
	wake    chan struct{} // capacity 1
	armed   atomic.Int64  // the time at which keepTime looks next, Unix ns, or never

	mu      sync.Mutex
	current *pipeline
	groups  []*groups // of the current pipeline, and retired ones that still have lines
	sources map[uint64]*turn
	unsent  []unsent
}

const never = math.MaxInt64

// turn serialises the use of a Source.
type turn struct {
	free chan struct{} // capacity 1; holds a value while the turn is free
	n    int           // number of goroutines that wait for the turn or have it
}

func newMemory() *memory {
	s := flow.NewSender()
	m := &memory{
		sender: s, node: ruleset.NewNode[*pipeline](s), wake: make(chan struct{}, 1), sources: map[uint64]*turn{},
		dropped: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "loki_process_dropped_lines_total",
			Help: "Lines that a stage dropped, by the reason that its arguments give.",
		}, []string{"reason"}),
		counts: newCounts(), custom: newCustom(), maxKept: maxKept,
	}
	m.armed.Store(never)
	return m
}

// register registers the counters of the node with the Registerer of a component.
func (m *memory) register(r prometheus.Registerer) {
	// The previous component may still have them registered with its own
	// Registerer. The ones of the new component are shown.
	for _, c := range []prometheus.Collector{m.dropped, m.counts, m.custom} {
		_ = r.Register(c)
	}
}

func (e *env) countDropped(reason string, n int) {
	if n > 0 {
		e.stats.DropLines(reason, n)
		e.mem.dropped.WithLabelValues(reason).Add(float64(n))
	}
}

// next makes gen use the pipeline of stages. fresh is true for a new component,
// whose stages report to its own Registerer.
func (m *memory) next(gen *ruleset.Current[*pipeline], e env, stages []Stage, fresh bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if fresh || !m.current.same(stages) {
		pl, err := compile(e, stages, m.current)
		if err != nil {
			return err
		}
		m.takeOver(pl)
		m.current = pl
	}
	gen.Next(func(pl *pipeline) bool { return pl == m.current }, func() *pipeline { return m.current })
	return nil
}

// takeOver makes pl the pipeline of the groups that it continues to use. The
// other groups send their lines. The caller holds mu.
func (m *memory) takeOver(pl *pipeline) {
	m.custom.show(pl.metrics, pl.clock)
	m.geo.retainOnly(pl.geo)
	for _, take := range pl.takes {
		take()
	}
	kept := m.groups[:0]
	for _, g := range m.groups {
		if !g.isTakenOver(pl) && !g.retire() {
			kept = append(kept, g)
		}
	}
	m.groups = append(kept[:len(kept):len(kept)], pl.groups...)
	m.wakeAt(0)
}

// watch adds groups that were removed as empty. They may get lines from a call
// that began before a reload.
func (m *memory) watch(gs *groups) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !slices.Contains(m.groups, gs) {
		m.groups = append(m.groups, gs)
	}
}

// acquireTurn waits for the turn on a Source, so that its batches and kept lines
// are sent one after the other. The error is the cause of ctx.
func (m *memory) acquireTurn(ctx context.Context, source uint64) (leave func(), err error) {
	m.mu.Lock()
	t := m.sources[source]
	if t == nil {
		t = &turn{free: make(chan struct{}, 1)}
		t.free <- struct{}{}
		m.sources[source] = t
	}
	t.n++
	m.mu.Unlock()
	end := func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if t.n--; t.n == 0 {
			delete(m.sources, source)
		}
	}
	select {
	case <-t.free:
		return func() { t.free <- struct{}{}; end() }, nil
	case <-ctx.Done():
		end()
		return nil, context.Cause(ctx)
	}
}

// wakeAt makes keepTime look at the groups at the given time, Unix ns, or
// earlier.
func (m *memory) wakeAt(at int64) {
	if at >= m.armed.Load() {
		return
	}
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// stopTime is how long a node may take to send its kept lines when it is removed.
const stopTime = 2 * time.Second

// keepTime sends lines when they are due. When ctx ends, it sends all lines
// unless another component took over.
func (m *memory) keepTime(ctx context.Context, c clock.Clock) {
	timer := c.NewTimer(time.Hour)
	timer.Stop()
	defer timer.Stop()
	m.deliverLeft(ctx, c)
	for {
		m.armed.Store(never) // from here on, wakeAt wakes the loop
		at := m.flush(ctx, c.Now(), false)
		timer.Stop()
		if at != never {
			m.armed.Store(at)
			timer.Reset(time.Unix(0, at).Sub(c.Now()))
			if c.Now().UnixNano() >= at { // the time passed while the timer was set
				continue
			}
		}
		select {
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), component.ErrReplaced) {
				return
			}
			// Lines that are not sent in time stay unacknowledged, so that
			// sources that can read them again do so.
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
			defer cancel()
			m.deliverLeft(last, c)
			m.flush(last, c.Now(), true)
			return
		case <-m.wake:
		case <-timer.C():
		}
	}
}

// flush sends the lines that are due, or all lines, for all Sources. It returns
// the next deadline.
func (m *memory) flush(ctx context.Context, now time.Time, all bool) (next int64) {
	m.mu.Lock()
	gs := slices.Clone(m.groups)
	m.mu.Unlock()
	next = never
	for _, g := range gs {
		sources, at := g.findDue(now, all)
		next = min(next, at)
		for _, s := range sources {
			if m.sendInTurn(ctx, g, s, now, all) != nil {
				return next
			}
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.groups = slices.DeleteFunc(m.groups, func(g *groups) bool { return g.isDone() })
	return next
}

func (m *memory) sendInTurn(ctx context.Context, g *groups, source uint64, now time.Time, all bool) error {
	leave, err := m.acquireTurn(ctx, source)
	if err != nil {
		return err
	}
	defer leave()
	g.send(ctx, m.sender, source, now, all)
	return nil
}

// unsent is a batch of due lines that was not accepted before its component was
// replaced. The next component sends it.
type unsent struct {
	source uint64
	send   func(ctx context.Context) error // sends the part that was refused
	whole  func(ctx context.Context) error // sends the whole batch to the current receivers
	ack    *batch.Ack
}

// deliver sends u until all receivers have accepted it. If ctx ends first, it
// keeps u for deliverLeft. The caller has the turn on the Source. A receiver that
// has left the graph never accepts anything: in this case deliver sends the whole
// batch to the current receivers, some of which may get it twice.
func (m *memory) deliver(ctx context.Context, c clock.Clock, u unsent) {
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		err := u.send(ctx)
		if err == nil {
			u.ack.Accepted()
			return
		}
		if partial, ok := errors.AsType[*flow.Partial](err); ok {
			u.send = partial.Retry
		}
		if errors.Is(err, flow.ErrStopped) {
			u.send = u.whole
		}
		if clock.Sleep(ctx, c, pause) != nil {
			break
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.unsent = append(m.unsent, u)
}

// deliverLeft sends the batches that deliver has kept.
func (m *memory) deliverLeft(ctx context.Context, c clock.Clock) {
	m.mu.Lock()
	left := m.unsent
	m.unsent = nil
	m.mu.Unlock()
	for _, u := range left {
		leave, err := m.acquireTurn(ctx, u.source)
		if err != nil {
			m.mu.Lock()
			m.unsent = append(m.unsent, u)
			m.mu.Unlock()
			continue
		}
		m.deliver(ctx, c, u)
		leave()
	}
}
