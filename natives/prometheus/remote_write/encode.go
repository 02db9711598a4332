package remotewrite

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"

	"github.com/prometheus/prometheus/prompb"
)

// The encoder for the messages of remote write 1.0. The labels of a series are
// already encoded, and a sample has a fixed format, so encoding a sample is a
// copy. Rare parts are encoded by prompb.
//
//	WriteRequest { repeated TimeSeries timeseries = 1; repeated MetricMetadata metadata = 3 }
//	TimeSeries   { repeated Label labels = 1; repeated Sample samples = 2;
//	               repeated Exemplar exemplars = 3; repeated Histogram histograms = 4 }
//	Sample       { double value = 1; int64 timestamp = 2 }
//
// Format: https://prometheus.io/docs/specs/prw/remote_write_spec/

// appendV1 appends a row to a WriteRequest. scratch is working memory.
func appendV1(dst, scratch []byte, r *row) (_, _ []byte, err error) {
	if r.h == nil && len(r.exemplars) == 0 {
		return appendSample(dst, r), scratch, nil
	}
	return appendSeries(dst, scratch, r)
}

// appendSample appends a TimeSeries of one sample to a WriteRequest.
func appendSample(dst []byte, r *row) []byte {
	n := sampleSize(r.t)
	dst = r.appendSized(append(dst, 0x0a), 2+n)
	return appendSampleField(dst, n, r.t, r.v)
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

// appendSeries appends a TimeSeries with rare parts: a histogram instead of the
// sample, and exemplars.
func appendSeries(dst, scratch []byte, r *row) (_, _ []byte, err error) {
	body := r.appendWire(scratch[:0])
	if r.h == nil {
		body = appendSampleField(body, sampleSize(r.t), r.t, r.v)
	}
	for i := range r.exemplars {
		e := &r.exemplars[i]
		pb := prompb.Exemplar{Value: e.Value, Timestamp: r.exemplarTime(e)}
		for _, l := range e.Labels {
			pb.Labels = append(pb.Labels, prompb.Label{Name: l.Name, Value: l.Value})
		}
		if body, err = appendMessage(body, 0x1a, &pb); err != nil {
			return dst, body, err
		}
	}
	if r.h != nil {
		var pb prompb.Histogram
		if r.h.Int != nil {
			pb = prompb.FromIntHistogram(r.t, r.h.Int)
		} else {
			pb = prompb.FromFloatHistogram(r.t, r.h.Float)
		}
		if body, err = appendMessage(body, 0x22, &pb); err != nil {
			return dst, body, err
		}
	}
	dst = append(dst, 0x0a)
	dst = appendUvarint(dst, uint64(len(body)))
	return append(dst, body...), body, nil
}

// generated is a generated protobuf type.
type generated interface {
	Size() int
	MarshalToSizedBuffer([]byte) (int, error)
}

func appendMessage(dst []byte, tag byte, m generated) ([]byte, error) {
	n := m.Size()
	dst = append(dst, tag)
	dst = appendUvarint(dst, uint64(n))
	dst = slices.Grow(dst, n)
	end := len(dst)
	_, err := m.MarshalToSizedBuffer(dst[end : end+n])
	return dst[:end+n], err
}
