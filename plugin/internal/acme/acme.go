// Package acme contains components for tests of plugins: a transform, a source and a
// sink that are written as for weir itself. The same tests run them compiled in and in a
// plugin.
package acme

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
)

// Components are the components of the plugin acme.
func Components() []component.Registration {
	return []component.Registration{Scale, Tick, Store}
}

// Scale is a transform of samples and lines.
var Scale = component.Registration{
	Name:    "acme.scale",
	Accepts: batch.SignalMetrics | batch.SignalLogs,
	Sends:   batch.SignalMetrics | batch.SignalLogs,
	NewArgs: func() any {
		a := new(ScaleArguments)
		a.SetToDefault()
		return a
	},
	Exports: ScaleExports{},
	Build: func(o component.Options, args any, previous component.Component) (component.Component, error) {
		return newScale(o, args.(*ScaleArguments), previous)
	},
	Doc: component.Doc{
		Summary: "acme.scale multiplies samples.",
		Args:    map[string]string{"factor": "The factor."},
	},
}

// ScaleArguments are the arguments of acme.scale.
type ScaleArguments struct {
	ForwardTo []*flow.Receiver  `alloy:"forward_to,attr"`
	Factor    float64           `alloy:"factor,attr,optional"`
	Every     time.Duration     `alloy:"every,attr,optional"`
	Token     component.Secret  `alloy:"token,attr,optional"`
	Names     []string          `alloy:"names,attr,optional"`
	Extra     map[string]string `alloy:"extra,attr,optional"`
	Strict    *bool             `alloy:"strict,attr,optional"`
	Limit     *Limit            `alloy:"limit,block,optional"`
	Rules     []Rule            `alloy:"rule,block,optional"`
	// Fault makes the component fail: "panic", "error", "hang", "exit".
	Fault string `alloy:"fault,attr,optional"`
}

// Limit is a block with a default.
type Limit struct {
	Max int `alloy:"max,attr,optional"`
}

// SetToDefault sets the defaults.
func (l *Limit) SetToDefault() { *l = Limit{Max: 10} }

// Rule is a block that may occur several times.
type Rule struct {
	Name string  `alloy:",label"`
	Add  float64 `alloy:"add,attr"`
}

// SetToDefault sets the defaults.
func (a *ScaleArguments) SetToDefault() { *a = ScaleArguments{Factor: 2, Every: time.Minute} }

// Validate checks the arguments.
func (a *ScaleArguments) Validate() error {
	if a.Factor == 0 {
		return errors.New("factor must not be 0")
	}
	return nil
}

// ScaleExports are the exports of acme.scale.
type ScaleExports struct {
	Receiver *flow.Receiver   `alloy:"receiver,attr"`
	Summary  string           `alloy:"summary,attr"`
	Counts   map[string]int   `alloy:"counts,attr,optional"`
	Token    component.Secret `alloy:"token,attr,optional"`
}

// scale is the component of Scale.
type scale struct {
	o     component.Options
	args  atomic.Pointer[ScaleArguments]
	out   atomic.Pointer[flow.Output]
	count *counter
	total *prometheus.CounterVec
}

// counter is the state of a node.
type counter struct {
	mu sync.Mutex
	n  uint64
}

func (c *counter) add(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n += uint64(n)
}

func (c *counter) get() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

func newScale(o component.Options, args *ScaleArguments, previous component.Component) (component.Component, error) {
	s := &scale{o: o, count: new(counter), total: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "acme_scaled_total", Help: "Records."}, []string{"signal"})}
	if old, ok := previous.(*scale); ok {
		s.count = old.count
	}
	if err := o.Registerer.Register(s.total); err != nil {
		return nil, err
	}
	return s, s.Update(args)
}

// Update takes new arguments.
func (s *scale) Update(args any) error {
	a := args.(*ScaleArguments)
	if a.Fault == "build" {
		return errors.New("cannot build acme.scale: the fault was requested")
	}
	s.args.Store(a)
	s.out.Store(flow.NewOutput(s.o.Stats, a.ForwardTo))
	max := 0
	if a.Limit != nil {
		max = a.Limit.Max
	}
	strict := "unset"
	if a.Strict != nil {
		strict = fmt.Sprint(*a.Strict)
	}
	rules := ""
	for _, r := range a.Rules {
		rules += fmt.Sprintf(" %s+%v", r.Name, r.Add)
	}
	s.o.Export(ScaleExports{
		Summary: fmt.Sprintf("x%v every %s max %d strict %s names %v extra %v rules%s", a.Factor, a.Every, max, strict, a.Names, a.Extra, rules),
		Counts:  map[string]int{"receivers": len(a.ForwardTo)}, Token: a.Token,
	})
	return nil
}

// Run waits for the end.
func (s *scale) Run(ctx context.Context) error {
	s.o.Health(component.Health{State: component.Healthy, Message: "scaling"})
	s.o.Logger.Info("scaling", "factor", s.args.Load().Factor)
	<-ctx.Done()
	return nil
}

func (s *scale) fail(ctx context.Context) error {
	switch s.args.Load().Fault {
	case "panic":
		panic("the fault was requested")
	case "error":
		return errors.New("the fault was requested")
	case "hang":
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return nil
}

// ConsumeMetrics multiplies the samples.
func (s *scale) ConsumeMetrics(ctx context.Context, b *batch.Metrics) error {
	if err := s.fail(ctx); err != nil {
		return err
	}
	a := s.args.Load()
	out := *b
	out.V = make([]float64, len(b.V))
	for i, v := range b.V {
		if out.V[i] = v * a.Factor; batch.IsStale(v) {
			out.V[i] = v
		}
	}
	kept := out.Select(func(row int) bool { return out.V[row] >= 0 || out.V[row] != out.V[row] })
	if n := b.Len() - kept.Len(); n > 0 {
		s.o.Stats.Drop("negative", n)
	}
	s.count.add(b.Len())
	s.total.WithLabelValues("metrics").Add(float64(b.Len()))
	return s.out.Load().SendMetrics(ctx, kept)
}

// ConsumeLogs passes the lines on.
func (s *scale) ConsumeLogs(ctx context.Context, b *batch.Logs) error {
	if err := s.fail(ctx); err != nil {
		return err
	}
	s.total.WithLabelValues("logs").Add(float64(b.Len()))
	return s.out.Load().SendLogs(ctx, b)
}

// State returns the state for another process.
func (s *scale) State() ([]byte, error) { return json.Marshal(s.count.get()) }

// SetState takes the state from another process.
func (s *scale) SetState(state []byte) error {
	s.count.mu.Lock()
	defer s.count.mu.Unlock()
	return json.Unmarshal(state, &s.count.n)
}

// DebugInfo returns the number of samples.
func (s *scale) DebugInfo() any { return map[string]uint64{"samples": s.count.get()} }

// Handler answers requests.
func (s *scale) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Acme", "yes")
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprintf(w, "%s %s", r.Method, r.URL.Path)
	})
}

// Tick is a source. It sends one sample after another, and the next one when the last
// one was accepted.
var Tick = component.Registration{
	Name: "acme.tick", Sends: batch.SignalMetrics,
	NewArgs: func() any { return new(TickArguments) },
	Build: func(o component.Options, args any, _ component.Component) (component.Component, error) {
		a := args.(*TickArguments)
		return &tick{o: o, out: flow.NewOutput(o.Stats, a.ForwardTo), count: a.Count}, nil
	},
}

// TickArguments are the arguments of acme.tick.
type TickArguments struct {
	ForwardTo []*flow.Receiver `alloy:"forward_to,attr"`
	Count     int              `alloy:"count,attr"`
}

type tick struct {
	o     component.Options
	out   *flow.Output
	count int
}

// Run sends the samples and ends.
func (t *tick) Run(ctx context.Context) error {
	source := batch.NewSource()
	series := batch.NewSeries([]batch.Label{{Name: batch.NameLabel, Value: "tick"}})
	for i := range t.count {
		b := &batch.Metrics{Source: source, Series: []*batch.Series{series}, T: []int64{int64(i)}, V: []float64{float64(i)}}
		err := t.out.SendMetrics(ctx, b)
		for err != nil {
			if ctx.Err() != nil {
				return nil
			}
			p, ok := errors.AsType[*flow.Partial](err)
			if !ok {
				return err
			}
			err = p.Retry(ctx)
		}
	}
	<-ctx.Done()
	return nil
}

// Store is a sink. It keeps the sum of the values that it got.
var Store = component.Registration{
	Name: "acme.store", Accepts: batch.SignalMetrics,
	NewArgs: func() any { return new(struct{}) },
	Exports: StoreExports{},
	Build: func(o component.Options, _ any, _ component.Component) (component.Component, error) {
		return &store{o: o}, nil
	},
}

// StoreExports are the exports of acme.store.
type StoreExports struct {
	Receiver *flow.Receiver `alloy:"receiver,attr"`
	Sum      float64        `alloy:"sum,attr"`
}

type store struct {
	o   component.Options
	mu  sync.Mutex
	sum float64
}

// Run waits for the end.
func (s *store) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// ConsumeMetrics adds the values.
func (s *store) ConsumeMetrics(_ context.Context, b *batch.Metrics) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range b.V {
		s.sum += v
	}
	s.o.Stats.CountOut(batch.SignalMetrics, b.Len())
	s.o.Export(StoreExports{Sum: s.sum})
	return nil
}
