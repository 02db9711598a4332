package node

import (
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/view"
	"github.com/weir-run/weir/scripting"
)

// window contains the methods that the windows over samples and over lines have
// in common.
type window[B records] interface {
	Reset(b B, cache *view.Cache, now time.Time)
	Limit(bytes int64)
	RunSeries(hook func(row int, s *view.Series) error) error
	DropAll()
	Part(ways uint64) B
	RoutedTo(way int) int
	WayOf(row int) (way int, ok bool)
	Done()
}

// applied is the result of the hooks in a call, before it is divided by output.
type applied struct {
	samples view.Result[*batch.Metrics]
	lines   view.Result[*batch.Logs]
}

// output is the result of the hooks for a batch, by the sets of ways in
// router.sets. The first element contains the rows that are not routed.
type output[B records] []B

func (o output[B]) len() (n int) {
	for _, b := range o {
		n += b.Len()
	}
	return n
}

// result is the result of the hooks for a batch. A field is nil if there is no
// data of its signal.
type result struct {
	samples output[*batch.Metrics]
	lines   output[*batch.Logs]
}

// apply is the fourth stage. It creates batches from the edits of the hooks,
// one for each set of outputs. If it returns an error, nothing of b may be
// sent: a *heldError, or the reason why b could not be put into quarantine.
func (p *pipeline[B]) apply(r called[B], b B) (o outcome, err error) {
	c, k := p.c, r.k
	o.ran = true
	if k == nil {
		c.mem.metrics.collisions.Add(float64(r.remembered.Collisions))
		c.opts.Stats.CountDropped(p.signal.bit(), "script", r.remembered.Dropped)
		c.counts.dropped.Add(int64(r.remembered.Dropped))
		o.out = p.signal.result(divide(&c.router, r.remembered.Batch, nil))
		return o, nil
	}
	defer c.pools.put(k.w)
	defer k.done()
	made := p.edits(k, b)
	took := time.Since(k.began)
	c.mem.metrics.seconds.Add(took.Seconds())
	c.counts.nanos.Add(took.Nanoseconds())
	if err = k.secure(p.signal.payload(b)); err == nil {
		o.out = k.output(made, p.signal.bit())
		if !k.final && k.on == scripting.OnErrorHold {
			c.trust.worked()
		}
	}
	k.closeWindows()
	o.first = k.first
	return o, err
}

// edits returns the result of the hooks' edits to b, or of their failure.
func (p *pipeline[B]) edits(k *call, b B) applied {
	if k.whole == nil && k.held == nil {
		made, err := p.applyWindows(k)
		if err == nil {
			return made
		}
		k.fail(b.Len(), scripting.AsError(err))
	}
	if k.held != nil {
		return applied{}
	}
	k.opened = 0 // emitted records are lost
	p.signal.open(k, b)
	window := p.signal.window(k.w)
	labels, _ := p.signal.hooks(k.c.script.Definition)
	switch {
	case k.dropped+k.stored > 0:
		window.DropAll()
	case labels:
		// The batch is sent without edits. But the decisions of the hook for labels
		// still apply, because they do not depend on the batch: otherwise, series
		// would pass that are dropped or relabelled in all other batches. The error
		// of a skipped row does not occur, because RunSeries handles ErrSkip.
		if err := window.RunSeries(func(int, *view.Series) error { return view.ErrSkip }); err != nil {
			panic("BUG: " + err.Error())
		}
	}
	return k.applyWindows()
}

// applyWindows applies the edits in the windows.
func (p *pipeline[B]) applyWindows(k *call) (a applied, err error) {
	defer k.catchPanic(p.signal.bit().String(), &err)
	return k.applyWindows(), nil
}

func (k *call) applyWindows() (a applied) {
	if k.opened&batch.SignalLogs != 0 {
		a.lines = k.w.lines.Apply()
	}
	if k.opened&batch.SignalMetrics != 0 {
		a.samples = k.w.win.Apply()
	}
	return a
}

// output counts the results and divides them by output. Emitted records of
// another signal than own are in the result only if there are any.
func (k *call) output(a applied, own batch.Signals) (out result) {
	c, m := k.c, k.c.mem.metrics
	m.collisions.Add(float64(a.samples.Collisions))
	m.emitted.Add(float64(a.samples.Emitted))
	m.emittedLines.Add(float64(a.lines.Emitted))
	if own != 0 {
		dropped := a.samples.Dropped + a.lines.Dropped // only rows of the batch can be dropped
		c.counts.dropped.Add(int64(dropped))
		c.counts.emitted.Add(int64(a.samples.Emitted + a.lines.Emitted))
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

// closeWindows releases the batches of the call.
func (k *call) closeWindows() {
	if k.opened&batch.SignalMetrics != 0 {
		k.w.win.Done()
	}
	if k.opened&batch.SignalLogs != 0 {
		k.w.lines.Done()
	}
	k.opened = 0
}

// divide divides the result for a batch by output. win is the window after
// Apply, or nil if no hook was called and therefore nothing was routed.
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

// emptyLike returns an empty batch of samples with the Origin of b, because
// staleness markers may have to be sent. Lines have no staleness markers.
func emptyLike[B records](b B) (empty B) {
	if m, ok := any(b).(*batch.Metrics); ok {
		empty, _ = any(&batch.Metrics{Source: m.Source, Way: m.Way}).(B)
	}
	return empty
}

// count counts routed records, and records that the script does not send or no
// receiver takes.
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
