package write

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/klauspost/compress/s2"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/journal"
	"github.com/weir-run/weir/engine/outbox"
	"github.com/weir-run/weir/natives/loki/push"
)

// kindPush is the journal's kind of blocks that are the tenant of their lines, a
// uvarint with its length before it, and a push request compressed with snappy.
// Without a tenant they are sent for the one that the endpoint has then.
const kindPush = 1

// maxBlock is how many bytes a block has, before compression, when no more lines
// are added to it. A request is made of several, up to batch_size.
const maxBlock = 256 << 10

// block is a journal block in the making.
type block struct {
	tenant string
	size   int // at which it is full
	lines  int
	first  int64  // lowest timestamp
	buf    []byte // streams, one after the other, not compressed
}

// buffers are what open blocks and their compression need; between blocks a shard
// holds none.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

const maxPooledBuffer = 1 << 20

// getBuffer returns an empty buffer that has room for n bytes.
func getBuffer(n int) []byte {
	b := *buffers.Get().(*[]byte)
	if cap(b) < n {
		b = make([]byte, 0, n)
	}
	return b[:0]
}

func putBuffer(b []byte) {
	if cap(b) > 0 && cap(b) <= maxPooledBuffer {
		buffers.Put(&b)
	}
}

// add appends rows of one stream, the first of which is row and in which next
// follows, and returns the first that does not fit any more, -1 if all did. A
// block that is empty takes one however large it is.
func (bl *block) add(labels string, b *batch.Logs, row int32, next []int32) int32 {
	room := bl.size - len(bl.buf) - len(labels) - 16
	entries, lines, end := 0, 0, row
	for ; end >= 0; end = next[end] {
		n := push.EntrySize(b.T[end], b.Line[end], sendable(b.MetaOf(int(end))))
		if entries+n > room && (lines > 0 || bl.lines > 0) {
			break
		}
		if t := b.T[end]; bl.lines+lines == 0 || t < bl.first {
			bl.first = t
		}
		entries += n
		lines++
	}
	if lines == 0 {
		return end
	}
	bl.lines += lines
	bl.buf = push.AppendStream(bl.buf, labels, entries)
	for i := row; i != end; i = next[i] {
		bl.buf = push.AppendEntry(bl.buf, b.T[i], b.Line[i], sendable(b.MetaOf(int(i))))
	}
	return end
}

// close returns the block as the journal takes it, and makes bl ready for the
// next one. Give the payload back by putBuffer.
func (bl *block) close(shard int) journal.Block {
	head := binary.MaxVarintLen64 + len(bl.tenant)
	payload := getBuffer(head + s2.MaxEncodedLen(len(bl.buf)))
	payload = append(binary.AppendUvarint(payload, uint64(len(bl.tenant))), bl.tenant...)
	at := len(payload)
	// The library's snappy.Encode compresses a little better in twice the time.
	payload = payload[:at+len(s2.EncodeSnappy(payload[at:cap(payload)], bl.buf))]
	out := journal.Block{Shard: shard, Kind: kindPush, Samples: bl.lines, First: bl.first, Payload: payload}
	bl.buf, bl.lines = bl.buf[:0], 0
	return out
}

// part is what a journal block says, or a piece of one: a push request.
type part struct {
	of    *flight
	raw   int    // bytes, when it is not compressed
	data  []byte // compressed: snappy's elements without the length before them
	lines int
}

// errKind is what openBlock returns for a block of another weir.
var errKind = errors.New("block of an unknown kind")

// openBlock reads a journal block. The part's data is in its payload.
func openBlock(b journal.Block) (tenant string, p part, err error) {
	if b.Kind != kindPush {
		return "", p, fmt.Errorf("%w: %d", errKind, b.Kind)
	}
	n, size := binary.Uvarint(b.Payload)
	if size <= 0 || n > uint64(len(b.Payload)-size) {
		return "", p, errors.New("block is cut off")
	}
	tenant = string(b.Payload[size : size+int(n)])
	p, err = cutPart(b.Payload[size+int(n):])
	p.lines = b.Samples
	return tenant, p, err
}

// cutPart cuts the length off what snappy made.
func cutPart(compressed []byte) (p part, err error) {
	p.raw, p.data, err = outbox.CutSnappy(compressed)
	return p, err
}

// sendable returns structured metadata with names that Loki can take. Of a name
// without a letter or digit it makes nothing, and answers 500 for the whole
// request for ever; such a name gets the prefix that Loki has for others.
func sendable(meta []batch.Label) []batch.Label {
	bad := func(l batch.Label) bool { return !strings.ContainsFunc(l.Name, isLetterOrDigit) }
	if !slices.ContainsFunc(meta, bad) {
		return meta
	}
	meta = slices.Clone(meta)
	for i, l := range meta {
		if bad(l) {
			meta[i].Name = "key" + l.Name
		}
	}
	return meta
}

func isLetterOrDigit(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
}
