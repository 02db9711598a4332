package remotewrite

import (
	"iter"
	"slices"

	"github.com/weir-run/weir/engine/batch"
)

// row is one sample or histogram to be sent, with its labels and exemplars.
type row struct {
	series    *batch.Series
	wire      string // labels that are sent instead of those of the series; "" if there are none
	t         int64
	v         float64
	start     int64            // start timestamp, 0 if unknown
	h         *batch.Histogram // nil for a float sample
	exemplars []batch.Exemplar
}

// appendSized appends the number of bytes that appendWire appends, plus extra, as
// a varint, and then calls appendWire.
func (r *row) appendSized(dst []byte, extra int) []byte {
	if r.wire == "" {
		return r.series.AppendSized(dst, extra)
	}
	return append(appendUvarint(dst, uint64(len(r.wire)+extra)), r.wire...)
}

// appendWire appends the encoded labels that are sent.
func (r *row) appendWire(dst []byte) []byte {
	if r.wire == "" {
		return r.series.AppendWire(dst)
	}
	return append(dst, r.wire...)
}

// labels yields the labels that are sent.
func (r *row) labels() iter.Seq2[string, string] {
	if r.wire == "" {
		return r.series.Labels()
	}
	return batch.WireLabels(r.wire)
}

// exemplarTime returns the time of an exemplar. The default is the time of its
// sample.
func (r *row) exemplarTime(e *batch.Exemplar) int64 {
	if e.HasT {
		return e.T
	}
	return r.t
}

// sparse reads the sparse columns of a batch row by row.
type sparse struct {
	histograms []batch.Histogram
	exemplars  []batch.Exemplar
	starts     []batch.Start
}

func newSparse(b *batch.Metrics) sparse {
	return sparse{b.Histograms, b.Exemplars, b.Starts}
}

// fill sets the fields of r from the sparse columns of row i. It must be called
// with increasing i.
func (c *sparse) fill(r *row, i int) {
	for len(c.histograms) > 0 && c.histograms[0].Row < i {
		c.histograms = c.histograms[1:]
	}
	if len(c.histograms) > 0 && c.histograms[0].Row == i {
		r.h = &c.histograms[0]
	}
	for len(c.exemplars) > 0 && c.exemplars[0].Row < i {
		c.exemplars = c.exemplars[1:]
	}
	if n := slices.IndexFunc(c.exemplars, func(e batch.Exemplar) bool { return e.Row != i }); n >= 0 {
		r.exemplars = c.exemplars[:n]
	} else {
		r.exemplars = c.exemplars
	}
	for len(c.starts) > 0 && c.starts[0].Row < i {
		c.starts = c.starts[1:]
	}
	if len(c.starts) > 0 && c.starts[0].Row == i {
		r.start = c.starts[0].T
	}
}
