package scripting

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/weir-run/weir/engine/batch"
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

// pieces are the parts in which a batch that the script failed on goes through it
// again: halves, down to one record, so that neither a batch which is too much at
// once nor a record which it cannot process stops the others. What became of a
// part is kept when a later one fails.
type pieces[B interface{ Len() int }] struct {
	cut  func(rows *batch.Rows, from int) B
	run  func(ctx context.Context, part B) (result, error)
	join func(ins []B, outs []result) result
	ends func() bool // whether this version of the script ends

	// sparing says that calls which use the outside are few while none works.
	sparing bool

	total int    // records
	todo  []span // the next is the last
	done  []piece[B]
	bad   []span    // that the script failed on, each a record, or records for themselves
	good  int       // records that it worked on
	calls int       // since the last back-off
	began time.Time // of the first of calls
	stale bool      // some of bad are from before the last back-off
	over  *Error    // the limit that made parts of it; nil: none did
	tries int       // in how many rounds it failed on all there is
	used  bool      // it used the outside in a call that failed
}

// span is the rows of a batch from from on, below to.
type span struct{ from, to int }

// piece is what became of a part.
type piece[B any] struct {
	span
	in  B
	out result
}

// piecesOf are those of samples.
func (c *Component) piecesOf(b *batch.Metrics) *pieces[*batch.Metrics] {
	return &pieces[*batch.Metrics]{
		total: b.Len(),
		todo:  []span{{0, b.Len()}},
		cut: func(rows *batch.Rows, from int) *batch.Metrics {
			in := batch.NewSelection(b.Series, rows).Apply(b)
			if in == b {
				return b
			}
			// See split.partsOf.
			return in.Along(uint64(from)).Along(uint64(in.Len()))
		},
		run:  c.process,
		ends: c.ends,
		join: func(ins []*batch.Metrics, outs []result) result {
			parts := make([]part, len(ins))
			for i := range ins {
				parts[i].in = ins[i]
			}
			return c.join(&split{}, b, parts, outs)
		},
	}
}

// piecesOfLines are those of log lines.
func (c *Component) piecesOfLines(b *batch.Logs) *pieces[*batch.Logs] {
	return &pieces[*batch.Logs]{
		total: b.Len(),
		todo:  []span{{0, b.Len()}},
		cut:   func(rows *batch.Rows, _ int) *batch.Logs { return b.Only(rows) },
		run:   c.processLogs,
		ends:  c.ends,
		join:  func(_ []*batch.Logs, outs []result) result { return c.joinLines(b, outs) },
	}
}

// isolate returns what becomes of a batch that a call failed on: the records that
// the script fails on for themselves are what on_error says, the others go on.
// one is a call for a part.
func isolate[B interface{ Len() int }](ctx context.Context, c *Component, p *pieces[B], err *heldError, one func(ctx context.Context, part B) (result, bool, *Error, error)) (result, *Error, error) {
	p.run = func(ctx context.Context, part B) (result, error) {
		out, _, _, err := one(ctx, part)
		return out, err
	}
	if _, failed := p.search(ctx, err); failed != nil {
		return result{}, err.err, failed
	}
	c.trust.isolated(p.good)
	p.reportToTest(ctx, err)
	on, _ := c.onError(ctx)
	if failed := p.retryFailed(ctx, on); failed != nil {
		return result{}, err.err, failed
	}
	return p.joined(), err.err, nil
}

// held returns what becomes of a batch of a source that the script failed on and
// that is held: all of it, once the script works, or what is left without the
// records that it fails on, once that is known; or next, the component that is to
// have the batch instead.
func held[B interface{ Len() int }](ctx context.Context, c *Component, source uint64, p *pieces[B], err *heldError) (out result, next *Component, _ error) {
	c.mem.held.Inc()
	defer c.mem.held.Dec()
	release := func() {}
	defer func() { release() }()
	backoff := minHold
	for again := err; ; {
		last, failed := p.search(ctx, again)
		if failed != nil {
			return out, nil, failed
		}
		again, err = nil, cmp.Or(last, err)
		switch p.verdict(&c.trust, last, err) {
		case works:
			c.report.reportDelivered(source, p.over)
			p.reportToTest(ctx, err)
			return p.joined(), nil, nil
		case worksByNow:
			p.retry()
			continue
		case blamed:
			if failed := p.retryFailed(ctx, OnErrorQuarantine); failed != nil {
				return out, nil, failed
			}
			return p.joined(), nil, nil
		}
		c.report.reportFailure(source, err.err, onErrorSays[OnErrorHold], failureAge)
		if backoff == minHold { // the first time that it waits
			release = c.holding.add(c)
		}
		next, failed := c.backOff(ctx, err, backoff)
		if next != nil || failed != nil {
			return out, next, failed
		}
		backoff = min(2*backoff, maxHold)
		p.nextRound()
	}
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
func (p *pieces[B]) verdict(t *trust, last, err *heldError) verdict {
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
func (p *pieces[B]) nextRound() {
	if p.calls, p.stale = 0, len(p.bad) > 0; len(p.todo) == 0 {
		p.retry()
	}
}

// reportToTest tells a test of an error that no part had; retryFailed reports the
// errors of parts.
func (p *pieces[B]) reportToTest(ctx context.Context, err *heldError) {
	if tell := observer(ctx); tell != nil && len(p.bad)+len(p.todo) == 0 {
		tell(err.err)
	}
}

// search asks the script about smaller and smaller parts, until it is known which
// records it fails on or the calls are used up. err is why it failed on the next
// of todo, nil when it is still to be asked. The outside ends the search: last is
// then its error, else the last one.
func (p *pieces[B]) search(ctx context.Context, err *heldError) (last *heldError, _ error) {
	ctx = context.WithValue(ctx, inPieces{}, p.total)
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
func (p *pieces[B]) failed(err *heldError) {
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
func (p *pieces[B]) retry() {
	slices.Reverse(p.bad)
	p.todo, p.bad, p.stale, p.calls = append(p.todo, p.bad...), nil, false, 0
}

// runAll runs the script on what is to do, as long as there are calls left.
func (p *pieces[B]) runAll(ctx context.Context) error {
	for len(p.todo) > 0 && p.calls < maxIsolating {
		if p.calls == 0 {
			p.began = time.Now()
		} else if p.ends() || p.good == 0 && p.calls >= minIsolating && (p.used && p.sparing || time.Since(p.began) > isolatingTime) {
			return nil
		}
		p.calls++
		s := p.todo[len(p.todo)-1]
		if err := p.runPart(ctx, s); err != nil {
			return err
		}
		p.todo, p.good = p.todo[:len(p.todo)-1], p.good+s.to-s.from
	}
	return nil
}

// runPart runs the script on a part.
func (p *pieces[B]) runPart(ctx context.Context, s span) error {
	rows := batch.RowsBetween(s.from, s.to)
	in := p.cut(&rows, s.from)
	out, err := p.run(ctx, in)
	if err == nil {
		p.done = append(p.done, piece[B]{s, in, out})
	}
	return err
}

// retryFailed asks the script for the last time about what it failed on, and what is
// not known: on is what becomes of that if it fails again.
func (p *pieces[B]) retryFailed(ctx context.Context, on OnError) error {
	ctx = context.WithValue(context.WithValue(ctx, inPieces{}, p.total), finalOn{}, on)
	rest := append(p.bad, p.todo...)
	slices.SortFunc(rest, func(a, b span) int { return a.from - b.from })
	p.todo, p.bad = nil, nil
	for len(rest) > 0 {
		s := rest[0]
		for rest = rest[1:]; len(rest) > 0 && rest[0].from == s.to; rest = rest[1:] {
			s.to = rest[0].to
		}
		if err := p.runPart(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// joined is one of what became of all parts, in their order.
func (p *pieces[B]) joined() result {
	if len(p.done) == 1 {
		return p.done[0].out
	}
	slices.SortFunc(p.done, func(a, b piece[B]) int { return a.from - b.from })
	ins, outs := make([]B, len(p.done)), make([]result, len(p.done))
	for i, d := range p.done {
		ins[i], outs[i] = d.in, d.out
	}
	return p.join(ins, outs)
}

func lenOf(spans []span) (n int) {
	for _, s := range spans {
		n += s.to - s.from
	}
	return n
}

// inPieces is the context key of a part of a batch that the script failed on: that
// it works says little. The value is how many records the batch has, of whose
// limits the part has its share: what the parts make is kept together.
type inPieces struct{}

func isPiece(ctx context.Context) bool { return ctx.Value(inPieces{}) != nil }

// shareOf is the share of a part of so many records in a limit of its batch.
func shareOf[N int | int64](ctx context.Context, records int, limit N) N {
	total, _ := ctx.Value(inPieces{}).(int)
	if total <= records {
		return limit
	}
	return limit / N(total) * N(records)
}

// overran reports whether err is of a limit that a call stays within when it has
// less to do: not that of what it waits for.
func overran(err *Error) bool {
	return errors.Is(err, ErrLimit) && !errors.Is(err, errWaited)
}
