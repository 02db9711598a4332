package self_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/engine/service"
	"github.com/weir-run/weir/natives/prometheus/exporter/internal/exporter"
	"github.com/weir-run/weir/natives/prometheus/exporter/self"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func get(h http.Handler, method, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, path, nil))
	return w
}

func TestSelf(t *testing.T) {
	own := prometheus.NewRegistry()
	total := prometheus.NewCounter(prometheus.CounterOpts{Name: "weir_test_total", Help: "Of the test."})
	own.MustRegister(total, broken{prometheus.NewDesc("weir_broken", "", nil, nil)})
	total.Add(3)

	n := componenttest.New(t, "prometheus.exporter.self.default")
	n.Services["http"] = service.HTTPData{MemoryAddress: "weir.memory:80"}
	n.Services["telemetry"] = service.TelemetryData{Gatherer: own}
	r := self.Registration()
	c := n.Build(t, r, r.NewArgs())
	n.Run(t, c)

	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	want := exporter.Exports{Targets: []map[string]string{{
		"__address__": "weir.memory:80", "__scheme__": "http",
		"__metrics_path__": "/api/v0/component/prometheus.exporter.self.default/metrics",
		"job":              "integrations/self", "instance": host,
		"__meta_component_name": "prometheus.exporter.self",
		"__meta_component_id":   "prometheus.exporter.self.default",
	}}}
	if diff := cmp.Diff(any(want), n.Exports()); diff != "" {
		t.Errorf("exports (-want +got):\n%s", diff)
	}

	h := c.(component.HTTPHandler).Handler()
	w := get(h, "GET", "/metrics")
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "\nweir_test_total 3\n") {
		t.Errorf("got status %d and\n%s\nwant weir_test_total", w.Code, w.Body)
	}
	if !strings.Contains(n.Logs(), "collector is broken") {
		t.Errorf("the log lacks the broken collector:\n%s", n.Logs())
	}
	if w := get(h, "GET", "/other"); w.Code != http.StatusNotFound {
		t.Errorf("/other: got status %d, want 404", w.Code)
	}
	if w := get(h, "POST", "/metrics"); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: got status %d, want 405", w.Code)
	}
}

// broken is a collector that fails.
type broken struct{ desc *prometheus.Desc }

func (b broken) Describe(ch chan<- *prometheus.Desc) { ch <- b.desc }
func (b broken) Collect(ch chan<- prometheus.Metric) {
	ch <- prometheus.NewInvalidMetric(b.desc, errors.New("collector is broken"))
}

func TestWithoutService(t *testing.T) {
	n := componenttest.New(t, "prometheus.exporter.self.default")
	r := self.Registration()
	if _, err := r.Build(n.Options(), r.NewArgs(), nil); err == nil || !strings.Contains(err.Error(), "telemetry") {
		t.Errorf("got %v, want that telemetry is missing", err)
	}
	n.Services["telemetry"] = service.TelemetryData{Gatherer: prometheus.NewRegistry()}
	if _, err := r.Build(n.Options(), r.NewArgs(), nil); err == nil || !strings.Contains(err.Error(), "HTTP") {
		t.Errorf("got %v, want that HTTP is missing", err)
	}
}
