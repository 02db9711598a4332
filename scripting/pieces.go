package scripting

import (
	"context"
	"errors"

	"github.com/weir-run/weir/engine/batch"
)

// pieces are the parts in which a batch that is held goes through the script. A
// limit is one of a call: a part that one stops is halved, down to one record, so
// that a batch which is too much at once does not hold its source for ever. What
// became of a part is kept when a later one is held.
type pieces[B interface{ Len() int }] struct {
	cut  func(rows *batch.Rows, from int) B
	run  func(ctx context.Context, part B) (result, error)
	join func(ins []B, outs []result) result

	todo []span // the next is the last
	ins  []B
	outs []result
	over *Error // the limit that made parts of it; nil: it is whole
}

// piecesOf are those of samples.
func (c *Component) piecesOf(b *batch.Metrics) *pieces[*batch.Metrics] {
	return &pieces[*batch.Metrics]{
		todo: []span{{0, b.Len()}},
		cut: func(rows *batch.Rows, from int) *batch.Metrics {
			in := batch.NewSelection(b.Series, rows).Apply(b)
			if in == b {
				return b
			}
			// See split.partsOf.
			return in.Along(uint64(from)).Along(uint64(in.Len()))
		},
		run: c.process,
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
		todo: []span{{0, b.Len()}},
		cut:  func(rows *batch.Rows, _ int) *batch.Logs { return b.Only(rows) },
		run:  c.processLogs,
		join: func(_ []*batch.Logs, outs []result) result { return c.joinLines(b, outs) },
	}
}

// held returns what becomes of a batch of a source that the script failed on,
// once it no longer does, or the component that is to have the batch instead.
func held[B interface{ Len() int }](ctx context.Context, c *Component, source uint64, p *pieces[B], err *heldError) (out result, next *Component, _ error) {
	next, failed := c.hold(ctx, err, p.halve, p.do)
	switch {
	case next != nil || failed != nil:
		return out, next, failed
	case len(p.outs) == 1:
		return p.outs[0], nil, nil
	}
	if !isReplay(ctx) {
		c.report.inParts(source, p.over)
	}
	return p.join(p.ins, p.outs), nil, nil
}

// span is the rows of a batch from from on, below to.
type span struct{ from, to int }

// halve makes two parts of the next one if a limit stopped the script on it, and
// reports whether it did.
func (p *pieces[B]) halve(err *heldError) bool {
	last := len(p.todo) - 1
	s := p.todo[last]
	if !overran(err.err) || s.to-s.from < 2 {
		return false
	}
	mid := s.from + (s.to-s.from)/2
	p.todo = append(p.todo[:last], span{mid, s.to}, span{s.from, mid})
	p.over = err.err
	return true
}

// do runs the script on what is to do.
func (p *pieces[B]) do(ctx context.Context) error {
	if p.over != nil {
		ctx = context.WithValue(ctx, inPieces{}, true)
	}
	for len(p.todo) > 0 {
		last := len(p.todo) - 1
		s := p.todo[last]
		rows := batch.RowsBetween(s.from, s.to)
		in := p.cut(&rows, s.from)
		out, err := p.run(ctx, in)
		if err != nil {
			return err
		}
		p.todo, p.ins, p.outs = p.todo[:last], append(p.ins, in), append(p.outs, out)
	}
	return nil
}

// inPieces is the context key of a part of a batch that was too much at once:
// that it works says little.
type inPieces struct{}

func isPiece(ctx context.Context) bool { return ctx.Value(inPieces{}) != nil }

// overran reports whether err is of a limit that a call stays within when it has
// less to do: not that of what it waits for.
func overran(err *Error) bool {
	return errors.Is(err, ErrLimit) && !errors.Is(err, errWaited)
}
