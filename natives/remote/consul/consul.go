// Package consul is remote.consul: it exports the keys below a prefix in the
// key/value store of Consul, and exports them again when they change.
//
// Changes are found by blocking queries, at once. If Consul cannot be read, the
// node becomes unhealthy and the last values stay exported, so that dependent nodes
// continue to run.
package consul

import (
	"context"
	"errors"
	"strings"

	"github.com/hashicorp/consul/api"
	"github.com/prometheus/common/config"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/database"
	"github.com/weir-run/weir/engine/httpclient"
)

// Registration describes remote.consul.
func Registration() component.Registration {
	return database.Registration(database.Kind{
		Name:    "remote.consul",
		Exports: database.Exports{},
		NewArgs: func() any { a := new(Arguments); a.SetToDefault(); return a },
		Common:  func(args any) *database.Arguments { return &args.(*Arguments).Database },
		Files:   func(args any) []string { return args.(*Arguments).Client.Files() },
		Open:    open,
	})
}

// store is a client of an agent.
type store struct {
	client *api.Client
	http   interface{ CloseIdleConnections() }
	stale  bool
	// index is that of the last Get, by prefix.
	index map[string]uint64
}

func open(_ context.Context, args any, o database.Options) (database.Store, error) {
	a := args.(*Arguments)
	client, err := httpclient.NewClient(&a.Client, config.WithUserAgent(o.UserAgent))
	if err != nil {
		return nil, err
	}
	c, err := api.NewClient(&api.Config{
		Address: a.Server, Scheme: a.Scheme, HttpClient: client, Token: string(a.Token),
		Datacenter: a.Datacenter, Namespace: a.Namespace, Partition: a.Partition,
	})
	if err != nil {
		return nil, err
	}
	return &store{client: c, http: client, stale: a.AllowStale, index: map[string]uint64{}}, nil
}

// list reads the keys that begin with a prefix: Consul knows no folders.
func (s *store) list(ctx context.Context, prefix string, after uint64) (api.KVPairs, *api.QueryMeta, error) {
	o := &api.QueryOptions{AllowStale: s.stale, WaitIndex: after}
	return s.client.KV().List(strings.TrimLeft(prefix, "/"), o.WithContext(ctx))
}

// Get reads all prefixes. A folder, which is a key with a slash at the end, has no
// value and is left out.
func (s *store) Get(ctx context.Context, prefixes []string) (map[string]string, error) {
	out := map[string]string{}
	for _, p := range prefixes {
		pairs, meta, err := s.list(ctx, p, 0)
		if err != nil {
			return nil, err
		}
		s.index[p] = meta.LastIndex
		for _, kv := range pairs {
			if !strings.HasSuffix(kv.Key, "/") {
				out[kv.Key] = string(kv.Value)
			}
		}
	}
	return out, nil
}

// Watch waits until the index of a prefix differs from that of the last Get. It can
// be less after a restart of the server.
func (s *store) Watch(ctx context.Context, prefixes []string) error {
	ctx, cancel := context.WithCancel(ctx)
	results := make(chan error, len(prefixes))
	for _, p := range prefixes {
		go func() { results <- s.change(ctx, p) }()
	}
	err := <-results
	cancel()
	for range len(prefixes) - 1 {
		<-results
	}
	return err
}

func (s *store) change(ctx context.Context, prefix string) error {
	before := s.index[prefix]
	if before == 0 {
		return errors.New("the answer of Consul has no index")
	}
	for {
		_, meta, err := s.list(ctx, prefix, before)
		if err != nil {
			return err
		}
		if meta.LastIndex != before {
			return nil
		}
	}
}

// Close closes idle connections.
func (s *store) Close() error {
	s.http.CloseIdleConnections()
	return nil
}
