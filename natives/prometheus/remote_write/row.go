package remotewrite

import (
	"iter"
	"slices"

	"github.com/weir-run/weir/engine/batch"
)

// row is one sample to be sent, or what stands in its place, with all that
// belongs to it.
type row struct {
	series    *batch.Series
	wire      string // labels that are sent in place of the series' own, "" for those
	t         int64
	v         float64
	start     int64            // start timestamp, 0 for none
	h         *batch.Histogram // nil for a float sample
	exemplars []batch.Exemplar
}

// appendSized appends, as a varint, how many bytes appendWire appends and extra
// more, and then what appendWire does.
func (r *row) appendSized(dst []byte, extra int) []byte {
	if r.wire == "" {
		return r.series.AppendSized(dst, extra)
	}
	return append(appendUvarint(dst, uint64(len(r.wire)+extra)), r.wire...)
}

// appendWire appends the labels that are sent, encoded.
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

// exemplarTime returns when an exemplar was: with its sample unless it says.
func (r *row) exemplarTime(e *batch.Exemplar) int64 {
	if e.HasT {
		return e.T
	}
	return r.t
}

// sparse reads a batch's sparse columns row after row.
type sparse struct {
	histograms []batch.Histogram
	exemplars  []batch.Exemplar
	starts     []batch.Start
}

func newSparse(b *batch.Metrics) sparse {
	return sparse{b.Histograms, b.Exemplars, b.Starts}
}

// fill sets what r has in row i of the batch. Rows are asked for in order.
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
