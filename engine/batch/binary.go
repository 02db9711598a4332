package batch

import (
	"encoding/binary"
	"math"

	"github.com/prometheus/prometheus/model/histogram"
)

// Queues on disk store batches in binary form. It contains everything except
// the Origin, and does not record which of several equal series had which
// handle. Writing and reading it costs a fraction of the text form. Numbers are
// varints, signed numbers are in zigzag encoding, floats are stored as bits in
// little endian, and strings are preceded by their length.
//
//	metrics: version rows row* histogram-cells exemplar-cells start-cells
//	  row:   metadata (0: none; k: the k-th of the batch; the number of known
//	         ones plus 1: a new one, which follows) size wire time-delta value
//	  cells: their number, then each with the distance from the row of the
//	         previous cell to its own
//	logs:    version rows row*
//	  row:   stream (as metadata above, without 0) time-delta
//	         metadata (0: none, 1: that of the previous row, n+2: n labels) line
const binaryVersion = 1

// AppendBinary appends b in binary form to dst. ParseBinary reads it back.
func AppendBinary(dst []byte, b *Metrics) []byte {
	dst = binary.AppendUvarint(append(dst, binaryVersion), uint64(b.Len()))
	var last *Metadata // most rows have the family of the previous row
	lastRef, refs, t := uint64(0), map[*Metadata]uint64(nil), int64(0)
	for i, s := range b.Series {
		m := s.Meta()
		if m == last {
			dst = binary.AppendUvarint(dst, lastRef)
		} else {
			ref, known := refs[m]
			if !known && m != nil {
				if refs == nil {
					refs = map[*Metadata]uint64{}
				}
				ref = uint64(len(refs) + 1)
				refs[m] = ref
			}
			dst = binary.AppendUvarint(dst, ref)
			if !known && m != nil {
				dst = appendMeta(dst, m)
			}
			last, lastRef = m, ref
		}
		dst = s.AppendSized(dst, 0)
		dst = binary.AppendVarint(dst, b.T[i]-t)
		t = b.T[i]
		dst = appendBits(dst, b.V[i])
	}
	return appendCells(dst, b)
}

func appendMeta(dst []byte, m *Metadata) []byte {
	return appendString(appendString(appendString(appendString(dst, string(m.Type)), m.Help), m.Unit), m.Family)
}

// appendCells appends the sparse columns.
func appendCells(dst []byte, b *Metrics) []byte {
	row := 0
	cell := func(at int) {
		dst = binary.AppendUvarint(dst, uint64(at-row))
		row = at
	}
	dst = binary.AppendUvarint(dst, uint64(len(b.Histograms)))
	for i := range b.Histograms {
		cell(b.Histograms[i].Row)
		dst = appendBinaryHistogram(dst, &b.Histograms[i])
	}
	dst, row = binary.AppendUvarint(dst, uint64(len(b.Exemplars))), 0
	for i := range b.Exemplars {
		e := &b.Exemplars[i]
		cell(e.Row)
		dst = appendBinaryLabels(dst, e.Labels, 0)
		dst = appendBits(dst, e.Value)
		if e.HasT {
			dst = binary.AppendVarint(append(dst, 1), e.T)
		} else {
			dst = append(dst, 0)
		}
	}
	dst, row = binary.AppendUvarint(dst, uint64(len(b.Starts))), 0
	for _, s := range b.Starts {
		cell(s.Row)
		dst = binary.AppendVarint(dst, s.T)
	}
	return dst
}

// AppendLogsBinary appends b in binary form to dst. ParseLogsBinary reads it
// back.
func AppendLogsBinary(dst []byte, b *Logs) []byte {
	dst = binary.AppendUvarint(append(dst, binaryVersion), uint64(b.Len()))
	refs := map[*Stream]uint64{}
	var last *Stream
	var meta []Label
	lastRef, t := uint64(0), int64(0)
	for i, s := range b.Stream {
		known := s == last && i > 0
		if !known {
			if lastRef, known = refs[s]; !known {
				lastRef = uint64(len(refs) + 1)
				refs[s] = lastRef
			}
			last = s
		}
		dst = binary.AppendUvarint(dst, lastRef)
		if !known {
			dst = s.AppendSized(dst, 0)
		}
		dst = binary.AppendVarint(dst, b.T[i]-t)
		t = b.T[i]
		dst, meta = appendBinaryLine(dst, b, i, meta)
	}
	return dst
}

// appendBinaryLine appends the metadata and the line of a row. meta is the last metadata
// that was appended; appendBinaryLine returns it for the next row.
func appendBinaryLine(dst []byte, b *Logs, i int, meta []Label) ([]byte, []Label) {
	switch m := b.MetaOf(i); {
	case len(m) == 0:
		dst = append(dst, 0)
	case len(m) == len(meta) && &m[0] == &meta[0]:
		dst = append(dst, 1)
	default:
		dst = appendBinaryLabels(dst, m, 2)
		meta = m
	}
	return appendString(dst, b.Line[i]), meta
}

func appendString(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

func appendBits(dst []byte, v float64) []byte {
	return binary.LittleEndian.AppendUint64(dst, math.Float64bits(v))
}

// appendBinaryLabels appends the number of labels plus more, and the labels.
func appendBinaryLabels(dst []byte, ls []Label, more int) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(ls)+more))
	for _, l := range ls {
		dst = appendString(appendString(dst, l.Name), l.Value)
	}
	return dst
}

// appendBinaryHistogram appends whether counts are floats, the counter reset
// hint, schema, zero threshold, sum, custom values, count and zero count. Then
// it appends the spans and the buckets of each side.
func appendBinaryHistogram(dst []byte, h *Histogram) []byte {
	if i := h.Int; i != nil {
		dst = append(dst, 0, byte(i.CounterResetHint))
		dst = appendShape(dst, i.Schema, i.ZeroThreshold, i.Sum, i.CustomValues)
		dst = binary.AppendUvarint(binary.AppendUvarint(dst, i.Count), i.ZeroCount)
		dst = appendCounts(appendSpans(dst, i.PositiveSpans), i.PositiveBuckets, binary.AppendVarint)
		return appendCounts(appendSpans(dst, i.NegativeSpans), i.NegativeBuckets, binary.AppendVarint)
	}
	f := h.Float
	dst = append(dst, 1, byte(f.CounterResetHint))
	dst = appendShape(dst, f.Schema, f.ZeroThreshold, f.Sum, f.CustomValues)
	dst = appendBits(appendBits(dst, f.Count), f.ZeroCount)
	dst = appendCounts(appendSpans(dst, f.PositiveSpans), f.PositiveBuckets, appendBits)
	return appendCounts(appendSpans(dst, f.NegativeSpans), f.NegativeBuckets, appendBits)
}

func appendShape(dst []byte, schema int32, zero, sum float64, custom []float64) []byte {
	dst = appendBits(appendBits(binary.AppendVarint(dst, int64(schema)), zero), sum)
	return appendCounts(dst, custom, appendBits)
}

func appendSpans(dst []byte, spans []histogram.Span) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(spans)))
	for _, s := range spans {
		dst = binary.AppendUvarint(binary.AppendVarint(dst, int64(s.Offset)), uint64(s.Length))
	}
	return dst
}

func appendCounts[N int64 | float64](dst []byte, ns []N, one func([]byte, N) []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(ns)))
	for _, n := range ns {
		dst = one(dst, n)
	}
	return dst
}
