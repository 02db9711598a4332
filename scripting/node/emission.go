package node

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/scripting"
)

// asked is the result of a hook that does not get a batch.
type asked struct {
	value scripting.Value // its return value, if it has arguments
	out   result          // the emitted records; after an error nothing, which is counted
	any   bool            // whether out contains records
	began time.Time
	err   error
}

// runBatchlessHook runs a hook that does not get a batch, and may emit, on a VM
// of the pool. source is the Source of the emitted records. ctx limits how long
// to wait for a VM, run how long the hook may wait. ok is false if the hook did
// not run: another instance has taken over, ctx ended, or no VM could be
// created, which is reported.
func (c *Component) runBatchlessHook(ctx, run context.Context, h *scripting.Hook, source uint64) (a asked, ok bool) {
	if !c.admission.tryEnter() {
		return a, false
	}
	// Before sending: an instance that waits for this one does not wait for
	// receivers.
	defer c.admission.leave()
	w, err := c.borrow(ctx, c.pools.shared)
	if err != nil {
		if e, ok := errors.AsType[*scripting.Error](err); ok {
			c.report.done(source, e)
		}
		return a, false
	}
	defer c.pools.put(w)
	k := c.newCall(run, w, c.newTerms(run))
	a.began = k.Now
	k.openEmitted(h, source)
	a.value, a.err = k.hook(h)
	c.report.done(source, k.first)
	a.out, a.any = k.emitted(a.err == nil)
	return a, true
}

// openEmitted opens batches for the records that a hook without a batch emits.
func (k *call) openEmitted(h *scripting.Hook, source uint64) {
	h.Metrics, h.Logs = k.openSamples(source, 0), k.openLines(source, 0)
	if h.Metrics == nil { // a batch of samples always exists, because series may end
		k.opened |= batch.SignalMetrics
		k.w.win.Reset(&batch.Metrics{Source: source}, k.c.instance.Cache, k.Now)
	}
}

// emitted takes the records that a hook without a batch emitted. If counts is
// false or no receiver takes them, they are counted as dropped.
func (k *call) emitted(counts bool) (out result, found bool) {
	defer k.closeWindows()
	made := k.applyWindows()
	samples, lines := made.samples.Emitted, made.lines.Emitted
	if !counts {
		k.c.mem.metrics.emitted.Add(float64(samples))
		k.c.mem.metrics.emittedLines.Add(float64(lines))
		k.c.opts.Stats.Drop("script_error", samples)
		k.c.opts.Stats.DropLines("script_error", lines)
		return result{}, false
	}
	return k.output(made, batch.SignalMetrics), samples+lines > 0
}

// emptyResult returns a result without records, which ends the series that its
// Source sent before.
func (c *Component) emptyResult(source uint64) result {
	return result{samples: divide(&c.router, &batch.Metrics{Source: source}, nil)}
}

// emission contains the records that a hook without a batch emitted, while they
// are sent to the receivers of the component that created them.
type emission struct {
	c        *Component
	instance uint64 // version of its rules, see batch.Outputs
	out      result
	t        int64         // its latest time, Unix ms
	due      time.Time     // until when it is retried; zero: until it is accepted
	left     *flow.Partial // the refused part; nil: nothing was sent yet
}

// send sends the remaining records.
func (p *emission) send(ctx context.Context) error {
	var err error
	if p.left != nil {
		err = p.left.Retry(ctx)
	} else {
		err = p.c.router.send(ctx, p.instance, p.out, p.t)
	}
	if left, ok := errors.AsType[*flow.Partial](err); ok {
		p.left = left
	}
	return err
}

// countDropped counts the remaining records as dropped.
func (p *emission) countDropped(why error) {
	c := p.c
	samples, lines := p.out.samples.len(), p.out.lines.len()
	if p.left != nil {
		samples, lines = p.left.Samples(), p.left.Lines()
	}
	c.opts.Stats.Drop("refused", samples)
	c.opts.Stats.DropLines("refused", lines)
	if samples+lines > 0 {
		c.opts.Logger.Warn("cannot send what the script emitted", "err", why)
	}
}

// The back-off after a refusal.
const (
	minResend = 100 * time.Millisecond
	maxResend = 10 * time.Second
)

// deliver sends an emission, with retries, until it is accepted or due. The
// error means that it was not accepted: it was due, or ctx ended.
func (c *Component) deliver(ctx context.Context, p *emission) error {
	parent := ctx
	if !p.due.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		alarm := clock.AfterFunc(c.opts.Clock, p.due.Sub(c.opts.Clock.Now()), cancel)
		defer alarm.Stop()
	}
	for backoff := minResend; ; backoff = min(2*backoff, maxResend) {
		if parent.Err() != nil {
			return context.Cause(parent) // otherwise it could overtake an earlier emission
		}
		err := p.send(ctx)
		if err == nil {
			return nil
		}
		if _, refused := errors.AsType[*flow.Partial](err); refused && clock.Sleep(ctx, c.opts.Clock, backoff) == nil {
			continue
		}
		if parent.Err() == nil {
			return err
		}
	}
}

// mailbox contains the emissions that the instances of a source could not send
// before they were replaced. The emissions of each hook are in order.
type mailbox struct {
	mu   sync.Mutex
	left []*emission
}

// post delivers an emission of the hook that owns the mailbox. If the source is
// replaced meanwhile, the next instance continues. Otherwise, records that are
// not accepted are lost.
func (c *Component) post(run context.Context, box *mailbox, p *emission) {
	ctx, stop := c.sending(run)
	err := c.deliver(ctx, p)
	stop()
	switch {
	case err == nil:
	case c.script.Definition.Kind == scripting.Source && errors.Is(err, component.ErrReplaced):
		box.mu.Lock()
		box.left = append(box.left, p)
		box.mu.Unlock()
	default:
		p.countDropped(err)
	}
}

// collect continues with the emissions that the previous instance could not
// send.
func (c *Component) collect(run context.Context, box *mailbox) {
	box.mu.Lock()
	left := box.left
	box.left = nil
	box.mu.Unlock()
	for _, p := range left {
		c.post(run, box, p)
	}
}

// sending returns a context for sending. It ends some time after run, like that
// of graceful. If the source is replaced, it ends immediately, because the next
// instance waits.
func (c *Component) sending(run context.Context) (context.Context, context.CancelFunc) {
	ctx, stop := c.graceful(run)
	if c.script.Definition.Kind != scripting.Source {
		return ctx, stop
	}
	ctx, cancel := context.WithCancelCause(ctx)
	off := context.AfterFunc(run, func() {
		if cause := context.Cause(run); errors.Is(cause, component.ErrReplaced) {
			cancel(cause)
		}
	})
	return ctx, func() {
		off()
		cancel(nil)
		stop()
	}
}
