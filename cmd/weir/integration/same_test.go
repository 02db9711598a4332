//go:build integration

package integration

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// scripted is a target whose body depends on the number of requests of a scraper.
type scripted func(n int) (status int, contentType, body string)

const (
	text        = "text/plain; version=0.0.4"
	openMetrics = "application/openmetrics-text; version=1.0.0; charset=utf-8"
)

var scriptedTargets = map[string]scripted{
	"text": func(int) (int, string, string) {
		return 200, text, `# HELP http_requests_total Requests.
# TYPE http_requests_total counter
http_requests_total{method="GET",code="200",job="clash"} 1027
http_requests_total{method="POST",code="400",path="a\\b\"c\nd"} 3
# TYPE temperature gauge
temperature{room="Küche"} -2.5e-3
temperature{room="nan"} NaN
temperature{room="inf"} +Inf
temperature{room="-inf"} -Inf
# TYPE latency_seconds histogram
latency_seconds_bucket{le="0.1"} 2
latency_seconds_bucket{le="1"} 5
latency_seconds_bucket{le="+Inf"} 7
latency_seconds_sum 8.25
latency_seconds_count 7
# TYPE rpc_seconds summary
rpc_seconds{quantile="0.5"} 4.75e2
rpc_seconds_sum 1.7560473e+07
rpc_seconds_count 2693
untyped_thing 12345678901234567890
`
	},
	"openmetrics": func(int) (int, string, string) {
		return 200, openMetrics, `# TYPE sent_bytes counter
# UNIT sent_bytes bytes
# HELP sent_bytes Sent.
sent_bytes_total{queue="mail"} 17 # {trace_id="abc"} 1 1700000000.5
# TYPE build info
build_info{version="1.2.3"} 1
# TYPE state stateset
state{state="on"} 1
state{state="off"} 0
# EOF
`
	},
	"vanishing": func(n int) (int, string, string) {
		body := "kept 1\n"
		if n < 6 {
			body += "vanishing{a=\"b\"} 2\n"
		}
		return 200, text, body
	},
	"down": func(n int) (int, string, string) {
		if n >= 6 {
			return 500, text, "broken"
		}
		return 200, text, "was_up 1\n"
	},
	"garbage": func(n int) (int, string, string) {
		if n >= 6 {
			return 200, text, "fine 1\nthis is { not an exposition\n"
		}
		return 200, text, "fine 1\n"
	},
	"timestamps": func(n int) (int, string, string) {
		return 200, text, fmt.Sprintf("stamped 7 %d\n", time.Now().Add(-2*time.Second).UnixMilli())
	},
}

// startScripted serves scriptedTargets. Each scraper, identified by its
// User-Agent, has its own count.
func startScripted(t *testing.T) (addr string) {
	var mu sync.Mutex
	asked := map[string]int{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(r.URL.Path, "/")
		agent, _, _ := strings.Cut(r.UserAgent(), "/")
		mu.Lock()
		asked[agent+name]++
		n := asked[agent+name]
		mu.Unlock()
		status, contentType, body := scriptedTargets[name](n)
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		w.Write([]byte(body))
	}))
	t.Cleanup(srv.Close)
	return strings.TrimPrefix(srv.URL, "http://")
}

// volatile are series whose values depend on the time and duration of a scrape.
const volatile = `scrape_duration_seconds|scrape_series_added`

func TestSameAsPrometheus(t *testing.T) {
	t.Parallel()
	addr := startScripted(t)
	var jobs, targets strings.Builder
	for name := range scriptedTargets {
		fmt.Fprintf(&jobs, "  - job_name: %s\n    metrics_path: /%s\n    static_configs: [{targets: [%q]}]\n", name, name, addr)
		fmt.Fprintf(&targets, "    { \"__address__\" = %q, \"__metrics_path__\" = \"/%s\", \"job\" = %q },\n", addr, name, name)
	}
	prometheus := startPrometheus(t, "scrape_configs:\n"+jobs.String())

	dir := t.TempDir()
	write(t, filepath.Join(dir, "config.alloy"), `
prometheus.scrape "all" {
  targets = [
`+targets.String()+`  ]
  scrape_interval = "500ms"
  scrape_timeout  = "400ms"
  forward_to      = [prometheus.remote_write.out.receiver]
}
`+remoteWrite(prometheus, `external_labels = { "via" = "weir" }`))
	weir := startWeir(t, dir)

	// Both have seen every target change, and some more scrapes.
	eventually(t, "weir's samples arrive", func() error {
		n, err := number(prometheus, `sum(count_over_time(up{via="weir"}[5m]))`, time.Time{})
		if want := float64(len(scriptedTargets) * 12); err == nil && n < want {
			return fmt.Errorf("%v of %v scrapes", n, want)
		}
		return err
	})

	// Instant values: current series, stale series, and their labels.
	var got, want map[string]string
	eventually(t, "instant values are the same", func() error {
		at := time.Now()
		got, want = map[string]string{}, map[string]string{}
		for _, q := range []struct {
			promql string
			into   map[string]string
		}{
			{`{via="weir",__name__=~".+",__name__!~"` + volatile + `"}`, got},
			{`{via="",__name__=~".+",__name__!~"` + volatile + `"}`, want},
		} {
			ss, err := query(prometheus, q.promql, at)
			if err != nil {
				return err
			}
			for _, s := range ss {
				q.into[s.key("via")] = fmt.Sprint(s.Value[1])
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			return fmt.Errorf("(-prometheus +weir):\n%s", d)
		}
		return nil
	})
	for _, name := range []string{"was_up", "vanishing"} {
		if s := mustQuery(t, prometheus, name, time.Time{}); len(s) != 0 {
			t.Errorf("%s is still there: %v", name, s)
		}
		// Some of the 5 scrapes before the series ended may have been too late.
		if s := mustQuery(t, prometheus, name+`{via="weir"}[5m]`, time.Time{}); len(s) != 1 || len(s[0].Values) > 5 {
			t.Errorf("%s via weir: %v, want the 5 samples before it went", name, s)
		}
	}
	if len(want) < 40 {
		t.Errorf("only %d series compared", len(want))
	}

	// Exemplars.
	exemplars := func(sel string) string {
		n, err := exemplarLabels(prometheus, sel)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if got, want := exemplars(`sent_bytes_total{via="weir"}`), exemplars(`sent_bytes_total{via=""}`); got != want || got == "" {
		t.Errorf("exemplars via weir: %s, prometheus itself: %s", got, want)
	}
	if code := weir.stop(); code != 0 {
		t.Errorf("exit status %d after SIGTERM", code)
	}
	// As after a stop of Prometheus, all series are still current, so that a
	// restart leaves no gap.
	if n := mustQuery(t, prometheus, `{via="weir",__name__!~"`+volatile+`"}`, time.Time{}); len(n) != len(got) {
		t.Errorf("%d of %d series are current after weir stopped", len(n), len(got))
	}
}

func TestNodeExporter(t *testing.T) {
	t.Parallel()
	exporter := start(t, filepath.Join(env(t, "SERVERS"), "node_exporter"), "--web.listen-address=127.0.0.1:0")
	addr := exporter.await(1, `msg="Listening on".* address=(127\.0\.0\.1:\d+)`)
	prometheus := startPrometheus(t, fmt.Sprintf("scrape_configs:\n  - job_name: node\n    static_configs: [{targets: [%q]}]\n", addr))
	dir := t.TempDir()
	write(t, filepath.Join(dir, "config.alloy"), fmt.Sprintf(`
prometheus.scrape "node" {
  targets         = [{ "__address__" = %q }]
  job_name        = "node"
  scrape_interval = "500ms"
  scrape_timeout  = "400ms"
  forward_to      = [prometheus.remote_write.out.receiver]
}
`, addr)+remoteWrite(prometheus, `external_labels = { "via" = "weir" }`))
	startWeir(t, dir)
	eventually(t, "the series sets are equal", func() error {
		sets := map[string][]string{}
		for _, via := range []string{"", "weir"} {
			ss, err := query(prometheus, `{job="node",via="`+via+`"}`, time.Time{})
			if err != nil {
				return err
			}
			for _, s := range ss {
				sets[via] = append(sets[via], s.key("via"))
			}
			sort.Strings(sets[via])
		}
		if len(sets[""]) < 300 {
			return fmt.Errorf("only %d series yet", len(sets[""]))
		}
		if d := cmp.Diff(sets[""], sets["weir"]); d != "" {
			return fmt.Errorf("(-prometheus +weir):\n%s", tail(d, 3000))
		}
		return nil
	})
}

// remoteWrite returns a block prometheus.remote_write "out" for a server.
func remoteWrite(prometheus, more string) string {
	return fmt.Sprintf(`
prometheus.remote_write "out" {
  endpoint {
    url = "%s/api/v1/write"
  }
  %s
}
`, prometheus, more)
}
