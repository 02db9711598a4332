package receivehttp_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http/httptest"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/klauspost/compress/snappy"
	remoteapi "github.com/prometheus/client_golang/exp/api/remote"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/prompb"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/storage/remote"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/flow"
	receivehttp "github.com/weir-run/weir/natives/prometheus/receive_http"
)

// requestOf returns a body as Prometheus sends it: 2000 samples, each of a series
// with eight labels.
func requestOf(n, salt int) []prompb.TimeSeries {
	var ts []prompb.TimeSeries
	for i := range n {
		ts = append(ts, series("__name__=http_request_duration_seconds_bucket code=200 handler=/api/v1/query_range"+strconv.Itoa(i/20)+
			" instance=10.0.12.34:9090 job=prometheus le="+strconv.Itoa(i%20)+" method=GET pod=prometheus-k8s-"+strconv.Itoa(salt),
			sample(1735689600000+int64(i), float64(i))))
	}
	return ts
}

// nowhere is the cheapest possible storage for Prometheus's handler.
type nowhere struct{}

func (n nowhere) Appender(context.Context) storage.Appender { return n }
func (nowhere) Append(storage.SeriesRef, labels.Labels, int64, float64) (storage.SeriesRef, error) {
	return 1, nil
}
func (nowhere) AppendHistogram(storage.SeriesRef, labels.Labels, int64, *histogram.Histogram, *histogram.FloatHistogram) (storage.SeriesRef, error) {
	return 1, nil
}
func (nowhere) AppendExemplar(storage.SeriesRef, labels.Labels, exemplar.Exemplar) (storage.SeriesRef, error) {
	return 1, nil
}
func (nowhere) Commit() error                     { return nil }
func (nowhere) Rollback() error                   { return nil }
func (nowhere) SetOptions(*storage.AppendOptions) {}
func (nowhere) UpdateMetadata(storage.SeriesRef, labels.Labels, metadata.Metadata) (storage.SeriesRef, error) {
	return 1, nil
}
func (nowhere) AppendSTZeroSample(storage.SeriesRef, labels.Labels, int64, int64) (storage.SeriesRef, error) {
	return 1, nil
}
func (nowhere) AppendHistogramSTZeroSample(storage.SeriesRef, labels.Labels, int64, int64, *histogram.Histogram, *histogram.FloatHistogram) (storage.SeriesRef, error) {
	return 1, nil
}

func bodies(b *testing.B) map[string][]byte {
	ts := requestOf(2000, 0)
	return map[string][]byte{v1: body(b, ts...), v2: v2Body(b, nil, ts...)}
}

func perSample(b *testing.B, n int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/sample")
}

// BenchmarkDecode decodes a body with known series.
func BenchmarkDecode(b *testing.B) {
	for message, body := range bodies(b) {
		b.Run(message, func(b *testing.B) {
			d := receivehttp.NewDecoder()
			b.ReportAllocs()
			for b.Loop() {
				if n, err := d.Only(message, body); n != 2000 || err != nil {
					b.Fatal(n, err)
				}
			}
			perSample(b, 2000)
		})
	}
}

// BenchmarkBatches decodes a body and creates the batches of the shards.
func BenchmarkBatches(b *testing.B) {
	for message, body := range bodies(b) {
		b.Run(message, func(b *testing.B) {
			d := receivehttp.NewDecoder()
			b.ReportAllocs()
			for b.Loop() {
				if _, bad, err := d.Decode(message, body); bad != nil || err != nil {
					b.Fatal(bad, err)
				}
			}
			perSample(b, 2000)
		})
	}
}

// BenchmarkPrometheusHandler measures Prometheus's handler with a storage that
// does nothing.
func BenchmarkPrometheusHandler(b *testing.B) {
	h := remote.NewWriteHandler(slog.New(slog.DiscardHandler), prometheus.NewRegistry(), nowhere{},
		remoteapi.MessageTypes{remoteapi.WriteV1MessageType, remoteapi.WriteV2MessageType}, false, false, false)
	for message, body := range bodies(b) {
		b.Run(message, func(b *testing.B) {
			compressed := snappy.Encode(nil, body)
			b.ReportAllocs()
			for b.Loop() {
				req := httptest.NewRequest("POST", "/", bytes.NewReader(compressed))
				req.Header.Set("Content-Type", "application/x-protobuf;proto="+message)
				w := httptest.NewRecorder()
				h.ServeHTTP(w, req)
				if w.Code != 204 {
					b.Fatal(w.Code, w.Body)
				}
			}
			perSample(b, 2000)
		})
	}
}

// BenchmarkReceive measures a request over loopback for a client.
func BenchmarkReceive(b *testing.B) {
	rcv := flow.NewReceiver("sink", batch.SignalMetrics, nil, nil)
	rcv.Set(consumer(func(*batch.Metrics) {}))
	for message, body := range bodies(b) {
		b.Run(message, func(b *testing.B) {
			r := start(b, nil, rcv)
			b.ReportAllocs()
			for b.Loop() {
				if a := r.post(message, body); a.status != 204 {
					b.Fatal(a)
				}
			}
			perSample(b, 2000)
		})
	}
}

// TestChurn measures the memory of series that come and go: it depends on the
// series of about the last 15 minutes, not on all series ever received.
func TestChurn(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	d := receivehttp.NewDecoder()
	now := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	var most, mostSeries, last int64
	for minute := range 120 {
		now = now.Add(time.Minute)
		d.Now(now)
		if _, err := d.Only(v1, body(t, requestOf(2000, minute)...)); err != nil {
			t.Fatal(err)
		}
		if minute%10 == 9 {
			last = heap() - before
			most, mostSeries = max(most, last), max(mostSeries, int64(d.Series()))
		}
	}
	if got := d.Series(); got > 2000*25 || got < 2000*14 {
		t.Errorf("%d series are known of 240000, 2000 new ones a minute", got)
	}
	t.Logf("at most %d series and %d bytes for each", mostSeries, most/mostSeries)
	if last/int64(d.Series()) > 2000 {
		t.Errorf("%d bytes a series", last/int64(d.Series()))
	}
	runtime.KeepAlive(d)
}
