//go:build integration

package redis_test

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/natives/remote/redis"
	"github.com/weir-run/weir/natives/remote/remotetest"
)

// do calls f with a client.
func do(addr string, f func(c *goredis.Client) error) error {
	c := goredis.NewClient(&goredis.Options{Addr: addr})
	defer c.Close()
	return f(c)
}

// server returns a Redis that keeps every write on disk.
func server(more ...string) *remotetest.Server {
	return &remotetest.Server{
		Registration: redis.Registration(),
		Command: func(dir string, port int) *exec.Cmd {
			return exec.Command("redis-server", append([]string{"--port", fmt.Sprint(port), "--bind", "127.0.0.1", "--dir", dir, "--appendonly", "yes", "--appendfsync", "always", "--save", ""}, more...)...)
		},
		Body: func(addr string) string { return fmt.Sprintf("address = %q", addr) },
		Ping: func(ctx context.Context, addr string) error {
			return do(addr, func(c *goredis.Client) error { return c.Ping(ctx).Err() })
		},
		Put: func(ctx context.Context, addr, key, value string) error {
			return do(addr, func(c *goredis.Client) error { return c.Set(ctx, key, value, 0).Err() })
		},
		Delete: func(ctx context.Context, addr, key string) error {
			return do(addr, func(c *goredis.Client) error { return c.Del(ctx, key).Err() })
		},
	}
}

func TestServer(t *testing.T) {
	s := server("--notify-keyspace-events", "KA")
	s.Start(t)
	s.Test(t)
	command := func(args ...any) {
		t.Helper()
		if err := do(s.Addr(), func(c *goredis.Client) error { return c.Do(t.Context(), args...).Err() }); err != nil {
			t.Fatal(err)
		}
	}

	t.Run("types", func(t *testing.T) {
		command("HSET", "/test/types/hash", "x", "1", "y", "2")
		command("RPUSH", "/test/types/list", "1")
		command("SET", "/test/types/*", "star")
		n := s.Run(t, s.Addr(), "prefix = \"/test/types\"\npoll_frequency = \"1h\"")
		n.Await(t, map[string]string{"/hash/x": "1", "/hash/y": "2", "/*": "star"})
		command("HSET", "/test/types/hash", "x", "3")
		n.Await(t, map[string]string{"/hash/x": "3", "/hash/y": "2", "/*": "star"})
		f := func(more string, want map[string]string) {
			t.Helper()
			n := s.Run(t, s.Addr(), more)
			n.Await(t, want)
			n.Stop()
		}
		f(`prefix = "/test/types/hash/x"`, map[string]string{"/": "3"})
		f(`prefix = "/test/types/hash/"`, map[string]string{"/x": "3", "/y": "2"})
		f(`prefix = "/test/types/*"`, map[string]string{"/": "star"})
	})

	t.Run("separator", func(t *testing.T) {
		command("SET", "sep:a:b", "1")
		command("HSET", "sep:h", "x", "2")
		n := s.Run(t, s.Addr(), "separator = \":\"\nprefix = \"/sep\"\npoll_frequency = \"1h\"")
		n.Await(t, map[string]string{"/a/b": "1", "/h/x": "2"})
		command("SET", "sep:a:b", "3")
		n.Await(t, map[string]string{"/a/b": "3", "/h/x": "2"})
	})

	t.Run("database", func(t *testing.T) {
		if err := do(s.Addr(), func(c *goredis.Client) error {
			_, err := c.Pipelined(t.Context(), func(p goredis.Pipeliner) error {
				p.Do(t.Context(), "SELECT", 3)
				p.Set(t.Context(), "/db/a", "1", 0)
				return nil
			})
			return err
		}); err != nil {
			t.Fatal(err)
		}
		n := s.Run(t, s.Addr(), "db = 3\nprefix = \"/db\"")
		n.Await(t, map[string]string{"/a": "1"})
	})

	t.Run("expiry", func(t *testing.T) {
		command("SET", "/test/expiry/a", "1", "EX", "2")
		n := s.Run(t, s.Addr(), "prefix = \"/test/expiry\"\npoll_frequency = \"1h\"")
		n.Await(t, map[string]string{"/a": "1"})
		n.Await(t, map[string]string{})
	})

	t.Run("credentials", func(t *testing.T) {
		command("SET", "/test/auth/a", "1")
		command("ACL", "SETUSER", "weir", "on", ">hunter2", "~/test/auth/*", "&*", "+@read", "+psubscribe", "+@connection")
		command("CONFIG", "SET", "requirepass", "toor")
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
		f(`prefix = "/test/auth"`, "NOAUTH")
		f("prefix = \"/test/auth\"\nusername = \"weir\"\npassword = \"hunter3\"", "WRONGPASS")
		f("prefix = \"/test/types/hash\"\nusername = \"weir\"\npassword = \"hunter2\"", "NOPERM")
		n := s.Run(t, s.Addr(), "prefix = \"/test/auth/\"\nusername = \"weir\"\npassword = \"hunter2\"")
		n.Await(t, map[string]string{"/a": "1"})
	})
}

// TestPolling: without notifications, changes are found by polling.
func TestPolling(t *testing.T) {
	s := server()
	s.Polls = true
	s.Start(t)
	s.Test(t)
}
