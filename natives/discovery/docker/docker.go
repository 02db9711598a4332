// Package docker is discovery.docker: it finds the containers of a Docker daemon, one
// target for each port that they expose.
package docker

import (
	"github.com/prometheus/common/model"
	sd "github.com/prometheus/prometheus/discovery"
	"github.com/prometheus/prometheus/discovery/moby"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/natives/discovery/internal/discovery"
)

// Registration describes discovery.docker.
func Registration() component.Registration {
	return component.Registration{
		Name:     "discovery.docker",
		NewArgs:  func() any { a := new(Arguments); a.SetToDefault(); return a },
		Exports:  discovery.Exports{},
		External: true,
		Build: func(o component.Options, args any, previous component.Component) (component.Component, error) {
			return discovery.New(o, discovery.Kind{Config: config, Files: files}, args, previous)
		},
	}
}

func config(args any) (sd.Config, error) {
	a := args.(*Arguments)
	client, err := a.Client.Loaded()
	if err != nil {
		return nil, err
	}
	filters := make([]moby.Filter, len(a.Filters))
	for i, f := range a.Filters {
		filters[i] = moby.Filter{Name: f.Name, Values: f.Values}
	}
	return &moby.DockerSDConfig{
		HTTPClientConfig:   *client,
		Host:               a.Host,
		Port:               a.Port,
		Filters:            filters,
		HostNetworkingHost: a.HostNetworkingHost,
		RefreshInterval:    model.Duration(a.RefreshInterval),
		MatchFirstNetwork:  a.MatchFirstNetwork,
	}, nil
}

func files(args any) []string { return args.(*Arguments).Client.Files() }
