// Package write is loki.write: it sends log lines to Loki, through a journal on
// disk for each endpoint.
//
// A batch takes the following path. ConsumeLogs sends it to the gates of all
// endpoints, so that a retry reaches only the endpoints that refused it. An
// endpoint adds it to the open block of its shard and tenant (gather.go,
// streams.go, block.go), already encoded as it will be sent, and returns when the
// compressed block is in the journal (engine/journal). One sender per shard joins
// the waiting blocks into a request without decoding them (request.go) and sends
// it until it is accepted, or until Loki refuses some of its lines (send.go,
// answer.go).
//
// It does not check the times, lengths or labels of lines: Loki does.
package write

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/httpclient"
	"github.com/weir-run/weir/engine/outbox"
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
		Build: func(o component.Options, args any, previous component.Component) (component.Component, error) {
			return New(o, args.(*Arguments), previous)
		},
		Doc: component.Doc{
			Summary: "Sends log lines to Loki, or to any endpoint that supports its push API. Accepted lines are stored in a journal on disk, so they survive an outage of " +
				"the endpoint and a crash of weir.",
		},
	}
}

// Component is the component of a loki.write node.
type Component struct {
	o         component.Options
	endpoints *outbox.Endpoints[*endpoint]
}

var (
	_ component.Updater  = (*Component)(nil)
	_ component.Sourced  = (*Component)(nil)
	_ component.Debugger = (*Component)(nil)
	_ component.Queuer   = (*Component)(nil)
	_ flow.LogsConsumer  = (*Component)(nil)
)

// New returns a component that works after Run is called. It continues the
// outboxes of previous, which may be nil.
func New(o component.Options, a *Arguments, previous component.Component) (*Component, error) {
	c := &Component{o: o}
	var before *outbox.Endpoints[*endpoint]
	if prev, ok := previous.(*Component); ok {
		before = prev.endpoints
	}
	c.endpoints = outbox.NewEndpoints(&c.o, batch.SignalLogs, discard{o.Stats}, before)
	if err := c.Update(a); err != nil {
		return nil, err
	}
	if err := o.Registerer.Register(collector{c}); err != nil {
		return nil, fmt.Errorf("cannot register metrics: %w", err)
	}
	return c, nil
}

// Update applies new arguments. Endpoints that did not change are not touched.
func (c *Component) Update(args any) error {
	a := args.(*Arguments)
	changed := false
	err := c.endpoints.Update(func(old map[string]*endpoint) ([]*endpoint, error) {
		changed = len(old) != len(a.Endpoints)
		return outbox.Next(a.refs(), old,
			func(i int, before *settings) (*settings, error) {
				s, err := newSettings(&c.o, a, a.Endpoints[i], before)
				changed = changed || s != before
				return s, err
			},
			func(i int, s *settings) *endpoint { return c.newEndpoint(a.Endpoints[i], s) })
	})
	if err != nil || changed {
		return err
	}
	// A file changed. The clients read it again by themselves.
	return httpclient.CheckFiles(a.clients()...)
}

// Sourced returns the files that the clients read.
func (c *Component) Sourced() (paths []string) {
	for _, e := range c.endpoints.Current() {
		paths = append(paths, e.Using().args.Client.Files()...)
	}
	return paths
}

func (a *Arguments) clients() (all []*httpclient.Arguments) {
	for _, e := range a.Endpoints {
		all = append(all, &e.Client)
	}
	return all
}

func (c *Component) newEndpoint(a *Endpoint, s *settings) *endpoint {
	e := &endpoint{Remote: c.endpoints.NewRemote(outboxes, a.ref(), &s.RemoteSettings), toldLost: map[string]time.Time{}}
	e.settings.Store(s)
	return e
}

// ConsumeLogs returns when the lines are in the journal of every endpoint. The
// error is a *flow.Partial of the endpoints that refused the batch, unless all of
// them did.
func (c *Component) ConsumeLogs(ctx context.Context, b *batch.Logs) error {
	out := c.endpoints.Output()
	return out.Whole(out.SendLogs(ctx, b))
}

// Backlog returns the number of lines that wait to be sent.
func (c *Component) Backlog() component.Backlog {
	b := c.endpoints.Backlog()
	for _, e := range c.endpoints.Current() {
		b.Patience = max(b.Patience, e.Using().args.BatchWait)
	}
	return b
}

// Run sends until ctx ends.
func (c *Component) Run(ctx context.Context) error { return c.endpoints.Run(ctx) }
