package remotewrite

import (
	"context"
	"time"

	"github.com/klauspost/compress/s2"

	"github.com/weir-run/weir/engine/journal"
	"github.com/weir-run/weir/engine/outbox"
)

// joiner makes requests of a shard's blocks: of as many as are waiting, up to
// max_samples_per_send.
type joiner struct {
	*outbox.Reader
	e *endpoint

	carry *flight // read, and part of no request yet
	raw   int     // bytes of the request, before compression
}

// next returns the next request; nil: ctx ended and nothing is left.
func (j *joiner) next(ctx context.Context) *writeRequest {
	j.Begin()
	for {
		first := j.carry
		j.carry = nil
		if first == nil || !j.e.Journal.Keeps(first.Block) {
			b, ok := j.Next(ctx)
			if !ok {
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
		j.Free(b)
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
	j.Keep(f.Block)
	p.add(piece{of: f, data: f.body}, f.Samples)
}

// fill adds the blocks behind the first until there are enough samples or
// the endpoint's patience ends, which by default is at once.
func (j *joiner) fill(ctx context.Context, s *settings, p *writeRequest) {
	first := p.pieces[0].of.Block
	behind, stop := j.Follow(ctx)
	defer stop()
	for last := first; j.carry == nil; {
		var patience time.Duration
		if p.all < s.maxSamples {
			patience = j.e.patience(s)
		}
		b, ok := behind(first, last, patience)
		if !ok {
			return
		}
		last = b
		if f := j.open(b); f != nil {
			j.add(s, p, f)
		}
	}
}
