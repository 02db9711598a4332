package batch

import (
	"math"

	"github.com/prometheus/prometheus/model/histogram"
)

// Signals is a set of kinds of telemetry.
type Signals uint8

// The signals, as bits.
const (
	SignalMetrics Signals = 1 << iota
	SignalLogs
)

// String returns the set as text: "metrics", "logs", "metrics and logs",
// "nothing".
func (s Signals) String() string {
	switch s {
	case SignalMetrics:
		return "metrics"
	case SignalLogs:
		return "logs"
	case SignalMetrics | SignalLogs:
		return "metrics and logs"
	}
	return "nothing"
}

// StaleNaN is the bit pattern of a staleness marker. Copy the bits: arithmetic
// turns it into an ordinary NaN.
const StaleNaN uint64 = 0x7ff0000000000002

// Stale returns a staleness marker.
func Stale() float64 { return math.Float64frombits(StaleNaN) }

// IsStale reports whether v is a staleness marker.
func IsStale(v float64) bool { return math.Float64bits(v) == StaleNaN }

// Metrics is a batch of samples in columns. Row i is sample V[i] of Series[i]
// at T[i]. These three dense columns have equal length. The sparse columns are
// sorted by Row, and are nil if they are empty.
type Metrics struct {
	// Source identifies where the batch originates: a scrape target or a pushing
	// client. Batches of one Source are sent one after another, so the samples of
	// a series stay in the order of its Source's batches. NewSource returns a new
	// Source.
	Source uint64
	// Way distinguishes the paths on which batches of one Source reach a node: the
	// receivers of a fan-out may change a batch differently and send the results
	// to the same node. It is 0 at the Source, and changes with every receiver.
	Way uint64

	Series []*Series
	T      []int64   // Unix ms
	V      []float64 // stored as bits, so that staleness markers do not change; a histogram's row has its Sum here

	Histograms []Histogram // at most one per row
	Exemplars  []Exemplar  // any number per row, in time order
	Starts     []Start     // at most one per row
}

// Histogram is the native histogram of a row. Exactly one of Int and Float is
// set. Both are immutable.
type Histogram struct {
	Row   int
	Int   *histogram.Histogram
	Float *histogram.FloatHistogram
}

// Exemplar is an exemplar of a row's sample.
type Exemplar struct {
	Row    int
	Labels []Label // sorted by name
	Value  float64
	T      int64 // Unix ms; 0 when HasT is false
	HasT   bool
}

// Start is a row's start timestamp, also called created timestamp: the time
// when the counter or histogram began to count.
type Start struct {
	Row int
	T   int64 // Unix ms
}

// Origin identifies a sequence of batches. For a scrape target, each batch of
// its Origin contains all its series and no other series.
type Origin struct{ Source, Way uint64 }

// Origin returns the Source and Way of b.
func (b *Metrics) Origin() Origin { return Origin{b.Source, b.Way} }

// Along returns the batch as it is sent to the receiver with the given number:
// with a new Way. All columns are shared.
func (b *Metrics) Along(receiver uint64) *Metrics {
	c := *b
	c.Way = nextWay(b.Way, receiver)
	return &c
}

func nextWay(way, receiver uint64) uint64 {
	h := (way ^ receiver) * 0x9e3779b97f4a7c15
	return h ^ h>>29
}

// Len returns the number of rows.
func (b *Metrics) Len() int { return len(b.Series) }

// Bytes returns an estimate of the uncompressed size of the batch in remote write: the
// labels of each sample, 16 bytes for its value and time, and 8 bytes for each bucket
// of a native histogram. It takes about 40 ns per sample.
func (b *Metrics) Bytes() (n int) {
	for _, s := range b.Series {
		n += s.WireSize() + 16
	}
	for _, h := range b.Histograms {
		if h.Int != nil {
			n += 8 * (len(h.Int.PositiveBuckets) + len(h.Int.NegativeBuckets))
		} else if h.Float != nil {
			n += 8 * (len(h.Float.PositiveBuckets) + len(h.Float.NegativeBuckets))
		}
	}
	return n
}
