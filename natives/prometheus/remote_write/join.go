package remotewrite

import (
	"context"

	"github.com/klauspost/compress/s2"

	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/journal"
)

// joiner makes requests of a shard's blocks: of as many as are waiting, up to
// max_samples_per_send.
type joiner struct {
	e     *endpoint
	shard int

	carry *flight // read, and part of no request yet
	raw   int     // bytes of the request, before compression

	free, taken [][]byte // buffers, and those of the last request
}

// next returns the next request; nil: ctx ended and nothing is left.
func (j *joiner) next(ctx context.Context) *writeRequest {
	j.free = append(j.free, j.taken...)
	j.taken = j.taken[:0]
	for {
		first := j.carry
		j.carry = nil
		if first == nil || !j.e.Journal.Keeps(first.Block) {
			b, err := j.e.Journal.Next(ctx, j.shard, j.buffer())
			if err != nil {
				return nil
			}
			first = j.open(b)
		}
		if first != nil {
			p := &writeRequest{whole: true}
			j.raw = 0
			s := j.e.settings.Load()
			j.add(s, p, first)
			j.fill(ctx, s, p)
			return p
		}
	}
}

// open opens a block. It returns nil if the block is lost.
func (j *joiner) open(b journal.Block) *flight {
	f := j.e.openFlight(b)
	if f == nil {
		j.free = append(j.free, b.Payload)
	}
	return f
}

// add adds a block to a request, or carries it over if it does not fit.
func (j *joiner) add(s *settings, p *writeRequest, f *flight) {
	raw, err := s2.DecodedLen(f.body)
	if err != nil {
		raw = maxBlock // it is sent as it is, alone
	}
	if len(p.pieces) > 0 && (f.form() != p.pieces[0].of.form() || p.all+f.Samples > s.maxSamples || j.raw+raw > maxBlock) {
		j.carry = f
		return
	}
	j.raw += raw
	j.taken = append(j.taken, f.Payload)
	p.add(piece{of: f, data: f.body}, f.Samples)
}

// fill adds the blocks behind the first until there are enough samples or
// the endpoint's patience ends, which by default is at once.
func (j *joiner) fill(ctx context.Context, s *settings, p *writeRequest) {
	first := p.pieces[0].of.Block
	var waiting context.Context // nil until it has to wait
	for last := first; j.carry == nil; {
		buf := j.buffer()
		b, ok := j.e.Journal.TryAfter(last, buf)
		if left := remaining(first, j.e.patience(s), j.e.Clock.Now()); !ok && p.all < s.maxSamples && left > 0 && ctx.Err() == nil {
			if waiting == nil {
				var stop context.CancelFunc
				waiting, stop = context.WithCancel(ctx)
				defer stop()
				defer clock.AfterFunc(j.e.Clock, left, stop).Stop()
			}
			var err error
			b, err = j.e.Journal.After(waiting, last, buf)
			ok = err == nil
		}
		if !ok {
			j.free = append(j.free, buf)
			return
		}
		last = b
		if f := j.open(b); f != nil {
			j.add(s, p, f)
		}
	}
}

// buffer returns memory for a block, nil if there is none.
func (j *joiner) buffer() []byte {
	n := len(j.free) - 1
	if n < 0 {
		return nil
	}
	b := j.free[n]
	j.free = j.free[:n]
	return b[:0]
}
