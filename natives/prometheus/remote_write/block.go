package remotewrite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/klauspost/compress/s2"

	"github.com/weir-run/weir/engine/journal"
)

// message is the format of requests. Its number is also the kind of the journal
// blocks that contain such a request, compressed with snappy.
type message uint8

const (
	v1 message = 1 // prometheus.WriteRequest
	v2 message = 2 // io.prometheus.write.v2.Request
)

// withHeader is added to the kind of blocks that are sent with their own header.
// The header name and value precede the request, each with its length as a
// uvarint. They are stored so that a block is sent as intended even if the
// configuration changes.
const withHeader = 0x80

// block is a journal block that is being filled.
type block struct {
	s       *settings
	message message

	samples int
	first   int64  // lowest timestamp
	buf     []byte // TimeSeries messages, not compressed
	scratch []byte
	table   *tableV2
}

// buffers is the pool of buffers for open blocks and their compression. Between
// blocks, a shard retains no buffer.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

const maxPooledBuffer = 4 << 20

func getBuffer() []byte { return (*buffers.Get().(*[]byte))[:0] }

func putBuffer(b []byte) {
	if cap(b) > 0 && cap(b) <= maxPooledBuffer {
		buffers.Put(&b)
	}
}

// add appends a row. If it returns an error, the block is unchanged.
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

// maxBlock is the size of a request, before compression, from which no more rows
// are added to it. Receivers refuse requests of more than a few MiB.
const maxBlock = 8 << 20

// full reports whether the block has the maximum size of a request.
func (b *block) full() bool {
	n := len(b.buf)
	if b.table != nil {
		n += len(b.table.encoded)
	}
	return b.samples >= b.s.maxSamples || n >= maxBlock
}

// close returns the block for the journal and makes b ready for the next one.
// value is the value of header_from_label; if it is empty, the block has no
// header. Return the payload with putBuffer.
func (b *block) close(shard int, value string) journal.Block {
	raw := b.buf
	if b.table != nil {
		// The symbols come first, because receivers may decode a request in a
		// single pass.
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

// free releases the memory of a block that is closed or empty.
func (b *block) free() {
	putBuffer(b.buf)
	b.buf = nil
	if b.table != nil {
		b.table.free()
		b.table = nil
	}
}

// compress appends the compressed raw to dst. The library's snappy.Encode
// compresses 3 % better, but takes three times as long.
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

// envelope is the content of a journal block: a request and how to send it.
type envelope struct {
	message       message
	header, value string // the header of the block, if header is not ""
	body          []byte // the request, compressed
}

// errUnknownKind is the error of openBlock for a block of another version of
// weir.
var errUnknownKind = errors.New("block of an unknown kind")

// openBlock decodes a journal block. body aliases its payload.
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
