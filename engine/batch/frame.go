package batch

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
)

// Frames carry batches between two processes. A FrameEncoder and a FrameDecoder
// share a dictionary, so that the labels and the metadata of a series are sent
// once and then referred to by number. Numbers and strings are encoded as in the
// binary form.
//
//	frame:       version kind generation fresh source way rows
//	             definitions column times rest
//	kind:        1: metrics, 2: logs
//	generation:  the number of the dictionary, which increases with each new one
//	fresh:       1 if the dictionary is new, which means empty before this frame;
//	             otherwise 0
//	source, way: 8 bytes each, little endian
//	definitions: their size in bytes; unless it is 0: metadata* series* change*,
//	             each list preceded by its length
//	  metadata:  type help unit family; gets the next number, from 1
//	  series:    metadata (its number, 0: none) size wire; gets the next number,
//	             from 1
//	  change:    series metadata: the series has other metadata from now on
//	column:      0: the numbers of the series follow and are not kept;
//	             2k+1: they follow and are kept as column k; 2k: those of column k
//	  number:    signed: the number minus 1 minus that of the previous row (0 for the
//	             first row), so that 1, 2, 3 is three zeros
//	times:       0 and the time of all rows; or 1 and, for each row, the signed
//	             distance from the time of the previous row
//	rest of metrics: value* (8 bytes each), the size of the cells in bytes, and
//	             unless it is 0: histogram-cells exemplar-cells start-cells, as in
//	             the binary form
//	rest of logs: (metadata line)* as in the binary form
//
// Each list of definitions has at most two elements per row of the frame. A column
// may be defined again, which replaces it. The size of a dictionary is the sum of
// frameEntry and the length of the wire for each series, frameEntry and the length
// of the strings for each metadata, and frameEntry and frameCell per row for each
// kept column. Only a frame with a new dictionary may increase the size beyond the
// limit.
const (
	frameVersion = 1
	frameMetrics = 1
	frameLogs    = 2

	frameEntry = 64
	frameCell  = 8
)

// ErrFrameReset means that a frame refers to a dictionary that the decoder does
// not have. The sender calls FrameEncoder.Reset and encodes the batch again.
var ErrFrameReset = errors.New("the frame refers to a dictionary that this side does not have")

// FrameEncoder encodes batches for a FrameDecoder with the same limit. The decoder
// must get all frames in the order in which they were encoded; if a frame is not
// sent, call Reset. Its memory is bounded by the limit and the size of a batch. It
// is not safe for concurrent use.
type FrameEncoder struct {
	limit int

	generation uint64
	fresh      bool // no frame has used this generation
	size       int
	numbers    Memo[uint32]        // of series
	sent       []*Metadata         // of series, by number
	metas      map[Metadata]uint64 // the numbers of metadata
	columns    map[Origin]*sentColumn

	// The definitions and the column of the frame that is being encoded.
	newMetas, newSeries, changes    []byte
	metaCount, seriesCount, changed int
	column, cells                   []byte
	columnNumber                    uint64
}

// sentColumn is a column that the decoder keeps.
type sentColumn struct {
	number uint64
	series []*Series   // kept alive, so that no other column gets its address
	metas  []*Metadata // of each row
}

// NewFrameEncoder returns an encoder. limit is the maximum size of the dictionary
// in bytes; a single batch may exceed it.
func NewFrameEncoder(limit int) *FrameEncoder {
	return &FrameEncoder{limit: limit, fresh: true, metas: map[Metadata]uint64{}, columns: map[Origin]*sentColumn{}}
}

// Reset makes the next frame begin a new dictionary.
func (e *FrameEncoder) Reset() {
	if !e.fresh {
		e.generation++
	}
	e.fresh, e.size = true, 0
	e.numbers.Clear(nil)
	clear(e.sent)
	e.sent = e.sent[:0]
	clear(e.metas)
	clear(e.columns)
}

// AppendMetrics appends the frame of b to dst. The frame contains everything in b.
func (e *FrameEncoder) AppendMetrics(dst []byte, b *Metrics) []byte {
	dst = e.appendHead(dst, frameMetrics, b.Origin(), b.Series)
	dst = appendTimes(dst, b.T)
	at := len(dst)
	dst = slices.Grow(dst, 8*len(b.V))[:at+8*len(b.V)]
	values := dst[at:]
	for i, v := range b.V {
		binary.LittleEndian.PutUint64(values[8*i:], math.Float64bits(v))
	}
	if len(b.Histograms)+len(b.Exemplars)+len(b.Starts) == 0 {
		return append(dst, 0)
	}
	e.cells = appendCells(reuse(e.cells), b)
	return append(binary.AppendUvarint(dst, uint64(len(e.cells))), e.cells...)
}

// AppendLogs appends the frame of b to dst. The frame contains everything in b
// except the Ack.
func (e *FrameEncoder) AppendLogs(dst []byte, b *Logs) []byte {
	dst = e.appendHead(dst, frameLogs, b.Origin(), b.Stream)
	dst = appendTimes(dst, b.T)
	var meta []Label
	for i := range b.Line {
		dst, meta = appendBinaryLine(dst, b, i, meta)
	}
	return dst
}

// appendHead appends a frame up to its times.
func (e *FrameEncoder) appendHead(dst []byte, kind byte, of Origin, column []*Series) []byte {
	before := e.size
	e.define(kind, of, column)
	if !e.fresh && e.size > e.limit && e.size > before {
		e.Reset()
		e.define(kind, of, column)
	}
	dst = binary.AppendUvarint(append(dst, frameVersion, kind), e.generation)
	fresh := byte(0)
	if e.fresh {
		fresh, e.fresh = 1, false
	}
	dst = append(dst, fresh)
	dst = binary.LittleEndian.AppendUint64(dst, of.Source)
	dst = binary.LittleEndian.AppendUint64(dst, of.Way)
	dst = binary.AppendUvarint(dst, uint64(len(column)))

	if e.metaCount+e.seriesCount+e.changed == 0 {
		dst = append(dst, 0)
	} else {
		m, s, c := uint64(e.metaCount), uint64(e.seriesCount), uint64(e.changed)
		size := uvarintSize(e.metaCount) + len(e.newMetas) + uvarintSize(e.seriesCount) + len(e.newSeries) + uvarintSize(e.changed) + len(e.changes)
		dst = binary.AppendUvarint(dst, uint64(size))
		dst = append(binary.AppendUvarint(dst, m), e.newMetas...)
		dst = append(binary.AppendUvarint(dst, s), e.newSeries...)
		dst = append(binary.AppendUvarint(dst, c), e.changes...)
	}
	return append(binary.AppendUvarint(dst, e.columnNumber), e.column...)
}

// define adds what is new in column to the dictionary, and sets the definitions and
// the column of the frame.
func (e *FrameEncoder) define(kind byte, of Origin, column []*Series) {
	e.newMetas, e.newSeries, e.changes, e.column = reuse(e.newMetas), reuse(e.newSeries), reuse(e.changes), reuse(e.column)
	e.metaCount, e.seriesCount, e.changed = 0, 0, 0
	// The columns of lines and of pushed samples hardly ever come again.
	keep := kind == frameMetrics && of.Source&pushed == 0 && len(column) > 0
	var known *sentColumn
	if keep {
		known = e.columns[of]
	}
	if known != nil && SameColumn(known.series, column) && e.describeAll(known) {
		e.columnNumber = 2 * known.number
		return
	}
	e.columnNumber = 0
	var metas []*Metadata
	if keep {
		if known == nil {
			known = &sentColumn{number: uint64(len(e.columns) + 1)}
			e.columns[of] = known
			e.size += frameEntry
		}
		e.size += frameCell * (len(column) - len(known.series))
		e.columnNumber = 2*known.number + 1
		metas = make([]*Metadata, len(column))
	}
	last := int64(0)
	for i, s := range column {
		m := s.Meta()
		n, ok := e.numbers.Get(s)
		if ok {
			e.describe(n, m)
		} else {
			n = e.addSeries(s, m)
		}
		e.column = binary.AppendVarint(e.column, int64(n)-last-1)
		last = int64(n)
		if keep {
			metas[i] = m
		}
	}
	if keep {
		known.series, known.metas = column, metas
	}
}

// describeAll adds the changes of metadata in a column that the decoder keeps. It
// returns false if the number of a series is not known any more: its handle was
// released and another handle has its ID.
func (e *FrameEncoder) describeAll(c *sentColumn) bool {
	for i, s := range c.series {
		m := s.Meta()
		if m == c.metas[i] {
			continue
		}
		n, ok := e.numbers.Get(s)
		if !ok {
			return false
		}
		e.describe(n, m)
		c.metas[i] = m
	}
	return true
}

// describe adds a change if the decoder has other metadata for series n.
func (e *FrameEncoder) describe(n uint32, m *Metadata) {
	old := e.sent[n-1]
	if old == m {
		return
	}
	e.sent[n-1] = m
	if old != nil && m != nil && *old == *m {
		return
	}
	ref := e.addMeta(m)
	e.changes = binary.AppendUvarint(binary.AppendUvarint(e.changes, uint64(n)), ref)
	e.changed++
}

func (e *FrameEncoder) addSeries(s *Series, m *Metadata) uint32 {
	e.newSeries = s.AppendSized(binary.AppendUvarint(e.newSeries, e.addMeta(m)), 0)
	e.seriesCount++
	e.sent = append(e.sent, m)
	e.size += frameEntry + s.WireSize()
	return e.numbers.Put(s, uint32(len(e.sent)))
}

// addMeta returns the number of m, or 0 if m is nil.
func (e *FrameEncoder) addMeta(m *Metadata) uint64 {
	if m == nil {
		return 0
	}
	ref, ok := e.metas[*m]
	if !ok {
		ref = uint64(len(e.metas) + 1)
		e.metas[*m] = ref
		e.newMetas = appendMeta(e.newMetas, m)
		e.metaCount++
		e.size += frameEntry + m.size()
	}
	return ref
}

// reuse returns the capacity of b, unless an unusually large frame needed it.
func reuse(b []byte) []byte {
	if cap(b) > 1<<20 {
		return nil
	}
	return b[:0]
}

// size returns the length of the strings.
func (m *Metadata) size() int { return len(m.Type) + len(m.Help) + len(m.Unit) + len(m.Family) }

func appendTimes(dst []byte, ts []int64) []byte {
	if len(ts) == 0 {
		return append(dst, 0, 0)
	}
	first := ts[0]
	if !slices.ContainsFunc(ts, func(t int64) bool { return t != first }) {
		return binary.AppendVarint(append(dst, 0), first)
	}
	dst = append(dst, 1)
	last := int64(0)
	for _, t := range ts {
		dst = binary.AppendVarint(dst, t-last)
		last = t
	}
	return dst
}
