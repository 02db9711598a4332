package outbox

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/snappy"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/journal"
)

// Batch contains records of one signal: exactly one field is set.
type Batch struct {
	Metrics *batch.Metrics
	Logs    *batch.Logs
}

// Signal returns the signal.
func (b Batch) Signal() batch.Signals {
	if b.Logs != nil {
		return batch.SignalLogs
	}
	return batch.SignalMetrics
}

// Len returns the number of records.
func (b Batch) Len() int {
	if b.Metrics != nil {
		return b.Metrics.Len()
	}
	return b.Logs.Len()
}

// withRows returns the batch with only the given rows.
func (b Batch) withRows(r batch.Rows) Batch {
	if b.Logs != nil {
		return Batch{Logs: b.Logs.Only(&r)}
	}
	return Batch{Metrics: b.Metrics.Only(&r)}
}

// join concatenates batches of one signal.
func join(bs []Batch) Batch {
	if bs[0].Logs != nil {
		logs := make([]*batch.Logs, len(bs))
		for i, b := range bs {
			logs[i] = b.Logs
		}
		return Batch{Logs: batch.JoinLogs(logs[0].Source, 0, logs)}
	}
	metrics := make([]*batch.Metrics, len(bs))
	for i, b := range bs {
		metrics[i] = b.Metrics
	}
	return Batch{Metrics: batch.JoinMetrics(metrics)}
}

func (b Batch) source() uint64 {
	if b.Logs != nil {
		return b.Logs.Source
	}
	return b.Metrics.Source
}

// series returns the column of handles.
func (b Batch) series() []*batch.Series {
	if b.Logs != nil {
		return b.Logs.Stream
	}
	return b.Metrics.Series
}

// times returns the column of timestamps, in Unix ms for samples and ns for
// lines.
func (b Batch) times() []int64 {
	if b.Logs != nil {
		return b.Logs.T
	}
	return b.Metrics.T
}

// sizes returns a function that returns the approximate size of a row in bytes.
func (b Batch) sizes() func(row int) int {
	if l := b.Logs; l != nil {
		return func(row int) int {
			n := len(l.Line[row]) + 16
			for _, m := range l.MetaOf(row) {
				n += len(m.Name) + len(m.Value)
			}
			return n
		}
	}
	hists := make(map[int]bool, len(b.Metrics.Histograms))
	for _, h := range b.Metrics.Histograms {
		hists[h.Row] = true
	}
	return func(row int) int {
		n := b.Metrics.Series[row].WireSize() + 16
		if hists[row] {
			n += 200
		}
		return n
	}
}

// Kinds of blocks, which identify the encoding of a payload. The numbers are
// unique among all components, for tools that read a journal without knowing
// its owner.
const (
	kindMetrics = 32 // batch.AppendBinary, compressed with snappy
	kindLogs    = 33 // batch.AppendLogsBinary, compressed with snappy
)

// signalOf returns the signal of a kind of block.
func signalOf(kind uint8) batch.Signals {
	if kind == kindLogs {
		return batch.SignalLogs
	}
	return batch.SignalMetrics
}

// BlockStats counts what is in blocks. The zero value is usable.
type BlockStats struct {
	Samples, Lines SignalStats
}

// SignalStats are the part of BlockStats of one signal.
type SignalStats struct {
	Blocks, Records int
	handles         *batch.Interner
}

// Has reports whether a block has a kind of this package.
func (*BlockStats) Has(b journal.Block) bool { return b.Kind == kindMetrics || b.Kind == kindLogs }

// Add counts a block. An error means that the block is damaged.
func (s *BlockStats) Add(b journal.Block) error {
	of := &s.Samples
	if signalOf(b.Kind) == batch.SignalLogs {
		of = &s.Lines
	}
	if of.handles == nil {
		of.handles = batch.NewInterner(0)
	}
	content, _, err := unpack(b, 0, of.handles, time.Time{})
	if err != nil {
		return err
	}
	of.Blocks++
	of.Records += content.Len()
	return nil
}

// Series returns the number of different series or streams.
func (s *SignalStats) Series() int {
	if s.handles == nil {
		return 0
	}
	return s.handles.Len()
}

// maxBlock is the approximate maximum size of a block before compression. A
// larger batch is split into several blocks.
const maxBlock = 8 << 20

// buffers are reused between calls of pack.
type buffers struct {
	raw    []byte
	packed [][]byte
}

var pool = sync.Pool{New: func() any { return new(buffers) }}

func (w *buffers) free() {
	const most = 1 << 20
	if cap(w.raw) > most {
		w.raw = nil
	}
	w.packed = slices.DeleteFunc(w.packed, func(b []byte) bool { return cap(b) > most })
	pool.Put(w)
}

// pack returns the blocks of a batch. Each belongs to one shard and is within
// the limits.
func (q *Queue) pack(w *buffers, b Batch) (blocks []journal.Block) {
	s := q.settings
	for shard, rows := range s.Split.shards(b, s.InFlight) {
		part := b
		if rows.Len() > 0 {
			part = b.withRows(rows)
		}
		if part.Len() == 0 {
			continue
		}
		shard += firstShard(b.Signal())
		size, from, n := part.sizes(), 0, 0
		for row := range part.Len() {
			if at := size(row); row > from && (row-from >= s.MaxRecords || n+at > min(s.MaxBytes, maxBlock)) {
				blocks = append(blocks, w.block(shard, part, from, row, len(blocks)))
				from, n = row, 0
			}
			n += size(row)
		}
		blocks = append(blocks, w.block(shard, part, from, part.Len(), len(blocks)))
	}
	return blocks
}

// block encodes some rows as a block, in the i-th buffer.
func (w *buffers) block(shard int, b Batch, from, to, i int) journal.Block {
	b = b.withRows(batch.RowsBetween(from, to))
	out := journal.Block{Shard: shard, Samples: b.Len(), First: slices.Min(b.times())}
	if b.Logs != nil {
		out.Kind, w.raw = kindLogs, batch.AppendLogsBinary(w.raw[:0], b.Logs)
	} else {
		out.Kind, w.raw = kindMetrics, batch.AppendBinary(w.raw[:0], b.Metrics)
	}
	if i == len(w.packed) {
		w.packed = append(w.packed, nil)
	}
	w.packed[i] = slices.Grow(w.packed[i][:0], snappy.MaxEncodedLen(len(w.raw)))
	w.packed[i] = snappy.Encode(w.packed[i][:cap(w.packed[i])], w.raw)
	out.Payload = w.packed[i]
	return out
}

// maxExpand is the maximum ratio of the decompressed to the compressed size of
// a payload: snappy encodes at best 64 bytes in three.
const maxExpand = 22

// unpack decodes a block. size is the approximate size of its records in bytes.
func unpack(b journal.Block, source uint64, handles *batch.Interner, now time.Time) (out Batch, size int, err error) {
	size, err = snappy.DecodedLen(b.Payload)
	if err == nil && size > maxExpand*len(b.Payload)+100 {
		err = errors.New("its length is wrong")
	}
	var raw []byte
	if err == nil {
		raw, err = snappy.Decode(nil, b.Payload)
	}
	if err != nil {
		return out, 0, fmt.Errorf("cannot decompress a block: %w", err)
	}
	o := batch.BinaryOptions{Source: source, Handles: handles, Now: now}
	switch b.Kind {
	case kindMetrics:
		out.Metrics, err = batch.ParseBinary(raw, o)
	case kindLogs:
		out.Logs, err = batch.ParseLogsBinary(raw, o)
	default:
		err = fmt.Errorf("cannot read a block of kind %d: this weir knows %d and %d", b.Kind, kindMetrics, kindLogs)
	}
	if err == nil && out.Len() == 0 {
		err = errors.New("cannot read a block: it has no records")
	}
	return out, size, err
}

// Split specifies which records must stay in order and therefore use the same
// shard.
type Split struct {
	// Series keeps the records of each series in order.
	Series bool
	// By keeps records with the same values of these labels in order; __name__ is
	// the metric name. If neither is set, the records of each Source stay in
	// order.
	By []string
}

// shards yields the rows for each of n shards. An empty rows stands for all
// rows.
func (s Split) shards(b Batch, n int) func(yield func(shard int, rows batch.Rows) bool) {
	return func(yield func(int, batch.Rows) bool) {
		if !s.Series && len(s.By) == 0 {
			yield(int(b.source()%uint64(n)), batch.Rows{})
			return
		}
		rows := make([]batch.Rows, n)
		// The journal stores the shard, and a series must use the same shard after a
		// restart, so the hash has no random seed. A sender who chooses labels can
		// put many series into one shard, but the hash is not used for look-ups.
		var h xxhash.Digest
		var wire []byte
		for i, series := range b.series() {
			var hash uint64
			if s.Series {
				wire = series.AppendWire(wire[:0])
				hash = xxhash.Sum64(wire)
			} else {
				h.Reset()
				for _, name := range s.By {
					_, _ = h.WriteString(series.Label(name))
					_, _ = h.Write([]byte{0xff}) // no UTF-8 has it
				}
				hash = h.Sum64()
			}
			rows[hash%uint64(n)].Add(i)
		}
		for shard := range rows {
			if rows[shard].Len() > 0 && !yield(shard, rows[shard]) {
				return
			}
		}
	}
}
