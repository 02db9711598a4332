// Package consul is discovery.consul: it finds the instances of the services in
// a Consul catalog and follows their changes.
package consul

import (
	"time"

	common "github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
	sd "github.com/prometheus/prometheus/discovery"
	"github.com/prometheus/prometheus/discovery/consul"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/natives/discovery/internal/discovery"
)

// attempt is the maximum time until a query fails, including the pause before it.
// The values are constants of Prometheus.
const attempt = 2*time.Minute + 15*time.Second + 15*time.Second

// Registration describes discovery.consul.
func Registration() component.Registration {
	return component.Registration{
		Name:     "discovery.consul",
		NewArgs:  func() any { a := new(Arguments); a.SetToDefault(); return a },
		Exports:  discovery.Exports{},
		External: true,
		Build: func(o component.Options, args any, previous component.Component) (component.Component, error) {
			return discovery.New(o, discovery.Kind{
				Config: config, Stream: true,
				Rereads: func(args any) []string { return args.(*Arguments).Client.Files() },
				Forget:  attempt + args.(*Arguments).RefreshInterval,
			}, args, previous)
		},
	}
}

func config(args any) (sd.Config, error) {
	a := args.(*Arguments)
	client, err := a.Client.Checked()
	if err != nil {
		return nil, err
	}
	if a.Username != "" || a.Password != "" {
		client.BasicAuth = &common.BasicAuth{Username: a.Username, Password: common.Secret(a.Password)}
	}
	return &consul.SDConfig{
		Server:           a.Server,
		Token:            common.Secret(a.Token),
		Datacenter:       a.Datacenter,
		Namespace:        a.Namespace,
		Partition:        a.Partition,
		TagSeparator:     a.TagSeparator,
		Scheme:           a.Scheme,
		AllowStale:       a.AllowStale,
		RefreshInterval:  model.Duration(a.RefreshInterval),
		Services:         a.Services,
		ServiceTags:      a.Tags,
		NodeMeta:         a.NodeMeta,
		Filter:           a.Filter,
		HealthFilter:     a.HealthFilter,
		HTTPClientConfig: *client,
	}, nil
}
