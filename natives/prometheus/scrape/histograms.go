package scrape

import (
	"fmt"

	"github.com/prometheus/prometheus/model/histogram"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/natives/prometheus/internal/valid"
)

// Reasons why the resolution of a native histogram was reduced.
const (
	reducedByFactor = "min_bucket_factor"
	reducedByLimit  = "bucket_limit"
)

// reduce reduces the resolution of a native histogram as the settings require. It
// returns false if the histogram is dropped.
func (in *intake) reduce(h *histogram.Histogram, fh *histogram.FloatHistogram) bool {
	switch {
	case h != nil && isReplaced(h.PositiveSpans) || fh != nil && isReplaced(fh.PositiveSpans):
		in.reject(histogram.ErrHistogramSpansBucketsMismatch)
		return false
	case h != nil:
		return in.reduceTo(h.Schema, func() int { return len(h.PositiveBuckets) + len(h.NegativeBuckets) }, h.ReduceResolution)
	case fh != nil:
		return in.reduceTo(fh.Schema, func() int { return len(fh.PositiveBuckets) + len(fh.NegativeBuckets) }, fh.ReduceResolution)
	}
	return true
}

func (in *intake) reduceTo(schema int32, buckets func() int, reduce func(int32) error) bool {
	if most := in.set.maxSchema; most < histogram.ExponentialSchemaMax && histogram.IsExponentialSchemaReserved(schema) && schema > most {
		if err := reduce(most); err != nil {
			in.reject(err)
			return false
		}
		schema = most
		count(&in.reduced, reducedByFactor)
	}
	limit := int(in.set.cfg.NativeHistogramBucketLimit)
	if limit == 0 || buckets() <= limit {
		return true
	}
	for buckets() > limit {
		if !histogram.IsExponentialSchema(schema) || schema <= histogram.ExponentialSchemaMin {
			in.bucketErr = errBucketLimit
			return false
		}
		schema--
		if err := reduce(schema); err != nil {
			in.reject(err)
			return false
		}
	}
	count(&in.reduced, reducedByLimit)
	return true
}

// valid reports whether Prometheus's storage would accept a native histogram, and
// counts the reason if not. Prometheus then fails the whole scrape; weir keeps
// the other samples.
func (in *intake) valid(h *histogram.Histogram, fh *histogram.FloatHistogram) bool {
	if h == nil && fh == nil {
		return true
	}
	err := valid.CheckHistogram(&batch.Histogram{Int: h, Float: fh})
	if err != nil {
		in.reject(err)
	}
	return err == nil
}

// reject counts a native histogram that is dropped.
func (in *intake) reject(err error) {
	count(&in.invalid, valid.HistogramReason(err))
	if in.invalidErr == nil {
		in.invalidErr = fmt.Errorf("%s: %w", in.lset, err)
	}
}
