// Package http is discovery.http: it gets targets from a URL that answers with
// JSON, in the format of Prometheus's HTTP service discovery.
package http

import (
	"github.com/prometheus/common/model"
	sd "github.com/prometheus/prometheus/discovery"
	"github.com/prometheus/prometheus/discovery/http"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/natives/discovery"
)

// Registration describes discovery.http.
func Registration() component.Registration {
	return component.Registration{
		Name:    "discovery.http",
		NewArgs: func() any { a := new(Arguments); a.SetToDefault(); return a },
		Exports: discovery.Exports{},
		Build: func(o component.Options, args any) (component.Component, error) {
			return discovery.New(o, discovery.Kind{Config: config, Files: files}, args)
		},
	}
}

func config(args any) (sd.Config, error) {
	a := args.(*Arguments)
	client, err := a.Client.Config()
	if err != nil {
		return nil, err
	}
	return &http.SDConfig{
		HTTPClientConfig: *client,
		RefreshInterval:  model.Duration(a.RefreshInterval),
		URL:              a.URL,
	}, nil
}

func files(args any) []string { return args.(*Arguments).Client.Files() }
