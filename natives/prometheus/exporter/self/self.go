// Package self is prometheus.exporter.self: it exposes weir's own metrics, as on
// /metrics, as a target.
package self

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/service"
	"github.com/weir-run/weir/natives/prometheus/exporter/internal/exporter"
)

// Registration describes prometheus.exporter.self.
func Registration() component.Registration {
	return component.Registration{
		Name:          "prometheus.exporter.self",
		NewArgs:       func() any { return new(Arguments) },
		Exports:       exporter.Exports{},
		External:      true,
		NeedsServices: []string{"http", "telemetry"},
		Build:         build,
	}
}

// Component is the component of a prometheus.exporter.self node.
type Component struct{ handler http.Handler }

var (
	_ component.Component   = (*Component)(nil)
	_ component.HTTPHandler = (*Component)(nil)
)

func build(o component.Options, _ any, _ component.Component) (component.Component, error) {
	data, err := o.Service("telemetry")
	if err != nil {
		return nil, fmt.Errorf("cannot reach weir's telemetry service: %w", err)
	}
	exports, err := exporter.NewExports(o, "self")
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(data.(service.TelemetryData).Gatherer, promhttp.HandlerOpts{
		ErrorLog:      slog.NewLogLogger(o.Logger.Handler(), slog.LevelError),
		ErrorHandling: promhttp.ContinueOnError, // a broken collector must not hide the other metrics
	}))
	o.Export(exports)
	return &Component{handler: mux}, nil
}

// Handler serves /metrics.
func (c *Component) Handler() http.Handler { return c.handler }

// Run waits until ctx ends.
func (c *Component) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}
