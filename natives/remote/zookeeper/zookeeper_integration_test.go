//go:build integration

package zookeeper_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/natives/remote/remotetest"
	"github.com/weir-run/weir/natives/remote/zookeeper"
)

// do calls f with a connection.
func do(ctx context.Context, addr string, f func(c *zk.Conn) error) error {
	c, _, err := zk.Connect([]string{addr}, 10*time.Second, zk.WithLogInfo(false))
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, c.Close)
	defer c.Close()
	defer stop()
	return f(c)
}

// put sets a node, and creates it with the nodes above it if necessary.
func put(c *zk.Conn, node, value string) error {
	_, err := c.Set(node, []byte(value), -1)
	if !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	if dir := path.Dir(node); dir != "/" {
		if ok, _, err := c.Exists(dir); err != nil {
			return err
		} else if !ok {
			if err := put(c, dir, ""); err != nil {
				return err
			}
		}
	}
	_, err = c.Create(node, []byte(value), 0, zk.WorldACL(zk.PermAll))
	return err
}

func server() *remotetest.Server {
	return &remotetest.Server{
		Registration: zookeeper.Registration(),
		Command: func(dir string, port int) *exec.Cmd {
			conf := filepath.Join(dir, "zoo.cfg")
			text := fmt.Sprintf("tickTime=200\ndataDir=%s/data\nclientPortAddress=127.0.0.1\nclientPort=%d\nadmin.enableServer=false\nmaxSessionTimeout=20000\n", dir, port)
			if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
				panic(err)
			}
			return exec.Command("java", "-Xmx128m", "-cp", "/etc/zookeeper/conf:/usr/share/java/zookeeper.jar:/usr/share/java/*", "org.apache.zookeeper.server.quorum.QuorumPeerMain", conf)
		},
		Body: func(addr string) string { return fmt.Sprintf("servers = [%q]\nsession_timeout = \"2s\"", addr) },
		Ping: func(ctx context.Context, addr string) error {
			return do(ctx, addr, func(c *zk.Conn) error { _, _, err := c.Exists("/"); return err })
		},
		Put: func(ctx context.Context, addr, key, value string) error {
			return do(ctx, addr, func(c *zk.Conn) error { return put(c, key, value) })
		},
		Delete: func(ctx context.Context, addr, key string) error {
			return do(ctx, addr, func(c *zk.Conn) error { return c.Delete(key, -1) })
		},
	}
}

func TestServer(t *testing.T) {
	s := server()
	s.Start(t)
	s.Test(t)

	t.Run("ephemeral", func(t *testing.T) {
		s.Set(map[string]string{"/test/live/base": "x"})
		n := s.Run(t, s.Addr(), "prefix = \"/test/live\"\npoll_frequency = \"1h\"")
		n.Await(t, map[string]string{"/base": "x"})
		if err := do(t.Context(), s.Addr(), func(c *zk.Conn) error {
			_, err := c.Create("/test/live/a", []byte("1"), zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
			if err == nil {
				n.Await(t, map[string]string{"/base": "x", "/a": "1"})
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		n.Await(t, map[string]string{"/base": "x"}) // its session has ended
	})

	t.Run("credentials", func(t *testing.T) {
		if err := do(t.Context(), s.Addr(), func(c *zk.Conn) error {
			_, err := c.Create("/private", []byte("1"), 0, zk.DigestACL(zk.PermAll, "weir", "hunter2"))
			return err
		}); err != nil {
			t.Fatal(err)
		}
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
		f(`prefix = "/private"`, "/private: zk: not authenticated")
		f("prefix = \"/private\"\nusername = \"weir\"\npassword = \"hunter3\"", "/private: zk: not authenticated")
		n := s.Run(t, s.Addr(), "prefix = \"/private\"\nusername = \"weir\"\npassword = \"hunter2\"")
		n.Await(t, map[string]string{"/": "1"})
	})
}
