package scrape

import (
	"encoding/binary"
	"math"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/prometheus/model/histogram"
	"google.golang.org/protobuf/proto"

	"github.com/weir-run/weir/engine/wire"
)

// If the spans of a native histogram do not match its buckets, textparse stops
// with an error. Such a histogram is replaced by one that textparse accepts and
// the check of histograms refuses, so that only this histogram is dropped.

// mismatchOffset is the offset of the second span of a replacement.
const mismatchOffset = math.MinInt32

// isReplaced reports whether a histogram is a replacement for one whose spans do
// not match its buckets.
func isReplaced(spans []histogram.Span) bool {
	return len(spans) == 2 && spans[1].Offset == mismatchOffset
}

// replaceMismatches returns a body in protobuf format with such histograms
// replaced. ok is false if there are none.
func replaceMismatches(b []byte) (out []byte, ok bool) {
	from := 0 // everything before from was copied
	c := wire.Read(b)
	for c.More() {
		start := c.Offset()
		family := c.Bytes()
		if !c.OK() || !hasMismatch(family) {
			continue
		}
		var f dto.MetricFamily
		if proto.Unmarshal(family, &f) != nil {
			continue // textparse will return the error
		}
		for _, m := range f.Metric {
			if h := m.Histogram; h != nil && spansMismatch(h) {
				h.NegativeSpan, h.NegativeDelta, h.NegativeCount = nil, nil, nil
				h.PositiveSpan = []*dto.BucketSpan{{Length: new(uint32(1))}, {Offset: new(int32(mismatchOffset)), Length: new(uint32(1))}}
				h.PositiveDelta, h.PositiveCount = []int64{1, 0}, []float64{1, 1}
			}
		}
		fixed, err := proto.Marshal(&f)
		if err != nil {
			continue
		}
		out = append(out, b[from:start]...)
		out = append(binary.AppendUvarint(out, uint64(len(fixed))), fixed...)
		from = c.Offset()
	}
	if out == nil {
		return nil, false
	}
	return append(out, b[from:]...), true
}

// spansMismatch reports whether textparse refuses h.
func spansMismatch(h *dto.Histogram) bool {
	positive, negative := len(h.PositiveDelta), len(h.NegativeDelta)
	if h.GetSampleCountFloat() > 0 || h.GetZeroCountFloat() > 0 {
		positive, negative = len(h.PositiveCount), len(h.NegativeCount)
	}
	total := func(spans []*dto.BucketSpan) (n int) {
		for _, s := range spans {
			n += int(s.GetLength())
		}
		return n
	}
	native := len(h.PositiveSpan) > 0 || len(h.NegativeSpan) > 0 || h.GetZeroThreshold() > 0 || h.GetZeroCount() > 0
	return native && (total(h.PositiveSpan) != positive || total(h.NegativeSpan) != negative)
}

// hasMismatch reports whether a metric of a family may have spans that do not
// match its buckets. It decodes only the fields that it needs:
//
//	MetricFamily { repeated Metric metric = 4 }
//	Metric { Histogram histogram = 7 }
func hasMismatch(family []byte) bool {
	c := wire.Read(family)
	for c.More() {
		num, typ := c.Field()
		if num != 4 || typ != wire.Bytes {
			c.Skip(typ)
			continue
		}
		m := wire.Read(c.Bytes())
		for m.More() {
			num, typ := m.Field()
			if num != 7 || typ != wire.Bytes {
				m.Skip(typ)
			} else if mayMismatch(m.Bytes()) {
				return true
			}
		}
	}
	return false
}

// side contains the numbers of entries for the positive or the negative side of a
// histogram.
type side struct{ spans, deltas, counts int }

// matches reports whether the spans match the deltas (integer histogram) or the
// counts (float histogram).
func (s side) matches() bool {
	return s.spans == s.deltas && s.counts == 0 || s.spans == s.counts && s.deltas == 0
}

// mayMismatch reads these fields of a histogram:
//
//	Histogram { repeated BucketSpan negative_span = 9; repeated sint64 negative_delta = 10; repeated double negative_count = 11;
//	            repeated BucketSpan positive_span = 12; repeated sint64 positive_delta = 13; repeated double positive_count = 14 }
//	BucketSpan { sint32 offset = 1; uint32 length = 2 }
func mayMismatch(h []byte) bool {
	var sides [2]side
	c := wire.Read(h)
	for c.More() {
		num, typ := c.Field()
		if num < 9 || num > 14 {
			c.Skip(typ)
			continue
		}
		s := &sides[(num-9)/3]
		switch num {
		case 9, 12:
			if typ != wire.Bytes {
				return true
			}
			span := wire.Read(c.Bytes())
			length := 0
			for span.More() {
				if num, typ := span.Field(); num == 2 && typ == wire.Varint {
					length = int(uint32(span.Varint()))
				} else {
					span.Skip(typ)
				}
			}
			s.spans += length
		case 10, 13:
			if typ != wire.Bytes {
				s.deltas++
				c.Skip(typ)
				continue
			}
			for _, x := range c.Bytes() {
				if x < 0x80 {
					s.deltas++
				}
			}
		default:
			if typ != wire.Bytes {
				s.counts++
				c.Skip(typ)
				continue
			}
			s.counts += len(c.Bytes()) / 8
		}
	}
	return !sides[0].matches() || !sides[1].matches()
}
