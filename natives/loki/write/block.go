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

// kindPush is the kind of a journal block that contains a tenant, a uvarint of
// its length before it, and a push request compressed with snappy. A block
// without a tenant is sent for the tenant that the endpoint has at that time.
const kindPush = 1

// maxBlock is the size of a block in bytes, before compression, from which no
// more lines are added to it. A request consists of several blocks, up to
// batch_size.
const maxBlock = 256 << 10

// block is a journal block that is being filled.
type block struct {
	tenant string
	size   int // the size at which it is full
	lines  int
	first  int64  // lowest timestamp
	buf    []byte // streams, not compressed
}

// buffers is the pool of buffers for open blocks and their compression. Between
// blocks, a shard retains no buffer.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

const maxPooledBuffer = 1 << 20

// getBuffer returns an empty buffer with a capacity of at least n bytes.
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

// add appends rows of one stream: row is the first, and next contains the
// following row of each row. It returns the first row that does not fit, or -1 if
// all rows were added. An empty block accepts a row of any size.
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

// close returns the block for the journal and makes bl ready for the next one.
// Return the payload with putBuffer.
func (bl *block) close(shard int) journal.Block {
	head := binary.MaxVarintLen64 + len(bl.tenant)
	payload := getBuffer(head + s2.MaxEncodedLen(len(bl.buf)))
	payload = append(binary.AppendUvarint(payload, uint64(len(bl.tenant))), bl.tenant...)
	at := len(payload)
	// The library's snappy.Encode compresses slightly better, but takes twice as
	// long.
	payload = payload[:at+len(s2.EncodeSnappy(payload[at:cap(payload)], bl.buf))]
	out := journal.Block{Shard: shard, Kind: kindPush, Samples: bl.lines, First: bl.first, Payload: payload}
	bl.buf, bl.lines = bl.buf[:0], 0
	return out
}

// part is a push request: a journal block or a piece of one.
type part struct {
	of    *flight
	raw   int    // size in bytes before compression
	data  []byte // compressed: the elements of snappy without the length that precedes them
	lines int
}

// errKind is the error of openBlock for a block of another version of weir.
var errKind = errors.New("block of an unknown kind")

// openBlock decodes a journal block. The data of the part aliases its payload.
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

// cutPart removes the length at the beginning of snappy's output.
func cutPart(compressed []byte) (p part, err error) {
	p.raw, p.data, err = outbox.CutSnappy(compressed)
	return p, err
}

// sendable returns structured metadata with names that Loki accepts. Loki
// converts a name without a letter or digit to an empty name, and always answers
// 500 to the whole request. Such a name gets the prefix that Loki uses for other
// invalid names.
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
