// Package api is loki.source.api: it receives lines that clients push with Loki's
// push API, and forwards them.
//
// Data takes the following path. The handler reads a body within its limits
// (handler.go) and decompresses it into an arena that the lines alias (decode.go,
// json.go, natives/loki/push). It looks up the streams by the text of their
// labels (streams.go), distributes the lines over shards by stream, and waits
// until the receivers have accepted all of them (engine/intake). Only then does
// the client get its 204.
//
// A 2xx response means that every receiver has accepted the lines, which for
// loki.write means on disk, and that no receiver only keeps them in memory. 503
// means that the client should send the same body again, which is then forwarded
// only once. 400 names the invalid streams; as in Loki, the other streams of the
// request are accepted. The lines of a stream stay in the order of their arrival.
package api

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/intake"
	"github.com/weir-run/weir/engine/server"
	"github.com/weir-run/weir/natives/loki/source/internal/source"
)

// Registration describes loki.source.api.
func Registration() component.Registration {
	return component.Registration{
		Name:    "loki.source.api",
		Sends:   batch.SignalLogs,
		NewArgs: func() any { a := new(Arguments); a.SetToDefault(); return a },
		Build: func(o component.Options, args any, _ component.Component) (component.Component, error) {
			return build(o, args.(*Arguments))
		},
		Doc: component.Doc{
			Summary: "Receives lines with Loki's push API at POST /loki/api/v1/push (protobuf or JSON), or as plain text at /loki/api/v1/raw, and forwards them. " +
				"A request is answered 204 after every receiver has accepted its lines, 503 with Retry-After if they do not accept them in time, or 429 if too many requests are in flight. " +
				"The header X-Scope-OrgID becomes the tenant of the lines.",
		},
	}
}

// Component is the component of a loki.source.api node.
type Component struct {
	o      component.Options
	server *server.Server
	desk   *intake.Desk[error, *batch.Logs] // its error describes the invalid part of a body
	bodies sync.Pool                        // of *[]byte

	args atomic.Pointer[Arguments]
	out  atomic.Pointer[flow.Output]
	set  atomic.Pointer[settings]

	mu      sync.Mutex
	last    int64 // Unix ns, the latest time that a line was given
	retired []retired
}

// retired are settings that were replaced.
type retired struct {
	set   *settings
	since time.Time
}

var (
	_ component.Component = (*Component)(nil)
	_ component.Updater   = (*Component)(nil)
	_ component.Sourced   = (*Component)(nil)
	_ component.Debugger  = (*Component)(nil)
)

func build(o component.Options, a *Arguments) (*Component, error) {
	c := &Component{o: o}
	c.desk = intake.NewDesk[error]("weir_source_api", signal, o.Clock, c.out.Load)
	c.bodies.New = func() any { return new([]byte) }
	var err error
	if c.server, err = server.New(server.Options{Handler: c.desk.Handler(o.Logger, c.route), Logger: o.Logger, Clock: o.Clock, Health: o.Health,
		Setting: func() string { return "listen_address or listen_port in the block http of " + o.Where() }}, &a.Server); err != nil {
		return nil, err
	}
	c.applyArguments(a)
	streams := c.desk.Gauge("_streams", "Sets of labels that are known, before the rules.", func() int { return c.set.Load().streams.Len() })
	if err := component.Register(o.Registerer, append(c.desk.Metrics(c.server.Connections, c.server.LimitReached), streams)...); err != nil {
		return nil, fmt.Errorf("cannot register metrics: %w", err)
	}
	return c, nil
}

// Update applies new arguments. Requests in flight are completed with the old
// ones.
func (c *Component) Update(args any) error {
	a := args.(*Arguments)
	if err := c.server.Update(&a.Server); err != nil {
		return err
	}
	c.applyArguments(a)
	return nil
}

// applyArguments applies arguments that the server has accepted.
func (c *Component) applyArguments(a *Arguments) {
	before := c.args.Swap(a)
	c.desk.Budget.SetLimit(int64(a.Limits.MaxInflightSize))
	if before == nil || !slices.Equal(before.ForwardTo, a.ForwardTo) {
		c.out.Store(flow.NewOutput(c.o.Stats, a.ForwardTo))
	}
	if before != nil && maps.Equal(before.Labels, a.Labels) && reflect.DeepEqual(before.RelabelRules, a.RelabelRules) && before.Limits == a.Limits {
		return
	}
	if set := c.set.Swap(newSettings(a, c.o.Clock)); set != nil {
		c.mu.Lock()
		c.retired = append(c.retired, retired{set, c.o.Clock.Now()})
		c.mu.Unlock()
	}
}

// Sourced returns the paths of the TLS files.
func (c *Component) Sourced() []string { return c.server.Files() }

// Run serves until ctx ends and the requests in flight are answered.
func (c *Component) Run(ctx context.Context) error {
	swept := c.o.Clock.Now()
	err := c.desk.Run(ctx, c.server.Run, func(now time.Time) {
		c.expire(now)
		if now.Sub(swept) >= source.Recheck {
			swept = now
			c.set.Load().removeUnused(now)
		}
	})
	c.set.Load().close()
	for _, r := range c.retired {
		r.set.close()
	}
	return err
}

// Info is the result of DebugInfo.
type Info struct {
	Address       string `json:"address"` // "" if it does not listen
	Connections   int    `json:"connections"`
	Requests      int64  `json:"requests_in_flight"`
	InflightBytes int64  `json:"bytes_in_flight"`
	Streams       int    `json:"streams"`
}

// DebugInfo returns an Info.
func (c *Component) DebugInfo() any {
	return Info{
		Address: c.server.Address(), Connections: c.server.Connections(),
		Requests: c.desk.InFlight.Load(), InflightBytes: c.desk.Budget.Used(), Streams: c.set.Load().streams.Len(),
	}
}
