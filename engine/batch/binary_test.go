package batch_test

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/histogram"

	"github.com/weir-run/weir/engine/batch"
)

// metricsAndBack encodes a batch and decodes it again.
func metricsAndBack(want *batch.Metrics) ([]byte, *batch.Metrics, error) {
	data := batch.AppendBinary(nil, want)
	got, err := batch.ParseBinary(data, batch.BinaryOptions{Source: want.Source, Handles: batch.NewInterner(0), Now: epoch})
	return data, got, err
}

func TestBinaryRoundTripsEverything(t *testing.T) {
	for seed := range uint64(3000) {
		want := newRandom(seed).metrics(int(seed % 12))
		one := map[string]*batch.Series{} // equal labels get one handle, and therefore one metadata
		for i, s := range want.Series {
			if first := one[s.String()]; first != nil {
				want.Series[i] = first
			}
			one[s.String()] = want.Series[i]
		}
		data, got, err := metricsAndBack(want)
		if err != nil {
			t.Fatalf("seed %d: %v of %x", seed, err, data)
		}
		if diff := cmp.Diff(want, got, same); diff != "" {
			t.Fatalf("seed %d (-want +got):\n%s", seed, diff)
		}
	}
}

func TestLogsBinaryRoundTripsEverything(t *testing.T) {
	for seed := range uint64(3000) {
		want := newRandom(seed).logs(int(seed % 12))
		if want.Meta != nil && seed%3 == 0 && len(want.Meta[len(want.Meta)-1]) > 0 { // rows may share a slice
			for i := range want.Meta {
				want.Meta[i] = want.Meta[len(want.Meta)-1]
			}
		}
		data := batch.AppendLogsBinary(nil, want)
		got, err := batch.ParseLogsBinary(data, batch.BinaryOptions{Source: want.Source, Handles: batch.NewInterner(0), Now: epoch})
		if err != nil {
			t.Fatalf("seed %d: %v of %x", seed, err, data)
		}
		if diff := cmp.Diff(want, got, same); diff != "" {
			t.Fatalf("seed %d (-want +got):\n%s", seed, diff)
		}
	}
}

// A known series gets the metadata of the batch that was read last. If that
// batch has none, the series keeps its metadata.
func TestBinaryMetadata(t *testing.T) {
	o := batch.BinaryOptions{Handles: batch.NewInterner(0), Now: epoch}
	f := func(meta, want *batch.Metadata) {
		t.Helper()
		s := batch.NewSeries([]batch.Label{{Name: batch.NameLabel, Value: "up"}})
		if meta != nil {
			s.SetMeta(meta)
		}
		data := batch.AppendBinary(nil, &batch.Metrics{Series: []*batch.Series{s}, T: []int64{1}, V: []float64{1}})
		got, err := batch.ParseBinary(data, o)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got.Series[0].Meta()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	gauge := &batch.Metadata{Type: "gauge", Help: "Whether it is up.", Unit: "ups", Family: "up"}
	counter := &batch.Metadata{Type: "counter"}
	f(nil, nil)
	f(gauge, gauge)
	f(nil, gauge)
	f(counter, counter)
}

// Every truncation and every changed byte gives an error or another batch,
// never a panic. An unknown version gives a clear error.
func TestBinaryIsNotTrusted(t *testing.T) {
	o := batch.BinaryOptions{Handles: batch.NewInterner(0), Now: epoch}
	metrics := batch.AppendBinary(nil, newRandom(7).metrics(9))
	logs := batch.AppendLogsBinary(nil, newRandom(8).logs(9))
	for _, data := range [][]byte{metrics, logs} {
		for cut := range data {
			if _, err := batch.ParseBinary(data[:cut], o); err == nil {
				t.Fatalf("metrics of %d bytes were read", cut)
			}
			if _, err := batch.ParseLogsBinary(data[:cut], o); err == nil {
				t.Fatalf("logs of %d bytes were read", cut)
			}
			for bit := range 8 {
				broken := append([]byte(nil), data...)
				broken[cut] ^= 1 << bit
				_, _ = batch.ParseBinary(broken, o)
				_, _ = batch.ParseLogsBinary(broken, o)
			}
		}
	}
	metrics[0] = 9
	if _, err := batch.ParseBinary(metrics, o); err == nil || !strings.Contains(err.Error(), "in binary form 9: this weir knows 1") {
		t.Errorf("got %v", err)
	}
}

func FuzzBinary(f *testing.F) {
	for seed := range uint64(30) {
		r := newRandom(seed)
		f.Add(batch.AppendBinary(nil, r.metrics(5)))
		f.Add(batch.AppendLogsBinary(nil, r.logs(5)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		o := batch.BinaryOptions{Handles: batch.NewInterner(0), Now: epoch}
		defer o.Handles.Clear()
		if b, err := batch.ParseBinary(data, o); err == nil {
			again, err := batch.ParseBinary(batch.AppendBinary(nil, b), o)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(b, again, same); diff != "" {
				t.Fatalf("(-first +second):\n%s", diff)
			}
			batch.AppendText(nil, b)
		}
		if b, err := batch.ParseLogsBinary(data, o); err == nil {
			again, err := batch.ParseLogsBinary(batch.AppendLogsBinary(nil, b), o)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(b, again, same); diff != "" {
				t.Fatalf("(-first +second):\n%s", diff)
			}
		}
	})
}

// A hostile target may send a histogram with inconsistent buckets. It was
// accepted, so it must be decoded unchanged.
func TestBinaryKeepsHistogramsThatDoNotAddUp(t *testing.T) {
	f := func(h batch.Histogram) {
		t.Helper()
		s := batch.NewSeries([]batch.Label{{Name: batch.NameLabel, Value: "h"}})
		want := &batch.Metrics{Series: []*batch.Series{s}, T: []int64{1}, V: []float64{1}, Histograms: []batch.Histogram{h}}
		data, got, err := metricsAndBack(want)
		if err != nil {
			t.Fatalf("%v of %x", err, data)
		}
		if diff := cmp.Diff(want, got, same); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	many := []histogram.Span{{Offset: math.MinInt32, Length: math.MaxUint32}, {Offset: math.MaxInt32}, {Length: math.MaxUint32}}
	f(batch.Histogram{Int: &histogram.Histogram{PositiveSpans: many, NegativeBuckets: []int64{math.MinInt64, math.MaxInt64}}})
	f(batch.Histogram{Int: &histogram.Histogram{PositiveBuckets: []int64{1}, NegativeSpans: many, Schema: math.MinInt32}})
	f(batch.Histogram{Int: &histogram.Histogram{CounterResetHint: 255, Schema: histogram.CustomBucketsSchema}})
	f(batch.Histogram{Float: &histogram.FloatHistogram{PositiveSpans: many, NegativeBuckets: []float64{1, math.Inf(-1)}}})
	f(batch.Histogram{Float: &histogram.FloatHistogram{CustomValues: []float64{3, 1}, NegativeSpans: many, CounterResetHint: 4, Schema: math.MaxInt32}})
}
