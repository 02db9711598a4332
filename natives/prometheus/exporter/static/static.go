// Package static is prometheus.exporter.static: it exposes metrics from the
// config as a target.
//
// The text can be built from exports of other components, such as the content of
// a file.
package static

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/natives/prometheus/exporter/internal/exporter"
)

// Registration describes prometheus.exporter.static.
func Registration() component.Registration {
	return component.Registration{
		Name:          "prometheus.exporter.static",
		NewArgs:       func() any { return new(Arguments) },
		Exports:       exporter.Exports{},
		External:      true,
		NeedsServices: []string{"http"},
		Build:         build,
	}
}

// Component is the component of a prometheus.exporter.static node.
type Component struct{ handler http.Handler }

var (
	_ component.Component   = (*Component)(nil)
	_ component.HTTPHandler = (*Component)(nil)
)

func build(o component.Options, args any, _ component.Component) (component.Component, error) {
	byName, err := families(string(args.(*Arguments).Text))
	if err != nil {
		return nil, err
	}
	sorted := make([]*dto.MetricFamily, 0, len(byName))
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		sorted = append(sorted, byName[name])
	}
	exports, err := exporter.NewExports(o, "static")
	if err != nil {
		return nil, fmt.Errorf("cannot expose the metrics: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(
		prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { return sorted, nil }),
		promhttp.HandlerOpts{
			EnableOpenMetrics: true,
			ErrorLog:          slog.NewLogLogger(o.Logger.Handler(), slog.LevelError),
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
