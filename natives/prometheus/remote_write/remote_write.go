// Package remotewrite is prometheus.remote_write: it sends samples to remote
// write endpoints, of 1.0 and of 2.0, through a journal on disk for each.
//
// In data order: ConsumeMetrics fans a batch out to the endpoints' gates, so
// that a retry goes only to those that refused it; an endpoint puts it into
// the open block of its lane (gather.go, block.go) in the bytes that will be
// sent (encode.go, encode_v2.go), and answers once the block is in the journal
// (engine/journal); one sender a lane posts block after block until each is
// accepted or rejected (send.go). Only where the endpoint turns out to want
// other bytes is a block made anew (recode.go).
//
// It makes no difference between samples that are new and samples from before a
// restart.
package remotewrite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/journal"
	"github.com/weir-run/weir/natives/journaling"
)

// Registration returns the component's registration.
func Registration() component.Registration {
	return component.Registration{
		Name:    "prometheus.remote_write",
		Accepts: batch.SignalMetrics,
		NewArgs: func() any {
			a := new(Arguments)
			a.SetToDefault()
			return a
		},
		Exports: Exports{},
		Build:   func(o component.Options, args any) (component.Component, error) { return New(o, args.(*Arguments)) },
		Doc: component.Doc{
			Summary: "Sends samples to endpoints that speak Prometheus remote write 1.0 or 2.0, such as Prometheus, Mimir, Thanos and VictoriaMetrics. " +
				"What was accepted is in a journal on disk, so that neither an outage of the endpoint nor a killed process loses it.",
		},
	}
}

// Component is one prometheus.remote_write.
type Component struct {
	o     component.Options
	gates *gates
	out   atomic.Pointer[flow.Output]
	none  atomic.Bool // there is no endpoint

	telling sync.Mutex // held to look and tell the health: the last to look is the last to tell

	mu        sync.Mutex
	endpoints []*endpoint // as configured

	changed chan struct{} // capacity 1: endpoints changed
	failed  chan error    // capacity 1: an endpoint panicked
}

var (
	_ component.Updater    = (*Component)(nil)
	_ component.Sourced    = (*Component)(nil)
	_ component.Debugger   = (*Component)(nil)
	_ flow.MetricsConsumer = (*Component)(nil)
)

// gates are the receivers of the endpoints of one node. They outlive its
// components, like the node's own: a batch that an endpoint refused may be
// retried after the component was replaced.
type gates struct {
	mu    sync.Mutex
	byKey map[string]*flow.Receiver
	off   map[string]bool // of endpoints that were removed: discard is behind it
	owner *Component      // told about panics
}

// New returns a component that works once it runs.
func New(o component.Options, a *Arguments) (*Component, error) {
	c := &Component{o: o, changed: make(chan struct{}, 1), failed: make(chan error, 1)}
	c.o.Previous = nil // kept, it would keep all that were before it
	if prev, ok := o.Previous.(*Component); ok {
		c.gates = prev.gates
	} else {
		c.gates = &gates{byKey: map[string]*flow.Receiver{}, off: map[string]bool{}}
	}
	if err := c.Update(a); err != nil {
		return nil, err
	}
	if err := o.Registerer.Register(collector{c}); err != nil {
		return nil, fmt.Errorf("cannot register metrics: %w", err)
	}
	return c, nil
}

// Update takes new arguments. Endpoints that did not change are not touched.
func (c *Component) Update(args any) error {
	a := args.(*Arguments)
	c.mu.Lock()
	defer c.mu.Unlock()
	old := map[string]*endpoint{}
	for _, e := range c.endpoints {
		old[e.key] = e
	}
	all := make([]*settings, len(a.Endpoints))
	var errs []error
	for i, ea := range a.Endpoints {
		var before *settings
		if e := old[ea.key()]; e != nil {
			before = e.settings.Load()
		}
		s, err := newSettings(&c.o, a, ea, before)
		if err != nil {
			errs = append(errs, fmt.Errorf("endpoint %s: %w", ea.label(), err))
		}
		all[i] = s
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	// From here on nothing fails.
	c.endpoints = nil
	var to []*flow.Receiver
	for i, ea := range a.Endpoints {
		e := old[ea.key()]
		switch {
		case e == nil:
			e = c.newEndpoint(ea, all[i])
		case e.settings.Load() != all[i]:
			e.update(all[i])
		}
		c.endpoints = append(c.endpoints, e)
		to = append(to, e.gate)
	}
	c.none.Store(len(to) == 0)
	c.out.Store(flow.NewOutput(c.o.Stats, to))
	select {
	case c.changed <- struct{}{}:
	default:
	}
	return nil
}

// Sourced returns the files that a client reads once. Those of httpclient it
// reads again by itself.
func (c *Component) Sourced() (paths []string) {
	for _, e := range c.current() {
		for _, p := range e.settings.Load().args.files() {
			if abs, err := filepath.Abs(p); err == nil {
				paths = append(paths, abs)
			}
		}
	}
	return paths
}

func (c *Component) newEndpoint(a *Endpoint, s *settings) *endpoint {
	e := &endpoint{
		key: a.key(), o: &c.o, log: c.o.Logger.With("endpoint", a.label()), clock: c.o.Clock,
		gate: c.gates.get(c, a), meta: newMetadata(), changed: c.report, fail: c.fail,
	}
	e.settings.Store(s)
	return e
}

// close puts discard behind the gate of an endpoint that was removed.
func (g *gates) close(c *Component, e *endpoint) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.off[e.key] = true
	e.gate.Set(discard{c.o.Stats})
}

// get returns the gate of an endpoint; panics behind any gate go to c from now on.
func (g *gates) get(c *Component, a *Endpoint) *flow.Receiver {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.owner = c
	r := g.byKey[a.key()]
	if r == nil {
		r = flow.NewReceiver(c.o.ID+"/"+a.label(), batch.SignalMetrics, nil, func(p *flow.PanicError) {
			g.mu.Lock()
			owner := g.owner
			g.mu.Unlock()
			owner.fail(p)
		})
		g.byKey[a.key()] = r
	}
	if g.off[a.key()] {
		delete(g.off, a.key())
		r.Set(nil) // calls wait until the endpoint runs again
	}
	return r
}

// ConsumeMetrics returns when the samples are in the journal of every
// endpoint. The error is a *flow.Partial of the endpoints that refused.
func (c *Component) ConsumeMetrics(ctx context.Context, b *batch.Metrics) error {
	if c.none.Load() {
		c.o.Stats.Drop("no_endpoint", b.Len())
	}
	return c.out.Load().SendMetrics(ctx, b)
}

// fail makes Run return err.
func (c *Component) fail(err error) {
	select {
	case c.failed <- err:
	default:
	}
}

// Run sends until ctx ends.
func (c *Component) Run(ctx context.Context) error {
	type running struct {
		stop context.CancelFunc
		done chan struct{}
	}
	run := map[*endpoint]running{}
	stop := func(es ...*endpoint) {
		for _, e := range es {
			run[e].stop()
		}
		for _, e := range es {
			<-run[e].done
			delete(run, e)
		}
	}
	defer func() {
		var all []*endpoint
		for e := range run {
			all = append(all, e)
		}
		stop(all...)
	}()
	// Not at once: the endpoints claim theirs first.
	expired := c.o.Clock.NewTimer(time.Minute)
	defer expired.Stop()
	orphans := journaling.Orphans{Storage: c.o.StoragePath, Clock: c.o.Clock, Logger: c.o.Logger}
	for {
		select {
		case <-c.changed:
			wanted := c.current()
			var gone []*endpoint
			for e := range run {
				if !slices.Contains(wanted, e) {
					gone = append(gone, e)
				}
			}
			stop(gone...)
			c.discard(gone)
			for _, e := range wanted {
				if _, ok := run[e]; !ok {
					ectx, cancel := context.WithCancel(ctx)
					r := running{cancel, make(chan struct{})}
					run[e] = r
					go func() { defer close(r.done); e.run(ectx) }()
				}
			}
			c.report()
		case <-expired.C():
			orphans.Tend()
			expired.Reset(time.Hour)
		case err := <-c.failed:
			return err
		case <-ctx.Done():
			return nil
		}
	}
}

// discard closes the gates of endpoints that are not wanted back meanwhile.
func (c *Component) discard(gone []*endpoint) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range gone {
		if !slices.ContainsFunc(c.endpoints, func(w *endpoint) bool { return w.key == e.key }) {
			c.gates.close(c, e)
		}
	}
}

func (c *Component) current() []*endpoint {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.endpoints
}

// report tells the node's health: the endpoints' problems.
func (c *Component) report() {
	c.telling.Lock()
	defer c.telling.Unlock()
	var problems []string
	for _, e := range c.current() {
		if err := e.problem(); err != nil {
			problems = append(problems, err.Error())
		}
	}
	h := component.Health{State: component.Healthy, Message: "sending", Time: c.o.Clock.Now()}
	if len(problems) > 0 {
		h.State, h.Message = component.Unhealthy, strings.Join(problems, "; ")
	}
	c.o.Health(h)
}

// debugInfo is what the page shows of an endpoint.
type debugInfo struct {
	Endpoint       string           `json:"endpoint"`
	URL            string           `json:"url"`
	Message        string           `json:"protobuf_message"` // in use
	Journal        string           `json:"journal"`
	Lanes          int              `json:"lanes"` // in use
	PendingBlocks  int64            `json:"pending_blocks"`
	PendingSamples int64            `json:"pending_samples"`
	JournalBytes   int64            `json:"journal_bytes"`
	OldestAge      string           `json:"oldest_age"`
	Sent           int64            `json:"samples_sent"`
	Dropped        map[string]int64 `json:"samples_dropped"`
	LastError      string           `json:"last_error,omitempty"`
	LastErrorTime  time.Time        `json:"last_error_time,omitzero"`
}

// DebugInfo returns the state of each endpoint.
func (c *Component) DebugInfo() any {
	var infos []debugInfo
	for _, e := range c.current() {
		infos = append(infos, e.debug())
	}
	return map[string]any{"endpoints": infos}
}

func (e *endpoint) debug() debugInfo {
	s := e.settings.Load()
	args := s.args
	dropped, st := e.dropped()
	in := debugInfo{
		Endpoint: args.label(), URL: journal.PublicURL(args.URL), Message: e.message(s).String(),
		PendingBlocks: st.Blocks, PendingSamples: st.Samples, JournalBytes: st.Bytes, OldestAge: "0s",
		Sent: e.stats.sent.Load(), Dropped: dropped,
	}
	if !st.Oldest.IsZero() {
		in.OldestAge = e.clock.Now().Sub(st.Oldest).Round(time.Second).String()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.opened != nil {
		in.Journal, in.Lanes = e.opened.Dir(), int(e.lanes.used.Load())
	}
	if e.lastErr != nil {
		in.LastError, in.LastErrorTime = e.lastErr.Error(), e.lastTime
	} else if e.openErr != nil {
		in.LastError = e.openErr.Error()
	}
	return in
}
