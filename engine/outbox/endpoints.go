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

// Endpoint is one of those a sink sends to, with a journal of its own.
type Endpoint interface {
	comparable
	// Key identifies it among those of its component.
	Key() string
	// Gate is what its batches come by, one of Endpoints.Gate.
	Gate() *flow.Receiver
	// Run sends until ctx ends. It puts a consumer behind the gate and takes it
	// away again.
	Run(ctx context.Context)
	// Problem says why it is not healthy, nil if it is.
	Problem() error
	// Queue returns how many rows are in its journal and have left it, and brings
	// the node's figures up to date.
	Queue() component.Queue
}

// Endpoints are the endpoints of one component: which of them there are, what
// runs, and how the node is. Its methods are safe for concurrent use, but for Run
// and Update, which are called as the component's.
type Endpoints[E Endpoint] struct {
	o       *component.Options
	removed any // a consumer, behind the gates of endpoints that were removed
	gates   *gates
	out     atomic.Pointer[flow.Output]

	telling sync.Mutex // held to look and tell the health: the last to look is the last to tell

	mu  sync.Mutex
	all []E // as configured

	changed chan struct{} // capacity 1: all changed
	failed  chan error    // capacity 1: an endpoint panicked
}

// gates are the receivers of the endpoints of one node. They outlive its
// components, like the node's own: a batch that an endpoint refused may be
// retried after the component was replaced.
type gates struct {
	signal batch.Signals

	mu    sync.Mutex
	byKey map[string]*flow.Receiver
	off   map[string]bool // of endpoints that were removed
	fail  func(error)     // the newest component's, told about panics
}

// NewEndpoints returns the Endpoints of a component that takes a signal.
// previous are those of the component before it, nil the first time. What an
// endpoint refused that was removed then goes to removed, a consumer.
func NewEndpoints[E Endpoint](o *component.Options, signal batch.Signals, removed any, previous *Endpoints[E]) *Endpoints[E] {
	es := &Endpoints[E]{o: o, removed: removed, changed: make(chan struct{}, 1), failed: make(chan error, 1)}
	if previous != nil {
		es.gates = previous.gates
	} else {
		es.gates = &gates{signal: signal, byKey: map[string]*flow.Receiver{}, off: map[string]bool{}}
	}
	return es
}

// Update makes what next returns the endpoints; on an error those of before
// stay. next gets them by key.
func (es *Endpoints[E]) Update(next func(old map[string]E) ([]E, error)) error {
	es.mu.Lock()
	defer es.mu.Unlock()
	old := map[string]E{}
	for _, e := range es.all {
		old[e.Key()] = e
	}
	all, err := next(old)
	if err != nil {
		return err
	}
	es.all = all
	to := make([]*flow.Receiver, len(all))
	for i, e := range all {
		to[i] = e.Gate()
	}
	es.out.Store(flow.NewOutput(nil, to)) // what is in a journal has not left the node
	select {
	case es.changed <- struct{}{}:
	default:
	}
	return nil
}

// Next returns the endpoints of other arguments, one for each of refs, for Update:
// that of old, by the settings that settings returns, or one that build builds. The
// settings of before are those of old, zero if there is none; returned they change
// nothing. On an error none of old was touched.
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
	// From here on nothing fails.
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

// Current returns the endpoints as configured. It must not be written to.
func (es *Endpoints[E]) Current() []E {
	es.mu.Lock()
	defer es.mu.Unlock()
	return es.all
}

// Backlog returns what waits in the journals of all endpoints.
func (es *Endpoints[E]) Backlog() component.Backlog {
	b := component.Backlog{Journal: true}
	waiting := &b.Samples
	if es.gates.signal == batch.SignalLogs {
		waiting = &b.Lines
	}
	for _, e := range es.Current() {
		q := e.Queue()
		*waiting += q.Waiting
		b.Queues = append(b.Queues, q)
	}
	if len(b.Queues) == 1 {
		b.Queues = nil // it is all there is
	}
	return b
}

// Gate returns the gate of an endpoint, which label names; panics behind any gate
// of the node fail es from now on.
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

// Fail makes Run return err: the component must be built anew.
func (es *Endpoints[E]) Fail(err error) {
	select {
	case es.failed <- err:
	default:
	}
}

// Run runs the endpoints until ctx ends, or with an error of Fail.
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

// remove closes the gates of endpoints that are not wanted back meanwhile.
func (es *Endpoints[E]) remove(gone []E) {
	es.mu.Lock()
	defer es.mu.Unlock()
	for _, e := range gone {
		if slices.ContainsFunc(es.all, func(w E) bool { return w.Key() == e.Key() }) {
			continue
		}
		es.gates.mu.Lock()
		es.gates.off[e.Key()] = true
		e.Gate().Set(es.removed)
		es.gates.mu.Unlock()
	}
}

// Report tells the node's health: the endpoints' problems.
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
