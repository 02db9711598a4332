package scripting

import (
	"context"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/view"
)

// wayNames are the names of a set of ways.
func wayNames(d *Definition, set uint64) string {
	var names []string
	for way, name := range append([]string{"forward_to"}, d.Outputs...) {
		if set>>way&1 == 1 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// made is what a script made of a batch, by the sets of ways in
// Component.sets: first what is routed nowhere.
type made []*batch.Metrics

// madeLines is made of log lines.
type madeLines []*batch.Logs

// result is what the script made of a batch; nil of a signal of which there is
// nothing.
type result struct {
	samples made
	lines   madeLines
}

func (m madeLines) len() (n int) {
	for _, b := range m {
		n += b.Len()
	}
	return n
}

func (m made) len() (n int) {
	for _, b := range m {
		n += b.Len()
	}
	return n
}

// openExits opens the exits to where the ways lead.
func (c *Component) openExits(ways [][]*flow.Receiver) {
	c.exits = c.mem.exits.Open(c.opts.Stats, ways...)
	c.sets = []uint64{1}
	for _, x := range c.exits {
		if !slices.Contains(c.sets, x.Ways) {
			c.sets = append(c.sets, x.Ways)
		}
	}
}

// divideOutput divides what became of a batch. win is the window after Apply; nil when
// no hook was asked, hence nothing routed.
func (c *Component) divideOutput(out *batch.Metrics, win *view.Metrics) made {
	m := make(made, len(c.sets))
	for i, ways := range c.sets {
		switch {
		case i == 0:
			m[i] = out
		case win != nil:
			m[i] = win.Part(ways)
		case ways&1 != 0:
			m[i] = out
		default:
			m[i] = &batch.Metrics{Source: out.Source, Way: out.Way}
		}
	}
	return m
}

// join is what became of a batch, from what became of its parts.
func (c *Component) join(sp *split, b *batch.Metrics, parts []part, outs []result) (out result) {
	of := make([]*batch.Metrics, len(outs))
	for i := range c.sets {
		var lines []*batch.Logs
		for j, o := range outs {
			of[j] = o.samples[i]
			if o.lines != nil {
				lines = append(lines, o.lines[i])
			}
		}
		out.samples = append(out.samples, sp.join(b, parts, of))
		if lines != nil {
			out.lines = append(out.lines, batch.JoinLogs(b.Source, b.Way, lines))
		}
		sp = &split{} // which column became what is remembered of the first alone
	}
	return out
}

// madeLines divides what became of a batch of lines, as made does.
func (c *Component) madeLines(out *batch.Logs, win *view.Logs) madeLines {
	m := make(madeLines, len(c.sets))
	for i, ways := range c.sets {
		switch {
		case i == 0:
			m[i] = out
		case win != nil:
			m[i] = win.Part(ways)
		case ways&1 != 0:
			m[i] = out
		}
	}
	return m
}

// routedLines counts what was routed, and what the script does not send or no
// receiver takes.
func (c *Component) routedLines(win *view.Logs) {
	for way := range 1 + len(c.script.def.Outputs) {
		n := win.RoutedTo(way)
		if n == 0 {
			continue
		}
		if way > 0 {
			c.mem.metrics.routed.WithLabelValues(c.script.def.Outputs[way-1]).Add(float64(n))
		}
		if c.script.def.Sends&batch.SignalLogs == 0 {
			c.opts.Stats.DropLines("script", n)
		} else if !c.led(way, batch.SignalLogs) {
			c.opts.Stats.DropLines("no_receiver", n)
		}
	}
}

// unsent counts the samples that the script does not send or no receiver of
// forward_to takes.
func (c *Component) unsent(m made) {
	if c.script.def.Sends&batch.SignalMetrics == 0 {
		c.opts.Stats.Drop("script", m[0].Len())
	} else if c.script.def.Sends&batch.SignalLogs != 0 && !c.led(0, batch.SignalMetrics) {
		c.opts.Stats.Drop("no_receiver", m[0].Len())
	}
}

// led reports whether a receiver of a signal is where a way leads; of forward_to
// nobody expects one.
func (c *Component) led(way int, signal batch.Signals) bool {
	any := false
	for _, x := range c.exits {
		if x.Ways>>way&1 == 1 {
			if any = true; x.Sender.Takes(signal) {
				return true
			}
		}
	}
	return way == 0 && !any
}

// routed counts what was routed, and what went an output without receivers.
func (c *Component) routed(win *view.Metrics) {
	for i, name := range c.script.def.Outputs {
		n := win.RoutedTo(i + 1)
		if n == 0 {
			continue
		}
		c.mem.metrics.routed.WithLabelValues(name).Add(float64(n))
		led := false
		for _, x := range c.exits {
			led = led || x.Ways>>(i+1)&1 == 1
		}
		if !led {
			c.opts.Stats.Drop("no_receiver", n)
		}
	}
}

// send sends what became of a batch, whose latest time is t, Unix ms.
func (c *Component) send(ctx context.Context, out result, t int64) error {
	return c.sendAs(ctx, c.instance.number, out, t)
}

// sendAs is send of what another instance of rules made, see batch.Outputs.
func (c *Component) sendAs(ctx context.Context, gen uint64, out result, t int64) error {
	sends := c.script.def.Sends
	if len(c.exits) == 1 && sends == batch.SignalMetrics && out.samples != nil && !c.mem.exits.AnyClosed() { // as it mostly is
		x := c.exits[0]
		return x.Sender.Send(ctx, gen, out.samples[slices.Index(c.sets, x.Ways)], t)
	}
	both := sends == batch.SignalMetrics|batch.SignalLogs
	parts := make([]flow.Part, 0, len(c.exits)+1)
	for _, x := range c.exits {
		p, i := flow.Part{Sender: x.Sender}, slices.Index(c.sets, x.Ways)
		if out.samples != nil && sends&batch.SignalMetrics != 0 && (!both || x.Sender.Takes(batch.SignalMetrics)) {
			p.Batch = out.samples[i]
		}
		if out.lines.len() > 0 && sends&batch.SignalLogs != 0 && (!both || x.Sender.Takes(batch.SignalLogs)) {
			p.Logs = out.lines[i]
		}
		if p.Batch != nil || p.Logs != nil {
			parts = append(parts, p)
		}
	}
	if out.samples != nil {
		parts = c.mem.exits.WithClosed(parts, out.samples[0])
	}
	return flow.SendParts(ctx, gen, parts, t)
}
