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

// Why records are not delivered, in addition to the reasons of the journal.
const (
	reasonRejected = "rejected"     // by the sink
	reasonError    = "script_error" // in the sink
	reasonScript   = "script"       // the sink dropped them

	// reasonQuarantine is of records that are in quarantine. They are not counted
	// as lost: a replay may deliver them.
	reasonQuarantine = "quarantine"
)

// sending is what the hook send says of its batch. What it has said holds,
// whatever comes after: an error, or a pcall around it.
type sending struct {
	*host.Delivery
	offer  *outbox.Offer
	failed []failedRow // of each
}

// failedRow is a record that an each of send failed on.
type failedRow struct {
	row int
	err *scripting.Error
}

// again is the fate of a row that is offered again; others are why it is lost.
const again = "again"

// errStopsSending is why an attempt ended that is nobody's fault.
var errStopsSending = errors.New("weir stops, or another version takes over")

// deliver runs send on an offer, and on parts of it when it fails.
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
	case len(out.Left) > 0 && ctx.Err() != nil: // there was no time
	case len(out.Left) > 0:
		s.ended(sinkRetries, err)
	case out.Lost[reasonRejected] > 0:
		s.ended(sinkRejects, err)
	default:
		s.ended(sinkDelivers, nil)
	}
	return out
}

// attempt is what a call of send made of its records.
type attempt struct {
	fate  []string      // of each row; "": it is delivered
	after time.Duration // that the script asks for
	why   error         // not all was delivered
	held  *heldError    // it failed on all of them and nothing else is known
}

// attemptOf is that in which all rows of an offer have one fate.
func attemptOf(o *outbox.Offer, fate string, why error) attempt {
	return attempt{fate: slices.Repeat([]string{fate}, o.Len()), why: why}
}

// outcome is what becomes of the offer.
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

// send runs the hook, and returns the rows that it dropped. The error costs the
// batch.
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

// classifyAttempt is what becomes of an offer after an attempt: err is that of the hook,
// dropped are the rows that it dropped, those it failed on among them.
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
		if len(said.failed) == o.Len() { // each
			first := said.failed[0].err
			a = attemptOf(o, again, first)
			a.held = &heldError{err: first, rows: true, used: k.outside}
			return a
		}
		on = scripting.OnErrorQuarantine // it works on others
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

// failed is what becomes of rows that the script failed on, nil for all that
// have no fate yet.
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
			return reasonQuarantine // a test has no disk
		}
		return s.quarantine(k.sends.offer.Batch, rows, e)
	}
	return again
}

// quarantine puts rows of a batch into quarantine. Those for which there is no
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

// Undelivered is the error of a sink that has no storage, as in tests: what is
// sent to it goes to send at once, and this was not delivered, or not all of it.
type Undelivered struct {
	Records int           // of the batch
	Left    []int         // the rows that are to be sent again
	Attempt int           // that it was, from 1
	ID      string        // of the batch, the same at every attempt
	After   time.Duration // that the script asks for; 0: it does not
	// Lost is how many records are lost for good, by reason: rejected,
	// script_error, quarantine, script.
	Lost map[string]int
	Err  error // why
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

// Unwrap returns why.
func (e *Undelivered) Unwrap() error { return e.Err }

type anotherAttempt struct{}

// Again returns a context with which a sink that has no storage takes what is
// left of a batch as the same batch, in the attempt after e's.
func Again(ctx context.Context, e *Undelivered) context.Context {
	return context.WithValue(ctx, anotherAttempt{}, e)
}

// sendNow sends a batch that is not in the journal, once, and returns how many
// records were delivered. What is not delivered, unless the script dropped it,
// makes an *Undelivered.
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
