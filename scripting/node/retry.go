package node

import (
	"cmp"
	"context"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/scripting"
)

// search starts the search for the records of b that the script fails on. Its
// parts enter the pipeline at the first stage.
func (p *pipeline[B]) search(b B, t terms) *search[B] {
	s := newSearch[B](t, b.Len(), p.c.admission.ends)
	s.slice = func(rows *batch.Rows, from int) B { return p.signal.slice(b, rows, from) }
	s.run = func(ctx context.Context, part B, t terms) (result, error) {
		o, err := p.process(ctx, part, t)
		return o.out, err
	}
	return s
}

// joined joins the results of all parts of b.
func (p *pipeline[B]) joined(b B, s *search[B]) result {
	ins, outs := s.parts()
	return p.join(b, ins, outs, nil)
}

// isolate returns the result for b, on which a call failed. on_error applies to
// the records that the script fails on individually; the other records are
// sent.
func (p *pipeline[B]) isolate(ctx context.Context, b B, t terms, err *heldError) (outcome, error) {
	o := outcome{ran: true, first: err.err}
	t.part = true
	s := p.search(b, t)
	if _, failed := s.halve(ctx, err); failed != nil {
		return o, failed
	}
	p.c.trust.isolated(s.good)
	s.reportToTest(err)
	if failed := s.retryFailed(ctx, t.on); failed != nil {
		return o, failed
	}
	o.out = p.joined(b, s)
	return o, nil
}

// hold returns the result for b, which is held because the script failed on it:
// the whole batch when the script works, or the rest of it when the failing
// records are known. If the error is errReplaced, another instance must process
// b.
func (p *pipeline[B]) hold(ctx context.Context, b B, t terms, err *heldError) (out result, _ error) {
	c := p.c
	c.mem.held.Inc()
	defer c.mem.held.Dec()
	release := func() {}
	defer func() { release() }()
	s := p.search(b, t)
	backoff := minHold
	for again := err; ; {
		last, failed := s.halve(ctx, again)
		if failed != nil {
			return out, failed
		}
		again, err = nil, cmp.Or(last, err)
		source := p.signal.payload(b).source()
		switch s.verdict(&c.trust, last, err) {
		case works:
			c.report.reportDelivered(source, s.over)
			s.reportToTest(err)
			return p.joined(b, s), nil
		case worksByNow:
			s.retry()
			continue
		case blamed:
			if failed := s.retryFailed(ctx, scripting.OnErrorQuarantine); failed != nil {
				return out, failed
			}
			return p.joined(b, s), nil
		}
		c.report.reportFailure(source, err.err, onErrorSays[scripting.OnErrorHold], failureAge)
		if backoff == minHold { // before its first wait
			release = c.holding.add(c)
		}
		if failed := c.awaitRetry(ctx, t, err, backoff); failed != nil {
			return out, failed
		}
		backoff = min(2*backoff, maxHold)
		s.nextRound()
	}
}
