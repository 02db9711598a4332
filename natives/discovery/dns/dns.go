// Package dns is discovery.dns: it finds targets in DNS records.
//
// If the lookup of a name fails, its targets stay and the node becomes unhealthy.
// If a name does not exist, it has no targets.
package dns

import (
	"github.com/prometheus/common/model"
	sd "github.com/prometheus/prometheus/discovery"
	"github.com/prometheus/prometheus/discovery/dns"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/natives/discovery/internal/discovery"
)

// Registration describes discovery.dns.
func Registration() component.Registration {
	return component.Registration{
		Name:     "discovery.dns",
		NewArgs:  func() any { a := new(Arguments); a.SetToDefault(); return a },
		Exports:  discovery.Exports{},
		External: true,
		Build: func(o component.Options, args any, previous component.Component) (component.Component, error) {
			return discovery.New(o, discovery.Kind{Config: config}, args, previous)
		},
	}
}

func config(args any) (sd.Config, error) {
	a := args.(*Arguments)
	return &dns.SDConfig{
		Names:           a.Names,
		RefreshInterval: model.Duration(a.RefreshInterval),
		Type:            a.Type,
		Port:            a.Port,
	}, nil
}
