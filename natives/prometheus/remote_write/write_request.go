package remotewrite

import (
	"encoding/binary"
	"slices"
	"sync/atomic"

	"github.com/klauspost/compress/s2"

	"github.com/weir-run/weir/engine/journal"
	"github.com/weir-run/weir/engine/outbox"
)

// flight is a journal block in flight. It may be divided among several requests.
type flight struct {
	journal.Block
	envelope
	left atomic.Int64 // number of samples that are not done
}

// openFlight opens a block that was read from the journal. If the block cannot be
// sent, it is dropped and the result is nil.
func (e *endpoint) openFlight(b journal.Block) *flight {
	env, err := openBlock(b)
	if err != nil {
		e.Log.Error("a block of the journal cannot be sent; it is lost", "samples", b.Samples, "err", err)
		e.Journal.Drop(b, "unknown_kind")
		return nil
	}
	f := &flight{Block: b, envelope: env}
	f.left.Store(int64(b.Samples))
	return f
}

// finishSamples records that n samples of a block are done.
func (e *endpoint) finishSamples(f *flight, n int) {
	if f.left.Add(int64(-n)) <= 0 {
		e.Journal.Ack(f.Block)
	} else {
		e.Journal.Done(f.Block, n)
	}
}

// piece is a part of a request: a whole block, or one TimeSeries of a block.
type piece struct {
	of    *flight
	data  []byte       // the compressed request of the block, or the TimeSeries
	table *symbolTable // for a TimeSeries of remote write 2.0
}

// writeRequest is a request that consists of blocks or of parts of blocks. All
// have the same message and the same header.
type writeRequest struct {
	whole  bool    // the pieces are whole blocks
	pieces []piece // in the order of their blocks
	all    int     // number of samples

	request
	oldest int64 // the value for which the request was encoded
	custom int   // samples omitted because remote write 1.0 does not support them
	slot   bool  // it already counts as in flight
}

// form is what all blocks of a write request have in common.
type form struct {
	message       message
	header, value string
}

func (f *flight) form() form { return form{f.message, f.header, f.value} }

// add appends a piece of n samples.
func (p *writeRequest) add(pc piece, n int) {
	p.pieces = append(p.pieces, pc)
	p.all += n
}

// samplesOf returns the number of samples in a piece.
func (p *writeRequest) samplesOf(pc *piece) int {
	if p.whole {
		return pc.of.Samples
	}
	return 1
}

// prepare encodes the request in a message, without the samples before oldest.
func (p *writeRequest) prepare(m message, oldest int64) error {
	first := p.pieces[0].of.First
	for i := range p.pieces {
		first = min(first, p.pieces[i].of.First)
	}
	if first >= oldest {
		oldest = noneOld
	}
	if p.body != nil && m == p.message && oldest == p.oldest {
		return nil
	}
	f := p.pieces[0].of.form()
	body, err := p.merge(f.message)
	if err != nil {
		return err
	}
	samples, custom := p.all, 0
	if m != f.message || oldest != noneOld {
		if body, samples, custom, err = recode(body, f.message, m, oldest); err != nil {
			return err
		}
	}
	p.request, p.oldest, p.custom = request{message: m, header: f.header, value: f.value, body: body, samples: samples}, oldest, custom
	return nil
}

// merge returns the request of all pieces, in their own message.
func (p *writeRequest) merge(m message) ([]byte, error) {
	if p.whole && len(p.pieces) == 1 {
		return p.pieces[0].data, nil
	}
	if p.whole && m == v1 {
		return p.concatenate()
	}
	mg := newMerger(m)
	for i := range p.pieces {
		pc := &p.pieces[i]
		var err error
		if !p.whole {
			err = mg.add(pc.data, pc.table)
		} else if serr := scan(pc.data, m, func(data []byte, _ uint64, table *symbolTable) {
			if err == nil {
				err = mg.add(data, table)
			}
		}); serr != nil {
			err = serr
		}
		if err != nil {
			return nil, err
		}
	}
	return mg.close(), nil
}

// concatenate joins blocks of remote write 1.0. Concatenated requests are a valid
// request, and this also holds when they are compressed.
func (p *writeRequest) concatenate() ([]byte, error) {
	raw, size := 0, binary.MaxVarintLen64
	for i := range p.pieces {
		n, elements, err := outbox.CutSnappy(p.pieces[i].data)
		if err != nil {
			return nil, err
		}
		raw, size = raw+n, size+len(elements)
	}
	body := binary.AppendUvarint(make([]byte, 0, size), uint64(raw))
	for i := range p.pieces {
		_, elements, _ := outbox.CutSnappy(p.pieces[i].data) // checked above
		body = append(body, elements...)
	}
	return body, nil
}

// tooLarge reports whether the request is larger than a block may be. This
// happens when it is sent as remote write 1.0 instead of 2.0.
func (p *writeRequest) tooLarge() bool {
	n, err := s2.DecodedLen(p.body)
	return err == nil && n > maxBlock && p.message != p.pieces[0].of.message
}

// halves splits a write request into two. Each block is in only one of them. ok
// is false if there is only one block.
func (p *writeRequest) halves() (a, b *writeRequest, ok bool) {
	at := len(p.pieces) / 2
	for i := range at + 1 {
		for _, cut := range []int{at - i, at + i} {
			if cut > 0 && cut < len(p.pieces) && p.pieces[cut-1].of != p.pieces[cut].of {
				return p.part(p.pieces[:cut:cut]), p.part(p.pieces[cut:]), true
			}
		}
	}
	return nil, nil, false
}

func (p *writeRequest) part(pieces []piece) *writeRequest {
	part := &writeRequest{whole: p.whole, pieces: pieces}
	part.count()
	return part
}

func (p *writeRequest) count() {
	p.all = 0
	for i := range p.pieces {
		p.all += p.samplesOf(&p.pieces[i])
	}
}

// dropLostBlocks removes the blocks that the journal has dropped in the meantime.
// It reports whether any samples are left.
func (p *writeRequest) dropLostBlocks(j *journal.Journal) bool {
	var of *flight
	keeps := false
	n := len(p.pieces)
	p.pieces = slices.DeleteFunc(p.pieces, func(pc piece) bool {
		if pc.of != of {
			of, keeps = pc.of, j.Keeps(pc.of.Block)
		}
		return !keeps
	})
	if len(p.pieces) < n {
		p.body = nil
		p.count()
	}
	return len(p.pieces) > 0
}

// finishRequest records that all samples of a write request are done.
func (e *endpoint) finishRequest(p *writeRequest) {
	for i := 0; i < len(p.pieces); {
		of, n := p.pieces[i].of, 0
		for ; i < len(p.pieces) && p.pieces[i].of == of; i++ {
			n += p.samplesOf(&p.pieces[i])
		}
		e.finishSamples(of, n)
	}
}
