//go:build integration

package integration

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// receiveBlock returns a prometheus.receive_http block for a port, in front of
// the sink.
func receiveBlock(port int, more string) string {
	return fmt.Sprintf(`
prometheus.receive_http "in" {
  http {
    listen_address = "127.0.0.1"
    listen_port    = %d
  }
  accepted_remote_write_protobuf_messages = ["prometheus.WriteRequest", "io.prometheus.write.v2.Request"]
  append_metadata = true
  forward_to      = [prometheus.remote_write.out.receiver]
  %s
}
`, port, more)
}

// lastPort is the last port that freePort tried.
var lastPort atomic.Uint32

func init() { lastPort.Store(10000 + rand.Uint32N(10000)) }

// freePort returns a port that is free and stays free for the test, because a
// receiver that is killed or moved must find it free. No other test gets it, and
// Linux only assigns ports from 32768.
func freePort(t *testing.T) int {
	t.Helper()
	for range 100 {
		port := int(lastPort.Add(1))
		if l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", port)); err == nil {
			l.Close()
			return port
		}
	}
	t.Fatal("no port is free")
	return 0
}

// writesTo returns the part of a Prometheus config that writes to weir.
func writesTo(port int, message, more string) string {
	return fmt.Sprintf(`
remote_write:
  - url: http://127.0.0.1:%d/api/v1/metrics/write
    send_native_histograms: true
    send_exemplars: true
    protobuf_message: %s
    queue_config: {batch_send_deadline: 200ms, min_shards: 4, max_samples_per_send: 500, max_backoff: 500ms%s}
    metadata_config: {send_interval: 1s}
`, port, message, more)
}

// startHistograms starts a target with native histograms that are observed at
// each scrape.
func startHistograms(t *testing.T) string {
	reg := prometheus.NewRegistry()
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "rpc_seconds", Help: "Duration of calls.", NativeHistogramBucketFactor: 1.1, Buckets: prometheus.DefBuckets,
	}, []string{"method"})
	reg.MustRegister(h)
	handler := promhttp.HandlerFor(reg, promhttp.HandlerOpts{})
	n := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for i := range 20 {
			n++
			h.WithLabelValues(fmt.Sprint("m", i%3)).(prometheus.ExemplarObserver).ObserveWithExemplar(float64(n%97)/10, prometheus.Labels{"trace_id": fmt.Sprint(n)})
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	return strings.TrimPrefix(srv.URL, "http://")
}

// raw returns all samples and histograms of a server between two times, by series
// and as JSON.
func raw(prometheus string, from, to time.Time) (map[string]string, error) {
	at := strconv.FormatFloat(float64(to.UnixMilli())/1000, 'f', 3, 64)
	sel := fmt.Sprintf(`{__name__=~".+"}[%dms]`, to.Sub(from).Milliseconds())
	resp, err := http.PostForm(prometheus+"/api/v1/query", url.Values{"query": {sel}, "time": {at}})
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	var r struct {
		Error string
		Data  struct {
			Result []struct {
				Metric             map[string]string
				Values, Histograms json.RawMessage
			}
		}
	}
	if err := json.Unmarshal(body, &r); err != nil || r.Error != "" {
		return nil, fmt.Errorf("%v %s", err, r.Error)
	}
	out := map[string]string{}
	for _, s := range r.Data.Result {
		out[series{Metric: s.Metric}.key()] = string(s.Values) + string(s.Histograms)
	}
	return out, nil
}

// TestReceive compares the data of a Prometheus with the data that another one
// receives from it through weir. They must be equal: samples, native histograms,
// staleness, exemplars, metadata.
func TestReceive(t *testing.T) {
	t.Parallel()
	for _, message := range []string{"prometheus.WriteRequest", "io.prometheus.write.v2.Request"} {
		t.Run(message, func(t *testing.T) { testReceive(t, message) })
	}
}

func testReceive(t *testing.T, message string) {
	to := startPrometheus(t, "")
	dir := t.TempDir()
	port := freePort(t)
	write(t, filepath.Join(dir, "config.alloy"), receiveBlock(port, "")+fmt.Sprintf(`
prometheus.remote_write "out" {
  endpoint {
    url                    = "%s/api/v1/write"
    send_native_histograms = true
    protobuf_message       = %q
    metadata_config {
      send_interval = "1s"
    }
  }
}
`, to, message))
	weir := startWeir(t, dir)
	weir.await(1, `msg=listening.*address=(127\.0\.0\.1:\d+)`)
	var jobs strings.Builder
	addr := startScripted(t)
	for name := range scriptedTargets {
		fmt.Fprintf(&jobs, "  - job_name: %s\n    metrics_path: /%s\n    static_configs: [{targets: [%q]}]\n", name, name, addr)
	}
	native := startHistograms(t)
	fmt.Fprintf(&jobs, "  - job_name: native\n    scrape_native_histograms: true\n    always_scrape_classic_histograms: true\n    static_configs: [{targets: [%q]}]\n", native)
	if message != "prometheus.WriteRequest" { // 1.0 has no custom buckets, so Prometheus does not send them
		fmt.Fprintf(&jobs, "  - job_name: custom\n    convert_classic_histograms_to_nhcb: true\n    static_configs: [{targets: [%q]}]\n", addr)
		jobs.WriteString("    metrics_path: /text\n")
	}
	from := startPrometheus(t, writesTo(port, message, "")+"scrape_configs:\n"+jobs.String())
	began := time.Now()

	eventually(t, "targets changed their mind, and some scrapes more arrived", func() error {
		n, err := number(to, `min(count_over_time(up[5m]))`, time.Time{})
		if err == nil && n < 14 {
			return fmt.Errorf("%v scrapes", n)
		}
		return err
	})
	end := time.Now().Add(-time.Second)
	var want map[string]string
	eventually(t, "all samples of both are equal", func() error {
		var err error
		if want, err = raw(from, began, end); err != nil {
			return err
		}
		got, err := raw(to, began, end)
		if err != nil {
			return err
		}
		if d := cmp.Diff(want, got); d != "" {
			return fmt.Errorf("(-sender +receiver):\n%s", tail(d, 3000))
		}
		return nil
	})
	histograms := 0
	for _, v := range want {
		if strings.Contains(v, `"buckets"`) {
			histograms++
		}
	}
	if len(want) < 60 || histograms < 3 {
		t.Errorf("only %d series compared, %d of them native histograms", len(want), histograms)
	}

	// Current and ended series.
	eventually(t, "instant values are equal", func() error {
		at := time.Now().Add(-2 * time.Second)
		got, want := map[string]string{}, map[string]string{}
		for url, into := range map[string]map[string]string{to: got, from: want} {
			ss, err := query(url, `{__name__=~".+"}`, at)
			if err != nil {
				return err
			}
			for _, s := range ss {
				into[s.key()] = fmt.Sprint(s.Value[1])
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			return fmt.Errorf("(-sender +receiver):\n%s", tail(d, 3000))
		}
		return nil
	})
	for _, name := range []string{"was_up", "vanishing"} {
		if s := mustQuery(t, to, name, time.Time{}); len(s) != 0 {
			t.Errorf("%s is still there: %v", name, s)
		}
		// Some of the 5 scrapes before the series ended may have been too late.
		if s := mustQuery(t, to, name+"[5m]", time.Time{}); len(s) != 1 || len(s[0].Values) > 5 {
			t.Errorf("%s: %v, want the 5 samples before it went", name, s)
		}
	}
	eventually(t, "exemplars are equal", func() error {
		want, err := exemplarLabels(from, `sent_bytes_total`)
		if err != nil {
			return err
		}
		got, err := exemplarLabels(to, `sent_bytes_total`)
		if err == nil && (got != want || got == "") {
			return fmt.Errorf("got %s, want %s", got, want)
		}
		return err
	})
	if code := weir.stop(); code != 0 {
		t.Errorf("exit status %d after SIGTERM", code)
	}
}

// TestReceiveKills kills weir repeatedly while a Prometheus writes to it and the
// endpoint is sometimes down. Everything arrives, in order.
func TestReceiveKills(t *testing.T) {
	t.Parallel()
	const targets, perTarget = 5, 400
	sink := startRecorder(t)
	target := startLoad(t, perTarget)
	dir := t.TempDir()
	port := freePort(t)
	// configure changes settings of the server and of the sink while samples
	// arrive.
	configure := func(n int) {
		write(t, filepath.Join(dir, "config.alloy"), receiveBlock(port, fmt.Sprintf("graceful_shutdown_timeout = \"%ds\"", 10+n))+
			remoteWrite(sink.URL, fmt.Sprintf("external_labels = { \"n\" = \"%d\" }", n%2)))
	}
	configure(0)
	weir := startWeir(t, dir)
	var jobs strings.Builder
	for i := range targets {
		fmt.Fprintf(&jobs, "  - job_name: load%d\n    metrics_path: /%d/metrics\n    static_configs: [{targets: [%q], labels: {target: \"%d\"}}]\n",
			i, i, strings.TrimPrefix(target.URL, "http://"), i)
	}
	from := startPrometheus(t, writesTo(port, "prometheus.WriteRequest", "")+"scrape_configs:\n"+jobs.String())
	for n := range 6 {
		target.scrapedAfter(t, targets, time.Now().Add(time.Second))
		configure(n + 1)
		target.scrapedAfter(t, targets, time.Now().Add(time.Second))
		weir.kill()
		target.scrapedAfter(t, targets, time.Now())
		weir = startWeir(t, dir)
	}
	sink.set(func(_ int, w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	})
	target.scrapedAfter(t, targets, time.Now().Add(2*time.Second))
	weir.kill()
	weir = startWeir(t, dir)
	sink.set(nil)
	target.scrapedAfter(t, targets, time.Now().Add(time.Second))
	end := target.served(0) - 1

	eventually(t, "all that was scraped arrives", func() error {
		return sink.complete(t, targets*perTarget, end, "job", "instance", "n")
	})
	// The sender's own database shows whether a scrape was available for sending.
	if n, err := number(from, fmt.Sprintf(`min(count_over_time(up[10m])) >= %d`, end), time.Time{}); err != nil || n == 0 {
		t.Errorf("the sender has %v scrapes of %d: %v", n, end, err)
	}
	if code := weir.stop(); code != 0 {
		t.Errorf("exit status %d after SIGTERM", code)
	}
}

// TestReceiveBackPressure: a full journal makes the client wait, and no samples
// are lost.
func TestReceiveBackPressure(t *testing.T) {
	t.Parallel()
	const targets, perTarget = 4, 2000
	sink := startRecorder(t)
	target := startLoad(t, perTarget)
	dir := t.TempDir()
	port := freePort(t)
	write(t, filepath.Join(dir, "config.alloy"), receiveBlock(port, "limits {\n    max_wait = \"1s\"\n  }")+
		remoteWrite(sink.URL, "journal {\n    max_size = \"1MiB\"\n  }"))
	weir := startWeir(t, dir)
	sink.set(func(_ int, w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	})
	var jobs strings.Builder
	for i := range targets {
		fmt.Fprintf(&jobs, "  - job_name: load%d\n    metrics_path: /%d/metrics\n    static_configs: [{targets: [%q], labels: {target: \"%d\"}}]\n",
			i, i, strings.TrimPrefix(target.URL, "http://"), i)
	}
	startPrometheus(t, writesTo(port, "io.prometheus.write.v2.Request", "")+"scrape_configs:\n"+jobs.String())
	refused := func() error {
		for _, m := range metricsOf(t, metricsPage(t, weir), "weir_receive_http_requests_total") {
			if labelOf(m, "outcome") == "refused" && valueOf(m) > 0 {
				return nil
			}
		}
		return fmt.Errorf("nothing was refused yet")
	}
	eventually(t, "the client is told to wait", refused)
	target.scrapedAfter(t, targets, time.Now().Add(3*time.Second))
	sink.set(nil)
	target.scrapedAfter(t, targets, time.Now().Add(time.Second))
	end := target.served(0) - 1
	eventually(t, "all that was scraped arrives", func() error {
		for k, s := range sink.scrapes(t, "job", "instance") {
			for n, times := range s {
				if times > 1 {
					return fatal{fmt.Errorf("%s has scrape %d %d times", k, n, times)}
				}
			}
		}
		return sink.complete(t, targets*perTarget, end, "job", "instance")
	})
	again := 0
	for _, ss := range sink.group("load_total") {
		for _, s := range ss {
			again += s.again
		}
	}
	if again > 0 {
		t.Errorf("%d samples came twice", again)
	}
}
