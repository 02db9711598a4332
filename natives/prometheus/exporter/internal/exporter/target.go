// Package exporter is the common part of components that expose metrics of other
// systems: the target that a prometheus.scrape uses. It is not a component; its
// sub-packages are.
//
// An exporter is an HTTP handler below weir's own API. The address of its target
// is not on the network: the http service's DialContext reaches it in memory.
package exporter

import (
	"fmt"
	"os"
	"strings"

	"github.com/prometheus/common/model"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/service"
)

// Exports of every exporter.
type Exports struct {
	// The exporter itself, for the argument targets of a prometheus.scrape: one
	// target with the labels job and instance (the host's name).
	Targets []map[string]string `alloy:"targets,attr"`
}

// NewExports returns the target of the exporter that o is given to. name, such
// as unix, becomes the job integrations/<name>. The component's HTTPHandler
// must serve /metrics.
func NewExports(o component.Options, name string) (Exports, error) {
	data, err := o.Service("http")
	if err != nil {
		return Exports{}, fmt.Errorf("cannot reach weir's HTTP service: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown" // as in Alloy: a missing label must not prevent metrics
	}
	block := o.ID[strings.LastIndexByte(o.ID, '/')+1:]
	if i := strings.LastIndexByte(block, '.'); strings.HasSuffix(block[:max(i, 0)], "."+name) {
		block = block[:i]
	}
	return Exports{Targets: []map[string]string{{
		model.AddressLabel:      data.(service.HTTPData).MemoryAddress,
		model.SchemeLabel:       "http",
		model.MetricsPathLabel:  "/api/v0/component/" + o.ID + "/metrics",
		model.JobLabel:          "integrations/" + name,
		model.InstanceLabel:     host,
		"__meta_component_name": block,
		"__meta_component_id":   o.ID,
	}}}, nil
}
