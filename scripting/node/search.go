package node

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/scripting"
)

// maxIsolating is how many calls look for the records that a script fails on, in
// a batch that it failed on as a whole. A batch that is held gets as many after
// each back-off.
const maxIsolating = 64

// A script that has worked on no part after isolatingTime and minIsolating calls,
// which are halves of some thousand records down to one, is asked no more: it may
// use all of its time for each call.
const (
	isolatingTime = 5 * time.Second
	minIsolating  = 12
)

// A search finds the records that the script fails on in a batch that it failed on
// as a whole. It calls the script for halves, down to one record, so that neither a
// batch that is too much at once nor a record that the script cannot process stops
// the others. What became of a part is kept when a later part fails.
type search[B interface{ Len() int }] struct {
	terms terms // of its parts
	slice func(rows *batch.Rows, from int) B
	run   func(ctx context.Context, part B, t terms) (result, error)
	ends  func() bool // whether this version of the script ends

	// sparing says that calls which use the outside are few while none works.
	sparing bool

	todo  []span // the next is the last
	done  []piece[B]
	bad   []span           // that the script failed on, each a record, or records for themselves
	good  int              // records that it worked on
	calls int              // since the last back-off
	began time.Time        // of the first of calls
	stale bool             // some of bad are from before the last back-off
	over  *scripting.Error // the limit that made parts of it; nil: none did
	tries int              // in how many rounds it failed on all there is
	used  bool             // it used the outside in a call that failed
}

// newSearch returns a search in a batch of n records, which was called on the terms t.
func newSearch[B interface{ Len() int }](t terms, n int, ends func() bool) *search[B] {
	t.total = n
	return &search[B]{terms: t, ends: ends, todo: []span{{0, n}}}
}

// span is the rows of a batch from from on, below to.
type span struct{ from, to int }

// piece is what became of a part.
type piece[B any] struct {
	span
	in  B
	out result
}

// verdict is what a round of a search has shown.
type verdict uint8

const (
	undecided  verdict = iota // it is asked again after a back-off
	works                     // on all records
	worksByNow                // on others, so what it failed on before is asked again
	blamed                    // the records are to blame
)

// verdict returns what the calls since the last back-off have shown: last is the
// last error of them, nil when there was none, err that before.
func (p *search[B]) verdict(t *trust, last, err *heldError) verdict {
	switch {
	case last != nil && last.outside, len(p.todo) > 0: // or the calls are used up
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

// nextRound begins the calls after a back-off.
func (p *search[B]) nextRound() {
	if p.calls, p.stale = 0, len(p.bad) > 0; len(p.todo) == 0 {
		p.retry()
	}
}

// reportToTest tells a test of an error that no part had; retryFailed reports the
// errors of parts.
func (p *search[B]) reportToTest(err *heldError) {
	if tell := p.terms.observe; tell != nil && len(p.bad)+len(p.todo) == 0 {
		tell(err.err)
	}
}

// halve calls the script for smaller and smaller parts, until it is known which
// records it fails on or the calls are used up. err is why it failed on the next of
// todo, nil if it is still to be called for that. A failure of the outside ends the
// search: last is then its error, else the last one.
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

// failed makes two parts of the next one, which the script failed on, or knows
// what it failed on.
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

// retry has the script asked again about what it failed on.
func (p *search[B]) retry() {
	slices.Reverse(p.bad)
	p.todo, p.bad, p.stale, p.calls = append(p.todo, p.bad...), nil, false, 0
}

// runAll runs the script on what is to do, as long as there are calls left.
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

// retryFailed calls the script for the last time for what it failed on, and for
// what is not known: on is what becomes of that if it fails again.
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

// parts returns the parts in their order, and what became of them.
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

// overran reports whether err is of a limit that a call stays within when it has
// less to do: not that of what it waits for.
func overran(err *scripting.Error) bool {
	return errors.Is(err, scripting.ErrLimit) && !errors.Is(err, errWaited)
}
