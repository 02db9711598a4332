//go:build integration

package integration

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// startProto serves every kind of metric that protobuf supports. The metrics
// started at began and increase after some scrapes. Each scraper, identified by
// its User-Agent, has its own count.
func startProto(t *testing.T, began time.Time) (addr string) {
	var mu sync.Mutex
	asked := map[string]int{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		agent, _, _ := strings.Cut(r.UserAgent(), "/")
		mu.Lock()
		asked[agent]++
		n := uint64(asked[agent] / 5)
		mu.Unlock()
		if !strings.Contains(r.Header.Get("Accept"), "application/vnd.google.protobuf") {
			t.Errorf("%s does not ask for protobuf: %s", agent, r.Header.Get("Accept"))
		}
		w.Header().Set("Content-Type", "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited")
		for _, f := range protoFamilies(min(n, 3), timestamppb.New(began)) {
			b, err := proto.Marshal(f)
			if err != nil {
				t.Error(err)
			}
			w.Write(append(binary.AppendUvarint(nil, uint64(len(b))), b...))
		}
	}))
	t.Cleanup(srv.Close)
	return strings.TrimPrefix(srv.URL, "http://")
}

func protoFamilies(n uint64, began *timestamppb.Timestamp) []*dto.MetricFamily {
	label := []*dto.LabelPair{{Name: proto.String("path"), Value: proto.String("/a")}}
	exemplar := &dto.Exemplar{
		Label: []*dto.LabelPair{{Name: proto.String("trace_id"), Value: proto.String(fmt.Sprint("t", n))}}, Value: proto.Float64(0.5),
		Timestamp: timestamppb.New(began.AsTime().Add(time.Duration(n) * time.Second)),
	}
	histogram := func(h *dto.Histogram) []*dto.Metric {
		h.CreatedTimestamp = began
		return []*dto.Metric{{Label: label, Histogram: h}}
	}
	family := func(name, help, unit string, typ dto.MetricType, ms []*dto.Metric) *dto.MetricFamily {
		return &dto.MetricFamily{Name: &name, Help: &help, Unit: &unit, Type: &typ, Metric: ms}
	}
	return []*dto.MetricFamily{
		family("requests_total", "Requests.", "", dto.MetricType_COUNTER, []*dto.Metric{{
			Label: label, Counter: &dto.Counter{Value: proto.Float64(float64(10 + n)), Exemplar: exemplar, CreatedTimestamp: began},
		}}),
		family("temperature_celsius", "Warmth.", "celsius", dto.MetricType_GAUGE, []*dto.Metric{{Label: label, Gauge: &dto.Gauge{Value: proto.Float64(-1.5)}}}),
		family("int_seconds", "Integer counts.", "seconds", dto.MetricType_HISTOGRAM, histogram(&dto.Histogram{
			SampleCount: proto.Uint64(7 + n), SampleSum: proto.Float64(12.5), Schema: proto.Int32(3), ZeroThreshold: proto.Float64(0.001), ZeroCount: proto.Uint64(1),
			PositiveSpan:  []*dto.BucketSpan{{Offset: proto.Int32(-2), Length: proto.Uint32(2)}, {Offset: proto.Int32(3), Length: proto.Uint32(1)}},
			PositiveDelta: []int64{1, 1, int64(n)}, NegativeSpan: []*dto.BucketSpan{{Offset: proto.Int32(0), Length: proto.Uint32(1)}}, NegativeDelta: []int64{1},
			Exemplars: []*dto.Exemplar{exemplar},
		})),
		family("float_seconds", "Fractions of counts.", "", dto.MetricType_HISTOGRAM, histogram(&dto.Histogram{
			SampleCountFloat: proto.Float64(7.5), SampleSum: proto.Float64(3), Schema: proto.Int32(0), ZeroThreshold: proto.Float64(0.5), ZeroCountFloat: proto.Float64(2.5),
			PositiveSpan: []*dto.BucketSpan{{Offset: proto.Int32(1), Length: proto.Uint32(2)}}, PositiveCount: []float64{2, 3 + float64(n)/4},
		})),
		family("classic_bytes", "Buckets of its own.", "", dto.MetricType_HISTOGRAM, histogram(&dto.Histogram{
			SampleCount: proto.Uint64(9), SampleSum: proto.Float64(100), Bucket: []*dto.Bucket{
				{UpperBound: proto.Float64(10), CumulativeCount: proto.Uint64(4)}, {UpperBound: proto.Float64(33.3), CumulativeCount: proto.Uint64(8)},
			},
		})),
		family("gauge_seconds", "Goes down, too.", "", dto.MetricType_GAUGE_HISTOGRAM, histogram(&dto.Histogram{
			SampleCount: proto.Uint64(2), SampleSum: proto.Float64(3), Schema: proto.Int32(1), ZeroThreshold: proto.Float64(0.001),
			PositiveSpan: []*dto.BucketSpan{{Offset: proto.Int32(0), Length: proto.Uint32(1)}}, PositiveDelta: []int64{2},
		})),
		family("sizes", "Quantiles.", "", dto.MetricType_SUMMARY, []*dto.Metric{{Label: label, Summary: &dto.Summary{
			SampleCount: proto.Uint64(3), SampleSum: proto.Float64(6), CreatedTimestamp: began, Quantile: []*dto.Quantile{{Quantile: proto.Float64(0.5), Value: proto.Float64(2)}},
		}}}),
	}
}

// instant returns the result of an instant query, floats and histograms, in JSON
// by series.
func instant(prometheus, promql string, at time.Time) (map[string]string, error) {
	resp, err := http.PostForm(prometheus+"/api/v1/query", url.Values{"query": {promql}, "time": {fmt.Sprintf("%.3f", float64(at.UnixMilli())/1000)}})
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var r struct {
		Error string
		Data  struct {
			Result []struct {
				Metric           map[string]string
				Value, Histogram []json.RawMessage
			}
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&r); err != nil || r.Error != "" {
		return nil, fmt.Errorf("%s: %s %w", promql, r.Error, err)
	}
	out := map[string]string{}
	for _, s := range r.Data.Result {
		v := append(s.Value, s.Histogram...)
		if len(v) != 2 {
			return nil, fatal{fmt.Errorf("%v has %d values", s.Metric, len(v))}
		}
		out[series{Metric: s.Metric}.key("via", "hop")] = string(v[1])
	}
	return out, nil
}

// TestRemoteWriteV2 sends protobuf and native histograms through relabel, Lua and
// remote write 2.0 to a Prometheus. The result is equal to its own scrape:
// values, buckets, exemplars, types and units, and the zero samples that it
// creates from start timestamps.
func TestRemoteWriteV2(t *testing.T) {
	t.Parallel()
	began := time.Now().Add(-20 * time.Second).Truncate(time.Millisecond)
	addr := startProto(t, began)
	prometheus := startPrometheusWith(t, "30m", fmt.Sprintf(`
scrape_configs:
  - job_name: proto
    scrape_native_histograms: true
    convert_classic_histograms_to_nhcb: true
    static_configs: [{targets: [%q]}]
`, addr), "--enable-feature=exemplar-storage,created-timestamp-zero-ingestion,type-and-unit-labels")

	dir := t.TempDir()
	write(t, filepath.Join(dir, "scripts", "my", "mark.lua"), `
local weir = require "weir"

return weir.transform {
  series  = function(s, ctx) s.labels.via = "weir" end,
  metrics = function(batch, ctx) batch:drop_where [[ name == "nothing" ]] end,
}
`)
	write(t, filepath.Join(dir, "config.alloy"), fmt.Sprintf(`
prometheus.scrape "proto" {
  targets                              = [{ "__address__" = %q, "job" = "proto" }]
  scrape_interval                      = "500ms"
  scrape_timeout                       = "400ms"
  scrape_native_histograms             = true
  convert_classic_histograms_to_nhcb   = true
  start_timestamp_zero_ingestion       = true
  forward_to                           = [prometheus.relabel.hop.receiver]
}

prometheus.relabel "hop" {
  rule {
    target_label = "hop"
    replacement  = "relabel"
  }
  forward_to = [my.mark.default.receiver]
}

my.mark "default" {
  forward_to = [prometheus.remote_write.out.receiver]
}

prometheus.remote_write "out" {
  endpoint {
    url                    = "%s/api/v1/write"
    protobuf_message       = "io.prometheus.write.v2.Request"
    send_native_histograms = true
  }
}
`, addr, prometheus))
	weir := startWeir(t, dir, "--scripts="+filepath.Join(dir, "scripts"))

	// Both have the last value of every series.
	var want map[string]string
	eventually(t, "everything is the same", func() error {
		at := time.Now()
		// Prometheus does not add metadata labels to the report series that it
		// scrapes, but it does to those that it receives.
		sel := func(via string) string {
			return `{job="proto",via="` + via + `",__name__!~"up|scrape_.*"}`
		}
		got, err := instant(prometheus, sel("weir"), at)
		if err != nil {
			return err
		}
		if want, err = instant(prometheus, sel(""), at); err != nil {
			return err
		}
		if d := cmp.Diff(want, got); d != "" {
			return fmt.Errorf("(-prometheus +weir):\n%s", tail(d, 3000))
		}
		if v := want[series{Metric: map[string]string{"__name__": "requests_total", "instance": addr, "job": "proto", "path": "/a", "__type__": "counter"}}.key()]; v != `"13"` {
			return fmt.Errorf("requests_total is %s still, in %v", v, want)
		}
		return nil
	})
	all := fmt.Sprint(want)
	for _, kind := range []string{`"buckets":`, `"33.3"`, `"7.5"`, `__type__="gaugehistogram"`, `__unit__="celsius"`} {
		if !strings.Contains(all, kind) {
			t.Errorf("there is no %s in what was compared: %s", kind, all)
		}
	}

	// The zero samples at the start.
	zeros := map[string]map[string]string{}
	for _, via := range []string{"", "weir"} {
		got, err := instant(prometheus, `{job="proto",via="`+via+`"}`, began.Add(time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		zeros[via] = got
	}
	if d := cmp.Diff(zeros[""], zeros["weir"]); d != "" || len(zeros[""]) < 6 {
		t.Errorf("at the start timestamps, of %d (-prometheus +weir):\n%s", len(zeros[""]), d)
	}
	for s, v := range zeros["weir"] {
		if v != `"0"` && !strings.Contains(v, `"count":"0"`) {
			t.Errorf("%s is %s at its start", s, v)
		}
	}

	// Exemplars.
	for _, name := range []string{"requests_total", "int_seconds"} {
		ours, err := exemplarLabels(prometheus, name+`{via="weir"}`)
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := exemplarLabels(prometheus, name+`{via=""}`)
		if err != nil {
			t.Fatal(err)
		}
		if ours != theirs || ours == "" {
			t.Errorf("exemplars of %s via weir: %s, prometheus itself: %s", name, ours, theirs)
		}
	}

	metrics := body(t, weir.url+"/metrics")
	for _, none := range []string{`weir_remote_write_fallbacks_total{`, `weir_remote_write_samples_dropped_total{`} {
		for line := range strings.Lines(metrics) {
			if strings.HasPrefix(line, none) && !strings.HasSuffix(line, " 0\n") {
				t.Errorf("something went wrong: %s", line)
			}
		}
	}
	if code := weir.stop(); code != 0 {
		t.Errorf("exit status %d after SIGTERM", code)
	}
}

func body(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestFallBackToV1: a Prometheus that only accepts remote write 1.0 receives
// every sample.
func TestFallBackToV1(t *testing.T) {
	t.Parallel()
	load := startLoad(t, 50)
	prometheus := startPrometheusWith(t, "30m", "", "--web.remote-write-receiver.accepted-protobuf-messages=prometheus.WriteRequest")
	weir := startWeir(t, v2Config(t, load.scrapeBlock(2, "200ms", "prometheus.remote_write.out.receiver"), prometheus))
	eventually(t, "samples arrive", func() error {
		n, err := number(prometheus, `min(count_over_time(load_total[5m]))`, time.Time{})
		if err == nil && n < 10 {
			return fmt.Errorf("%v scrapes", n)
		}
		return err
	})
	if code := weir.stop(); code != 0 {
		t.Errorf("exit status %d", code)
	}
	for i := range 2 {
		failed := unheard(t, prometheus, weir.output(), fmt.Sprintf(`target="%d"`, i), i)
		for _, s := range mustQuery(t, prometheus, fmt.Sprintf(`load_total{target="%d"}[5m]`, i), time.Time{}) {
			s.checkScrapes(t, failed)
		}
	}
	if n := strings.Count(weir.output(), "does not take remote write 2.0"); n != 1 {
		t.Errorf("told of the fall-back %d times", n)
	}
}

// TestPartialWrite: a sample that is too old for Prometheus is lost alone, and is
// not sent again.
func TestPartialWrite(t *testing.T) {
	t.Parallel()
	prometheus := startPrometheusWith(t, "0s", "")
	var mu sync.Mutex
	n := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		n++
		at := time.Now()
		if n > 3 {
			at = at.Add(-3 * time.Hour)
		}
		i := n
		mu.Unlock()
		fmt.Fprintf(w, "stamped 1 %d\ncount %d\n", at.UnixMilli(), i)
	}))
	t.Cleanup(srv.Close)
	weir := startWeir(t, v2Config(t, fmt.Sprintf(`
prometheus.scrape "stamped" {
  targets         = [{ "__address__" = %q }]
  scrape_interval = "200ms"
  scrape_timeout  = "200ms"
  forward_to      = [prometheus.remote_write.out.receiver]
}
`, strings.TrimPrefix(srv.URL, "http://")), prometheus))
	eventually(t, "the others arrive", func() error {
		n, err := number(prometheus, `count_over_time(count[5m])`, time.Time{})
		if err == nil && n < 12 {
			return fmt.Errorf("%v scrapes", n)
		}
		return err
	})
	metrics := body(t, weir.url+"/metrics")
	if code := weir.stop(); code != 0 {
		t.Errorf("exit status %d", code)
	}
	failed, err := number(prometheus, `sum(count_over_time(up[5m]) - sum_over_time(up[5m]))`, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	mustQuery(t, prometheus, `count[5m]`, time.Time{})[0].checkScrapes(t, int(failed)+strings.Count(weir.output(), batchDropped))
	if !strings.Contains(metrics, `reason="partial_write"`) || strings.Contains(metrics, `reason="partial_write"} 0`) {
		t.Error("partial writes are not counted")
	}
	if out := weir.output(); !strings.Contains(out, "rejects some of the samples") || !strings.Contains(out, `stamped`) {
		t.Error("the log does not name the series")
	}
}

// v2Config writes a config with a scrape block and remote write 2.0.
func v2Config(t *testing.T, scrape, prometheus string) (dir string) {
	dir = t.TempDir()
	write(t, filepath.Join(dir, "config.alloy"), scrape+fmt.Sprintf(`
prometheus.remote_write "out" {
  endpoint {
    url              = "%s/api/v1/write"
    protobuf_message = "io.prometheus.write.v2.Request"
  }
}
`, prometheus))
	return dir
}
