package remotewrite_test

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"github.com/prometheus/prometheus/tsdb/tsdbutil"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/clock/clocktest"
	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/engine/journal"
)

const asV2 = "protobuf_message = \"io.prometheus.write.v2.Request\"\n send_native_histograms = true\n"

// everything returns a batch with one of each kind: a counter with a start
// timestamp and an exemplar, histograms with start timestamps, a negative zero.
func everything(source uint64, at int64) *batch.Metrics {
	meta := func(s *batch.Series, typ model.MetricType, help, unit string) *batch.Series {
		s.SetMeta(&batch.Metadata{Type: typ, Help: help, Unit: unit})
		return s
	}
	is := fmt.Sprint(source)
	h, f, c := tsdbutil.GenerateTestHistogram(1), tsdbutil.GenerateTestFloatHistogram(2), tsdbutil.GenerateTestHistogram(3)
	return &batch.Metrics{
		Source: source,
		Series: []*batch.Series{
			meta(series("c_total", "source", is), "counter", "Counts.", "things"), meta(series("h", "source", is), "histogram", "Spreads.", ""),
			series("f", "source", is), series("h2", "source", is), series("zero", "source", is), series("minus", "source", is, "long", strings.Repeat("é", 200)),
		},
		T:          []int64{at, at, at, at, at, at},
		V:          []float64{3, h.Sum, f.Sum, c.Sum, 0, math.Copysign(0, -1)},
		Histograms: []batch.Histogram{{Row: 1, Int: h}, {Row: 2, Float: f}, {Row: 3, Int: c}},
		Exemplars:  []batch.Exemplar{{Row: 0, Labels: []batch.Label{{Name: "source", Value: "x"}, {Name: "trace_id", Value: is}}, Value: 0.5}},
		Starts:     []batch.Start{{Row: 0, T: at - 60_000}, {Row: 1, T: at - 61_000}, {Row: 2, T: at - 62_000}},
	}
}

// TestMessageV2 compares every part of a request with the output of Prometheus's
// own functions.
func TestMessageV2(t *testing.T) {
	srv := newServerOf(t, 24*time.Hour, v2)
	n := startNew(t, endpoint(srv.URL, asV2))
	n.accept(t, everything(1, t0))
	srv.wait(t, func() bool { return srv.sent() == 6 })
	got := srv.received()[0].v2
	if got.Symbols[0] != "" || len(got.Symbols) != len(slices.Compact(slices.Sorted(slices.Values(got.Symbols)))) {
		t.Errorf("symbols do not begin with the empty string or are there twice: %q", got.Symbols)
	}

	table := writev2.NewSymbolTable()
	refs := func(ls ...string) (out []uint32) {
		for _, s := range ls {
			out = append(out, table.Symbolize(s))
		}
		return out
	}
	h, f, c := tsdbutil.GenerateTestHistogram(1), tsdbutil.GenerateTestFloatHistogram(2), tsdbutil.GenerateTestHistogram(3)
	want := []writev2.TimeSeries{
		{
			LabelsRefs: refs("__name__", "c_total", "source", "1"),
			Samples:    []writev2.Sample{{Value: 3, Timestamp: t0, StartTimestamp: t0 - 60_000}},
			Exemplars:  []writev2.Exemplar{{LabelsRefs: refs("source", "x", "trace_id", "1"), Value: 0.5, Timestamp: t0}},
			Metadata:   writev2.Metadata{Type: writev2.Metadata_METRIC_TYPE_COUNTER, HelpRef: table.Symbolize("Counts."), UnitRef: table.Symbolize("things")},
		}, {
			LabelsRefs: refs("__name__", "h", "source", "1"),
			Histograms: []writev2.Histogram{writev2.FromIntHistogram(t0-61_000, t0, h)},
			Metadata:   writev2.Metadata{Type: writev2.Metadata_METRIC_TYPE_HISTOGRAM, HelpRef: table.Symbolize("Spreads.")},
		},
		{LabelsRefs: refs("__name__", "f", "source", "1"), Histograms: []writev2.Histogram{writev2.FromFloatHistogram(t0-62_000, t0, f)}},
		{LabelsRefs: refs("__name__", "h2", "source", "1"), Histograms: []writev2.Histogram{writev2.FromIntHistogram(0, t0, c)}},
		{LabelsRefs: refs("__name__", "zero", "source", "1"), Samples: []writev2.Sample{{Timestamp: t0}}},
		{LabelsRefs: refs("__name__", "minus", "long", strings.Repeat("é", 200), "source", "1"), Samples: []writev2.Sample{{Value: math.Copysign(0, -1), Timestamp: t0}}},
	}
	if math.Signbit(got.Timeseries[4].Samples[0].Value) || !math.Signbit(got.Timeseries[5].Samples[0].Value) {
		t.Error("zeros lost their signs")
	}
	diff(t, table.Symbols(), got.Symbols)
	diff(t, want, got.Timeseries)

	// The receiver creates zero samples from start timestamps if it is configured
	// to do so.
	diff(t, fmt.Sprintf(`{__name__="c_total", source="1"} => 0 @[%d]`, t0-60_000), strings.ReplaceAll(srv.query(t, `c_total`, t0-60_000), fmt.Sprintf("[%.3f]", float64(t0-60_000)/1000), fmt.Sprintf("[%d]", t0-60_000)))
}

func TestMetadataCanBeLeftOutOfV2(t *testing.T) {
	srv := newServerOf(t, 24*time.Hour, v2)
	n := startNew(t, endpoint(srv.URL, asV2+"metadata_config { send = false }"))
	n.accept(t, everything(1, t0))
	srv.wait(t, func() bool { return srv.sent() == 6 })
	for _, ts := range srv.received()[0].v2.Timeseries {
		diff(t, writev2.Metadata{}, ts.Metadata)
	}
}

// TestFallBack: an endpoint that does not support 2.0 gets the same samples as
// 1.0. 2.0 is not tried with every block, but again after ten minutes and after a
// change of the settings.
func TestFallBack(t *testing.T) {
	f := func(name string, srv *server) {
		t.Run(name, func(t *testing.T) {
			fake := clocktest.New(time.UnixMilli(t0))
			home := componenttest.New(t, "prometheus.remote_write.test")
			n := start(t, home, fake, endpoint(srv.URL, asV2+"queue_config { max_samples_per_send = 6 }"))
			asked := func() (v2s int) {
				for _, r := range srv.received() {
					if r.v2 != nil {
						v2s++
					}
				}
				return v2s
			}
			var bs []*batch.Metrics
			send := func(at int64) {
				t.Helper()
				b := everything(1, at) // fills a block
				bs = append(bs, b)
				n.accept(t, b)
				srv.wait(t, func() bool { return srv.count(t) == 6*len(bs) })
			}
			send(t0)
			send(t0 + 1000)
			if asked() != 1 {
				t.Errorf("asked %d times, want once", asked())
			}
			fake.Advance(10*time.Minute - time.Second)
			send(t0 + 2000)
			fake.Advance(2 * time.Second)
			send(t0 + 3000)
			if asked() != 2 {
				t.Errorf("after ten minutes, asked %d times, want 2", asked())
			}
			n.metric(t, "weir_remote_write_fallbacks_total", srv.URL, 2)
			if c := strings.Count(home.Logs(), "does not take remote write 2.0"); c != 1 {
				t.Errorf("logged %d times:\n%s", c, home.Logs())
			}
			if err := n.c.Update(decode(t, endpoint(srv.URL, asV2+"queue_config { max_samples_per_send = 5 }"))); err != nil {
				t.Fatal(err)
			}
			stop := advance(fake)
			send(t0 + 4000)
			stop()
			if asked() != 3 {
				t.Errorf("after a change, asked %d times, want 3", asked())
			}
			diff(t, rows(bs...), srv.samples(t))
			n.stop()
			diff(t, map[string]uint64{}, n.Stats.Dropped())
		})
	}
	f("415", newServer(t))
	careless := newServer(t)
	careless.setFault(func(w http.ResponseWriter, r *http.Request, _ int) bool {
		return strings.Contains(r.Header.Get("Content-Type"), "v2") // 200, but nothing was written
	})
	f("content type ignored", careless)
}

// TestUpgradeOfTheEndpoint: a message that the endpoint refused is accepted after
// an upgrade.
func TestUpgradeOfTheEndpoint(t *testing.T) {
	srv := newServerOf(t, 24*time.Hour, v1, v2)
	srv.setFault(func(w http.ResponseWriter, r *http.Request, _ int) bool {
		if strings.Contains(r.Header.Get("Content-Type"), "v2") {
			http.Error(w, "not yet", http.StatusUnsupportedMediaType)
			return true
		}
		return false
	})
	fake := clocktest.New(time.UnixMilli(t0))
	n := start(t, componenttest.New(t, "prometheus.remote_write.test"), fake, endpoint(srv.URL, asV2+"queue_config { max_samples_per_send = 6 }"))
	n.accept(t, everything(1, t0))
	srv.wait(t, func() bool { return srv.count(t) == 6 })
	srv.heal()
	fake.Advance(11 * time.Minute)
	n.accept(t, everything(1, t0+1000))
	srv.wait(t, func() bool { return srv.sent() == 18 })
	got := srv.received()
	if last := got[len(got)-1]; last.v2 == nil {
		t.Error("the last request is not of 2.0")
	}
}

// TestPartialWrite: samples that a receiver rejects are counted, and no part of
// the request is sent again.
func TestPartialWrite(t *testing.T) {
	srv := newServerOf(t, 0, v2) // samples must be in order
	home := componenttest.New(t, "prometheus.remote_write.test")
	n := start(t, home, clock.System{}, endpoint(srv.URL, asV2))
	first := gauges(1, 3, t0+5000)
	n.accept(t, first)
	srv.wait(t, func() bool { return srv.count(t) == 3 })
	mixed := gauges(1, 3, t0+6000)
	mixed.T[1] = t0 // too old
	n.accept(t, mixed)
	srv.wait(t, func() bool { return srv.count(t) == 5 })
	after := gauges(1, 3, t0+7000)
	n.accept(t, after)
	srv.wait(t, func() bool { return srv.count(t) == 8 })
	n.stop()
	if c := len(srv.received()); c != 3 {
		t.Errorf("%d requests, want 3", c)
	}
	diff(t, map[string]uint64{"partial_write": 1}, n.Stats.Dropped())
	n.metric(t, "weir_remote_write_samples_sent_total", srv.URL, 8)
	for _, want := range []string{"rejects some of the samples", "wrote 2 of 3 samples", `i=\"1\"`} {
		if !strings.Contains(strings.ReplaceAll(home.Logs(), `\\`, `\`), want) {
			t.Errorf("the log does not say %q:\n%s", want, home.Logs())
		}
	}
}

// TestWrittenCounts checks how the counts in a response are interpreted.
func TestWrittenCounts(t *testing.T) {
	f := func(status int, written string, sent float64, dropped map[string]uint64) {
		t.Helper()
		srv := newServerOf(t, 0, v2)
		srv.setFault(func(w http.ResponseWriter, _ *http.Request, n int) bool {
			if n == 1 {
				if written != "" {
					w.Header().Set("X-Prometheus-Remote-Write-Samples-Written", written)
				}
				http.Error(w, "on purpose", status)
			} else {
				w.Header().Set("X-Prometheus-Remote-Write-Samples-Written", "3")
			}
			return true
		})
		n := startNew(t, endpoint(srv.URL, asV2))
		n.accept(t, gauges(1, 3, t0))
		want := 1
		if dropped == nil && status != 200 {
			want = 2 // it is sent again
		}
		srv.wait(t, func() bool { return len(srv.received()) == want })
		n.stop()
		if dropped == nil {
			dropped = map[string]uint64{}
		}
		diff(t, dropped, n.Stats.Dropped())
		n.metric(t, "weir_remote_write_samples_sent_total", srv.URL, sent)
		if c := len(srv.received()); c != want {
			t.Errorf("%d %s: %d requests, want %d", status, written, c, want)
		}
	}
	f(200, "3", 3, nil)
	f(200, "99", 3, nil) // a receiver that counts something else
	f(200, "2", 2, map[string]uint64{"partial_write": 1})
	f(200, "0", 0, map[string]uint64{"rejected": 3})
	f(400, "2", 2, map[string]uint64{"partial_write": 1})
	f(400, "0", 0, map[string]uint64{"rejected": 3})
	f(400, "", 0, map[string]uint64{"rejected": 3})
	f(400, "x", 0, map[string]uint64{"rejected": 3})
	f(503, "2", 3, nil)
	f(429, "0", 3, nil)
}

// TestBacklogInTheOtherMessage: blocks gathered for one message are sent as the
// other when the endpoint changes, with the same bytes in each attempt.
func TestBacklogInTheOtherMessage(t *testing.T) {
	f := func(from, to string, server *server) {
		t.Helper()
		server.answer(503)
		home := componenttest.New(t, "prometheus.remote_write.test")
		text := func(message string) string {
			return endpoint(server.URL, "send_native_histograms = true\n protobuf_message = \""+message+"\"\n queue_config { max_backoff = \"50ms\" }")
		}
		n := start(t, home, clock.System{}, text(from))
		var bs []*batch.Metrics
		for i := range uint64(5) {
			bs = append(bs, everything(i, t0))
			n.accept(t, bs[i])
		}
		n.stop()
		home.Registry = prometheus.NewRegistry()
		before := len(server.received())
		n = start(t, home, clock.System{}, text(to))
		server.wait(t, func() bool { return len(server.received()) > before+8 })
		server.heal()
		server.wait(t, func() bool { return server.count(t) >= 30 })
		n.stop()
		got := slices.DeleteFunc(server.samples(t), func(s string) bool { // zero samples of start timestamps
			return strings.Contains(s, fmt.Sprint(t0-60_000)) || strings.Contains(s, fmt.Sprint(t0-61_000)) || strings.Contains(s, fmt.Sprint(t0-62_000))
		})
		diff(t, rows(bs...), got)
		diff(t, map[string]uint64{}, n.Stats.Dropped())
		bodies := map[string]bool{}
		for _, r := range server.received()[before:] {
			bodies[string(r.raw)] = true
			if (r.v2 != nil) != strings.Contains(to, "v2") {
				t.Fatalf("a request is not of %s", to)
			}
		}
		if len(bodies) > 5 {
			t.Errorf("%d different bodies for 5 blocks at most", len(bodies))
		}
	}
	f(string(v1), string(v2), newServerOf(t, 24*time.Hour, v2))
	f(string(v2), string(v1), newServerOf(t, 24*time.Hour, v1))
}

// TestSameBytesV2: a block of 2.0 has the same bytes in each attempt and after a
// restart.
func TestSameBytesV2(t *testing.T) {
	srv := newServerOf(t, 24*time.Hour, v2)
	srv.answer(503)
	home := componenttest.New(t, "prometheus.remote_write.test")
	text := endpoint(srv.URL, asV2+"queue_config { max_backoff = \"50ms\" }")
	n := start(t, home, clock.System{}, text)
	n.accept(t, everything(1, t0))
	srv.wait(t, func() bool { return len(srv.received()) >= 2 })
	n.stop()
	home.Registry = prometheus.NewRegistry()
	n = start(t, home, clock.System{}, text)
	before := len(srv.received())
	srv.wait(t, func() bool { return len(srv.received()) > before })
	srv.heal()
	srv.wait(t, func() bool { return srv.count(t) >= 6 })
	n.stop()
	for _, r := range srv.received() {
		if string(r.raw) != string(srv.received()[0].raw) {
			t.Fatal("a retry has other bytes")
		}
	}
}

func TestSampleAgeLimitV2(t *testing.T) {
	srv := newServerOf(t, 24*time.Hour, v2)
	fake := clocktest.New(time.UnixMilli(t0 + 3600_000))
	n := start(t, componenttest.New(t, "prometheus.remote_write.test"), fake, endpoint(srv.URL, asV2+"queue_config { sample_age_limit = \"1m\" }"))
	b := everything(1, t0+3600_000)
	b.T[2], b.T[4] = t0, t0 // a histogram and a sample
	done := make(chan error, 1)
	go func() { done <- n.c.ConsumeMetrics(context.Background(), b) }()
	stop := advance(fake)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	srv.wait(t, func() bool { return srv.sent() == 4 })
	stop()
	ts := srv.received()[0].v2.Timeseries
	diff(t, writev2.Metadata_METRIC_TYPE_COUNTER, ts[0].Metadata.Type)
	diff(t, int64(t0+3600_000-60_000), ts[0].Samples[0].StartTimestamp)
	diff(t, 1, len(ts[0].Exemplars))
	n.stop()
	diff(t, map[string]uint64{"too_old": 2}, n.Stats.Dropped())
}

// TestBlocksOfAnotherWeir: unknown blocks are counted and do not block the queue.
func TestBlocksOfAnotherWeir(t *testing.T) {
	srv := newServerOf(t, time.Hour, v2)
	home := componenttest.New(t, "prometheus.remote_write.test")
	j, err := journal.Claim(t.Context(), filepath.Join(home.StoragePath, "journal"), journal.Options{
		Shards: 8, Clock: clock.System{}, Logger: slog.New(slog.DiscardHandler), Owner: journal.Owner{URL: srv.URL, Node: home.ID},
	})
	if err != nil {
		t.Fatal(err)
	}
	for shard, b := range []journal.Block{
		{Kind: 9, Payload: []byte("later")}, {Kind: 0x81, Payload: []byte{200}}, {Kind: 1, Payload: []byte("not snappy")},
	} {
		b.Shard, b.Samples, b.First = shard, 7, t0
		if err := j.Append(b); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	n := start(t, home, clock.System{}, endpoint(srv.URL, asV2))
	b := gauges(1, 3, t0)
	n.accept(t, b)
	srv.wait(t, func() bool { return srv.count(t) == 3 })
	n.stop()
	diff(t, rows(b), srv.samples(t))
	diff(t, map[string]uint64{"unknown_kind": 14, "cannot_encode": 7}, n.Stats.Dropped())
}
