package component_test

import (
	"context"
	"fmt"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
)

// Arguments are the arguments of the block. The comments are its manual.
type Arguments struct {
	// ForwardTo are the receivers of the samples that are kept.
	ForwardTo []*flow.Receiver `alloy:"forward_to,attr"`
	// Name is the metric to keep.
	Name string `alloy:"name,attr,optional"`
}

// SetToDefault sets Name to up.
func (a *Arguments) SetToDefault() { *a = Arguments{Name: "up"} }

// Exports are the values that other blocks may refer to.
type Exports struct {
	Receiver *flow.Receiver `alloy:"receiver,attr"`
}

// keeper passes on the samples of one metric.
type keeper struct {
	stats *flow.Stats
	out   *flow.Output
	name  string
}

func (k *keeper) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func (k *keeper) ConsumeMetrics(ctx context.Context, b *batch.Metrics) error {
	kept := b.Select(func(row int) bool { return b.Series[row].Name() == k.name })
	if err := k.out.SendMetrics(ctx, kept); err != nil {
		return err
	}
	k.stats.Drop("other_name", b.Len()-kept.Len())
	return nil
}

var _ flow.MetricsConsumer = (*keeper)(nil)

// A component is a Registration, which a catalog finds by the block's name.
func Example() {
	catalog := component.NewList(component.Registration{
		Name:    "example.keep",
		Accepts: batch.SignalMetrics,
		Sends:   batch.SignalMetrics,
		NewArgs: func() any {
			a := new(Arguments)
			a.SetToDefault()
			return a
		},
		Exports: Exports{},
		Build: func(o component.Options, args any, _ component.Component) (component.Component, error) {
			a := args.(*Arguments)
			return &keeper{stats: o.Stats, out: flow.NewOutput(o.Stats, a.ForwardTo), name: a.Name}, nil
		},
	})

	// The engine does the following for a block `example.keep "default" { … }`:
	r, _ := catalog.Lookup("example.keep")
	stats := new(flow.Stats)
	c, _ := r.Build(component.Options{ID: "example.keep.default", Stats: stats}, r.NewArgs(), nil)
	gate := flow.NewReceiver("example.keep.default", r.Accepts, stats, nil)
	gate.Set(c)

	b, _ := batch.ParseText("up 1\ngo_goroutines 12\n", batch.TextOptions{Source: batch.NewSource()})
	err := gate.ConsumeMetrics(context.Background(), b)
	fmt.Println(err, stats.In.Load(), stats.Dropped())
	// Output: <nil> 2 map[other_name:1]
}
