package scripting

import (
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/view"
)

// window is what the windows over samples and over lines have in common.
type window[B records] interface {
	Reset(b B, cache *view.Cache, now time.Time)
	Limit(bytes int64)
	RunSeries(hook func(row int, s *view.Series) error) error
	DropAll()
	Part(ways uint64) B
	RoutedTo(way int) int
	Done()
}

// applied is what the hooks of a call have made, before it is divided by output.
type applied struct {
	samples view.Result[*batch.Metrics]
	lines   view.Result[*batch.Logs]
}

// output is what the hooks have made of a batch, by the sets of ways in
// router.sets. The first one is what is routed nowhere.
type output[B records] []B

func (o output[B]) len() (n int) {
	for _, b := range o {
		n += b.Len()
	}
	return n
}

// result is what the hooks have made of a batch; nil of a signal of which there is
// nothing.
type result struct {
	samples output[*batch.Metrics]
	lines   output[*batch.Logs]
}

// apply is the fourth stage: it makes batches of the edits in the windows.
func (k *call) apply() (a applied) {
	if k.opened&batch.SignalLogs != 0 {
		a.lines = k.w.lines.Apply()
	}
	if k.opened&batch.SignalMetrics != 0 {
		a.samples = k.w.win.Apply()
	}
	return a
}

// output counts what was made and divides it by output. What was emitted of another
// signal than own is in the result only if there is any.
func (k *call) output(a applied, own batch.Signals) (out result) {
	c, m := k.c, k.c.mem.metrics
	m.collisions.Add(float64(a.samples.Collisions))
	m.emitted.Add(float64(a.samples.Emitted))
	m.emittedLines.Add(float64(a.lines.Emitted))
	if own != 0 {
		dropped := a.samples.Dropped + a.lines.Dropped // only rows of the batch can be dropped
		c.opts.Stats.CountDropped(own, "script_error", k.dropped)
		c.opts.Stats.CountDropped(own, "script", dropped-k.dropped-k.stored)
	}
	if own == batch.SignalMetrics || a.samples.Emitted > 0 {
		out.samples = divide(&c.router, a.samples.Batch, window[*batch.Metrics](&k.w.win))
		count(&c.router, batch.SignalMetrics, out.samples, &k.w.win)
	}
	if own == batch.SignalLogs || a.lines.Emitted > 0 {
		out.lines = divide(&c.router, a.lines.Batch, window[*batch.Logs](&k.w.lines))
		count(&c.router, batch.SignalLogs, out.lines, &k.w.lines)
	}
	return out
}

// closeWindows lets go of the batches of the call.
func (k *call) closeWindows() {
	if k.opened&batch.SignalMetrics != 0 {
		k.w.win.Done()
	}
	if k.opened&batch.SignalLogs != 0 {
		k.w.lines.Done()
	}
	k.opened = 0
}

// divide divides what became of a batch by output. win is the window after Apply;
// nil if no hook was called, hence nothing routed.
func divide[B records](r *router, out B, win window[B]) output[B] {
	divided := make(output[B], len(r.sets))
	for i, ways := range r.sets {
		switch {
		case i == 0:
			divided[i] = out
		case win != nil:
			divided[i] = win.Part(ways)
		case ways&1 != 0:
			divided[i] = out
		default:
			divided[i] = emptyLike(out)
		}
	}
	return divided
}

// emptyLike returns an empty batch of samples from where b comes: the receiver may
// have to be told that series ended. There is no such thing for lines.
func emptyLike[B records](b B) (empty B) {
	if m, ok := any(b).(*batch.Metrics); ok {
		empty, _ = any(&batch.Metrics{Source: m.Source, Way: m.Way}).(B)
	}
	return empty
}

// count counts what was routed, and what the script does not send or no receiver
// takes.
func count[B records](r *router, signal batch.Signals, out output[B], win window[B]) {
	for way := range 1 + len(r.outputs) {
		n := out[0].Len()
		if way > 0 {
			if n = win.RoutedTo(way); n > 0 {
				r.routed.WithLabelValues(r.outputs[way-1]).Add(float64(n))
			}
		}
		switch {
		case n == 0:
		case r.sends&signal == 0:
			r.stats.CountDropped(signal, "script", n)
		case !r.leads(way, signal):
			r.stats.CountDropped(signal, "no_receiver", n)
		}
	}
}
