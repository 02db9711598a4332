package scripting

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/weir-run/weir/scripting/outbox"
)

// sending is what the hook send says of its batch. What it has said holds,
// whatever comes after: an error, or a pcall around it.
type sending struct {
	offer    *outbox.Offer
	retry    bool
	after    time.Duration
	reason   string         // of retry
	rejected map[int]string // rows that are lost for good, with the reason
	all      string         // why all of it is lost for good; "": it is not
	failed   []failedRow    // of each
}

// failedRow is a record that an each of send failed on.
type failedRow struct {
	row int
	err *Error
}

// again is the fate of a row that is offered again; others are why it is lost.
const again = "again"

// errStopsSending is why an attempt ended that is nobody's fault.
var errStopsSending = errors.New("weir stops, or another version takes over")

// deliver runs send on an offer.
func (s *sink) deliver(ctx context.Context, lane int, o *outbox.Offer) outbox.Outcome {
	c := s.c
	if !c.entrance.enter() {
		return outbox.Retry(o, 0)
	}
	defer c.entrance.leave()
	c.gen.enter()
	defer c.gen.leave()
	out, err := s.attempt(ctx, lane, o)
	switch {
	case len(out.Left) > 0 && ctx.Err() != nil: // there was no time
	case len(out.Left) > 0:
		s.ended(sinkRetries, err)
	case out.Lost[outbox.ReasonRejected] > 0:
		s.ended(sinkRejects, err)
	default:
		s.ended(sinkDelivers, nil)
	}
	return out
}

// attempt runs send on an offer once. The error is why not all was delivered.
func (s *sink) attempt(ctx context.Context, lane int, o *outbox.Offer) (outbox.Outcome, error) {
	c := s.c
	p := c.pool
	if c.lanes != nil {
		p = c.lanes[lane%outbox.MaxInFlight%len(c.lanes)]
	}
	w, _, err := c.borrow(ctx, p)
	if err != nil {
		return outbox.Retry(o, 0), err
	}
	defer c.putBack(p, w)
	started := time.Now()
	k := c.newCall(ctx, w)
	said := &sending{offer: o}
	k.sends = said
	dropped, err := k.send(o.Batch)
	if err := w.vm.End(); err != nil {
		k.note(AsError(err))
	}
	took := time.Since(started)
	c.mem.metrics.seconds.Add(took.Seconds())
	if err != nil && ctx.Err() == nil {
		k.note(AsError(err))
	}
	first := k.first
	k.done()
	out, why := s.judge(ctx, said, dropped, err)
	c.mem.sent.observe(out, o.Len(), took)
	if !errors.Is(why, errStopsSending) && !isReplay(ctx) {
		c.report.done(uint64(lane), first)
	}
	return out, why
}

// send runs the hook, and returns the rows that it dropped. The error costs the
// batch.
func (k *call) send(b outbox.Batch) (dropped []int, err error) {
	c, w := k.c, k.w
	// A panic of ours must cost one batch and one VM, not the node.
	defer func() {
		if b.Logs != nil {
			w.lines.Done()
		} else {
			w.win.Done()
		}
		if v := recover(); v != nil {
			w.vm = brokenVM{w.vm}
			err = &Error{Script: c.script.name, File: c.script.file.Name, Hook: hookSend, Err: panicError(v)}
		}
	}()
	c.mem.metrics.calls.WithLabelValues(hookSend).Inc()
	window := &w.win.Window
	if b.Logs != nil {
		window = &w.lines.Window
		w.lines.Reset(b.Logs, c.gen.Generation, k.now)
		w.vm.Begin(k.limits(b.Len()))
		err = w.vm.Logs(&w.lines)
	} else {
		w.win.Reset(b.Metrics, c.gen.Generation, k.now)
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

// judge is what becomes of an offer after an attempt: err is that of the hook,
// dropped are the rows that it dropped, those it failed on among them.
func (s *sink) judge(ctx context.Context, said *sending, dropped []int, err error) (outbox.Outcome, error) {
	o := said.offer
	if err != nil && ctx.Err() != nil {
		return outbox.Retry(o, 0), errStopsSending
	}
	if said.all != "" {
		return outbox.Lose(o, outbox.ReasonRejected), errors.New(said.all)
	}
	out := outbox.Outcome{Lost: map[string]int{}, After: said.after}
	fate := make([]string, o.Len()) // of each row; "": it is delivered
	all := func(reason string) {
		for row := range fate {
			fate[row] = cmp.Or(fate[row], reason)
		}
	}
	var why error
	for _, row := range slices.Sorted(maps.Keys(said.rejected)) {
		fate[row] = outbox.ReasonRejected
		why = cmp.Or(why, errors.New(said.rejected[row]))
	}
	on := s.c.block.OnError
	if isReplay(ctx) {
		on = OnErrorHold
	}
	switch {
	case said.retry:
		why = errors.New(cmp.Or(said.reason, "the script asks to send it again"))
		all(again)
	case err != nil:
		e := AsError(err)
		why = e
		all(s.failed(on, o.Batch, fate, nil, e))
	default:
		for _, f := range said.failed {
			why = f.err
			if fate[f.row] == "" {
				fate[f.row] = s.failed(on, o.Batch, fate, []int{f.row}, f.err)
			}
		}
		for _, row := range dropped {
			fate[row] = cmp.Or(fate[row], outbox.ReasonScript)
		}
	}
	for row, reason := range fate {
		switch reason {
		case "":
		case again:
			out.Left = append(out.Left, row)
		default:
			out.Lost[reason]++
		}
	}
	return out, why
}

// failed is what becomes of rows that the script failed on, nil for all that
// have no fate yet.
func (s *sink) failed(on OnError, b outbox.Batch, fate []string, rows []int, e *Error) string {
	switch on {
	case OnErrorDrop:
		return outbox.ReasonError
	case OnErrorQuarantine:
		if rows == nil {
			for row, reason := range fate {
				if reason == "" {
					rows = append(rows, row)
				}
			}
		}
		part := payload{metrics: b.Metrics, logs: b.Logs}.rows(rows)
		if err := s.c.storeEntry(part, e); err != nil {
			full := AsError(err)
			full.Hook = hookSend
			full.Hint = "the batch stays in the journal; make room, or lower script.quarantine.max_size"
			s.c.report.errored(full)
			return again
		}
		return outbox.ReasonQuarantine
	}
	return again
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
	switch rejected := e.Lost[outbox.ReasonRejected]; {
	case len(e.Left) > 0:
		return fmt.Sprintf("it was not sent: %v", e.Err)
	case rejected > 0:
		return fmt.Sprintf("the sink rejects %d of %d records: %v", rejected, e.Records, e.Err)
	}
	return fmt.Sprintf("it was not sent, or not all of it: %v", e.Err)
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
func (s *sink) sendNow(ctx context.Context, b outbox.Batch) (sent int, err error) {
	c := s.c
	if c.ready != nil {
		if to, err := c.admit(ctx); err != nil {
			return 0, err
		} else if to != c {
			return to.sink.sendNow(ctx, b)
		}
	}
	if !c.entrance.enter() {
		return 0, errReplaced
	}
	defer c.entrance.leave()
	c.gen.enter()
	defer c.gen.leave()
	o := &outbox.Offer{Batch: b, ID: outbox.NewID(), Attempt: 1}
	if before, ok := ctx.Value(anotherAttempt{}).(*Undelivered); ok {
		o.ID, o.Attempt = before.ID, before.Attempt+1
	}
	out, err := s.attempt(ctx, 0, o)
	s.c.opts.Stats.CountDropped(b.Signal(), outbox.ReasonScript, out.Lost[outbox.ReasonScript])
	sent = o.Len() - len(out.Left)
	for _, n := range out.Lost {
		sent -= n
	}
	if len(out.Left) == 0 && len(out.Lost) == 0 || err == nil {
		return sent, nil
	}
	return sent, &Undelivered{Records: o.Len(), Left: out.Left, Attempt: o.Attempt, ID: o.ID, After: out.After, Lost: out.Lost, Err: err}
}
