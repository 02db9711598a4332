// Package link is the part of a stream between weir and a plugin that is the same
// on both sides: batches as messages, and acknowledgements across the boundary.
package link

import (
	"fmt"
	"sync"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/plugin/protocol"
)

// Dictionary is the limit of a dictionary in bytes, for each direction of a stream.
const Dictionary = 64 << 20

// Own is set in the Sources of a plugin's own batches on the stream. In the Sources
// of weir, it is not set. Pushed is set in the Sources of pushed batches of both.
const (
	Own    = 1 << 62
	Pushed = 1 << 63
)

// Batch is a batch of either signal.
type Batch struct {
	Metrics *batch.Metrics
	Logs    *batch.Logs
}

// Origin returns the Source and Way of the batch.
func (b Batch) Origin() batch.Origin {
	if b.Metrics != nil {
		return b.Metrics.Origin()
	}
	return b.Logs.Origin()
}

// Ack returns the acknowledgement of the batch, or nil.
func (b Batch) Ack() *batch.Ack {
	if b.Logs == nil {
		return nil
	}
	return b.Logs.Ack
}

// WithOrigin returns the batch with another Source and Way. The columns are shared.
func (b Batch) WithOrigin(of batch.Origin) Batch {
	if b.Metrics != nil {
		m := *b.Metrics
		m.Source, m.Way = of.Source, of.Way
		return Batch{Metrics: &m}
	}
	l := *b.Logs
	l.Source, l.Way = of.Source, of.Way
	return Batch{Logs: &l}
}

// WithAck returns a batch of lines with another Ack.
func (b Batch) WithAck(a *batch.Ack) Batch {
	l := *b.Logs
	l.Ack = a
	return Batch{Logs: &l}
}

// Encoder encodes the batches of one direction of a stream. It is not safe for
// concurrent use: a batch must be sent before the next one is encoded.
type Encoder struct {
	frames *batch.FrameEncoder
	buf    []byte
}

// NewEncoder returns an Encoder whose dictionary has at most limit bytes.
func NewEncoder(limit int) *Encoder { return &Encoder{frames: batch.NewFrameEncoder(limit)} }

// maxKept is the size of the largest buffer that an Encoder keeps.
const maxKept = 4 << 20

// Encode returns the message of a batch. It is valid until the next call.
func (e *Encoder) Encode(b Batch, ack bool) *protocol.Batch {
	if cap(e.buf) > maxKept {
		e.buf = nil
	}
	if b.Metrics != nil {
		e.buf = e.frames.AppendMetrics(e.buf[:0], b.Metrics)
		return &protocol.Batch{Signal: uint32(batch.SignalMetrics), Frame: e.buf}
	}
	e.buf = e.frames.AppendLogs(e.buf[:0], b.Logs)
	return &protocol.Batch{Signal: uint32(batch.SignalLogs), Frame: e.buf, Ack: ack}
}

// Decode decodes the message of a batch.
func Decode(d *batch.FrameDecoder, m *protocol.Batch) (b Batch, err error) {
	switch m.GetSignal() {
	case uint32(batch.SignalMetrics):
		b.Metrics, err = d.Metrics(m.Frame)
	case uint32(batch.SignalLogs):
		b.Logs, err = d.Logs(m.Frame)
	default:
		err = fmt.Errorf("cannot read a batch: signal %d is neither 1 (metrics) nor 2 (logs)", m.GetSignal())
	}
	return b, err
}

// Acks connects the acknowledgements of batches of lines with those of the other
// side of a stream. The zero value is ready to use.
type Acks struct {
	mu    sync.Mutex
	holds map[uint64]*batch.Hold // of batches that were sent
	acks  map[uint64]*batch.Ack  // of batches that arrived
}

// Hold holds a batch that is about to be sent under id until Acked or Refused is
// called. flush asks the other side to send held rows soon. It returns false if
// nobody waits for the acknowledgement.
func (a *Acks) Hold(id uint64, b Batch, flush func()) bool {
	ack := b.Ack()
	if ack == nil {
		return false
	}
	h := ack.Hold(flush)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.holds == nil {
		a.holds = map[uint64]*batch.Hold{}
	}
	a.holds[id] = h
	return true
}

// Acked ends the hold of a batch that was sent.
func (a *Acks) Acked(id uint64) {
	a.mu.Lock()
	h := a.holds[id]
	delete(a.holds, id)
	a.mu.Unlock()
	if h != nil {
		h.Release()
	}
}

// Arrived returns the batch with an Ack. done is called when nobody holds a row of it
// any more, provided that Accepted is called.
func (a *Acks) Arrived(id uint64, b Batch, done func()) Batch {
	ack := batch.NewAck(func() {
		a.mu.Lock()
		delete(a.acks, id)
		a.mu.Unlock()
		done()
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.acks == nil {
		a.acks = map[uint64]*batch.Ack{}
	}
	a.acks[id] = ack
	return b.WithAck(ack)
}

// Answered is called when a batch that arrived was accepted or refused.
func (a *Acks) Answered(id uint64, accepted bool) {
	a.mu.Lock()
	ack := a.acks[id]
	if !accepted {
		delete(a.acks, id)
	}
	a.mu.Unlock()
	if ack != nil && accepted {
		ack.Accepted()
	}
}

// Flush asks for the held rows of a batch that arrived.
func (a *Acks) Flush(id uint64) {
	a.mu.Lock()
	ack := a.acks[id]
	a.mu.Unlock()
	if ack != nil {
		ack.Flush()
	}
}
