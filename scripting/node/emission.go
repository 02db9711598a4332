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

// asked is what a hook that gets no batch made.
type asked struct {
	value scripting.Value // what it returned, if it has arguments
	out   result          // what it emitted; after an error nothing, which is counted
	any   bool            // there is something in out
	began time.Time
	err   error
}

// runBatchlessHook runs a hook that gets no batch, and may emit, on a VM of the pool. source
// is the Source of what it emits. ctx is how long to wait for a VM, run how long
// the hook may wait. ok is false when it did not run: another instance has
// taken over, ctx ended, or there can be no VM, which is reported.
func (c *Component) runBatchlessHook(ctx, run context.Context, h *scripting.Hook, source uint64) (a asked, ok bool) {
	if !c.admission.tryEnter() {
		return a, false
	}
	// Before it is sent: an instance that waits for this one does not wait for
	// who gets it.
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

// openEmitted makes room for what a hook that gets no batch emits.
func (k *call) openEmitted(h *scripting.Hook, source uint64) {
	h.Metrics, h.Logs = k.openSamples(source, 0), k.openLines(source, 0)
	if h.Metrics == nil { // there is a batch of samples in any case, which may end series
		k.opened |= batch.SignalMetrics
		k.w.win.Reset(&batch.Metrics{Source: source}, k.c.instance.Cache, k.Now)
	}
}

// emitted takes what a hook that gets no batch emitted. What does not count, or
// what there is no receiver for, is counted as dropped.
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

// emptyResult is a result of no records: what its Source sent before ends.
func (c *Component) emptyResult(source uint64) result {
	return result{samples: divide(&c.router, &batch.Metrics{Source: source}, nil)}
}

// emission is what a hook that gets no batch emitted, on its way to the receivers
// of the component that made it.
type emission struct {
	c        *Component
	instance uint64 // of its rules, see batch.Outputs
	out      result
	t        int64         // its latest time, Unix ms
	due      time.Time     // until when it is sent again; zero: until it is accepted
	left     *flow.Partial // what was refused; nil: nothing was sent
}

// send sends what is left of it.
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

// countDropped counts what is left of it as dropped.
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

// The back-off of what was refused.
const (
	minResend = 100 * time.Millisecond
	maxResend = 10 * time.Second
)

// deliver sends an emission, again if it is refused, until it is accepted or due.
// The error is why it is not: it was due, or ctx's.
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
			return context.Cause(parent) // or it could overtake what was left before
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

// mailbox is where the instances of a source leave what could not be sent
// before they were replaced, each hook's in order.
type mailbox struct {
	mu   sync.Mutex
	left []*emission
}

// post delivers an emission for a hook whose mailbox it is. Of a source that is
// replaced meanwhile the next instance goes on with it; otherwise what is not
// accepted is lost.
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

// collect goes on with what the instance before could not send.
func (c *Component) collect(run context.Context, box *mailbox) {
	box.mu.Lock()
	left := box.left
	box.left = nil
	box.mu.Unlock()
	for _, p := range left {
		c.post(run, box, p)
	}
}

// sending returns a context for what is to be sent: it ends some time after
// run, as graceful's, but of a source that is replaced at once: the next
// instance waits for it.
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
