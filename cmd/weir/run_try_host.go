package main

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"runtime"
	"strings"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/service"
	"github.com/weir-run/weir/natives/prometheus/exporter/unix"
	"github.com/weir-run/weir/scripting/scripttest"
)

// hostMetrics returns the metrics that the quickstart scrapes: those of this host, if it
// runs Linux, and those of this process.
func hostMetrics() (in scripttest.Input, err error) {
	s, err := newServices(port{}, "", io.Discard)
	if err != nil {
		return in, err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	in = scripttest.Input{Name: "the metrics of this host", Format: "text", Labels: []batch.Label{{Name: "instance", Value: host}, {Name: "job", Value: "integrations/unix"}}}
	handlers := []http.Handler{promhttp.HandlerFor(s.telemetry.Gatherer(), promhttp.HandlerOpts{})}
	if runtime.GOOS == "linux" {
		reg := unix.Registration()
		c, err := reg.Build(component.Options{
			ID: "prometheus.exporter.unix.host", Logger: slog.New(slog.DiscardHandler), Export: func(any) {},
			Service: func(string) (any, error) { return service.HTTPData{}, nil },
		}, reg.NewArgs(), nil)
		if err != nil {
			return in, fmt.Errorf("cannot collect the metrics of this host: %w", err)
		}
		handlers = append([]http.Handler{c.(component.HTTPHandler).Handler()}, handlers...)
	}
	for _, h := range handlers {
		req, err := http.NewRequest(http.MethodGet, "/metrics", nil)
		if err != nil {
			return in, err
		}
		answer := askHandler(h, req, 0)
		if answer.status != http.StatusOK {
			return in, fmt.Errorf("cannot collect the metrics of this host: %s", strings.TrimSpace(answer.body.String()))
		}
		in.Text += answer.body.String()
	}
	return in, nil
}
