package scripting

import (
	"context"
	"errors"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/outbox"
	"github.com/weir-run/weir/engine/view"
)

var _ flow.LogsConsumer = (*Component)(nil)

// ConsumeLogs runs the hooks on b and sends what they leave.
func (c *Component) ConsumeLogs(ctx context.Context, b *batch.Logs) error {
	if b.Len() == 0 {
		return nil
	}
	if c.sink != nil {
		return c.sink.accept(ctx, outbox.Batch{Logs: b})
	}
	if c.ready != nil {
		to, err := c.admit(ctx)
		if err != nil {
			return err
		}
		if to != c {
			return to.ConsumeLogs(ctx, b)
		}
	}
	c.instance.addCall()
	defer c.instance.endCall()
	out, ok := c.rememberedLogs(b)
	if !ok {
		var err error
		var next *Component
		if out, next, err = c.makeLogs(ctx, b); err != nil {
			return err
		}
		if next != nil {
			return next.ConsumeLogs(ctx, b)
		}
		c.state.flush() // see ConsumeMetrics
	}
	return c.send(ctx, out, c.opts.Clock.Now().UnixMilli())
}

// makeLogs is make for log lines.
func (c *Component) makeLogs(ctx context.Context, b *batch.Logs) (out result, next *Component, err error) {
	out, err = c.processLogs(ctx, b)
	if e, ok := err.(*heldError); ok {
		out, next, err = held(ctx, c, b.Source, c.piecesOfLines(b), e)
	}
	if errors.Is(err, errReplaced) {
		next, err = c.findSuccessor(ctx)
	}
	return out, next, err
}

// rememberedLogs returns what the script makes of b when no hook needs to be
// asked.
func (c *Component) rememberedLogs(b *batch.Logs) (result, bool) {
	def := c.script.def
	if def.Logs || def.Sends&batch.SignalLogs == 0 {
		return result{}, false
	}
	res, ok := c.instance.RememberedLogs(b)
	if !ok {
		return result{}, false
	}
	c.report.done(b.Source, nil)
	c.opts.Stats.DropLines("script", res.Dropped)
	return result{lines: c.madeLines(res.Batch, nil)}, true
}

// processLogs returns what the hooks make of b. An error is errReplaced, or that
// of getting a VM: what came of the parts before is lost.
func (c *Component) processLogs(ctx context.Context, b *batch.Logs) (result, error) {
	if !c.entrance.tryEnter() {
		return result{}, errReplaced
	}
	defer c.entrance.leave()
	parts := c.partsOf(b)
	if parts == nil {
		out, ran, first, err := c.oneLogs(ctx, c.pool, b)
		c.ended(ctx, b.Source, ran, first, err)
		return out, err
	}
	outs, err := c.eachPart(ctx, b.Source, len(parts), func(i int) (result, bool, *Error, error) {
		return c.oneLogs(ctx, c.poolOf(parts[i].shard), parts[i].in)
	})
	if err != nil {
		return result{}, err
	}
	return c.joinLines(b, outs), nil
}

// oneLogs is one for log lines.
func (c *Component) oneLogs(ctx context.Context, p *pool, b *batch.Logs) (out result, ran bool, first *Error, err error) {
	w, first, err := c.borrow(ctx, p)
	if err != nil {
		return result{}, first != nil, first, err
	}
	out, first, err = c.runLogs(ctx, w, b)
	c.putBack(p, w)
	if e, ok := err.(*heldError); ok && c.isolates(ctx) {
		out, first, err = isolate(ctx, c, c.piecesOfLines(b), e, func(ctx context.Context, part *batch.Logs) (result, bool, *Error, error) {
			return c.oneLogs(ctx, p, part)
		})
	}
	return out, true, first, err
}

// logsPart is a part of a batch of lines.
type logsPart struct {
	in    *batch.Logs
	shard int // of the VM that it meets, in mode partition
}

// partsOf splits a batch as the block's concurrency says; nil: it does not. A
// stream's lines are in one part, or in parts that follow each other, so that
// joined parts have them in their order.
func (c *Component) partsOf(b *batch.Logs) []logsPart {
	s, n := c.splitter, b.Len()
	if s == nil || !c.script.def.Logs || s.by == nil && n < 2*splitRows {
		return nil
	}
	shard, shards := func(row int) int { return row / splitRows }, (n+splitRows-1)/splitRows
	if s.by != nil {
		known := map[*batch.Stream]int{}
		shards = s.shards
		shard = func(row int) int {
			l, ok := known[b.Stream[row]]
			if !ok {
				l = s.shard(b.Stream[row])
				known[b.Stream[row]] = l
			}
			return l
		}
	}
	rows := make([]batch.Rows, shards)
	for i := range n {
		rows[shard(i)].Add(i)
	}
	var parts []logsPart
	for l := range rows {
		if rows[l].Len() > 0 {
			parts = append(parts, logsPart{b.Only(&rows[l]), l})
		}
	}
	return parts
}

// joinLines makes one of what became of the parts of b, one after the other.
func (c *Component) joinLines(b *batch.Logs, outs []result) result {
	if len(outs) == 1 {
		return outs[0]
	}
	var out result
	for i := range c.sets {
		var lines []*batch.Logs
		var samples []*batch.Metrics
		for _, o := range outs {
			if o.lines != nil {
				lines = append(lines, o.lines[i])
			}
			if o.samples != nil {
				samples = append(samples, o.samples[i])
			}
		}
		if lines != nil {
			out.lines = append(out.lines, batch.JoinLogs(b.Source, b.Way, lines))
		}
		if samples != nil {
			out.samples = append(out.samples, batch.JoinMetrics(samples))
		}
	}
	return out
}

// runLogs is run for log lines.
func (c *Component) runLogs(ctx context.Context, w *worker, b *batch.Logs) (out result, first *Error, err error) {
	started := time.Now()
	k := c.newCall(ctx, w)
	var whole *Error
	res, samples, err := k.logHooks(b)
	if err != nil {
		whole = AsError(err)
		res, samples = k.recoverLogs(b, whole), view.Result{}
	}
	if err := w.vm.End(); err != nil {
		k.reportError(AsError(err))
	}
	m := c.mem.metrics
	m.seconds.Add(time.Since(started).Seconds())
	if err = k.secure(payload{logs: b}, whole); err == nil {
		m.emitted.Add(float64(samples.Emitted))
		m.emittedLines.Add(float64(res.Emitted))
		c.opts.Stats.DropLines("script_error", k.dropped)
		c.opts.Stats.DropLines("script", res.Dropped-k.dropped-k.stored)
		out.lines = c.madeLines(res.Batch, &w.lines)
		c.routedLines(&w.lines)
		if samples.Emitted > 0 {
			out.samples = c.divideOutput(samples.Batch, &w.win)
			c.routed(&w.win)
			c.unsent(out.samples)
		}
	}
	k.proved(err)
	w.lines.Done()
	w.win.Done()
	first = k.first
	k.done()
	return out, first, err
}

// logHooks runs the hooks of one batch of lines. The error costs the batch.
func (k *call) logHooks(b *batch.Logs) (res view.LogsResult, samples view.Result, err error) {
	c, w := k.c, k.w
	// A panic of ours must cost one batch and one VM, not the node.
	defer func() {
		if v := recover(); v != nil {
			w.vm = brokenVM{w.vm}
			err = &Error{Script: c.script.name, File: c.script.file.Name, Hook: "logs", Err: panicError(v)}
		}
	}()
	w.lines.Reset(b, c.instance.Cache, k.now)
	// What is emitted of it says nothing about what is not.
	w.win.Reset(&batch.Metrics{Source: batch.PushSourceOf(b.Source), Way: b.Way}, c.instance.Cache, k.now)
	w.lines.Limit(shareOf(k.ctx, b.Len(), int64(c.block.Limits.Output)))
	call := k.limits(b.Len())
	call.Metrics = k.samples()
	w.vm.Begin(call)
	if c.script.def.Stream {
		if err := w.lines.RunSeries(w.stream); err != nil {
			return res, samples, err
		}
	}
	if c.script.def.Logs {
		c.mem.metrics.calls.WithLabelValues("logs").Inc()
		if err := w.vm.Logs(&w.lines); err != nil {
			return res, samples, err
		}
	}
	if k.holdsRows(b.Len()) {
		return res, samples, nil // it is asked again
	}
	return w.lines.Apply(), w.win.Apply(), nil
}

// samples is where samples go that are emitted beside lines, nil when the script
// sends none.
func (k *call) samples() *view.Metrics {
	if k.c.script.def.Sends&batch.SignalMetrics == 0 {
		return nil
	}
	return &k.w.win
}

// logLines is where lines go that are emitted beside samples, nil when the
// script sends none.
func (k *call) logLines(source, way uint64) *view.Logs {
	if k.c.script.def.Sends&batch.SignalLogs == 0 {
		return nil
	}
	k.w.lines.Reset(&batch.Logs{Source: source, Way: way}, k.c.instance.Cache, k.now)
	return &k.w.lines
}

// stream runs the stream hook on one new stream. Its error costs the record;
// the next batch asks again.
func (k *call) stream(row int, s *view.Stream) error {
	k.c.mem.metrics.calls.WithLabelValues("stream").Inc()
	k.remembering = true
	defer func() { k.remembering = false }()
	return k.skipped(k.w.vm.Stream(s), &k.w.lines.Window, func() string {
		return string(batch.AppendStream(nil, k.w.lines.Batch().Stream[row]))
	}, row)
}

// skipped is what becomes of an error of a hook that sees labels only.
func (k *call) skipped(err error, rows *view.Window, record func() string, row int) error {
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

// recoverLogs is what becomes of a batch whose hook failed; see recover.
func (k *call) recoverLogs(b *batch.Logs, e *Error) view.LogsResult {
	w := k.w
	w.lines.Reset(b, k.c.instance.Cache, k.now)
	switch k.costs(b.Len(), e) {
	case costsNothing:
		return view.LogsResult{}
	case costsAll:
		w.lines.DropAll()
		return w.lines.Apply()
	}
	if k.c.script.def.Stream {
		// The error of a skipped row is never seen: RunSeries knows ErrSkip.
		if err := w.lines.RunSeries(func(int, *view.Series) error { return view.ErrSkip }); err != nil {
			panic("BUG: " + err.Error())
		}
	}
	return w.lines.Apply()
}
