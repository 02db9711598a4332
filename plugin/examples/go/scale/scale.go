// Package scale is acme.scale, an example of a component. It can be compiled into weir and
// served by a plugin.
package scale

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
)

// Arguments are the arguments of acme.scale.
type Arguments struct {
	ForwardTo []*flow.Receiver `alloy:"forward_to,attr"`
	Factor    float64          `alloy:"factor,attr,optional"`
}

// SetToDefault sets the defaults.
func (a *Arguments) SetToDefault() { *a = Arguments{Factor: 1} }

// Validate checks the arguments.
func (a *Arguments) Validate() error {
	if a.Factor == 0 {
		return errors.New("factor must not be 0")
	}
	return nil
}

// Exports are the exports of acme.scale.
type Exports struct {
	Receiver *flow.Receiver `alloy:"receiver,attr"`
}

// Registration defines acme.scale.
func Registration() component.Registration {
	return component.Registration{
		Name:    "acme.scale",
		Accepts: batch.SignalMetrics,
		Sends:   batch.SignalMetrics,
		NewArgs: func() any {
			a := new(Arguments)
			a.SetToDefault()
			return a
		},
		Exports: Exports{},
		Build:   build,
		Doc: component.Doc{
			Summary: "Multiplies the values of samples.",
			Args: map[string]string{
				"forward_to": "The receivers of the samples.",
				"factor":     "The factor. It must not be 0.",
			},
			Exports: map[string]string{"receiver": "The receiver that the samples are sent to."},
			Example: "acme.scale \"bytes\" {\n\tfactor     = 1024\n\tforward_to = [prometheus.echo.default.receiver]\n}\n\nprometheus.echo \"default\" { }\n",
		},
	}
}

// Component is one node.
type Component struct {
	stats    *flow.Stats
	settings atomic.Pointer[settings]
}

// settings are what Update replaces.
type settings struct {
	factor float64
	out    *flow.Output
}

var (
	_ component.Updater    = (*Component)(nil)
	_ flow.MetricsConsumer = (*Component)(nil)
)

func build(o component.Options, args any, _ component.Component) (component.Component, error) {
	c := &Component{stats: o.Stats}
	return c, c.Update(args)
}

// Update takes new arguments.
func (c *Component) Update(args any) error {
	a := args.(*Arguments)
	c.settings.Store(&settings{a.Factor, flow.NewOutput(c.stats, a.ForwardTo)})
	return nil
}

// Run waits until the node ends.
func (c *Component) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// ConsumeMetrics sends b with other values. Batches are immutable, so it makes a new one
// that shares the columns that do not change.
func (c *Component) ConsumeMetrics(ctx context.Context, b *batch.Metrics) error {
	s := c.settings.Load()
	out := *b
	out.V = make([]float64, len(b.V))
	for i, v := range b.V {
		if out.V[i] = v * s.factor; batch.IsStale(v) {
			out.V[i] = v
		}
	}
	return s.out.SendMetrics(ctx, &out)
}
