package write

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/klauspost/compress/s2"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/journal"
	"github.com/weir-run/weir/engine/outbox"
	"github.com/weir-run/weir/natives/loki/push"
)

// request is one POST request: concatenated parts of the same tenant.
//
// Concatenated push requests are a valid push request. This also holds when they
// are compressed: the output of snappy is the total length, followed by elements
// that refer to earlier data by distance, never beyond the start of their own
// part.
//
// Format: https://github.com/google/snappy/blob/main/format_description.txt
type request struct {
	tenant string // "" for the tenant of the endpoint
	parts  []part
}

// flight is a journal block in flight.
type flight struct {
	journal.Block
	pieces int // number of its parts that are not done
}

func (r *request) size() (raw, lines int) {
	for i := range r.parts {
		raw += r.parts[i].raw
		lines += r.parts[i].lines
	}
	return raw, lines
}

// appendBody appends the body of the request.
func (r *request) appendBody(dst []byte) []byte {
	raw, _ := r.size()
	dst = binary.AppendUvarint(dst, uint64(raw))
	for i := range r.parts {
		dst = append(dst, r.parts[i].data...)
	}
	return dst
}

// dropLostParts removes the parts that the journal has dropped in the meantime.
func (r *request) dropLostParts(j *journal.Journal) {
	r.parts = slices.DeleteFunc(r.parts, func(p part) bool { return !j.Keeps(p.of.Block) })
}

// halves splits a request that is too large into two. ok is false if it has only
// one line.
func (r *request) halves() (a, b *request, ok bool, err error) {
	if n := len(r.parts) / 2; n > 0 {
		return &request{r.tenant, r.parts[:n:n]}, &request{r.tenant, r.parts[n:]}, true, nil
	}
	p := r.parts[0]
	if p.lines < 2 {
		return nil, nil, false, nil
	}
	first, second, err := p.halve()
	if err != nil {
		return nil, nil, false, err
	}
	p.of.pieces++
	return &request{r.tenant, []part{first}}, &request{r.tenant, []part{second}}, true, nil
}

// read returns the decompressed push request of the part.
func (p *part) read() ([]byte, error) {
	body := append(binary.AppendUvarint(make([]byte, 0, len(p.data)+8), uint64(p.raw)), p.data...)
	raw, err := s2.Decode(nil, body)
	if err != nil {
		return nil, fmt.Errorf("cannot decompress a block: %w", err)
	}
	return raw, nil
}

// halve splits a part into two by its lines.
func (p *part) halve() (a, b part, err error) {
	raw, err := p.read()
	if err != nil {
		return a, b, err
	}
	var halves [2][]byte
	var lines [2]int
	n := 0
	r := push.NewReader(raw)
	for r.NextStream() {
		var entries [2][]byte
		for r.NextEntry() {
			half := 0
			if n >= p.lines/2 {
				half = 1
			}
			n++
			lines[half]++
			entries[half] = push.AppendEntry(entries[half], r.T, r.Line, r.Meta)
		}
		for half, e := range entries {
			if len(e) > 0 {
				halves[half] = append(push.AppendStream(halves[half], r.Labels, len(e)), e...)
			}
		}
	}
	if err := r.Err(); err != nil {
		return a, b, fmt.Errorf("cannot divide a block: %w", err)
	}
	a, err = cutPart(s2.EncodeSnappy(nil, halves[0]))
	if err == nil {
		b, err = cutPart(s2.EncodeSnappy(nil, halves[1]))
	}
	a.of, a.lines, b.of, b.lines = p.of, lines[0], p.of, lines[1]
	return a, b, err
}

// each calls f with every line of the request that can be decoded.
func (r *request) each(f func(labels string, t int64, line string, meta []batch.Label)) {
	for i := range r.parts {
		raw, err := r.parts[i].read()
		if err != nil {
			continue
		}
		pr := push.NewReader(raw)
		for pr.NextStream() {
			for pr.NextEntry() {
				f(pr.Labels, pr.T, pr.Line, pr.Meta)
			}
		}
	}
}

// joiner joins the blocks of a shard into requests.
type joiner struct {
	*outbox.Reader
	e *endpoint

	carry *flight // was read, but is not part of a request yet
}

// next returns the next request. It returns nil if ctx ended and no block is
// left.
func (j *joiner) next(ctx context.Context) *request {
	j.Begin()
	for {
		first := j.carry
		j.carry = nil
		if first == nil || !j.e.Journal.Keeps(first.Block) {
			b, ok := j.Next(ctx)
			if !ok {
				return nil
			}
			first = &flight{Block: b}
		}
		r := &request{}
		if !j.add(r, first, 0) {
			continue
		}
		s := j.e.settings.Load()
		j.fill(ctx, s, r, first)
		return r
	}
}

// maxParts is the maximum number of blocks in a request, however small they are.
const maxParts = 512

// fill adds blocks after the first until there are enough, or until they have
// waited long enough.
func (j *joiner) fill(ctx context.Context, s *settings, r *request, first *flight) {
	most := int(s.args.BatchSize)
	behind, stop := j.Follow(ctx)
	defer stop()
	for last := first.Block; ; {
		if raw, _ := r.size(); raw >= most || len(r.parts) >= maxParts {
			return
		}
		b, ok := behind(first.Block, last, s.args.BatchWait)
		if !ok {
			return
		}
		if j.add(r, &flight{Block: b}, most) {
			last = b
		} else if j.carry != nil {
			return
		} // otherwise the block was lost, and last is still its predecessor
	}
}

// add adds a block to the request. It returns false if the block is kept for the
// next request, because it belongs to another tenant or the request would exceed
// most bytes, or if the block cannot be decoded and is lost.
func (j *joiner) add(r *request, f *flight, most int) bool {
	tenant, p, err := openBlock(f.Block)
	if err != nil {
		j.e.Log.Error("a block of the journal cannot be sent; it is lost", "lines", f.Samples, "err", err)
		j.e.Journal.Drop(f.Block, "unknown_kind")
		j.Free(f.Block)
		return false
	}
	if raw, _ := r.size(); len(r.parts) > 0 && (tenant != r.tenant || raw+p.raw > most) {
		j.carry = f
		return false
	}
	f.pieces, p.of, r.tenant = 1, f, tenant
	r.parts = append(r.parts, p)
	j.Keep(f.Block)
	return true
}
