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
	"github.com/weir-run/weir/scripting/block"
	"github.com/weir-run/weir/scripting/host"
)

// memory contains the data that the instances of one node pass on: the last
// sent series, and their counters, which must not restart from zero at every
// reload.
type memory struct {
	exits      *flow.Exits
	metrics    *metrics
	quarantine *quarantined
	shipper    *shipper
	listener   *listener
	requests   atomic.Int64     // in flight
	held       prometheus.Gauge // held batches
	exports    *exported
	going      *going
	turn       chan struct{} // of a source: capacity 1, held by the working instance
	outbox     *outbox.Queue // nil if no instance was a sink yet
	sent       *sinkMetrics  // of outbox
	recent     recent
	answers    answers
	shadowed   atomic.Pointer[Difference]        // what the step shadow found last
	profile    atomic.Pointer[scripting.Profile] // nil: nobody profiles the node
	recorder   host.Recorder
	debugger   atomic.Pointer[debugger] // nil: nobody debugs the node
	playing    sync.Mutex               // held while the playground runs a script
	writing    sync.Mutex               // held while the file of the script is written
	testing    atomic.Bool              // the tests of the script run for somebody
	canaryTurn chan struct{}            // capacity 1, held while a new version may have a canary

	mu      sync.Mutex
	current *Component // the newest component whose Run was called
	timers  map[string]*timer
	state   *nodeState // nil until an instance declares state
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

// close releases derived handles after the last call has returned.
func (g *instance) close() {
	g.closing.Store(true)
	if g.calls.Load() == 0 {
		g.once.Do(g.Cache.Close)
	}
}

func (m *memory) next(o view.Options) *instance {
	return &instance{Cache: view.NewCache(o), number: m.newNumber()}
}

// newNumber returns a number that no instance has.
func (m *memory) newNumber() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last++
	return m.last
}

func newMemory() *memory {
	m := &memory{shipper: newShipper(), exits: flow.NewExits(), metrics: newMetrics(), timers: map[string]*timer{}, exports: newExported(), going: newGoing(),
		turn: make(chan struct{}, 1), canaryTurn: make(chan struct{}, 1),
		held: prometheus.NewGauge(prometheus.GaugeOpts{Name: "weir_script_held_batches", Help: "Batches that wait until the script works."})}
	m.listener = &listener{newest: m.newest}
	return m
}

// register registers the counters that an instance uses.
func (m *memory) register(r prometheus.Registerer, d *scripting.Definition, b *block.Script) error {
	var more []prometheus.Collector
	if b.OnError.Stores() {
		more = m.quarantine.collectors()
	}
	if b.OnError == scripting.OnErrorHold {
		more = append(more, m.held)
	}
	if d.Kind == scripting.Sink {
		more = append(more, m.sent)
	}
	if b.Canary != nil {
		more = append(more, versionCollector{m})
	}
	return m.metrics.register(r, d, more...)
}

// beginRun begins c's Run, which replaces the component that ran before, if
// any. Runs may begin in a different order than components were built.
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

// newest returns the component that was built last among those that run, or nil
// if none has run.
func (m *memory) newest() *Component {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.current
}

// maxRetired is the maximum number of replaced instances that are kept.
// Otherwise, a script that is saved every second would keep its series in
// memory a hundred times.
const maxRetired = 3

// retire ends the use of an instance. Its handles are released after two sweeps
// of another instance, or when more than maxRetired younger instances are
// retired: pending staleness markers for its series should still find the
// handles in the memos of later nodes. If there is no other instance, the node
// has ended.
//
// The instance of a source that is replaced leaves before the next one enters,
// which may never happen.
func (m *memory) retire(g *instance, replaced bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.running--
	m.retired = append(m.retired, g)
	if m.running == 0 {
		m.state.close() // a later write begins a new file
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
