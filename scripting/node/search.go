package node

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/scripting"
)

// maxIsolating is the maximum number of calls that search for the records that
// a script fails on, in a batch that it failed on as a whole. For a held batch,
// the limit applies again after each back-off.
const maxIsolating = 64

// After isolatingTime and minIsolating calls without a success, which reach
// from a thousand records down to one, the search stops, because the script may
// use its whole time limit for each call.
const (
	isolatingTime = 5 * time.Second
	minIsolating  = 12
)

// A search finds the records that the script fails on in a batch that it failed
// on as a whole. It calls the script for halves, down to one record, so that
// neither a batch that is too large nor a record that the script cannot process
// stops the other records. The results of parts are kept if a later part fails.
type search[B interface{ Len() int }] struct {
	terms terms // of its parts
	slice func(rows *batch.Rows, from int) B
	run   func(ctx context.Context, part B, t terms) (result, error)
	ends  func() bool // whether this version of the script ends

	// sparing limits the calls that make external requests as long as none
	// succeeds.
	sparing bool

	todo  []span // the last element is next
	done  []piece[B]
	bad   []span           // that the script failed on: single records, or parts whose records all failed
	good  int              // number of records on which it succeeded
	calls int              // since the last back-off
	began time.Time        // of the first of calls
	stale bool             // some of bad are from before the last back-off
	over  *scripting.Error // the limit because of which the batch was split; nil: none
	tries int              // number of rounds in which it failed on everything
	used  bool             // a failed call made external requests
}

// newSearch returns a search in a batch of n records, which was called on the
// terms t.
func newSearch[B interface{ Len() int }](t terms, n int, ends func() bool) *search[B] {
	t.total = n
	return &search[B]{terms: t, ends: ends, todo: []span{{0, n}}}
}

// span contains the rows i of a batch with from <= i < to.
type span struct{ from, to int }

// piece is the result for a part.
type piece[B any] struct {
	span
	in  B
	out result
}

// verdict is the conclusion from a round of a search.
type verdict uint8

const (
	undecided  verdict = iota // retry after a back-off
	works                     // on all records
	worksByNow                // on other records, so the failed ones are retried
	blamed                    // the records are to blame
)

// verdict returns the conclusion from the calls since the last back-off. last
// is their last error, or nil; err is the error before them.
func (p *search[B]) verdict(t *trust, last, err *heldError) verdict {
	switch {
	case last != nil && last.outside, len(p.todo) > 0: // or no calls are left
		return undecided
	case len(p.bad) == 0:
		return works
	case p.good > 0 && p.stale:
		return worksByNow
	case p.good > 0:
		return blamed
	}
	if p.tries++; t.blames(lenOf(p.bad), p.tries, overran(err.err)) {
		return blamed
	}
	return undecided
}

// nextRound starts a round of calls after a back-off.
func (p *search[B]) nextRound() {
	if p.calls, p.stale = 0, len(p.bad) > 0; len(p.todo) == 0 {
		p.retry()
	}
}

// reportToTest reports an error that no part had to a test; retryFailed reports
// the errors of parts.
func (p *search[B]) reportToTest(err *heldError) {
	if tell := p.terms.observe; tell != nil && len(p.bad)+len(p.todo) == 0 {
		tell(err.err)
	}
}

// halve calls the script for smaller and smaller parts, until the failing
// records are known or no calls are left. err is the error for the next part in
// todo, or nil if the script has not been called for it yet. An external
// failure ends the search; last is then its error. Otherwise, last is the last
// error.
func (p *search[B]) halve(ctx context.Context, err *heldError) (last *heldError, _ error) {
	for {
		if err != nil {
			if last = err; err.outside {
				return last, nil
			}
			p.failed(err)
		}
		failed := p.runAll(ctx)
		held, ok := failed.(*heldError)
		if !ok {
			return last, failed
		}
		err = held
	}
}

// failed splits the next part, on which the script failed, or records its rows
// as failed.
func (p *search[B]) failed(err *heldError) {
	p.used = p.used || err.used
	last := len(p.todo) - 1
	s := p.todo[last]
	p.todo = p.todo[:last]
	if err.rows || s.to-s.from < 2 {
		p.bad = append(p.bad, s)
		return
	}
	mid := s.from + (s.to-s.from)/2
	p.todo = append(p.todo, span{mid, s.to}, span{s.from, mid})
	if overran(err.err) {
		p.over = err.err
	}
}

// retry schedules the failed records for another call.
func (p *search[B]) retry() {
	slices.Reverse(p.bad)
	p.todo, p.bad, p.stale, p.calls = append(p.todo, p.bad...), nil, false, 0
}

// runAll runs the script on the parts in todo, as long as calls are left.
func (p *search[B]) runAll(ctx context.Context) error {
	for len(p.todo) > 0 && p.calls < maxIsolating {
		if p.calls == 0 {
			p.began = time.Now()
		} else if p.ends() || p.good == 0 && p.calls >= minIsolating && (p.used && p.sparing || time.Since(p.began) > isolatingTime) {
			return nil
		}
		p.calls++
		s := p.todo[len(p.todo)-1]
		if err := p.runPart(ctx, s, p.terms); err != nil {
			return err
		}
		p.todo, p.good = p.todo[:len(p.todo)-1], p.good+s.to-s.from
	}
	return nil
}

// runPart runs the script on a part.
func (p *search[B]) runPart(ctx context.Context, s span, t terms) error {
	rows := batch.RowsBetween(s.from, s.to)
	in := p.slice(&rows, s.from)
	out, err := p.run(ctx, in, t)
	if err == nil {
		p.done = append(p.done, piece[B]{s, in, out})
	}
	return err
}

// retryFailed calls the script for the last time for the failed and the
// undecided records. on specifies what happens if it fails again.
func (p *search[B]) retryFailed(ctx context.Context, on scripting.OnError) error {
	t := p.terms
	t.on, t.final = on, true
	rest := append(p.bad, p.todo...)
	slices.SortFunc(rest, func(a, b span) int { return a.from - b.from })
	p.todo, p.bad = nil, nil
	for len(rest) > 0 {
		s := rest[0]
		for rest = rest[1:]; len(rest) > 0 && rest[0].from == s.to; rest = rest[1:] {
			s.to = rest[0].to
		}
		if err := p.runPart(ctx, s, t); err != nil {
			return err
		}
	}
	return nil
}

// parts returns the parts in order, with their results.
func (p *search[B]) parts() (ins []B, outs []result) {
	slices.SortFunc(p.done, func(a, b piece[B]) int { return a.from - b.from })
	for _, d := range p.done {
		ins, outs = append(ins, d.in), append(outs, d.out)
	}
	return ins, outs
}

func lenOf(spans []span) (n int) {
	for _, s := range spans {
		n += s.to - s.from
	}
	return n
}

// overran reports whether err is a limit that a smaller call may stay within.
// The limit on waiting is not one of them.
func overran(err *scripting.Error) bool {
	return errors.Is(err, scripting.ErrLimit) && !errors.Is(err, errWaited)
}
