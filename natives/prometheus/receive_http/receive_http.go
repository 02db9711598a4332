// Package receivehttp is prometheus.receive_http: it receives samples over Prometheus
// remote write 1.0 and 2.0, and forwards them.
//
// In data order: the handler reads a body within its limits (handler.go),
// turns it into rows without decoding the labels of series that are known
// (decode_v1.go, decode_v2.go, series.go), spreads them over shards by series and
// waits until the receivers have accepted all of them (natives/intake);
// only then the client gets its 2xx.
//
// The rules to know. An answer 2xx means accepted by every receiver, which for
// remote_write is on disk. 503 means not yet: the client is to send the same
// body again, and if it does so within a minute, the body is sent on once to
// each receiver, whoever of them was late. Samples are passed on as they come,
// in their order by series, staleness markers bit by bit; what is out of order
// is for the end of the way to judge.
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

// Component is one prometheus.receive_http.
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

// signal is what shards know of samples.
var signal = intake.Signal[*batch.Metrics]{
	Len: (*batch.Metrics).Len,
	Join: func(source uint64, bs []*batch.Metrics) *batch.Metrics {
		b := batch.JoinMetrics(bs)
		b.Source = source
		return b
	},
	Send: (*flow.Output).SendMetrics,
}

// answer is what the client is told of a body whose good part was accepted.
type answer struct {
	bad     error // what was not good, nil for nothing
	written written
}

// retired is what was known under other limits.
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

// Update takes new arguments; requests in flight end under the old ones.
func (c *Component) Update(args any) error {
	a := args.(*Arguments)
	if err := c.server.Update(&a.Server); err != nil {
		return err
	}
	c.applyArguments(a)
	return nil
}

// applyArguments makes arguments effective that the server has taken.
func (c *Component) applyArguments(a *Arguments) {
	before := c.args.Swap(a)
	c.desk.Budget.SetLimit(int64(a.Limits.MaxInflightSize))
	if before == nil || !slices.Equal(before.ForwardTo, a.ForwardTo) {
		c.out.Store(flow.NewOutput(c.o.Stats, a.ForwardTo))
	}
	if before != nil && before.Limits.labels() == a.Limits.labels() {
		return
	}
	// Known series are not checked again, so they are forgotten.
	if k := c.known.Swap(newKnown()); k != nil {
		c.mu.Lock()
		c.retired = append(c.retired, retired{k, c.o.Clock.Now()})
		c.mu.Unlock()
	}
}

// labels are the limits that a series is checked against when it is new.
func (l *Limits) labels() [3]int {
	return [3]int{l.LabelLimit, l.LabelNameLengthLimit, l.LabelValueLengthLimit}
}

// Sourced returns the TLS files.
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

// expire forgets what has been kept for long enough.
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

// Info is what DebugInfo returns.
type Info struct {
	Address       string `json:"address"` // "" when it does not listen
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
