package outbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
)

// Endpoint is one endpoint of a sink, with its own journal.
type Endpoint interface {
	comparable
	// Key identifies it among the endpoints of its component.
	Key() string
	// Gate returns the gate for its batches, a result of Endpoints.Gate.
	Gate() *flow.Receiver
	// Run sends until ctx ends. It puts a consumer behind the gate and removes it
	// at the end.
	Run(ctx context.Context)
	// Problem returns why it is not healthy, or nil if it is.
	Problem() error
	// Queue returns the number of rows that are in its journal and that have left
	// it, and updates the node's Stats.
	Queue() component.Queue
}

// Endpoints manages the endpoints of one component: their list, their
// goroutines and the node's health. Its methods are safe for concurrent use,
// except Run and Update, which are called like those of the component.
type Endpoints[E Endpoint] struct {
	o       *component.Options
	removed any // the consumer behind the gates of removed endpoints
	gates   *gates
	out     atomic.Pointer[flow.Output]

	telling sync.Mutex // held while health is determined and reported, so that the latest state is reported last

	// updating is held while the endpoints change. An update may read files, for which
	// the status must not wait. It is locked before mu.
	updating sync.Mutex

	mu  sync.Mutex
	all []E // as configured

	changed chan struct{} // capacity 1: all changed
	failed  chan error    // capacity 1: an endpoint panicked
}

// gates are the receivers of the endpoints of one node. Like the node's own
// gate, they outlive its components: a batch that an endpoint refused may be
// retried after the component was replaced.
type gates struct {
	signal batch.Signals

	mu    sync.Mutex
	byKey map[string]*flow.Receiver
	off   map[string]bool // of endpoints that were removed
	fail  func(error)     // of the newest component, called after panics
}

// NewEndpoints returns the Endpoints of a component that takes the given
// signal. previous is the Endpoints of the previous component, or nil the first
// time. If a batch was refused by an endpoint that was removed since, the
// consumer removed gets the retry.
func NewEndpoints[E Endpoint](o *component.Options, signal batch.Signals, removed any, previous *Endpoints[E]) *Endpoints[E] {
	es := &Endpoints[E]{o: o, removed: removed, changed: make(chan struct{}, 1), failed: make(chan error, 1)}
	if previous != nil {
		es.gates = previous.gates
	} else {
		es.gates = &gates{signal: signal, byKey: map[string]*flow.Receiver{}, off: map[string]bool{}}
	}
	return es
}

// Update replaces the endpoints with the result of next. On an error, the
// endpoints do not change. next is called with the current endpoints by key.
func (es *Endpoints[E]) Update(next func(old map[string]E) ([]E, error)) error {
	es.updating.Lock()
	defer es.updating.Unlock()
	old := map[string]E{}
	for _, e := range es.Current() {
		old[e.Key()] = e
	}
	all, err := next(old)
	if err != nil {
		return err
	}
	es.mu.Lock()
	es.all = all
	es.mu.Unlock()
	to := make([]*flow.Receiver, len(all))
	for i, e := range all {
		to[i] = e.Gate()
	}
	es.out.Store(flow.NewOutput(nil, to)) // data in a journal has not left the node
	select {
	case es.changed <- struct{}{}:
	default:
	}
	return nil
}

// Next returns the endpoints for new arguments, one for each of refs, for
// Update. Each is an endpoint of old that is updated with the result of
// settings, or a new one from build. settings gets the previous settings, or
// the zero value if there are none; if it returns the same settings, the
// endpoint does not change. On an error, no endpoint of old was changed.
func Next[E interface {
	Using() S
	Use(s S)
}, S comparable](refs []Ref, old map[string]E, settings func(i int, before S) (S, error), build func(i int, s S) E) ([]E, error) {
	all := make([]S, len(refs))
	var errs []error
	for i, r := range refs {
		var before S
		if e, ok := old[r.Key()]; ok {
			before = e.Using()
		}
		s, err := settings(i, before)
		if err != nil {
			errs = append(errs, fmt.Errorf("endpoint %s: %w", r.Label(), err))
		}
		all[i] = s
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	// From here on, there are no errors.
	endpoints := make([]E, len(refs))
	for i, r := range refs {
		e, ok := old[r.Key()]
		switch {
		case !ok:
			e = build(i, all[i])
		case e.Using() != all[i]:
			e.Use(all[i])
		}
		endpoints[i] = e
	}
	return endpoints, nil
}

// Output is the fan-out to all gates.
func (es *Endpoints[E]) Output() *flow.Output { return es.out.Load() }

// Current returns the configured endpoints. The slice must not be modified.
func (es *Endpoints[E]) Current() []E {
	es.mu.Lock()
	defer es.mu.Unlock()
	return es.all
}

// Backlog returns the data that waits in the journals of all endpoints.
func (es *Endpoints[E]) Backlog() component.Backlog {
	b := component.Backlog{Journal: true}
	waiting := &b.Samples
	if es.gates.signal == batch.SignalLogs {
		waiting = &b.Lines
	}
	for _, e := range es.Current() {
		q := e.Queue()
		*waiting += q.Waiting
		if b.Oldest.IsZero() || !q.Oldest.IsZero() && q.Oldest.Before(b.Oldest) {
			b.Oldest = q.Oldest
		}
		b.Queues = append(b.Queues, q)
	}
	if len(b.Queues) == 1 {
		b.Queues = nil // a single queue has nothing to add
	}
	return b
}

// Gate returns the gate of an endpoint, which is called label in messages. From
// now on, a panic behind any gate of the node is passed to es.Fail.
func (es *Endpoints[E]) Gate(key, label string) *flow.Receiver {
	g := es.gates
	g.mu.Lock()
	defer g.mu.Unlock()
	g.fail = es.Fail
	r := g.byKey[key]
	if r == nil {
		r = flow.NewReceiver(es.o.ID+"/"+label, g.signal, nil, func(p *flow.PanicError) {
			g.mu.Lock()
			fail := g.fail
			g.mu.Unlock()
			fail(p)
		})
		g.byKey[key] = r
	}
	if g.off[key] {
		delete(g.off, key)
		r.Set(nil) // calls wait until the endpoint runs again
	}
	return r
}

// Fail makes Run return err, so that the component is built again.
func (es *Endpoints[E]) Fail(err error) {
	select {
	case es.failed <- err:
	default:
	}
}

// Run runs the endpoints until ctx ends or Fail is called. It returns the error
// passed to Fail.
func (es *Endpoints[E]) Run(ctx context.Context) error {
	type running struct {
		stop context.CancelFunc
		done chan struct{}
	}
	run := map[E]running{}
	stop := func(all ...E) {
		for _, e := range all {
			run[e].stop()
		}
		for _, e := range all {
			<-run[e].done
			delete(run, e)
		}
	}
	defer func() {
		var all []E
		for e := range run {
			all = append(all, e)
		}
		stop(all...)
	}()
	var wg sync.WaitGroup
	defer wg.Wait()
	tending, stopTending := context.WithCancel(ctx)
	defer stopTending()
	orphans := Orphans{Storage: es.o.StoragePath, Clock: es.o.Clock, Logger: es.o.Logger}
	wg.Go(func() { orphans.Run(tending) })
	for {
		select {
		case <-es.changed:
			wanted := es.Current()
			var gone []E
			for e := range run {
				if !slices.Contains(wanted, e) {
					gone = append(gone, e)
				}
			}
			stop(gone...)
			es.remove(gone)
			for _, e := range wanted {
				if _, ok := run[e]; !ok {
					ectx, cancel := context.WithCancel(ctx)
					r := running{cancel, make(chan struct{})}
					run[e] = r
					go func() { defer close(r.done); e.Run(ectx) }()
				}
			}
			es.Report()
		case err := <-es.failed:
			return err
		case <-ctx.Done():
			return nil
		}
	}
}

// remove closes the gates of removed endpoints, unless they were added again in
// the meantime.
func (es *Endpoints[E]) remove(gone []E) {
	es.updating.Lock()
	defer es.updating.Unlock()
	for _, e := range gone {
		if slices.ContainsFunc(es.Current(), func(w E) bool { return w.Key() == e.Key() }) {
			continue
		}
		es.gates.mu.Lock()
		es.gates.off[e.Key()] = true
		e.Gate().Set(es.removed)
		es.gates.mu.Unlock()
	}
}

// Report reports the node's health: the endpoints' problems.
func (es *Endpoints[E]) Report() {
	es.telling.Lock()
	defer es.telling.Unlock()
	var problems []string
	for _, e := range es.Current() {
		if err := e.Problem(); err != nil {
			problems = append(problems, err.Error())
		}
	}
	h := component.Health{State: component.Healthy, Message: "sending", Time: es.o.Clock.Now()}
	if len(problems) > 0 {
		h.State, h.Message = component.Unhealthy, strings.Join(problems, "; ")
	}
	es.o.Health(h)
}
