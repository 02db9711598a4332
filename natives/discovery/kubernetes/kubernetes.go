// Package kubernetes is discovery.kubernetes: it finds nodes, pods, services,
// endpoints or ingresses in the API of a Kubernetes cluster and follows their
// changes.
//
// The client library for the API server logs its errors to the log of the
// process; their number is in the node's health.
package kubernetes

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"
	"time"

	common "github.com/prometheus/common/config"
	sd "github.com/prometheus/prometheus/discovery"
	"github.com/prometheus/prometheus/discovery/kubernetes"

	"github.com/weir-run/weir/engine/component"
	weirfiles "github.com/weir-run/weir/engine/files"
	"github.com/weir-run/weir/natives/discovery/internal/discovery"
)

// Registration describes discovery.kubernetes.
func Registration() component.Registration {
	return component.Registration{
		Name:     "discovery.kubernetes",
		NewArgs:  func() any { a := new(Arguments); a.SetToDefault(); return a },
		Exports:  discovery.Exports{},
		External: true,
		Build: func(o component.Options, args any, previous component.Component) (component.Component, error) {
			return discovery.New(o, discovery.Kind{
				Config: config, Files: files, Stream: true,
				Rereads: func(args any) []string { return args.(*Arguments).Client.Files() },
				// The back-off of its watches ends at 30 s.
				Forget:   time.Minute,
				Failures: "prometheus_sd_kubernetes_failures_total",
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
	if a.KubeConfig != "" { // otherwise, the client would wait for the file
		if _, err := weirfiles.Read(a.KubeConfig, weirfiles.MaxSecret); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("cannot read kubeconfig_file: %w", err)
		}
	}
	cfg := &kubernetes.SDConfig{
		Role:             kubernetes.Role(a.Role),
		KubeConfig:       a.KubeConfig,
		HTTPClientConfig: *client,
		NamespaceDiscovery: kubernetes.NamespaceDiscovery{
			IncludeOwnNamespace: a.Namespaces.OwnNamespace,
			Names:               a.Namespaces.Names,
		},
		AttachMetadata: kubernetes.AttachMetadataConfig{Node: a.AttachMetadata.Node, Namespace: a.AttachMetadata.Namespace},
	}
	if a.APIServer != "" {
		u, err := url.Parse(a.APIServer)
		if err != nil {
			return nil, fmt.Errorf("api_server: %w", err)
		}
		cfg.APIServer = common.URL{URL: u}
	}
	for _, s := range a.Selectors {
		cfg.Selectors = append(cfg.Selectors, kubernetes.SelectorConfig{Role: kubernetes.Role(s.Role), Label: s.Label, Field: s.Field})
	}
	return cfg, nil
}

// files returns only the kubeconfig: the client reads its credentials again when
// they change, and a new discoverer would list all objects again.
func files(args any) []string {
	a := args.(*Arguments)
	if a.KubeConfig == "" {
		return nil
	}
	path, err := filepath.Abs(a.KubeConfig)
	if err != nil {
		return nil
	}
	return []string{path}
}
