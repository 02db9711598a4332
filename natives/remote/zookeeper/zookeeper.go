// Package zookeeper is remote.zookeeper: it exports the nodes below a prefix in
// ZooKeeper with their data, and exports them again when they change.
//
// A node that has children and no data is left out, because it is only a folder. A
// change is exported as soon as ZooKeeper reports it, and an ephemeral node whose
// session expires is removed. If ZooKeeper cannot be read, the node becomes unhealthy
// and the last values stay exported, so that dependent nodes continue to run.
package zookeeper

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"path"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/database"
)

// maxNodes is the maximum number of nodes that are read, each with its own requests.
const maxNodes = 100_000

// Registration describes remote.zookeeper.
func Registration() component.Registration {
	return database.Registration(database.Kind{
		Name:    "remote.zookeeper",
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

// store is a session.
type store struct {
	conn    *zk.Conn
	changed chan struct{} // has a value if a watched node changed since the last Get
	expired chan struct{} // has a value if the session ended
}

func open(ctx context.Context, args any, _ database.Options) (database.Store, error) {
	a := args.(*Arguments)
	var dialer net.Dialer
	dial := func(network, address string, timeout time.Duration) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
		defer cancel()
		return dialer.DialContext(ctx, network, address)
	}
	if a.TLSConfig != nil {
		cfg, err := a.TLSConfig.Load()
		if err != nil {
			return nil, err
		}
		dial = func(network, address string, timeout time.Duration) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
			defer cancel()
			return (&tls.Dialer{NetDialer: &dialer, Config: cfg}).DialContext(ctx, network, address)
		}
	}
	s := &store{changed: make(chan struct{}, 1), expired: make(chan struct{}, 1)}
	conn, _, err := zk.Connect(a.Servers, a.SessionTimeout, zk.WithDialer(dial), zk.WithLogger(silent{}), zk.WithLogInfo(false), zk.WithEventCallback(s.event))
	if err != nil {
		return nil, err
	}
	s.conn = conn
	if a.Username != "" {
		err := s.until(ctx, func() error { return conn.AddAuth("digest", []byte(a.Username+":"+string(a.Password))) })
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, nil
}

// silent discards messages: errors are in the health.
type silent struct{}

func (silent) Printf(string, ...any) {}

// event is called for each event of the session, and must not block.
func (s *store) event(e zk.Event) {
	to := s.changed
	if e.Type == zk.EventSession {
		if e.State != zk.StateExpired && e.State != zk.StateAuthFailed {
			return
		}
		to = s.expired
	}
	select {
	case to <- struct{}{}:
	default:
	}
}

// until calls fn, whose requests have no time limit. When ctx ends, it closes the
// connection, which ends them.
func (s *store) until(ctx context.Context, fn func() error) error {
	stop := context.AfterFunc(ctx, s.conn.Close)
	defer stop()
	err := fn()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// Get reads all nodes at and below the prefixes, and watches them.
func (s *store) Get(ctx context.Context, prefixes []string) (map[string]string, error) {
	select {
	case <-s.changed: // of nodes that are read now
	default:
	}
	out := map[string]string{}
	return out, s.until(ctx, func() error {
		left := maxNodes
		for _, p := range prefixes {
			if err := s.read(path.Clean("/"+p), out, &left); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *store) read(node string, out map[string]string, left *int) error {
	if *left--; *left < 0 {
		return fmt.Errorf("there are more than %d nodes: use a longer prefix", maxNodes)
	}
	data, _, _, err := s.conn.GetW(node)
	if errors.Is(err, zk.ErrNoNode) {
		_, _, _, err = s.conn.ExistsW(node) // watches for its creation
		return err
	}
	if err != nil {
		return fmt.Errorf("%s: %w", node, err)
	}
	children, _, _, err := s.conn.ChildrenW(node)
	if errors.Is(err, zk.ErrNoNode) {
		return nil // the watch reports that it was deleted
	}
	if err != nil {
		return fmt.Errorf("%s: %w", node, err)
	}
	if len(children) == 0 || len(data) > 0 {
		out[node] = string(data)
	}
	for _, child := range children {
		if node == "/" && child == "zookeeper" {
			continue // of ZooKeeper itself
		}
		if err := s.read(strings.TrimSuffix(node, "/")+"/"+child, out, left); err != nil {
			return err
		}
	}
	return nil
}

// Watch waits for an event of a node that was read.
func (s *store) Watch(ctx context.Context, _ []string) error {
	select {
	case <-s.changed:
		return nil
	case <-s.expired:
		return errors.New("the session ended")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close ends the session.
func (s *store) Close() error {
	s.conn.Close()
	return nil
}
