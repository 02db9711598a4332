package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/weir-run/weir/engine/outbox"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/host"
)

// Reasons why records are lost, in addition to those of the journal.
const (
	reasonRejected = "rejected"     // by the sink
	reasonError    = "script_error" // in the sink
	reasonScript   = "script"       // the sink dropped them

	// reasonQuarantine is the reason of records in quarantine. They are not
	// counted as lost, because a replay may deliver them.
	reasonQuarantine = "quarantine"
)

// sending contains the results that the hook send set for its batch. They apply
// even if an error follows, or if send was called in a pcall.
type sending struct {
	*host.Delivery
	offer  *outbox.Offer
	failed []failedRow // of each of them
}

// failedRow is a record that the each of a send failed on.
type failedRow struct {
	row int
	err *scripting.Error
}

// again is the fate of a row that is offered again. All other fates are reasons
// why a row is lost.
const again = "again"

// errStopsSending means that an attempt was cut short without a failure.
var errStopsSending = errors.New("weir stops, or another version takes over")

// deliver runs send on an offer, and on parts of it if it fails.
func (s *sink) deliver(ctx context.Context, shard int, o *outbox.Offer) outbox.Outcome {
	c := s.c
	if !c.admission.tryEnter() {
		return outbox.Retry(o, 0)
	}
	defer c.admission.leave()
	c.instance.addCall()
	defer c.instance.endCall()
	out, err := s.round(ctx, shard, o)
	switch {
	case len(out.Left) > 0 && ctx.Err() != nil: // there was not enough time
	case len(out.Left) > 0:
		s.ended(sinkRetries, err)
	case out.Lost[reasonRejected] > 0:
		s.ended(sinkRejects, err)
	default:
		s.ended(sinkDelivers, nil)
	}
	return out
}

// attempt is the result of a call of send.
type attempt struct {
	fate  []string      // of each row; "": delivered
	after time.Duration // as requested by the script
	why   error         // why not everything was delivered
	held  *heldError    // it failed on all records and the cause is unknown
}

// attemptOf returns an attempt in which all rows of an offer have the same
// fate.
func attemptOf(o *outbox.Offer, fate string, why error) attempt {
	return attempt{fate: slices.Repeat([]string{fate}, o.Len()), why: why}
}

// outcome returns the outcome of the offer.
func (a *attempt) outcome() outbox.Outcome {
	out := outbox.Outcome{Lost: map[string]int{}, After: a.after}
	for row, reason := range a.fate {
		switch reason {
		case "":
		case again:
			out.Left = append(out.Left, row)
		default:
			out.Lost[reason]++
		}
	}
	return out
}

// attempt runs send on an offer once.
func (s *sink) attempt(ctx context.Context, shard int, o *outbox.Offer, t terms) attempt {
	c := s.c
	w, err := c.borrow(ctx, c.pools.of(shard%outbox.MaxInFlight))
	if err != nil {
		return attemptOf(o, again, err)
	}
	defer c.pools.put(w)
	started := time.Now()
	k := c.newCall(ctx, w, t)
	said := &sending{offer: o, Delivery: &host.Delivery{Attempt: o.Attempt, ID: o.ID}}
	k.sends, k.Delivery = said, said.Delivery
	dropped, err := k.send(o.Batch)
	if err := w.vm.End(); err != nil {
		k.reportError(scripting.AsError(err))
	}
	took := time.Since(started)
	c.mem.metrics.seconds.Add(took.Seconds())
	if err != nil && ctx.Err() == nil {
		k.reportError(scripting.AsError(err))
	}
	a := s.classifyAttempt(k, dropped, err)
	first := k.first
	k.done()
	c.mem.sent.observe(a.outcome(), o.Len(), took)
	if !errors.Is(a.why, errStopsSending) && a.held == nil && !t.replay && !t.isPiece() {
		c.report.done(uint64(shard), first)
	}
	return a
}

// send runs the hook, and returns the rows that it dropped. An error affects
// the whole batch.
func (k *call) send(b outbox.Batch) (dropped []int, err error) {
	c, w := k.c, k.w
	defer k.catchPanic(scripting.HookSend, &err)
	defer func() {
		if b.Logs != nil {
			w.lines.Done()
		} else {
			w.win.Done()
		}
	}()
	c.mem.metrics.calls.WithLabelValues(scripting.HookSend).Inc()
	window := &w.win.Window
	if b.Logs != nil {
		window = &w.lines.Window
		w.lines.Reset(b.Logs, c.instance.Cache, k.Now)
		w.vm.Begin(k.limits(b.Len()))
		err = w.vm.Logs(&w.lines)
	} else {
		w.win.Reset(b.Metrics, c.instance.Cache, k.Now)
		w.vm.Begin(k.limits(b.Len()))
		err = w.vm.Metrics(&w.win)
	}
	c.state.flush()
	for row := range b.Len() {
		if !window.Alive(row) {
			dropped = append(dropped, row)
		}
	}
	return dropped, err
}

// classifyAttempt returns the result of an attempt. err is the error of the
// hook. dropped are the rows that it dropped, including those it failed on.
func (s *sink) classifyAttempt(k *call, dropped []int, err error) attempt {
	said := k.sends
	o := said.offer
	if err != nil && k.ctx.Err() != nil {
		return attemptOf(o, again, errStopsSending)
	}
	if said.RejectAll != "" {
		return attemptOf(o, reasonRejected, errors.New(said.RejectAll))
	}
	a := attempt{fate: make([]string, o.Len()), after: said.After}
	all := func(reason string) {
		for row := range a.fate {
			a.fate[row] = cmp.Or(a.fate[row], reason)
		}
	}
	for _, row := range slices.Sorted(maps.Keys(said.Rejected)) {
		a.fate[row] = reasonRejected
		a.why = cmp.Or(a.why, errors.New(said.Rejected[row]))
	}
	switch {
	case said.Retry:
		a.why = errors.New(cmp.Or(said.Reason, "the script asks to send it again"))
		all(again)
		return a
	case err != nil:
		e := scripting.AsError(err)
		a.why = e
		if !k.replay && len(said.Rejected) == 0 && k.asksAgain(o.Len()) {
			a.held = &heldError{err: e, outside: k.OutsideFailed || errors.Is(e, errWaited), used: k.outside}
		}
		if a.held != nil {
			all(again)
		} else {
			all(s.failed(k, k.on, a.fate, nil, e))
		}
		return a
	}
	on := k.on
	if on == scripting.OnErrorHold && !k.replay && !k.OutsideFailed && len(said.failed) > 0 {
		if len(said.failed) == o.Len() { // failed on each row
			first := said.failed[0].err
			a = attemptOf(o, again, first)
			a.held = &heldError{err: first, rows: true, used: k.outside}
			return a
		}
		on = scripting.OnErrorQuarantine // it succeeded on other rows
	}
	for _, f := range said.failed {
		a.why = f.err
		if a.fate[f.row] == "" {
			a.fate[f.row] = s.failed(k, on, a.fate, []int{f.row}, f.err)
		}
	}
	for _, row := range dropped {
		a.fate[row] = cmp.Or(a.fate[row], reasonScript)
	}
	if len(said.failed) < o.Len() {
		s.c.trust.worked()
	}
	return a
}

// failed sets the fate of the given rows, on which the script failed. If rows
// is nil, it sets the fate of all rows that have none yet.
func (s *sink) failed(k *call, on scripting.OnError, fate []string, rows []int, e *scripting.Error) string {
	if k.replay {
		return again
	}
	if rows == nil {
		for row, reason := range fate {
			if reason == "" {
				rows = append(rows, row)
			}
		}
	}
	switch on {
	case scripting.OnErrorDrop:
		return reasonError
	case scripting.OnErrorQuarantine:
		if k.observe != nil {
			return reasonQuarantine // tests have no disk
		}
		return s.quarantine(k.sends.offer.Batch, rows, e)
	}
	return again
}

// quarantine puts rows of a batch into quarantine. Rows for which there is no
// room are offered again.
func (s *sink) quarantine(b outbox.Batch, rows []int, e *scripting.Error) string {
	part := payload{b}.rows(rows)
	if err := s.c.storeEntry(part, e); err != nil {
		full := scripting.AsError(err)
		full.Hook = scripting.HookSend
		full.Hint = "the batch stays in the journal; make room, or lower script.quarantine.max_size"
		s.c.report.errored(full)
		return again
	}
	return reasonQuarantine
}

// Undelivered is the error of a sink without storage, as in tests. Such a sink
// calls send immediately, and not all records were delivered.
type Undelivered struct {
	Records int           // in the batch
	Left    []int         // rows that must be sent again
	Attempt int           // number of the attempt, from 1
	ID      string        // of the batch, the same for every attempt
	After   time.Duration // as requested by the script; 0: not set
	// Lost is the number of lost records, by reason: rejected, script_error,
	// quarantine, script.
	Lost map[string]int
	Err  error // the cause
}

func (e *Undelivered) Error() string {
	switch rejected := e.Lost[reasonRejected]; {
	case len(e.Left) > 0:
		return fmt.Sprintf("it was not sent: %v", e.Err)
	case rejected > 0:
		return fmt.Sprintf("the sink rejects %d of %d records: %v", rejected, e.Records, e.Err)
	}
	return fmt.Sprintf("it was not sent completely: %v", e.Err)
}

// Unwrap returns the cause.
func (e *Undelivered) Unwrap() error { return e.Err }

type anotherAttempt struct{}

// Again returns a context with which a sink without storage treats the rest of
// a batch as the same batch, in the attempt after e's.
func Again(ctx context.Context, e *Undelivered) context.Context {
	return context.WithValue(ctx, anotherAttempt{}, e)
}

// sendNow sends a batch that is not in the journal, once, and returns the
// number of delivered records. If records are neither delivered nor dropped by
// the script, the error is an *Undelivered.
func (s *sink) sendNow(ctx context.Context, b outbox.Batch, t terms) (sent int, err error) {
	c := s.c
	if err := c.admission.enter(ctx); err != nil {
		return 0, err
	}
	defer c.admission.leave()
	c.instance.addCall()
	defer c.instance.endCall()
	o := &outbox.Offer{Batch: b, ID: outbox.NewID(), Attempt: 1}
	if before, ok := ctx.Value(anotherAttempt{}).(*Undelivered); ok {
		o.ID, o.Attempt = before.ID, before.Attempt+1
	}
	a := s.attempt(ctx, 0, o, t)
	out, err := a.outcome(), a.why
	s.c.opts.Stats.CountDropped(b.Signal(), reasonScript, out.Lost[reasonScript])
	sent = o.Len() - len(out.Left)
	for _, n := range out.Lost {
		sent -= n
	}
	if len(out.Left) == 0 && len(out.Lost) == 0 || err == nil {
		return sent, nil
	}
	return sent, &Undelivered{Records: o.Len(), Left: out.Left, Attempt: o.Attempt, ID: o.ID, After: out.After, Lost: out.Lost, Err: err}
}
