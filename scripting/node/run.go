package node

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/view"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/host"
)

// called is the output of the stage run and the input of the stage apply.
type called[B records] struct {
	k *call // its windows contain the edits of the hooks; it is open
	// remembered is the cached result if k is nil: no hook had to be called.
	remembered view.Result[B]
}

// run is the third stage. It calls the hooks with b, on a VM of the node. The
// error means that there was no VM.
func (p *pipeline[B]) run(ctx context.Context, b B, t terms) (called[B], error) {
	c := p.c
	labels, whole := p.signal.hooks(c.script.Definition)
	if !whole && c.script.Definition.Sends&p.signal.bit() != 0 {
		// The decisions of the hook for labels may all be cached.
		if out, ok := p.signal.remember(c.instance.Cache, b); ok {
			return called[B]{remembered: out}, nil
		}
	}
	w, err := c.borrow(ctx, cmp.Or(t.pool, c.pools.shared))
	if err != nil {
		return called[B]{}, err
	}
	k := c.newCall(ctx, w, t)
	if err := p.callHooks(k, b, labels, whole); err != nil {
		k.fail(b.Len(), scripting.AsError(err))
	}
	if err := w.vm.End(); err != nil {
		k.reportError(scripting.AsError(err))
	}
	return called[B]{k: k}, nil
}

// call is one call of a script: the hooks for one batch, or a hook that does
// not get a batch. It is valid until the next call on its worker.
type call struct {
	host.Call
	terms
	c *Component
	w *worker
	// ctx belongs to the sender of the batch. It is stored because VMs call host
	// functions without a context.
	ctx    context.Context
	run    *runner       // set for the hook run
	opened batch.Signals // whose windows are open

	began time.Time // of the machine's clock
	losses

	sends   *sending // nil except for the hook send of a sink
	outside bool     // it made external requests
}

// newCall begins a call on a worker.
func (c *Component) newCall(ctx context.Context, w *worker, t terms) *call {
	w.at = call{terms: t, c: c, w: w, ctx: ctx, began: time.Now()}
	w.at.Now, w.at.Clock = c.opts.Clock.Now(), c.opts.Clock
	w.call = &w.at
	w.begin(c)
	return w.call
}

// callName is the name of a script call as a watched operation. callGrace is
// the additional time that it may take beyond the script's own limits, which
// count CPU time: on a busy machine, more time passes.
const (
	callName  = "a call of the script"
	callGrace = 5 * time.Second
)

// begin makes the node unhealthy if the call does not return in time, because
// host functions may take longer than the limits that the VM enforces.
func (w *worker) begin(c *Component) {
	c.opts.Watch.Start(&w.op, callName, c.block.Limits.Time+callGrace)
}

// done ends the call and releases references to the sender of the batch.
func (k *call) done() {
	k.w.op.End()
	k.ctx, k.observe, k.sends, k.w.call = nil, nil, nil, nil
}

// limits returns the limits of a call for the given number of records.
func (k *call) limits(records int) *scripting.Call {
	c, w := k.c, k.w
	emit := int64(c.block.EmitLimit(c.script.Definition.Kind, records))
	w.limits = scripting.Call{
		Time: c.block.Limits.Time, Memory: int64(c.block.Limits.Memory), Records: records, Emit: int(k.shareOf(records, emit)),
		Now: k.Now, Failed: w.failed, Profile: c.mem.profile.Load(),
	}
	if c.debugged {
		w.limits.Time *= debugTime
	}
	if k.run != nil {
		w.limits.Pause, w.limits.Resume = k.run.pause, k.run.resume
	}
	return &w.limits
}

// openSamples opens a window over an empty batch for emitted samples, openLines
// one for emitted lines. The result is nil if the script sends none.
func (k *call) openSamples(source, way uint64) *view.Metrics {
	if k.c.script.Definition.Sends&batch.SignalMetrics == 0 {
		return nil
	}
	k.opened |= batch.SignalMetrics
	k.w.win.Reset(&batch.Metrics{Source: source, Way: way}, k.c.instance.Cache, k.Now)
	return &k.w.win
}

func (k *call) openLines(source, way uint64) *view.Logs {
	if k.c.script.Definition.Sends&batch.SignalLogs == 0 {
		return nil
	}
	k.opened |= batch.SignalLogs
	k.w.lines.Reset(&batch.Logs{Source: source, Way: way}, k.c.instance.Cache, k.Now)
	return &k.w.lines
}

// callHooks calls the hooks with b. An error affects the whole batch.
func (p *pipeline[B]) callHooks(k *call, b B, labels, whole bool) (err error) {
	c, w := k.c, k.w
	defer k.catchPanic(p.signal.bit().String(), &err)
	limits := k.limits(b.Len())
	p.signal.open(k, b)
	p.signal.window(w).Limit(k.shareOf(b.Len(), int64(c.block.Limits.Output)))
	w.vm.Begin(limits)
	if labels {
		if err := p.signal.runLabels(w); err != nil {
			return err
		}
	}
	if whole {
		c.mem.metrics.calls.WithLabelValues(p.signal.bit().String()).Inc()
		if err := p.signal.runBatch(w); err != nil {
			return err
		}
	}
	k.holdRows(b.Len())
	return nil
}

// catchPanic converts a panic to an error, so that a bug in weir affects one
// batch and one VM, not the node.
func (k *call) catchPanic(hook string, err *error) {
	if v := recover(); v != nil {
		k.w.vm = brokenVM{k.w.vm}
		*err = &scripting.Error{Script: k.c.script.Name, File: k.c.script.File.Name, Hook: hook, Err: panicError(v)}
	}
}

// runSeries calls the hook series for a new series, runStream the hook stream
// for a new stream. An error affects the record; the hook is called again for
// the next batch.
func (k *call) runSeries(row int, s *view.Series) error {
	return k.runLabels(row, "series", &k.w.win.Window, func() error { return k.w.vm.Series(s) },
		func() string { return k.w.win.Batch().Series[row].String() })
}

func (k *call) runStream(row int, s *view.Stream) error {
	return k.runLabels(row, "stream", &k.w.lines.Window, func() error { return k.w.vm.Stream(s) },
		func() string { return string(batch.AppendStream(nil, k.w.lines.Batch().Stream[row])) })
}

// runLabels calls a hook for the labels of a row. record describes the row.
func (k *call) runLabels(row int, name string, rows *view.Window, hook func() error, record func() string) error {
	k.c.mem.metrics.calls.WithLabelValues(name).Inc()
	k.Remembering = true
	defer func() { k.Remembering = false }()
	err := hook()
	if err == nil {
		return nil
	}
	e := scripting.AsError(err)
	if errors.Is(e, scripting.ErrLimit) || k.w.vm.Broken() {
		return e
	}
	e.Record = record()
	if k.failed(row, e) {
		rows.Drop(row)
	}
	return view.ErrSkip
}

// borrow borrows a VM of p. An error in creating one is reported.
func (c *Component) borrow(ctx context.Context, p *pool) (*worker, error) {
	w, err := p.get(ctx)
	if e, ok := errors.AsType[*scripting.Error](err); ok { // otherwise, ctx ended
		c.report.errored(e)
	}
	return w, err
}

// brokenVM replaces a VM after a panic in a host function.
type brokenVM struct{ scripting.VM }

func (brokenVM) Broken() bool { return true }
