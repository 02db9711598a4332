package node

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/view"
	"github.com/weir-run/weir/scripting"
)

// records is a batch of one signal.
type records interface {
	*batch.Metrics | *batch.Logs
	Len() int
}

// A pipeline processes the batches of one signal from the gate of a node to the
// receivers. These are its stages, in the order in which a batch passes them:
//
//	admit  (admit.go)  waits until setup has succeeded; if another instance has
//	                   taken over, the batch goes to that one
//	split  (split.go)  splits the batch in the modes parallel and partition
//	run    (run.go)    uses a VM and calls the hooks, which edit a window
//	apply  (apply.go)  creates batches from the edits, one for each set of outputs
//	route  (route.go)  sends them to the receivers; the flow.Sender of a receiver
//	                   tracks which series have become stale there
//
// The batch is acknowledged when consume returns nil: each receiver has
// accepted its part. Parts of a batch, and halves of a batch that the script
// failed on (retry.go), enter at the first stage, and nowhere else.
type pipeline[B records] struct {
	c      *Component
	signal signal[B]
}

// signal contains the operations of the stages that depend on the signal.
type signal[B records] interface {
	// bit returns the signal.
	bit() batch.Signals
	// hooks reports which hooks the script has: a hook for labels, and a hook for
	// batches.
	hooks(d *scripting.Definition) (labels, whole bool)
	// remember returns the cached result for b, if no hook has to be called.
	remember(cache *view.Cache, b B) (view.Result[B], bool)
	// split returns the parts of b, or nil if it is not split.
	split(s *sharding, b B) *split[B]
	// column returns the series, or the streams, of b.
	column(b B) []*batch.Series
	// slice returns rows of b, the first of which is row from.
	slice(b B, rows *batch.Rows, from int) B
	// join creates one batch from the results outs of the parts ins of b.
	// joinOther does this for emitted records of the other signal.
	join(b B, ins, outs []B) B
	joinOther(b B, set int, outs []result, joined *result)
	// open puts the windows of a call over b.
	open(k *call, b B)
	// window returns the window of a worker over batches of the signal.
	window(w *worker) window[B]
	// runLabels calls the hook for labels for new series or streams, runBatch the
	// hook for batches.
	runLabels(w *worker) error
	runBatch(w *worker) error
	// result returns a result without data of the other signal. output returns the
	// data of this signal in a result.
	result(out output[B]) result
	output(r result) output[B]
	// same reports whether row i of a and row j of b are the same record, but for
	// exemplars and start times.
	same(a B, i int, b B, j int) bool
	// payload returns b as a batch of either signal.
	payload(b B) payload
}

// outcome is the result of the hooks for a batch, or for a part of one.
type outcome struct {
	out   result
	ran   bool             // there was a VM to run on
	first *scripting.Error // of the script; nil if there was no error
}

// consume passes b through all stages.
func (p *pipeline[B]) consume(ctx context.Context, b B) error {
	c := p.c
	c.instance.addCall()
	defer c.instance.endCall()
	t := c.newTerms(ctx)
	var out result
	var err error
	as := passage{&c.router, c.rules}
	if cn := c.canary.Load(); cn != nil && cn.takes(p.signal.bit()) {
		var release func()
		out, as, release, err = p.processShares(ctx, b, t, cn)
		defer release()
	} else {
		out, err = p.processCounted(ctx, b, t)
	}
	if err != nil {
		if !errors.Is(err, errReplaced) {
			return err
		}
		next, err := c.admission.successor(ctx)
		if err != nil {
			return err
		}
		return next.kind.accept(ctx, p.signal.payload(b))
	}
	// Flush before sending. Otherwise, the sent data could depend on state that is
	// lost if the process dies here.
	c.state.flush()
	return as.to.send(ctx, as.number, out, p.signal.payload(b).latest(c.opts.Clock))
}

// processCounted calls process and counts the outcome. With on_error = "hold", it holds
// a batch that process returns as held.
func (p *pipeline[B]) processCounted(ctx context.Context, b B, t terms) (result, error) {
	counts := &p.c.counts
	counts.calls.Add(1)
	counts.records.Add(int64(b.Len()))
	o, err := p.process(ctx, b, t)
	held, ok := err.(*heldError)
	if ok || o.first != nil {
		counts.failed.Add(1)
	}
	counts.doneCalls.Add(1)
	counts.doneRecords.Add(int64(b.Len()))
	if ok {
		t.admitted = false // another instance may take over while it is held
		if p.c.onHold != nil {
			p.c.onHold()
		}
		o.out, err = p.hold(ctx, b, t, held)
	}
	return o.out, err
}

// process returns the result of the hooks for b. The error is errReplaced, a
// *heldError, or the reason why there was no VM or no room in the quarantine.
// In case of an error, the results of other parts are lost.
func (p *pipeline[B]) process(ctx context.Context, b B, t terms) (o outcome, err error) {
	if t.part {
		return p.processAdmitted(ctx, b, t)
	}
	if !t.admitted {
		if err := p.c.admission.enter(ctx); err != nil {
			return o, err
		}
		defer p.c.admission.leave()
	}
	o, err = p.processAdmitted(ctx, b, t)
	p.c.reportOutcome(p.signal.payload(b).source(), t, o, err)
	return o, err
}

func (p *pipeline[B]) processAdmitted(ctx context.Context, b B, t terms) (o outcome, err error) {
	if s := p.split(b, t); s != nil {
		return p.processParts(ctx, b, s, t)
	}
	called, err := p.run(ctx, b, t)
	if err != nil {
		o.first, o.ran = errors.AsType[*scripting.Error](err)
		return o, err
	}
	o, err = p.apply(called, b)
	if held, ok := err.(*heldError); ok && t.isolates() {
		return p.isolate(ctx, b, t, held)
	}
	return o, err
}

// processParts passes the parts of b through the stages concurrently.
func (p *pipeline[B]) processParts(ctx context.Context, b B, s *split[B], t terms) (o outcome, err error) {
	var mu sync.Mutex
	outs := make([]result, len(s.parts))
	err = runConcurrently(len(s.parts), workers(), func(i int) error {
		t := t
		t.part, t.pool = true, p.c.pools.of(s.shards[i])
		part, err := p.process(ctx, s.parts[i], t)
		outs[i] = part.out
		mu.Lock()
		defer mu.Unlock()
		o.ran = o.ran || part.ran
		o.first = cmp.Or(o.first, part.first)
		return err
	})
	if err == nil {
		o.out = p.join(b, s.parts, outs, s.join)
	}
	return o, err
}

// join joins the results of the parts ins of b. joinMain joins the batches that
// are sent to forward_to only.
func (p *pipeline[B]) join(b B, ins []B, outs []result, joinMain func(outs []B) B) (joined result) {
	if len(outs) == 1 {
		return outs[0]
	}
	own, divided := make([]B, len(outs)), make(output[B], len(p.c.router.sets))
	for set := range divided {
		for i := range outs {
			own[i] = p.signal.output(outs[i])[set]
		}
		if set == 0 && joinMain != nil {
			divided[set] = joinMain(own)
		} else {
			divided[set] = p.signal.join(b, ins, own)
		}
	}
	joined = p.signal.result(divided)
	for set := range divided {
		p.signal.joinOther(b, set, outs, &joined)
	}
	return joined
}

// reportOutcome reports the result of the hooks for a source. It reports
// nothing for a held batch, whose result is not known yet, or for a piece that
// succeeded.
func (c *Component) reportOutcome(source uint64, t terms, o outcome, err error) {
	_, held := err.(*heldError)
	switch {
	case !o.ran || held || t.replay:
	case o.first != nil:
		on := t.on
		if on == scripting.OnErrorHold { // the script did not fail on the whole batch
			on = scripting.OnErrorQuarantine
		}
		c.report.reportFailure(source, o.first, onErrorSays[on], failureAge)
	case !t.isPiece():
		c.report.done(source, nil)
	}
}
