// Package receivehttp is prometheus.receive_http: it receives samples over
// Prometheus remote write 1.0 and 2.0, and forwards them.
//
// A request takes the following path. The handler reads a body within its limits
// (handler.go) and decodes it into rows, without decoding the labels of known
// series (decode_v1.go, decode_v2.go, series.go). It distributes them over shards
// by series and waits until the receivers have accepted all of them
// (engine/intake). Only then does the client get a 2xx response.
//
// A 2xx response means that every receiver has accepted the samples, which for
// remote_write means on disk. 503 means that the client should send the same body
// again. If it does so within a minute, each receiver gets the body only once,
// even if only some of the receivers were late. Samples are forwarded unchanged
// and in their order within a series, including the exact bits of staleness
// markers. Out-of-order samples are not rejected; the final storage decides about
// them.
package receivehttp

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/intake"
	"github.com/weir-run/weir/engine/server"
)

// Registration describes prometheus.receive_http.
func Registration() component.Registration {
	return component.Registration{
		Name:    "prometheus.receive_http",
		Sends:   batch.SignalMetrics,
		NewArgs: func() any { a := new(Arguments); a.SetToDefault(); return a },
		Build: func(o component.Options, args any, _ component.Component) (component.Component, error) {
			return build(o, args.(*Arguments))
		},
		Doc: component.Doc{
			Summary: "Receives samples over Prometheus remote write 1.0 and 2.0 at POST /api/v1/metrics/write and forwards them. " +
				"A request is answered 2xx after every receiver has accepted its samples, or 503 with Retry-After if they do not accept them in time.",
		},
	}
}

// Component is the component of a prometheus.receive_http node.
type Component struct {
	o        component.Options
	server   *server.Server
	desk     *intake.Desk[answer, *batch.Metrics]
	held     *held
	rates    *rates
	decoders sync.Pool

	exemplarsDropped  *prometheus.CounterVec // by reason
	histogramsReduced prometheus.Counter

	args  atomic.Pointer[Arguments]
	out   atomic.Pointer[flow.Output]
	known atomic.Pointer[known]

	mu      sync.Mutex
	retired []retired
}

// signal describes samples to the shards.
var signal = intake.Signal[*batch.Metrics]{
	Len: (*batch.Metrics).Len,
	Join: func(source uint64, bs []*batch.Metrics) *batch.Metrics {
		b := batch.JoinMetrics(bs)
		b.Source = source
		return b
	},
	Send: (*flow.Output).SendMetrics,
}

// answer is the response for a body whose valid part was accepted.
type answer struct {
	bad     error // the invalid part, or nil
	written written
}

// retired is the set of series that were known under previous limits.
type retired struct {
	k     *known
	since time.Time
}

var (
	_ component.Component = (*Component)(nil)
	_ component.Updater   = (*Component)(nil)
	_ component.Sourced   = (*Component)(nil)
	_ component.Debugger  = (*Component)(nil)
)

func build(o component.Options, a *Arguments) (*Component, error) {
	c := &Component{o: o, held: newHeld(), rates: newRates(), exemplarsDropped: newExemplarsDropped(), histogramsReduced: newHistogramsReduced()}
	c.desk = intake.NewDesk[answer]("weir_receive_http", signal, o.Clock, c.out.Load)
	c.decoders.New = func() any { return new(decoder) }
	var err error
	if c.server, err = server.New(server.Options{Handler: c.desk.Handler(o.Logger, c.serve), Logger: o.Logger, Clock: o.Clock, Health: o.Health,
		Setting: func() string { return "listen_address or listen_port in the block http of " + o.Where() }}, &a.Server); err != nil {
		return nil, err
	}
	c.applyArguments(a)
	series := c.desk.Gauge("_series", "Series that are known.", func() int { return c.known.Load().len() })
	if err := component.Register(o.Registerer, append(c.desk.Metrics(c.server.Connections, c.server.LimitReached), c.exemplarsDropped, c.histogramsReduced, series)...); err != nil {
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
	if before != nil && before.Limits.labels() == a.Limits.labels() {
		return
	}
	// Known series are not checked again, so they must be removed.
	if k := c.known.Swap(newKnown()); k != nil {
		c.mu.Lock()
		c.retired = append(c.retired, retired{k, c.o.Clock.Now()})
		c.mu.Unlock()
	}
}

// labels returns the limits against which a new series is checked.
func (l *Limits) labels() [3]int {
	return [3]int{l.LabelLimit, l.LabelNameLengthLimit, l.LabelValueLengthLimit}
}

// Sourced returns the paths of the TLS files.
func (c *Component) Sourced() []string { return c.server.Files() }

// Run serves until ctx ends and the requests in flight are answered.
func (c *Component) Run(ctx context.Context) error {
	err := c.desk.Run(ctx, c.server.Run, c.expire)
	c.known.Load().clear()
	for _, r := range c.retired {
		r.k.clear()
	}
	return err
}

// expire removes data that has been kept long enough.
func (c *Component) expire(now time.Time) {
	c.rates.expire(now)
	c.known.Load().sendDeferred(now)
	if n := c.held.expire(now); n > 0 {
		c.exemplarsDropped.WithLabelValues("no_sample").Add(float64(n))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.retired) > 0 && now.Sub(c.retired[0].since) > intake.AbandonAfter {
		c.retired[0].k.clear()
		c.retired = c.retired[1:]
	}
}

// Info is the result of DebugInfo.
type Info struct {
	Address       string `json:"address"` // "" if it does not listen
	Connections   int    `json:"connections"`
	Requests      int64  `json:"requests_in_flight"`
	InflightBytes int64  `json:"bytes_in_flight"`
	Series        int    `json:"series"`
}

// DebugInfo returns an Info.
func (c *Component) DebugInfo() any {
	return Info{
		Address: c.server.Address(), Connections: c.server.Connections(),
		Requests: c.desk.InFlight.Load(), InflightBytes: c.desk.Budget.Used(), Series: c.known.Load().len(),
	}
}
