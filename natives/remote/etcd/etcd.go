// Package etcd is remote.etcd: it exports the keys below a prefix in etcd, and
// exports them again when they change.
//
// All values come from the same revision. A change is exported as soon as etcd
// reports it, and a key whose lease expires is removed. If etcd cannot be read,
// the node becomes unhealthy and the last values stay exported, so that dependent
// nodes continue to run. etcd 3.4 or later is required.
package etcd

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/database"
	"github.com/weir-run/weir/engine/httpclient"
)

// keepAlive is the interval after which an idle connection is tested, and the
// time limit of the answer.
const keepAlive = 10 * time.Second

// Registration describes remote.etcd.
func Registration() component.Registration {
	return database.Registration(database.Kind{
		Name:    "remote.etcd",
		Exports: database.Exports{},
		NewArgs: func() any { a := new(Arguments); a.SetToDefault(); return a },
		Common:  func(args any) *database.Arguments { return &args.(*Arguments).Database },
		Files: func(args any) []string {
			if t := args.(*Arguments).TLSConfig; t != nil {
				return t.Files()
			}
			return nil
		},
		Open: open,
	})
}

// store is a connection to a cluster.
type store struct {
	client *clientv3.Client
	end    context.CancelFunc
	// revision is that of the last Get.
	revision int64
}

func open(ctx context.Context, args any, o database.Options) (database.Store, error) {
	a := args.(*Arguments)
	cfg := clientv3.Config{
		Endpoints:            a.Endpoints,
		DialTimeout:          a.Database.PollTimeout,
		DialKeepAliveTime:    keepAlive,
		DialKeepAliveTimeout: keepAlive,
		PermitWithoutStream:  true,
		Username:             a.Username,
		Password:             string(a.Password),
		Logger:               zap.NewNop(), // errors are in the health
	}
	if strings.HasPrefix(a.Endpoints[0], "https://") {
		t := a.TLSConfig
		if t == nil {
			t = new(httpclient.TLSConfig)
		}
		var err error
		if cfg.TLS, err = t.Load(); err != nil {
			return nil, err
		}
	}
	// The client authenticates in New, and keeps the context.
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, end)
	cfg.Context = life
	client, err := clientv3.New(cfg)
	if err != nil {
		end()
		return nil, err
	}
	stop()
	return &store{client: client, end: end}, nil
}

// bounds returns the ranges of keys at and below a prefix.
func bounds(prefix string) (ops []clientv3.Op) {
	if prefix == "" || strings.HasSuffix(prefix, "/") {
		return []clientv3.Op{clientv3.OpGet(prefix, clientv3.WithPrefix())}
	}
	return []clientv3.Op{clientv3.OpGet(prefix), clientv3.OpGet(prefix+"/", clientv3.WithPrefix())}
}

// Get reads all prefixes in one transaction, so that the values have the same
// revision.
func (s *store) Get(ctx context.Context, prefixes []string) (map[string]string, error) {
	var ops []clientv3.Op
	for _, p := range prefixes {
		ops = append(ops, bounds(p)...)
	}
	resp, err := s.client.Txn(ctx).Then(ops...).Commit()
	if err != nil {
		return nil, err
	}
	s.revision = resp.Header.Revision
	out := map[string]string{}
	for _, r := range resp.Responses {
		for _, kv := range r.GetResponseRange().GetKvs() {
			out[string(kv.Key)] = string(kv.Value)
		}
	}
	return out, nil
}

// Watch waits for the first event after the revision of the last Get.
func (s *store) Watch(ctx context.Context, prefixes []string) error {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	first := make(chan error, 2*len(prefixes))
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	for _, p := range prefixes {
		for _, op := range bounds(p) {
			opts := []clientv3.OpOption{clientv3.WithRev(s.revision + 1), clientv3.WithRange(string(op.RangeBytes()))}
			events := s.client.Watch(ctx, string(op.KeyBytes()), opts...)
			wg.Go(func() { first <- wait(ctx, events) })
		}
	}
	return <-first
}

// wait returns nil after the first event. Events that were compacted were not
// seen, which also means that something changed.
func wait(ctx context.Context, events clientv3.WatchChan) error {
	for r := range events {
		if err := r.Err(); err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
			return err
		}
		if len(r.Events) > 0 || r.CompactRevision > 0 {
			return nil
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return errors.New("etcd ended the watch")
}

// Close ends the connection.
func (s *store) Close() error {
	defer s.end()
	return s.client.Close()
}
