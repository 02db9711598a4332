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

// String returns the set in words: "metrics", "logs", "metrics and logs", "nothing".
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

// StaleNaN is the bit pattern of a staleness marker. It must be kept as bits:
// arithmetic turns it into an ordinary NaN.
const StaleNaN uint64 = 0x7ff0000000000002

// Stale returns a staleness marker.
func Stale() float64 { return math.Float64frombits(StaleNaN) }

// IsStale reports whether v is a staleness marker.
func IsStale(v float64) bool { return math.Float64bits(v) == StaleNaN }

// Metrics is a batch of samples in columns: row i is sample V[i] of Series[i]
// at T[i]. The three dense columns have equal length. The sparse columns are
// sorted by Row; nil when there is nothing in them.
type Metrics struct {
	// Source tells where the batch began: a scrape target, a pushing client.
	// Batches of one Source are sent one after the other, so the order of a
	// series is the order of its Source's batches. NewSource makes them.
	Source uint64
	// Way tells what comes from one Source by different ways apart: receivers
	// of a fan-out may make something else of it each and send it to one node.
	// It is 0 where the batch began, and changes with every receiver.
	Way uint64

	Series []*Series
	T      []int64   // Unix ms
	V      []float64 // bit patterns: a staleness marker must leave as it came. A histogram's row has its Sum here.

	Histograms []Histogram // at most one a row
	Exemplars  []Exemplar  // several a row are possible, in time order
	Starts     []Start     // at most one a row
}

// Histogram is the native histogram of a row: exactly one of Int and Float is
// set. Neither is ever written to.
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

// Start is a row's start timestamp, also called created timestamp: when the
// counter or histogram began to count.
type Start struct {
	Row int
	T   int64 // Unix ms
}

// Origin is what a batch is one of a sequence of: a scrape sends it one batch
// after the other, each with all its series, and none of another Origin's.
type Origin struct{ Source, Way uint64 }

// Origin returns the batch's.
func (b *Metrics) Origin() Origin { return Origin{b.Source, b.Way} }

// Along returns the batch as it goes to a receiver that is known by a number.
// All columns are shared.
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
