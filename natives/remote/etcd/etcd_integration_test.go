//go:build integration

package etcd_test

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/natives/remote/etcd"
	"github.com/weir-run/weir/natives/remote/remotetest"
)

// do calls f with a client.
func do(ctx context.Context, addr string, f func(c *clientv3.Client) error) error {
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{"http://" + addr}, DialTimeout: 5 * time.Second, Logger: zap.NewNop()})
	if err != nil {
		return err
	}
	defer c.Close()
	return f(c)
}

func server() *remotetest.Server {
	return &remotetest.Server{
		Registration: etcd.Registration(),
		Command: func(dir string, port int) *exec.Cmd {
			client, peer := fmt.Sprint("http://127.0.0.1:", port), "http://127.0.0.1:0"
			return exec.Command("etcd", "--data-dir="+dir+"/data", "--name=x", "--listen-client-urls="+client, "--advertise-client-urls="+client,
				"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster=x="+peer)
		},
		Body: func(addr string) string { return fmt.Sprintf("endpoints = [\"http://%s\"]", addr) },
		Ping: func(ctx context.Context, addr string) error {
			return do(ctx, addr, func(c *clientv3.Client) error { _, err := c.Get(ctx, "/"); return err })
		},
		Put: func(ctx context.Context, addr, key, value string) error {
			return do(ctx, addr, func(c *clientv3.Client) error { _, err := c.Put(ctx, key, value); return err })
		},
		Delete: func(ctx context.Context, addr, key string) error {
			return do(ctx, addr, func(c *clientv3.Client) error { _, err := c.Delete(ctx, key); return err })
		},
	}
}

func TestServer(t *testing.T) {
	s := server()
	s.Start(t)
	s.Test(t)
	client := func(f func(c *clientv3.Client) error) {
		t.Helper()
		if err := do(t.Context(), s.Addr(), f); err != nil {
			t.Fatal(err)
		}
	}

	t.Run("compaction", func(t *testing.T) {
		link := remotetest.NewLink(t, s.Addr())
		s.Set(map[string]string{"/test/compacted/a": "1"})
		n := s.Run(t, link.Addr, "prefix = \"/test/compacted\"\npoll_frequency = \"1h\"\npoll_timeout = \"5s\"")
		n.Await(t, map[string]string{"/a": "1"})
		link.Partition(true)
		for i := range 10 {
			s.Set(map[string]string{"/test/compacted/a": fmt.Sprint("2.", i)})
		}
		client(func(c *clientv3.Client) error {
			resp, err := c.Get(t.Context(), "/test/compacted/a")
			if err == nil {
				_, err = c.Compact(t.Context(), resp.Header.Revision, clientv3.WithCompactPhysical())
			}
			return err
		})
		s.Restart() // the watch begins again, at a revision that is gone
		link.Partition(false)
		n.Await(t, map[string]string{"/a": "2.9"})
	})

	t.Run("lease", func(t *testing.T) {
		client(func(c *clientv3.Client) error {
			lease, err := c.Grant(t.Context(), 2)
			if err == nil {
				_, err = c.Put(t.Context(), "/test/lease/a", "1", clientv3.WithLease(lease.ID))
			}
			return err
		})
		n := s.Run(t, s.Addr(), "prefix = \"/test/lease\"\npoll_frequency = \"1h\"")
		n.Await(t, map[string]string{"/a": "1"})
		n.Await(t, map[string]string{}) // the lease has expired
	})

	t.Run("credentials", func(t *testing.T) {
		s.Set(map[string]string{"/test/auth/a": "1", "/private": "2"})
		client(func(c *clientv3.Client) error {
			ctx := t.Context()
			_, err := c.RoleAdd(ctx, "reader")
			for _, f := range []func() error{
				func() error { _, err := c.UserAdd(ctx, "root", "toor"); return err },
				func() error { _, err := c.UserGrantRole(ctx, "root", "root"); return err },
				func() error {
					_, err := c.RoleGrantPermission(ctx, "reader", "/test/auth/", clientv3.GetPrefixRangeEnd("/test/auth/"), clientv3.PermissionType(clientv3.PermRead))
					return err
				},
				func() error { _, err := c.UserAdd(ctx, "weir", "hunter2"); return err },
				func() error { _, err := c.UserGrantRole(ctx, "weir", "reader"); return err },
				func() error { _, err := c.AuthEnable(ctx); return err },
			} {
				if err == nil {
					err = f()
				}
			}
			return err
		})
		f := func(more, message string) {
			t.Helper()
			n := s.Run(t, s.Addr(), more+"\npoll_timeout = \"5s\"")
			defer n.Stop()
			n.AwaitHealth(t, component.Unhealthy, message)
			if n.Exports() != nil {
				t.Errorf("%s: got exports %v", more, n.Exports())
			}
			if strings.Contains(n.Logs(), "hunter") {
				t.Errorf("the log has a password:\n%s", n.Logs())
			}
		}
		f(`prefix = "/test/auth/"`, "user name is empty")
		f("prefix = \"/test/auth/\"\nusername = \"weir\"\npassword = \"hunter3\"", "authentication failed, invalid user ID or password")
		f("prefix = \"/private\"\nusername = \"weir\"\npassword = \"hunter2\"", "permission denied")
		n := s.Run(t, s.Addr(), "prefix = \"/test/auth/\"\nusername = \"weir\"\npassword = \"hunter2\"\npoll_frequency = \"2s\"\npoll_timeout = \"5s\"")
		n.Await(t, map[string]string{"/a": "1"})
		s.Kill()
		n.AwaitHealth(t, component.Unhealthy, "cannot ")
	})
}
