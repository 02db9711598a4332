package remotewrite_test

import (
	"math"
	"strings"
	"testing"
	"time"

	remoteapi "github.com/prometheus/client_golang/exp/api/remote"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/tsdb/tsdbutil"

	"github.com/weir-run/weir/engine/batch"
)

// withCustomBuckets returns a batch with a plain sample and two native histograms
// with custom buckets.
func withCustomBuckets() *batch.Metrics {
	i, f := tsdbutil.GenerateTestCustomBucketsHistogram(1), tsdbutil.GenerateTestCustomBucketsFloatHistogram(1)
	return &batch.Metrics{
		Source: 1, Series: []*batch.Series{series("plain"), series("int"), series("float")},
		T: []int64{t0, t0, t0}, V: []float64{1, i.Sum, f.Sum},
		Histograms: []batch.Histogram{{Row: 1, Int: i}, {Row: 2, Float: f}},
	}
}

// TestCustomBucketsOverV1: remote write 1.0 does not support custom buckets. Like
// Prometheus, weir drops and counts them. It logs this once.
func TestCustomBucketsOverV1(t *testing.T) {
	srv := newServer(t)
	n := startNew(t, endpoint(srv.URL, "send_native_histograms = true"))
	n.accept(t, withCustomBuckets(), withCustomBuckets())
	srv.wait(t, func() bool { return srv.sent() >= 2 })
	n.stop()
	for _, r := range srv.received() {
		for _, ts := range r.message.Timeseries {
			if len(ts.Histograms) > 0 {
				t.Errorf("a histogram was sent: %v", ts)
			}
		}
	}
	diff(t, map[string]uint64{"nhcb_in_rw1_not_supported": 4}, n.Stats.Dropped())
	if c := strings.Count(n.Logs(), "remote write 1.0 cannot carry them"); c != 1 || !strings.Contains(n.Logs(), "io.prometheus.write.v2.Request") {
		t.Errorf("logged %d times, want once with the setting that is required:\n%s", c, n.Logs())
	}
}

// TestCustomBucketsAfterFallBack: blocks of 2.0 also lose them if they are sent
// as 1.0 because the endpoint does not support 2.0.
func TestCustomBucketsAfterFallBack(t *testing.T) {
	srv := newServer(t) // supports only 1.0
	n := startNew(t, endpoint(srv.URL, asV2))
	n.accept(t, withCustomBuckets())
	srv.wait(t, func() bool { return srv.count(t) == 1 })
	n.stop()
	diff(t, map[string]uint64{"nhcb_in_rw1_not_supported": 2}, n.Stats.Dropped())
}

func TestCustomBucketsOverV2(t *testing.T) {
	srv := newServerOf(t, 24*time.Hour, remoteapi.WriteV2MessageType)
	n := startNew(t, endpoint(srv.URL, asV2))
	n.accept(t, withCustomBuckets())
	srv.wait(t, func() bool { return srv.sent() == 3 })
	n.stop()
	diff(t, map[string]uint64{}, n.Stats.Dropped())
}

// TestInvalidRowsAreLeftOut: histograms and exemplars that a script has created
// must not cause the rejection of the whole request. The server answers as
// Prometheus does.
func TestInvalidRowsAreLeftOut(t *testing.T) {
	f := func(name, more string, srv *server) {
		t.Run(name, func(t *testing.T) {
			n := startNew(t, endpoint(srv.URL, more))
			good := tsdbutil.GenerateTestHistogram(1)
			schema, spans, counts, bounds := good.Copy(), good.Copy(), good.Copy(), good.Copy()
			schema.Schema = 9
			spans.PositiveSpans = nil
			counts.Count++
			bounds.CustomValues = []float64{1}
			b := &batch.Metrics{
				Source:     1,
				Histograms: []batch.Histogram{{Row: 1, Int: good}, {Row: 2, Int: schema}, {Row: 3, Int: spans}, {Row: 4, Int: counts}, {Row: 5, Int: bounds}},
				Exemplars: []batch.Exemplar{
					{Row: 0, Labels: []batch.Label{{Name: "id", Value: strings.Repeat("é", 126)}}, Value: 1, T: t0, HasT: true},
					{Row: 0, Labels: []batch.Label{{Name: "id", Value: strings.Repeat("é", 127)}}, Value: 2, T: t0, HasT: true},
					{Row: 0, Labels: []batch.Label{{Name: "id", Value: "\xff"}}, Value: 3, T: t0, HasT: true},
				},
			}
			negative := &histogram.FloatHistogram{Count: -1, Schema: 0, Sum: math.NaN()}
			b.Histograms = append(b.Histograms, batch.Histogram{Row: 6, Float: negative})
			for i, name := range []string{"plain", "good", "schema", "spans", "counts", "bounds", "negative"} {
				b.Series, b.T, b.V = append(b.Series, series(name)), append(b.T, t0), append(b.V, float64(i))
			}
			n.accept(t, b)
			srv.wait(t, func() bool { return srv.sent() == 2 })
			n.stop()
			diff(t, map[string]uint64{
				"invalid_histogram_schema": 1, "invalid_histogram_spans": 1, "invalid_histogram_counts": 2, "invalid_histogram_bounds": 1,
			}, n.Stats.Dropped())
		})
	}
	f("1.0", "send_native_histograms = true", newServer(t))
	f("2.0", asV2, newServerOf(t, 24*time.Hour, remoteapi.WriteV2MessageType))
}
