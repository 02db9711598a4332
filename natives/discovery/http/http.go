// Package http is discovery.http: it gets targets from a URL that returns JSON in
// the format of Prometheus's HTTP service discovery.
//
// The targets are the same as in Prometheus, and a test compares them. The
// requests differ, because Prometheus's discovery does not limit the size of
// responses.
package http

import (
	sd "github.com/prometheus/prometheus/discovery"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/natives/discovery/internal/discovery"
)

// Registration describes discovery.http.
func Registration() component.Registration {
	return component.Registration{
		Name:     "discovery.http",
		NewArgs:  func() any { a := new(Arguments); a.SetToDefault(); return a },
		Exports:  discovery.Exports{},
		External: true,
		Build: func(o component.Options, args any, previous component.Component) (component.Component, error) {
			return discovery.New(o, discovery.Kind{
				Config: func(args any) (sd.Config, error) { return &config{args.(*Arguments)}, nil },
				Files:  func(args any) []string { return args.(*Arguments).Client.Files() },
			}, args, previous)
		},
	}
}
