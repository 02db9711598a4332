package scripting

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/view"
)

// run is the third stage: it calls the hooks with b, on a VM of the node, and
// applies what they did to b. The error is why nothing of b may go on: a
// *heldError, that there was no VM, or that b could not be put into quarantine.
func (p *pipeline[B]) run(ctx context.Context, b B, t terms) (o outcome, err error) {
	if out, ok := p.remembered(b); ok {
		return outcome{out: out, ran: true}, nil
	}
	w, first, err := p.c.borrow(ctx, cmp.Or(t.pool, p.c.pools.shared))
	if err != nil {
		return outcome{ran: first != nil, first: first}, err
	}
	defer p.c.pools.put(w)
	o.ran = true
	o.out, o.first, err = p.call(ctx, w, b, t)
	return o, err
}

// remembered returns what becomes of b if it is known without a call: the only hook
// is the one for labels, and it has seen all series of b.
func (p *pipeline[B]) remembered(b B) (out result, ok bool) {
	c := p.c
	if _, whole := p.signal.hooks(c.script.def); whole || c.script.def.Sends&p.signal.bit() == 0 {
		return out, false
	}
	res, ok := p.signal.remember(c.instance.Cache, b)
	if !ok {
		return out, false
	}
	c.mem.metrics.collisions.Add(float64(res.Collisions))
	c.opts.Stats.CountDropped(p.signal.bit(), "script", res.Dropped)
	return p.signal.result(divide(&c.router, res.Batch, nil)), true
}

// call is one call of a script: the hooks with one batch, or a hook that gets no
// batch. It is valid until the next one on its worker.
type call struct {
	hookCall
	terms
	c      *Component
	w      *worker
	ctx    context.Context // of whoever sent the batch: what host functions wait within
	run    *runner         // it is the hook run
	opened batch.Signals   // whose windows are open

	first   *Error     // of the call
	dropped int        // rows lost to errors
	kept    []failures // for the quarantine
	stored  int        // rows that go there
	held    *heldError // the batch stays where it is

	sends   *sending // nil: it is not of a sink's send
	outside bool     // it used the outside
}

// newCall begins a call on a worker.
func (c *Component) newCall(ctx context.Context, w *worker, t terms) *call {
	w.at = call{terms: t, c: c, w: w, ctx: ctx}
	w.at.now, w.at.clock = c.opts.Clock.Now(), c.opts.Clock
	w.call = &w.at
	w.begin(c)
	return w.call
}

// callName is what an operation of a script is called, and callGrace what it may
// take beyond the script's own limits: they count the time that the call had the
// CPU, which on a busy machine is less than what went by.
const (
	callName  = "a call of the script"
	callGrace = 5 * time.Second
)

// begin makes the node unhealthy when the call does not return in time: functions
// of the host may take longer than the limits that the VM looks after.
func (w *worker) begin(c *Component) {
	c.opts.Watch.Start(&w.op, callName, c.block.Limits.Time+callGrace)
}

// done ends the call: it holds nothing of whoever sent the batch.
func (k *call) done() {
	k.w.op.End()
	k.ctx, k.observe, k.sends, k.w.call = nil, nil, nil, nil
}

// limits are those of a call for so many records.
func (k *call) limits(records int) *Call {
	c, w := k.c, k.w
	emit := int64(c.block.emitLimit(c.script.def.Kind, records))
	w.limits = Call{
		Time: c.block.Limits.Time, Memory: int64(c.block.Limits.Memory), Records: records, Emit: int(k.shareOf(records, emit)),
		Now: k.now, Failed: w.failed,
	}
	if k.run != nil {
		w.limits.Pause, w.limits.Resume = k.run.pause, k.run.resume
	}
	return &w.limits
}

// openSamples puts a window over an empty batch, for samples that are emitted, and
// openLines one for lines. The result is nil if the script sends none.
func (k *call) openSamples(source, way uint64) *view.Metrics {
	if k.c.script.def.Sends&batch.SignalMetrics == 0 {
		return nil
	}
	k.opened |= batch.SignalMetrics
	k.w.win.Reset(&batch.Metrics{Source: source, Way: way}, k.c.instance.Cache, k.now)
	return &k.w.win
}

func (k *call) openLines(source, way uint64) *view.Logs {
	if k.c.script.def.Sends&batch.SignalLogs == 0 {
		return nil
	}
	k.opened |= batch.SignalLogs
	k.w.lines.Reset(&batch.Logs{Source: source, Way: way}, k.c.instance.Cache, k.now)
	return &k.w.lines
}

// call calls the hooks with b. first is the first error of the script; err is that
// of run.
func (p *pipeline[B]) call(ctx context.Context, w *worker, b B, t terms) (out result, first *Error, err error) {
	started := time.Now()
	k := p.c.newCall(ctx, w, t)
	var whole *Error
	made, err := p.callHooks(k, b)
	if err != nil {
		whole = AsError(err)
		made = p.recover(k, b, whole)
	}
	if err := w.vm.End(); err != nil {
		k.reportError(AsError(err))
	}
	p.c.mem.metrics.seconds.Add(time.Since(started).Seconds())
	if err = k.secure(p.signal.payload(b), whole); err == nil {
		out = k.output(made, p.signal.bit())
	}
	if err == nil && !k.final && k.on == OnErrorHold {
		p.c.trust.worked()
	}
	k.closeWindows()
	first = k.first
	k.done()
	return out, first, err
}

// callHooks calls the hooks with b. The error costs the batch.
func (p *pipeline[B]) callHooks(k *call, b B) (made applied, err error) {
	c, w := k.c, k.w
	// A panic of ours must cost one batch and one VM, not the node.
	defer func() {
		if v := recover(); v != nil {
			w.vm = brokenVM{w.vm}
			err = &Error{Script: c.script.name, File: c.script.file.Name, Hook: p.signal.bit().String(), Err: panicError(v)}
		}
	}()
	limits := k.limits(b.Len())
	p.signal.open(k, b)
	p.signal.window(w).Limit(k.shareOf(b.Len(), int64(c.block.Limits.Output)))
	w.vm.Begin(limits)
	labels, whole := p.signal.hooks(c.script.def)
	if labels {
		if err := p.signal.runLabels(w); err != nil {
			return made, err
		}
	}
	if whole {
		c.mem.metrics.calls.WithLabelValues(p.signal.bit().String()).Inc()
		if err := p.signal.runBatch(w); err != nil {
			return made, err
		}
	}
	if k.holdsRows(b.Len()) {
		return made, nil // the script is called again for them
	}
	return k.apply(), nil
}

// runSeries calls the hook series with one new series, runStream the hook stream
// with one new stream. An error costs the record; the next batch asks again.
func (k *call) runSeries(row int, s *view.Series) error {
	return k.runLabels(row, "series", &k.w.win.Window, func() error { return k.w.vm.Series(s) },
		func() string { return k.w.win.Batch().Series[row].String() })
}

func (k *call) runStream(row int, s *view.Stream) error {
	return k.runLabels(row, "stream", &k.w.lines.Window, func() error { return k.w.vm.Stream(s) },
		func() string { return string(batch.AppendStream(nil, k.w.lines.Batch().Stream[row])) })
}

// runLabels calls a hook that gets the labels of a row, which record describes.
func (k *call) runLabels(row int, name string, rows *view.Window, hook func() error, record func() string) error {
	k.c.mem.metrics.calls.WithLabelValues(name).Inc()
	k.remembering = true
	defer func() { k.remembering = false }()
	err := hook()
	if err == nil {
		return nil
	}
	e := AsError(err)
	if errors.Is(e, ErrLimit) || k.w.vm.Broken() {
		return e
	}
	e.Record = record()
	if k.failed(row, e) {
		rows.Drop(row)
	}
	return view.ErrSkip
}

// reportError reports an error of the call.
func (k *call) reportError(e *Error) {
	if !k.replay {
		k.c.report.errored(e)
	}
	if k.observe != nil {
		k.observe(e)
	}
	k.first = cmp.Or(k.first, e)
}

// failed notes an error that costs the record in a row.
func (k *call) failed(row int, e *Error) (drop bool) {
	k.reportError(e)
	if k.sends != nil {
		k.sends.failed = append(k.sends.failed, failedRow{row, e})
		return true
	}
	switch {
	case k.replay:
		if k.held == nil {
			k.held = &heldError{err: e}
		}
	case k.on == OnErrorDrop:
		k.dropped++
		return true
	case k.on == OnErrorQuarantine, k.on == OnErrorHold:
		k.quarantineRecord(row, e)
		k.stored++
		return true
	}
	return false
}

// recover applies what becomes of a batch whose hook failed. What the hook for
// labels has decided stands, as it does not depend on the batch: series would
// otherwise pass that are dropped or relabelled in all other batches.
func (p *pipeline[B]) recover(k *call, b B, e *Error) applied {
	k.opened = 0 // what was emitted is lost
	p.signal.open(k, b)
	window := p.signal.window(k.w)
	switch k.costs(b.Len(), e) {
	case costsNothing:
		return applied{}
	case costsAll:
		window.DropAll()
		return k.apply()
	}
	if labels, _ := p.signal.hooks(k.c.script.def); labels {
		// The error of a skipped row is never seen: RunSeries knows ErrSkip.
		if err := window.RunSeries(func(int, *view.Series) error { return view.ErrSkip }); err != nil {
			panic("BUG: " + err.Error())
		}
	}
	return k.apply()
}

// cost is what becomes of a batch whose hook failed.
type cost uint8

const (
	costsEdits   cost = iota // it goes on without them
	costsAll                 // nothing of it goes on
	costsNothing             // it is held
)

// costs notes an error that costs all of a batch of n records.
func (k *call) costs(n int, e *Error) cost {
	k.dropped, k.stored = 0, 0
	if k.replay || k.asksAgain(n) {
		observe := k.observe
		k.observe = nil // what comes of it is not known yet
		k.reportError(e)
		k.observe = observe
		k.held = &heldError{err: e, outside: k.outsideFailed || errors.Is(e, errWaited)}
		return costsNothing
	}
	k.reportError(e)
	switch k.on {
	case OnErrorDrop:
		k.dropped = n
		return costsAll
	case OnErrorQuarantine:
		k.stored = n
		return costsAll
	}
	return costsEdits
}

// asksAgain reports whether the script, which failed on n records, is called again
// for them, or for parts of them. What is sent to the outside is sent twice only if
// on_error says that it is tried until it works.
func (k *call) asksAgain(n int) bool {
	switch {
	case k.final:
		return false
	case k.on == OnErrorHold:
		return true
	case k.outside || k.outsideFailed:
		return false
	case k.isPiece():
		return true
	}
	return n > 1 && !k.c.trust.broken()
}

// holdsRows reports whether the script is called again for the batch of n records
// because it failed on each of them. If it works on others, they are withheld
// instead.
func (k *call) holdsRows(n int) bool {
	if k.on == OnErrorHold && !k.final && k.held == nil && k.stored > 0 && (k.stored >= n || k.outsideFailed) {
		k.held = &heldError{err: k.first, rows: true, outside: k.outsideFailed}
		k.stored, k.kept = 0, nil
	}
	return k.held != nil
}

// secure makes sure that what the script failed on is not lost. whole is the error
// that costs all of b, nil if there is none.
func (k *call) secure(b payload, whole *Error) error {
	switch {
	case k.held != nil:
		return k.held
	case k.stored == 0:
		return nil
	}
	err := k.store(b, whole)
	if err != nil {
		e := AsError(err)
		e.Hook = b.signal().String()
		e.Hint = "the batch is refused, so that its source sends it again; make room, or lower script.quarantine.max_size"
		k.c.report.errored(e)
		k.first = e
	}
	return err
}

// borrow gets a VM of p for a batch. first is the error of making one.
func (c *Component) borrow(ctx context.Context, p *pool) (w *worker, first *Error, err error) {
	w, err = p.get(ctx)
	if e, ok := errors.AsType[*Error](err); ok { // else ctx ended
		c.report.errored(e)
		first = e
	}
	return w, first, err
}

// brokenVM is a VM after a panic in a host function.
type brokenVM struct{ VM }

func (brokenVM) Broken() bool { return true }
