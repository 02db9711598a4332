package remotewrite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/klauspost/compress/s2"

	"github.com/weir-run/weir/engine/journal"
)

// message is a form that requests have. Its number is the journal's kind of the
// blocks that are such a request, compressed with snappy.
type message uint8

const (
	v1 message = 1 // prometheus.WriteRequest
	v2 message = 2 // io.prometheus.write.v2.Request
)

// withHeader is added to the kind of blocks that are sent with a header of
// their own. Name and value stand before the request, a uvarint with its length
// before each: what a block was made for does not change with the config.
const withHeader = 0x80

// block is a journal block in the making.
type block struct {
	s       *settings
	message message

	samples int
	first   int64  // lowest timestamp
	buf     []byte // TimeSeries, one after the other, not compressed
	scratch []byte
	table   *tableV2
}

// buffers are what an open block and its compression need; between blocks a
// shard holds none.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

const maxPooledBuffer = 4 << 20

func getBuffer() []byte { return (*buffers.Get().(*[]byte))[:0] }

func putBuffer(b []byte) {
	if cap(b) > 0 && cap(b) <= maxPooledBuffer {
		buffers.Put(&b)
	}
}

// add appends a row. After an error the block is as before.
func (b *block) add(r *row) (err error) {
	if b.buf == nil {
		b.buf = getBuffer()
	}
	before := len(b.buf)
	if b.message == v1 {
		b.buf, b.scratch, err = appendV1(b.buf, b.scratch, r)
	} else {
		if b.table == nil {
			b.table = newTable(b.s.symbols.Load())
		}
		b.buf, err = b.table.append(b.buf, r, b.s.args.Metadata.Send)
	}
	if err != nil {
		b.buf = b.buf[:before]
		return err
	}
	if b.samples == 0 || r.t < b.first {
		b.first = r.t
	}
	b.samples++
	return nil
}

// maxBlock is how large a request is, before compression, when no more rows are
// added to it, however few they are. Receivers refuse more than some MiB.
const maxBlock = 8 << 20

// full reports whether the block is as large as a request may be.
func (b *block) full() bool {
	n := len(b.buf)
	if b.table != nil {
		n += len(b.table.encoded)
	}
	return b.samples >= b.s.maxSamples || n >= maxBlock
}

// close returns the block as the journal takes it, to be sent with a value of
// header_from_label unless that is empty, and makes b ready for the next one.
// Give the payload back by putBuffer.
func (b *block) close(shard int, value string) journal.Block {
	raw := b.buf
	if b.table != nil {
		// Receivers may decode in one go: the symbols come first.
		raw = append(append(getBuffer(), b.table.encoded...), b.buf...)
		defer func() { putBuffer(raw) }()
		b.table.free()
		b.table = nil
	}
	out := journal.Block{Shard: shard, Kind: uint8(b.message), Samples: b.samples, First: b.first}
	payload := getBuffer()
	if value != "" {
		out.Kind |= withHeader
		payload = appendString(appendString(payload, b.s.args.HeaderFromLabel.Header), value)
	}
	out.Payload = compress(payload, raw)
	b.buf, b.samples = b.buf[:0], 0
	return out
}

// free gives back the memory of a block that is closed or empty.
func (b *block) free() {
	putBuffer(b.buf)
	b.buf = nil
	if b.table != nil {
		b.table.free()
		b.table = nil
	}
}

// compress appends raw, compressed, to dst. The library's snappy.Encode
// compresses 3 % better in three times the time.
func compress(dst, raw []byte) []byte {
	buf := getBuffer()
	if n := s2.MaxEncodedLen(len(raw)); cap(buf) < n {
		buf = make([]byte, n)
	}
	dst = append(dst, s2.EncodeSnappy(buf[:cap(buf)], raw)...)
	putBuffer(buf)
	return dst
}

func appendString(dst []byte, s string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(s)))
	return append(dst, s...)
}

// envelope is what a journal block says: a request, and how it is to be sent.
type envelope struct {
	message       message
	header, value string // a header of its own, if header is not ""
	body          []byte // the request, compressed
}

// errUnknownKind is what openBlock returns for a block of another weir.
var errUnknownKind = errors.New("block of an unknown kind")

// openBlock reads a journal block. body aliases its payload.
func openBlock(b journal.Block) (e envelope, err error) {
	e = envelope{message: message(b.Kind &^ withHeader), body: b.Payload}
	if e.message != v1 && e.message != v2 {
		return e, fmt.Errorf("%w: %d", errUnknownKind, b.Kind)
	}
	if b.Kind&withHeader == 0 {
		return e, nil
	}
	var ok1, ok2 bool
	e.header, e.body, ok1 = cutString(e.body)
	e.value, e.body, ok2 = cutString(e.body)
	if !ok1 || !ok2 {
		return e, errors.New("block is cut off")
	}
	return e, nil
}

func cutString(b []byte) (s string, rest []byte, ok bool) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)-size) {
		return "", nil, false
	}
	b = b[size:]
	return string(b[:n]), b[n:], true
}
