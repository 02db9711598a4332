// Package unix is prometheus.exporter.unix: it exposes metrics of the host,
// collected by the built-in collectors of node_exporter. Linux only.
//
// node_exporter stores its settings in flags of the process, and its collectors
// exist as long as the process. Therefore, the first node of the process
// determines the settings. Another node, or a reload, may select other
// collectors, but other settings are refused with a message that weir needs a
// restart.
package unix

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/natives/prometheus/exporter/internal/exporter"
)

// Registration describes prometheus.exporter.unix.
func Registration() component.Registration {
	return component.Registration{
		Name:          "prometheus.exporter.unix",
		NewArgs:       func() any { a := new(Arguments); a.SetToDefault(); return a },
		Exports:       exporter.Exports{},
		External:      true,
		NeedsServices: []string{"http"},
		Check: func(args any, _ func(string) bool) []*component.ArgumentError {
			if err := checkHost(runtime.GOOS); err != nil {
				return []*component.ArgumentError{{Err: err}}
			}
			return args.(*Arguments).checkCollectors(collectorNames())
		},
		Build: func(o component.Options, args any, _ component.Component) (component.Component, error) {
			c := &Component{opts: o, mux: http.NewServeMux(), own: prometheus.NewRegistry()}
			c.mux.HandleFunc("GET /metrics", c.serve)
			if err := c.Update(args); err != nil {
				return nil, err
			}
			return c, nil
		},
	}
}

// checkHost returns the reason why the collectors cannot run on a host, or nil.
func checkHost(goos string) error {
	if goos == "linux" {
		return nil
	}
	return fmt.Errorf("prometheus.exporter.unix needs Linux, and this host runs %s: check and run this config on the Linux host that it is for", goos)
}

// checkCollectors returns a warning for each named collector that does not exist.
func (a *Arguments) checkCollectors(exist []string) (es []*component.ArgumentError) {
	for _, list := range []struct {
		attribute string
		names     []string
	}{{"enable_collectors", a.EnableCollectors}, {"disable_collectors", a.DisableCollectors}, {"set_collectors", a.SetCollectors}} {
		for _, name := range list.names {
			if !slices.Contains(exist, name) {
				es = append(es, &component.ArgumentError{Path: list.attribute, Warning: true,
					Err:    fmt.Errorf("there is no collector %q, so it is ignored", name),
					Detail: "the collectors are " + strings.Join(exist, ", ")})
			}
		}
	}
	return es
}

// Component is the component of a prometheus.exporter.unix node.
type Component struct {
	opts component.Options
	mux  *http.ServeMux
	own  *prometheus.Registry // of metrics about the exporter's own handler

	mu      sync.Mutex
	metrics http.Handler
}

var (
	_ component.Component   = (*Component)(nil)
	_ component.Updater     = (*Component)(nil)
	_ component.HTTPHandler = (*Component)(nil)
)

// Update applies new arguments, unless they need a restart.
func (c *Component) Update(args any) error {
	metrics, err := newMetrics(args.(*Arguments), c.opts.Logger, c.own)
	if err != nil {
		return err
	}
	exports, err := exporter.NewExports(c.opts, "unix")
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.metrics = metrics
	c.mu.Unlock()
	c.opts.Export(exports)
	return nil
}

// Handler serves /metrics. Like node_exporter, it supports the parameters
// collect[] and exclude[], which select some of the node's collectors.
func (c *Component) Handler() http.Handler { return c.mux }

func (c *Component) serve(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	h := c.metrics
	c.mu.Unlock()
	h.ServeHTTP(w, r)
}

// Run waits until ctx ends.
func (c *Component) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}
