// Package write is loki.write: it sends log lines to Loki, through a journal on
// disk for each endpoint.
//
// In data order: ConsumeLogs fans a batch out to the endpoints' gates, so that a
// retry goes only to those that refused it; an endpoint puts it into the open
// block of its lane and tenant (gather.go, streams.go, block.go) in the bytes
// that will be sent, compressed, and answers once the block is in the journal
// (engine/journal). One sender a lane joins the blocks that wait into a request
// without looking into them (request.go) and posts it until it is accepted, or
// until Loki says that it will not take all of it (send.go, answer.go).
//
// It does not judge the time of a line, its length or its labels: Loki does.
package write

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/natives/journaling"
)

// Registration returns the component's registration.
func Registration() component.Registration {
	return component.Registration{
		Name:    "loki.write",
		Accepts: batch.SignalLogs,
		NewArgs: func() any {
			a := new(Arguments)
			a.SetToDefault()
			return a
		},
		Exports: Exports{},
		Build:   func(o component.Options, args any) (component.Component, error) { return New(o, args.(*Arguments)) },
		Doc: component.Doc{
			Summary: "Sends log lines to Loki, or to whatever takes its push requests. What was accepted is in a journal on disk, so that neither an outage of " +
				"the endpoint nor a killed process loses it.",
		},
	}
}

// Component is one loki.write.
type Component struct {
	o         component.Options
	endpoints *journaling.Endpoints[*endpoint]
}

var (
	_ component.Updater  = (*Component)(nil)
	_ component.Debugger = (*Component)(nil)
	_ flow.LogsConsumer  = (*Component)(nil)
)

// New returns a component that works once it runs.
func New(o component.Options, a *Arguments) (*Component, error) {
	c := &Component{o: o}
	c.o.Previous = nil // kept, it would keep all that were before it
	var before *journaling.Endpoints[*endpoint]
	if prev, ok := o.Previous.(*Component); ok {
		before = prev.endpoints
	}
	c.endpoints = journaling.NewEndpoints(&c.o, batch.SignalLogs, discard{o.Stats}, before)
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
	return c.endpoints.Update(func(old map[string]*endpoint) ([]*endpoint, error) { return c.next(a, old) })
}

// next returns the endpoints of other arguments. On an error none of old was
// touched.
func (c *Component) next(a *Arguments, old map[string]*endpoint) ([]*endpoint, error) {
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
		return nil, err
	}
	// From here on nothing fails.
	endpoints := make([]*endpoint, len(all))
	for i, ea := range a.Endpoints {
		e := old[ea.key()]
		switch {
		case e == nil:
			e = c.newEndpoint(ea, all[i])
		case e.settings.Load() != all[i]:
			e.update(all[i])
		}
		endpoints[i] = e
	}
	return endpoints, nil
}

func (c *Component) newEndpoint(a *Endpoint, s *settings) *endpoint {
	e := &endpoint{
		key: a.key(), o: &c.o, log: c.o.Logger.With("endpoint", a.label()), clock: c.o.Clock,
		gate: c.endpoints.Gate(a.key(), a.label()), changed: c.endpoints.Report, fail: c.endpoints.Fail, toldLost: map[string]time.Time{},
	}
	e.settings.Store(s)
	return e
}

// ConsumeLogs returns when the lines are in the journal of every
// endpoint. The error is a *flow.Partial of the endpoints that refused.
func (c *Component) ConsumeLogs(ctx context.Context, b *batch.Logs) error {
	return c.endpoints.Output().SendLogs(ctx, b)
}

// Run sends until ctx ends.
func (c *Component) Run(ctx context.Context) error { return c.endpoints.Run(ctx) }
