package remotewrite

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
	"github.com/prometheus/prometheus/prompb"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/natives/prometheus/rule"
)

// The messages of remote write 1.0, as far as they are written here. Labels
// come encoded from the series, and a sample is a fixed form, so that a sample
// costs a copy; the rare parts are left to prompb.
//
//	WriteRequest { repeated TimeSeries timeseries = 1; repeated MetricMetadata metadata = 3 }
//	TimeSeries   { repeated Label labels = 1; repeated Sample samples = 2;
//	               repeated Exemplar exemplars = 3; repeated Histogram histograms = 4 }
//	Sample       { double value = 1; int64 timestamp = 2 }
//
// Format: https://prometheus.io/docs/specs/prw/remote_write_spec/

// appendSample appends a TimeSeries of one sample to a WriteRequest.
func appendSample(dst []byte, wire string, t int64, v float64) []byte {
	n := sampleSize(t)
	dst = append(dst, 0x0a)
	dst = appendUvarint(dst, uint64(len(wire)+2+n))
	dst = append(dst, wire...)
	return appendSampleField(dst, n, t, v)
}

// appendSampleField appends field 2 of a TimeSeries; n is sampleSize(t).
func appendSampleField(dst []byte, n int, t int64, v float64) []byte {
	dst = append(dst, 0x12, byte(n), 0x09)
	dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(v))
	dst = append(dst, 0x10)
	return appendUvarint(dst, uint64(t))
}

func sampleSize(t int64) int { return 1 + 8 + 1 + uvarintSize(uint64(t)) }

func appendUvarint(dst []byte, v uint64) []byte {
	for v >= 0x80 {
		dst = append(dst, byte(v)|0x80)
		v >>= 7
	}
	return append(dst, byte(v))
}

func uvarintSize(v uint64) int { return (bits.Len64(v|1) + 6) / 7 }

// appendSeries appends a TimeSeries with what is rare: a histogram, which h
// has, in place of the sample, and exemplars. scratch is memory to work in.
func appendSeries(dst, scratch []byte, wire string, t int64, v float64, h *batch.Histogram, es []batch.Exemplar) (_, _ []byte, err error) {
	body := append(scratch[:0], wire...)
	if h == nil {
		body = appendSampleField(body, sampleSize(t), t, v)
	}
	for i := range es {
		e := &es[i]
		at := t
		if e.HasT {
			at = e.T
		}
		pb := prompb.Exemplar{Value: e.Value, Timestamp: at}
		for _, l := range e.Labels {
			pb.Labels = append(pb.Labels, prompb.Label{Name: l.Name, Value: l.Value})
		}
		if body, err = appendMessage(body, 0x1a, &pb); err != nil {
			return dst, body, err
		}
	}
	if h != nil {
		var pb prompb.Histogram
		if h.Int != nil {
			pb = prompb.FromIntHistogram(t, h.Int)
		} else {
			pb = prompb.FromFloatHistogram(t, h.Float)
		}
		if body, err = appendMessage(body, 0x22, &pb); err != nil {
			return dst, body, err
		}
	}
	dst = append(dst, 0x0a)
	dst = appendUvarint(dst, uint64(len(body)))
	return append(dst, body...), body, nil
}

// message is a generated protobuf type.
type message interface {
	Size() int
	MarshalToSizedBuffer([]byte) (int, error)
}

func appendMessage(dst []byte, tag byte, m message) ([]byte, error) {
	n := m.Size()
	dst = append(dst, tag)
	dst = appendUvarint(dst, uint64(n))
	dst = slices.Grow(dst, n)
	end := len(dst)
	_, err := m.MarshalToSizedBuffer(dst[end : end+n])
	return dst[:end+n], err
}

// labeler turns the labels of a series into those that are sent, once for each
// series.
type labeler struct {
	external []batch.Label // sorted by name
	rules    []*relabel.Config
	memo     batch.Memo[string] // wire form; "" means dropped
}

// newLabeler returns nil when labels are sent as they are.
func newLabeler(external map[string]string, rules []*rule.Rule) *labeler {
	l := &labeler{rules: rule.Configs(rules)}
	for n, v := range external {
		if v != "" {
			l.external = append(l.external, batch.Label{Name: n, Value: v})
		}
	}
	if len(l.external) == 0 && len(rules) == 0 {
		return nil
	}
	slices.SortFunc(l.external, func(a, b batch.Label) int { return strings.Compare(a.Name, b.Name) })
	return l
}

// wire returns the labels to send, in the form of Series.Wire, "" when the
// series is not sent.
func (l *labeler) wire(s *batch.Series) string {
	if w, ok := l.memo.Get(s); ok {
		return w
	}
	return l.memo.Put(s, l.derive(s))
}

func (l *labeler) derive(s *batch.Series) string {
	var b batch.Builder
	b.Reset(s)
	for _, e := range l.external {
		if b.Get(e.Name) == "" {
			b.Set(e.Name, e.Value)
		}
	}
	if len(l.rules) > 0 {
		in := labels.NewScratchBuilder(16)
		for _, lb := range b.Labels() {
			in.Add(lb.Name, lb.Value)
		}
		lb := labels.NewBuilder(in.Labels())
		if !relabel.ProcessBuilder(lb, l.rules...) {
			return ""
		}
		b.Reset(nil)
		lb.Labels().Range(func(l labels.Label) { b.Set(l.Name, l.Value) })
	}
	if b.Matches(s) {
		return s.Wire() // shares the memory
	}
	// Only the encoding is wanted; the handle would cost more than its labels.
	d := batch.NewSeries(b.Labels())
	defer d.Release()
	return d.Wire()
}
