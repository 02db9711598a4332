// Package remotewrite is prometheus.remote_write: it sends samples to endpoints
// of remote write 1.0 and 2.0, through a journal on disk for each endpoint.
//
// A batch takes the following path. ConsumeMetrics sends it to the gates of all
// endpoints, so that a retry reaches only the endpoints that refused it. An
// endpoint adds it to the open block of its shard (gather.go, block.go), already
// encoded as it will be sent (encode.go, encode_v2.go), and returns when the
// block is in the journal (engine/journal). One sender per shard joins the
// waiting blocks into requests (join.go, write_request.go, merge.go) and sends
// each until it is accepted or rejected (send.go). While a shard is behind,
// several requests are sent concurrently (spread.go). A request is only encoded
// again if the endpoint requires a different encoding (recode.go).
//
// New samples and samples from before a restart are treated alike.
package remotewrite

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
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
		Name:    "prometheus.remote_write",
		Accepts: batch.SignalMetrics,
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
			Summary: "Sends samples to endpoints that support Prometheus remote write 1.0 or 2.0, such as Prometheus, Mimir, Thanos and VictoriaMetrics. " +
				"Accepted samples are stored in a journal on disk, so they survive an outage of the endpoint and a crash of weir.",
		},
	}
}

// Component is the component of a prometheus.remote_write node.
type Component struct {
	o         component.Options
	endpoints *outbox.Endpoints[*endpoint]
	none      atomic.Bool // there are no endpoints
}

var (
	_ component.Updater    = (*Component)(nil)
	_ component.Sourced    = (*Component)(nil)
	_ component.Debugger   = (*Component)(nil)
	_ component.Queuer     = (*Component)(nil)
	_ flow.MetricsConsumer = (*Component)(nil)
)

// New returns a component that works after Run is called. It continues the
// outboxes of previous, which may be nil.
func New(o component.Options, a *Arguments, previous component.Component) (*Component, error) {
	c := &Component{o: o}
	var before *outbox.Endpoints[*endpoint]
	if prev, ok := previous.(*Component); ok {
		before = prev.endpoints
	}
	c.endpoints = outbox.NewEndpoints(&c.o, batch.SignalMetrics, discard{o.Stats}, before)
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
		all, err := outbox.Next(a.refs(), old,
			func(i int, before *settings) (*settings, error) {
				s, err := newSettings(&c.o, a, a.Endpoints[i], before)
				changed = changed || s != before
				return s, err
			},
			func(i int, s *settings) *endpoint { return c.newEndpoint(a.Endpoints[i], s) })
		if err == nil {
			c.none.Store(len(all) == 0)
		}
		return all, err
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
		a := e.Using().args
		paths = append(paths, a.Client.Files()...)
		once := a.files()
		if w := a.AzureAD; w != nil && w.WorkloadIdentity != nil && w.WorkloadIdentity.TokenFilePath != "" {
			once = append(once, w.WorkloadIdentity.TokenFilePath)
		}
		for _, p := range once {
			if abs, err := filepath.Abs(p); err == nil {
				paths = append(paths, abs)
			}
		}
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
	e := &endpoint{Remote: c.endpoints.NewRemote(outboxes, a.ref(), &s.RemoteSettings), meta: newMetadata()}
	e.settings.Store(s)
	return e
}

// ConsumeMetrics returns when the samples are in the journal of every endpoint.
// The error is a *flow.Partial of the endpoints that refused the batch, unless
// all of them did.
func (c *Component) ConsumeMetrics(ctx context.Context, b *batch.Metrics) error {
	if c.none.Load() {
		c.o.Stats.Drop("no_endpoint", b.Len())
	}
	out := c.endpoints.Output()
	return out.Whole(out.SendMetrics(ctx, b))
}

// Backlog returns the number of samples that wait to be sent.
func (c *Component) Backlog() component.Backlog {
	b := c.endpoints.Backlog()
	for _, e := range c.endpoints.Current() {
		if d := e.Using().args.Queue.BatchSendDeadline; d != nil {
			b.Patience = max(b.Patience, *d)
		}
	}
	return b
}

// Run sends until ctx ends.
func (c *Component) Run(ctx context.Context) error { return c.endpoints.Run(ctx) }

// debugInfo is the state of an endpoint that the web page shows.
type debugInfo struct {
	Endpoint       string           `json:"endpoint"`
	URL            string           `json:"url"`
	Message        string           `json:"protobuf_message"` // in use
	Journal        string           `json:"journal"`
	Shards         int              `json:"shards"` // in use
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
	for _, e := range c.endpoints.Current() {
		infos = append(infos, e.debug())
	}
	return map[string]any{"endpoints": infos}
}

func (e *endpoint) debug() debugInfo {
	s := e.settings.Load()
	d := e.Debug()
	in := debugInfo{
		Endpoint: e.Label(), URL: outbox.ShownURL(s.args.URL), Message: e.message(s).String(), Journal: d.Journal,
		PendingBlocks: d.Stats.Journal.Blocks, PendingSamples: d.Waiting, JournalBytes: d.Stats.Journal.Bytes, OldestAge: d.OldestAge,
		Sent: d.Sent, Dropped: d.Lost, LastError: d.LastError, LastErrorTime: d.LastErrorTime,
	}
	if d.Journal != "" {
		in.Shards = int(e.shards.used.Load())
	}
	return in
}
