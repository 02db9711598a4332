package remotewrite

import (
	"context"
	"time"

	"github.com/klauspost/compress/s2"

	"github.com/weir-run/weir/engine/journal"
	"github.com/weir-run/weir/engine/outbox"
)

// joiner joins the waiting blocks of a shard into requests, up to
// max_samples_per_send.
type joiner struct {
	*outbox.Reader
	e *endpoint

	carry *flight // was read, but is not part of a request yet
	raw   int     // size of the request in bytes, before compression
}

// next returns the next request. It returns nil if ctx ended and no block is
// left.
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

// add adds a block to a request, or keeps it for the next one if it does not fit.
func (j *joiner) add(s *settings, p *writeRequest, f *flight) {
	raw, err := s2.DecodedLen(f.body)
	if err != nil {
		raw = maxBlock // the block is sent alone and unchanged
	}
	if len(p.pieces) > 0 && (f.form() != p.pieces[0].of.form() || p.all+f.Samples > s.maxSamples || j.raw+raw > maxBlock) {
		j.carry = f
		return
	}
	j.raw += raw
	j.Keep(f.Block)
	p.add(piece{of: f, data: f.body}, f.Samples)
}

// fill adds blocks until there are enough samples or the endpoint's patience
// ends. By default, it does not wait.
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
