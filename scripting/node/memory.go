package node

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/outbox"
	"github.com/weir-run/weir/engine/view"
	"github.com/weir-run/weir/scripting"
)

// memory is what the instances of one node hand down: what they sent last,
// and their counters, which must not start from zero at every save.
type memory struct {
	exits      *flow.Exits
	metrics    *metrics
	quarantine *quarantined
	shipper    *shipper
	listener   *listener
	requests   atomic.Int64     // in flight
	held       prometheus.Gauge // batches that are held
	exports    *exported
	going      *going
	turn       chan struct{} // of a source: capacity 1, held by the instance that is at work
	outbox     *outbox.Queue // nil: no instance was a sink yet
	sent       *sinkMetrics  // of outbox
	recent     recent
	shadowed   atomic.Pointer[Difference] // what the step shadow found last

	mu      sync.Mutex
	current *Component // the newest whose Run was called
	timers  map[string]*timer
	state   *nodeState // nil until an instance declares some
	last    uint64     // number of the newest instance
	running int        // components whose Run has not returned
	retired []*instance
	dying   []*instance
}

// instance is one version of a script with one set of arguments.
type instance struct {
	*view.Cache
	number uint64

	calls   atomic.Int64
	closing atomic.Bool
	once    sync.Once
}

func (g *instance) addCall() { g.calls.Add(1) }

func (g *instance) endCall() {
	if g.calls.Add(-1) == 0 && g.closing.Load() {
		g.once.Do(g.Cache.Close)
	}
}

// close gives back what was derived, once the last call has returned.
func (g *instance) close() {
	g.closing.Store(true)
	if g.calls.Load() == 0 {
		g.once.Do(g.Cache.Close)
	}
}

func (m *memory) next(o view.Options) *instance {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last++
	return &instance{Cache: view.NewCache(o), number: m.last}
}

func newMemory() *memory {
	m := &memory{shipper: newShipper(), exits: flow.NewExits(), metrics: newMetrics(), timers: map[string]*timer{}, exports: newExported(), going: newGoing(),
		turn: make(chan struct{}, 1),
		held: prometheus.NewGauge(prometheus.GaugeOpts{Name: "weir_script_held_batches", Help: "Batches that wait until the script works."})}
	m.listener = &listener{newest: m.newest}
	return m
}

// register makes the counters visible that an instance has to do with.
func (m *memory) register(r prometheus.Registerer, d *scripting.Definition, on scripting.OnError) error {
	var more []prometheus.Collector
	if on.Stores() {
		more = m.quarantine.collectors()
	}
	if on == scripting.OnErrorHold {
		more = append(more, m.held)
	}
	if d.Kind == scripting.Sink {
		more = append(more, m.sent)
	}
	return m.metrics.register(r, d, more...)
}

// beginRun begins c's Run, which replaces the component that ran before, if any.
// Runs may begin in another order than components were built.
func (m *memory) beginRun(c *Component) (before *Component) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.running++
	before = m.current
	switch {
	case before == nil:
		m.current = c
	case before.instance.number < c.instance.number:
		m.current = c
		close(before.admission.replaced)
	default:
		close(c.admission.replaced)
	}
	return before
}

// newest is the component that runs and was built last, nil when none ran.
func (m *memory) newest() *Component {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.current
}

// maxRetired is how many instances of a node live on after they were
// replaced: one that is saved every second would else hold its series a hundred
// times.
const maxRetired = 3

// retire ends the use of an instance. Its handles live on until two sweeps of another,
// or maxRetired younger ones are retired: the markers that its series are owed
// should still find the handles in the memos downstream. When there is no
// other, the node is gone.
//
// A source that is replaced leaves before the next one enters, which may never.
func (m *memory) retire(g *instance, replaced bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.running--
	m.retired = append(m.retired, g)
	if m.running == 0 {
		m.state.close() // whoever writes to it again begins a file anew
	}
	if m.running > 0 || replaced {
		if len(m.dying)+len(m.retired) > maxRetired {
			from := &m.retired
			if len(m.dying) > 0 {
				from = &m.dying
			}
			(*from)[0].close()
			*from = slices.Delete(*from, 0, 1)
		}
		return
	}
	for _, g := range append(m.dying, m.retired...) {
		g.close()
	}
	m.dying, m.retired = nil, nil
	m.state.release()
}

func (m *memory) sweep(current *instance) {
	m.mu.Lock()
	dying := m.dying
	m.dying, m.retired = m.retired, nil
	m.mu.Unlock()
	for _, g := range dying {
		g.close()
	}
	current.Sweep()
	m.exits.Sweep()
	m.metrics.own.RemoveOutdated(current.number)
}
