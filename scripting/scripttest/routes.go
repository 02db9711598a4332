package scripttest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/scripting"
)

// outputSink is what the sinks of outputs are called in the config of a
// component under test, with the output's name behind it.
const outputSink = "prometheus.echo.output_"

// outputSinks are a sink for each output of a component.
func (n *testNode) outputSinks(reg component.Registration) map[string]*flow.Receiver {
	var sinks map[string]*flow.Receiver
	for _, f := range config.Describe(reg.NewArgs()) {
		name, ok := strings.CutPrefix(f.Path, "routes.")
		if !ok || f.Block {
			continue
		}
		if sinks == nil {
			sinks = map[string]*flow.Receiver{}
		}
		r := flow.NewReceiver("test."+name, batch.SignalMetrics|batch.SignalLogs, nil, nil)
		r.Set(routed{n, name})
		sinks[name] = r
	}
	return sinks
}

// routesBlock is the block routes, in one line.
func routesBlock(outputs map[string]*flow.Receiver) string {
	var b strings.Builder
	b.WriteString("\nroutes {\n")
	for _, name := range slices.Sorted(maps.Keys(outputs)) {
		fmt.Fprintf(&b, "%s = [%s%s.receiver]\n", name, outputSink, name)
	}
	return b.String() + "}\n"
}

// routed is the sink of an output.
type routed struct {
	n    *testNode
	name string
}

// ConsumeMetrics keeps what came by the output.
func (r routed) ConsumeMetrics(_ context.Context, b *batch.Metrics) error {
	r.n.mu.Lock()
	defer r.n.mu.Unlock()
	if r.n.routed == nil {
		r.n.routed = map[string][]*batch.Metrics{}
	}
	r.n.routed[r.name] = append(r.n.routed[r.name], b)
	return nil
}

// routedMethod is the method of what came out that tells what went to an
// output.
var routedMethod = scripting.Function{
	Name: "routed", Doc: "The records that ctx.route sent to an output, in the form of the output of a component.",
	Params: []scripting.Param{{Name: "output", Kind: scripting.KindString, Doc: "Name of the output."}},
	Result: scripting.Result{Kind: scripting.KindObject},
	Fn: func(a []scripting.Value) (scripting.Value, error) {
		o := a[0].(*output)
		part := *o
		part.batches, part.logs = o.routed[a[1].(string)], o.routedLogs[a[1].(string)]
		return &scripting.Object{Type: o.typ, Data: &part}, nil
	},
}
