// Package valid checks native histograms and exemplars as Prometheus does
// before it stores them. A receiver that checks the same may refuse a whole
// request because of one invalid histogram, so the components of
// prometheus.* drop it first and count it by reason.
package valid

import (
	"errors"

	"github.com/prometheus/prometheus/model/histogram"

	"github.com/weir-run/weir/engine/batch"
)

// Reasons for which native histograms are dropped.
const (
	// HistogramSchema: the schema is neither one of -4 to 8 nor that of custom
	// buckets, which is -53.
	HistogramSchema = "invalid_histogram_schema"
	// HistogramSpans: there are more or fewer buckets than the spans say, or a
	// span begins before the end of the previous one.
	HistogramSpans = "invalid_histogram_spans"
	// HistogramCounts: a count is negative, or the buckets contradict the count
	// of all observations.
	HistogramCounts = "invalid_histogram_counts"
	// HistogramBounds: bounds are not in order, too few, or not allowed; or a
	// histogram with custom buckets has negative or zero buckets.
	HistogramBounds = "invalid_histogram_bounds"
)

// HistogramReasons are all reasons for which native histograms are dropped.
var HistogramReasons = []string{HistogramSchema, HistogramSpans, HistogramCounts, HistogramBounds}

// CheckHistogram returns the error with which Prometheus's storage would refuse
// h, or nil. HistogramReason returns the reason to count it by.
func CheckHistogram(h *batch.Histogram) error {
	if h.Int != nil {
		return h.Int.Validate()
	}
	return h.Float.Validate()
}

// HistogramReason returns the reason for an error of CheckHistogram or
// ReduceHistogram.
func HistogramReason(err error) string {
	for _, e := range []error{
		histogram.ErrHistogramsInvalidSchema, histogram.ErrHistogramsUnknownSchema, histogram.ErrHistogramsIncompatibleSchema,
	} {
		if errors.Is(err, e) {
			return HistogramSchema
		}
	}
	for _, e := range []error{histogram.ErrHistogramSpanNegativeOffset, histogram.ErrHistogramSpansBucketsMismatch} {
		if errors.Is(err, e) {
			return HistogramSpans
		}
	}
	for _, e := range []error{
		histogram.ErrHistogramCountNotBigEnough, histogram.ErrHistogramCountMismatch,
		histogram.ErrHistogramNegativeCount, histogram.ErrHistogramNegativeBucketCount,
	} {
		if errors.Is(err, e) {
			return HistogramCounts
		}
	}
	return HistogramBounds
}

// IsCustom reports whether h has custom buckets, which remote write 1.0 does not
// support.
func IsCustom(h *batch.Histogram) bool {
	if h.Int != nil {
		return h.Int.UsesCustomBuckets()
	}
	return h.Float.UsesCustomBuckets()
}

// ReduceHistogram reduces the resolution of h, in place, if its schema is finer
// than the finest one that storages support, as Prometheus does with received
// histograms. It reports whether it changed h.
func ReduceHistogram(h *batch.Histogram) (reduced bool, err error) {
	const most = histogram.ExponentialSchemaMax
	finer := func(schema int32) bool { return schema > most && histogram.IsExponentialSchemaReserved(schema) }
	switch {
	case h.Int != nil && finer(h.Int.Schema):
		return true, h.Int.ReduceResolution(most)
	case h.Float != nil && finer(h.Float.Schema):
		return true, h.Float.ReduceResolution(most)
	}
	return false, nil
}
