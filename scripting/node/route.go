package node

import (
	"context"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/flow"
)

// router is the last stage. It sends the result for a batch to the receivers.
type router struct {
	exits   []flow.Exit
	sets    []uint64 // the sets of ways in exits, each once; the first is forward_to alone
	all     *flow.Exits
	sends   batch.Signals
	outputs []string
	routed  *prometheus.CounterVec // by output
	stats   *flow.Stats
}

// openRouter opens the exits for the ways.
func (c *Component) openRouter(ways [][]*flow.Receiver) {
	c.router = router{
		exits: c.mem.exits.Open(c.opts.Stats, ways...), sets: []uint64{1}, all: c.mem.exits,
		sends: c.script.Definition.Sends, outputs: c.script.Definition.Outputs, routed: c.mem.metrics.routed, stats: c.opts.Stats,
	}
	for _, x := range c.router.exits {
		if !slices.Contains(c.router.sets, x.Ways) {
			c.router.sets = append(c.router.sets, x.Ways)
		}
	}
}

// leads reports whether records of a signal on the given way are sent to a
// receiver. forward_to may be empty.
func (r *router) leads(way int, signal batch.Signals) bool {
	found := false
	for _, x := range r.exits {
		if x.Ways>>way&1 == 1 {
			if found = true; r.sendsTo(x, signal) {
				return true
			}
		}
	}
	return way == 0 && !found
}

// sendsTo reports whether records of a signal are sent through an exit.
func (r *router) sendsTo(x flow.Exit, signal batch.Signals) bool {
	return r.sends == signal || r.sends&signal != 0 && x.Sender.Takes(signal)
}

// send sends the result of an instance's rules (see batch.Outputs) for a batch
// whose latest time is t, in Unix ms. If it returns nil, all receivers have
// accepted it. If some have not, the error is a *flow.Partial.
func (r *router) send(ctx context.Context, instance uint64, out result, t int64) error {
	if len(r.exits) == 1 && r.sends == batch.SignalMetrics && out.samples != nil && !r.all.AnyClosed() { // the most common case
		x := r.exits[0]
		return x.Sender.Send(ctx, instance, out.samples[slices.Index(r.sets, x.Ways)], t)
	}
	parts := make([]flow.Part, 0, len(r.exits)+1)
	for _, x := range r.exits {
		p, set := flow.Part{Sender: x.Sender}, slices.Index(r.sets, x.Ways)
		if out.samples != nil && r.sendsTo(x, batch.SignalMetrics) {
			p.Batch = out.samples[set]
		}
		if out.lines.len() > 0 && r.sendsTo(x, batch.SignalLogs) {
			p.Logs = out.lines[set]
		}
		if p.Batch != nil || p.Logs != nil {
			parts = append(parts, p)
		}
	}
	if out.samples != nil {
		parts = r.all.WithClosed(parts, out.samples[0])
	}
	return flow.SendParts(ctx, instance, parts, t)
}
