package node

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/outbox"
	"github.com/weir-run/weir/scripting"
)

// division is the search for the records of an offer that send fails on. Parts
// of the offer are sent one after another, in order. The search continues after
// a back-off, as long as the shard has the same offer.
type division struct {
	s       *sink
	shard   int
	offer   *outbox.Offer
	whole   outbox.Offer // the offer when it began
	rows    []int        // rows of whole that are still in the offer, ascending
	fate    []string     // by row of whole
	p       *search[*outbox.Offer]
	from    int                      // the first row of the current part
	errs    map[int]*scripting.Error // of failed parts, by their first row
	err     *heldError               // the last one
	why     error                    // why the last round ended early
	over    bool                     // the next round starts with all remaining rows
	round   attempt                  // result of the last attempt, of which only after is used
	again   int                      // records sent in parts in this round
	release func()                   // nil: not shown as held
}

// errUnsent ends a round: a part was not delivered, and no record is known to
// be the cause.
var errUnsent = errors.New("it was not sent")

// divide starts the search in an offer that send failed on.
func (s *sink) divide(shard int, o *outbox.Offer, t terms) *division {
	n := o.Len()
	d := &division{s: s, shard: shard, offer: o, whole: *o, fate: slices.Repeat([]string{again}, n), errs: map[int]*scripting.Error{}}
	for row := range n {
		d.rows = append(d.rows, row)
	}
	d.p = newSearch[*outbox.Offer](t, n, s.c.admission.ends)
	d.p.sparing, d.p.run = true, d.send
	d.p.slice = func(rows *batch.Rows, from int) *outbox.Offer {
		d.from = from
		part := d.whole.Part(from, from+rows.Len())
		part.Attempt = o.Attempt
		return part
	}
	return d
}

// round runs send on an offer, and on parts of it until the failing records are
// known, the destination fails, or no calls are left in this round.
func (s *sink) round(ctx context.Context, shard int, o *outbox.Offer) (outbox.Outcome, error) {
	d := s.divisions[shard]
	if d != nil && (d.offer != o || d.over) {
		s.endDivision(shard)
		d = nil
	}
	var first *heldError
	if d == nil {
		t := s.c.newTerms(ctx)
		a := s.attempt(ctx, shard, o, t)
		if first = a.held; first == nil {
			return a.outcome(), a.why
		}
		if first.outside {
			s.c.report.failing(uint64(shard), first.err, failureAge)
			return a.outcome(), a.why
		}
		d = s.divide(shard, o, t)
		s.divisions[shard] = d
		d.errs[0] = first.err
	} else {
		d.p.nextRound()
	}
	d.again, d.why, d.round = 0, nil, attempt{}
	d.search(ctx, first)
	out := d.outcome()
	if len(out.Left) == 0 {
		s.endDivision(shard)
	}
	return out, cmp.Or(d.why, error(d.err))
}

// endDivision discards the search of a shard.
func (s *sink) endDivision(shard int) {
	if d := s.divisions[shard]; d != nil && d.release != nil {
		d.release()
	}
	s.divisions[shard] = nil
}

// search runs send on parts. err is the error for the next part, or nil if send
// has not been called for it yet.
func (d *division) search(ctx context.Context, err *heldError) {
	c := d.s.c
	source := uint64(d.shard)
	on := d.p.terms.on
	for {
		last, failed := d.p.halve(ctx, err)
		d.err, err = cmp.Or(last, d.err), nil
		switch {
		case failed != nil:
			return
		case on != scripting.OnErrorHold:
			c.trust.isolated(d.p.good)
			d.over = d.p.retryFailed(ctx, on) != nil
			c.report.reportFailure(source, d.err.err, onErrorSays[on], failureAge)
			return
		}
		switch d.p.verdict(&c.trust, last, d.err) {
		case works:
			c.report.reportDelivered(source, d.p.over)
			return
		case worksByNow:
			d.p.retry()
			continue
		case blamed:
			d.quarantine()
			c.report.reportFailure(source, d.err.err, onErrorSays[scripting.OnErrorQuarantine], failureAge)
			return
		}
		c.report.failing(source, d.err.err, failureAge)
		if d.release == nil && d.p.good == 0 && !d.err.outside {
			c.mem.held.Inc()
			release := c.holding.add(c)
			d.release = func() {
				c.mem.held.Dec()
				release()
			}
		}
		return
	}
}

// send sends a part. The error is a *heldError if the script failed on it.
func (d *division) send(ctx context.Context, part *outbox.Offer, t terms) (result, error) {
	d.again += part.Len()
	a := d.s.attempt(ctx, d.shard, part, t)
	if a.held != nil {
		d.errs[d.from] = a.held.err
		return result{}, a.held
	}
	copy(d.fate[d.from:], a.fate)
	left := 0
	for _, fate := range a.fate {
		if fate == again {
			left++
		}
	}
	if left == 0 {
		return result{}, nil
	}
	d.why, d.round = a.why, a
	d.over = left < part.Len() // the part has changed
	return result{}, errUnsent
}

// quarantine puts the failed records into quarantine, as far as there is room.
func (d *division) quarantine() {
	d.p.bad = slices.DeleteFunc(d.p.bad, func(bad span) bool {
		var rows []int
		for row := bad.from; row < bad.to; row++ {
			rows = append(rows, row)
		}
		fate := d.s.quarantine(d.whole.Batch, rows, d.errs[bad.from])
		for _, row := range rows {
			d.fate[row] = fate
		}
		return fate != again
	})
}

// outcome returns the result for the rows that the offer had before the round.
func (d *division) outcome() outbox.Outcome {
	a := attempt{after: d.round.after}
	var left []int
	for _, row := range d.rows {
		a.fate = append(a.fate, d.fate[row])
		if d.fate[row] == again {
			left = append(left, row)
		}
	}
	d.rows = left
	out := a.outcome()
	out.Again = d.again
	return out
}
