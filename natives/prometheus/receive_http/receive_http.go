// Package receivehttp is prometheus.receive_http: it takes samples that others
// send by remote write, 1.0 and 2.0, and sends them on.
//
// In data order: the handler reads a body within its limits (handler.go),
// turns it into rows without decoding the labels of series that are known
// (decode_v1.go, decode_v2.go, series.go), spreads them over lanes by series and
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

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/natives/intake"
	"github.com/weir-run/weir/natives/server"
)

// Registration describes prometheus.receive_http.
func Registration() component.Registration {
	return component.Registration{
		Name:    "prometheus.receive_http",
		Sends:   batch.SignalMetrics,
		NewArgs: func() any { a := new(Arguments); a.SetToDefault(); return a },
		Build:   func(o component.Options, args any) (component.Component, error) { return build(o, args.(*Arguments)) },
		Doc: component.Doc{
			Summary: "Receives samples by Prometheus remote write 1.0 and 2.0 at POST /api/v1/metrics/write and sends them on. " +
				"A request is answered 2xx when every receiver has accepted its samples, and 503 with Retry-After when they do not in time.",
		},
	}
}

// Component is one prometheus.receive_http.
type Component struct {
	o        component.Options
	server   *server.Server
	metrics  *metrics
	lanes    [intake.Lanes]*lane
	pending  intake.Pending[answer]
	held     *held
	budget   intake.Budget
	requests atomic.Int64
	rates    *rates
	decoders sync.Pool
	stopping chan struct{} // closed when requests are to be answered soon

	args  atomic.Pointer[Arguments]
	out   atomic.Pointer[flow.Output]
	known atomic.Pointer[known]

	mu      sync.Mutex
	retired []retired
}

// lane sends what several requests brought.
type lane = intake.Lane[answer, *batch.Metrics]

// signal is what lanes know of samples.
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
	o.Previous = nil // kept, it would keep all that were before it
	c := &Component{o: o, held: newHeld(), rates: newRates(), stopping: make(chan struct{})}
	c.decoders.New = func() any { return new(decoder) }
	for i := range c.lanes {
		c.lanes[i] = intake.NewLane[answer](signal, o.Clock, c.out.Load, batch.NewPushSource())
	}
	var err error
	if c.server, err = server.New(server.Options{Handler: c.routes(), Logger: o.Logger, Clock: o.Clock, Health: o.Health}, &a.Server); err != nil {
		return nil, err
	}
	c.take(a)
	c.metrics = newMetrics(c)
	if err := component.Register(o.Registerer, c.metrics.all()...); err != nil {
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
	c.take(a)
	return nil
}

// take makes arguments effective that the server has taken.
func (c *Component) take(a *Arguments) {
	before := c.args.Swap(a)
	c.budget.SetLimit(int64(a.Limits.MaxInflightSize))
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

// stopGrace is how long requests in flight may still wait for the receivers
// when weir stops.
const stopGrace = 3 * time.Second

// Run serves until ctx ends and the requests in flight are answered.
func (c *Component) Run(ctx context.Context) error {
	base, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	for _, l := range c.lanes {
		wg.Go(func() { l.Run(base) })
	}
	wg.Go(func() { c.look(base) })
	wg.Go(func() {
		select {
		case <-ctx.Done():
			_ = clock.Sleep(base, c.o.Clock, stopGrace)
		case <-base.Done():
		}
		close(c.stopping)
	})
	err := c.server.Run(ctx)
	cancel()
	wg.Wait()
	c.known.Load().clear()
	for _, r := range c.retired {
		r.k.clear()
	}
	return err
}

// look looks after what nobody waits for, every second.
func (c *Component) look(ctx context.Context) {
	for clock.Sleep(ctx, c.o.Clock, time.Second) == nil {
		now := c.o.Clock.Now()
		for _, l := range c.lanes {
			l.Look(now)
		}
		c.pending.Expire(now)
		c.rates.expire(now)
		if n := c.held.expire(now); n > 0 {
			c.metrics.exemplars.WithLabelValues("no_sample").Add(float64(n))
		}
		c.mu.Lock()
		for len(c.retired) > 0 && now.Sub(c.retired[0].since) > intake.AbandonAfter {
			c.retired[0].k.clear()
			c.retired = c.retired[1:]
		}
		c.mu.Unlock()
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
		Requests: c.requests.Load(), InflightBytes: c.budget.Used(), Series: c.known.Load().len(),
	}
}
