// Package remotetest tests a key/value store of remote.* with a real server: that
// values arrive and change, and what happens when the server is killed, restarted
// and cut off.
package remotetest

import (
	"context"
	"fmt"
	"maps"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/engine/database"
)

// Server is a real server, which keeps its data when it is killed.
type Server struct {
	Registration component.Registration
	// Command returns the command that runs the server with its data in dir.
	Command func(dir string, port int) *exec.Cmd
	// Body returns the arguments of the component that connect it to an address, such
	// as 127.0.0.1:1234.
	Body func(addr string) string
	// Ping fails while the server at an address is not ready.
	Ping func(ctx context.Context, addr string) error
	// Put sets a key, and Delete deletes one.
	Put    func(ctx context.Context, addr, key, value string) error
	Delete func(ctx context.Context, addr, key string) error
	// Polls means that the store does not notify of changes.
	Polls bool

	t    testing.TB
	dir  string
	port int
	p    *process
}

// Start starts the server. It runs until the end of the test.
func (s *Server) Start(t testing.TB) {
	t.Helper()
	s.t, s.dir, s.port = t, t.TempDir(), FreePort(t)
	s.run()
	t.Cleanup(func() {
		s.Kill()
		if t.Failed() {
			out := s.p.output()
			t.Logf("output of the server:\n%s", out[max(0, len(out)-3000):])
		}
	})
}

// Addr returns the address of the server.
func (s *Server) Addr() string { return fmt.Sprint("127.0.0.1:", s.port) }

// Kill kills the server with SIGKILL.
func (s *Server) Kill() { s.p.kill() }

// Restart kills the server and starts it again with its data.
func (s *Server) Restart() {
	s.t.Helper()
	s.Kill()
	s.run()
}

func (s *Server) run() {
	s.t.Helper()
	s.p = start(s.t, s.Command(s.dir, s.port))
	Eventually(s.t, "the server is ready", func() error {
		select {
		case <-s.p.done:
			s.t.Fatalf("the server ended: %s\n%s", s.p.cmd.ProcessState, s.p.output())
		default:
		}
		ctx, cancel := context.WithTimeout(s.t.Context(), 5*time.Second)
		defer cancel()
		return s.Ping(ctx, s.Addr())
	})
}

// Set sets keys; the value "" deletes one.
func (s *Server) Set(values map[string]string) {
	s.t.Helper()
	for key, value := range values {
		Eventually(s.t, "the server takes "+key, func() error {
			ctx, cancel := context.WithTimeout(s.t.Context(), 5*time.Second)
			defer cancel()
			if value == "" {
				return s.Delete(ctx, s.Addr(), key)
			}
			return s.Put(ctx, s.Addr(), key, value)
		})
	}
}

// Node is a running component.
type Node struct {
	*componenttest.Node
	component.Component
	Stop func()
}

// Run runs the component with the arguments that connect it to addr, and more.
func (s *Server) Run(t testing.TB, addr, more string) *Node {
	t.Helper()
	return Run(t, s.Registration, s.Body(addr)+"\n"+more)
}

// Run runs a component.
func Run(t testing.TB, r component.Registration, body string) *Node {
	t.Helper()
	n := componenttest.New(t, r.Name+".x")
	args := r.NewArgs()
	if _, problems := componenttest.Decode[any](component.Registration{Name: r.Name, NewArgs: func() any { return args }}, body); problems != "" {
		t.Fatal(problems)
	}
	c := n.Build(t, r, args)
	return &Node{Node: n, Component: c, Stop: n.Run(t, c)}
}

// Values returns the exported values; nil if there are no exports yet.
func (n *Node) Values() map[string]string {
	e, ok := n.Exports().(database.Exports)
	if !ok {
		return nil
	}
	out := map[string]string{}
	for k, v := range e.Values {
		out[k] = v.Value
	}
	return out
}

// Await waits until the node exports exactly these values.
func (n *Node) Await(t testing.TB, want map[string]string) {
	t.Helper()
	Eventually(t, fmt.Sprintf("the values are %v", want), func() error {
		n.Clock.Advance(time.Second) // ends a pause after a failure
		if got := n.Values(); got == nil || !maps.Equal(got, want) {
			return fmt.Errorf("they are %v, and the health is %+v", got, n.Health())
		}
		return nil
	})
}

// AwaitHealth waits until the node has a state and a message that contains text.
func (n *Node) AwaitHealth(t testing.TB, state component.HealthState, text string) {
	t.Helper()
	Eventually(t, fmt.Sprintf("the node is %s: %s", state, text), func() error {
		n.Clock.Advance(time.Second)
		if h := n.Health(); h.State != state || !strings.Contains(h.Message, text) {
			return fmt.Errorf("its health is %+v", h)
		}
		return nil
	})
}

// Test tests what all stores have in common. The server must have been started and
// must be empty below /test.
func (s *Server) Test(t *testing.T) {
	s.Set(map[string]string{"/test/app/a": "1", "/test/app/b/c": "two\nlines", "/test/apple": "x", "/test/other/k": "o"})
	t.Run("values", func(t *testing.T) {
		f := func(more string, want map[string]string) {
			t.Helper()
			n := s.Run(t, s.Addr(), more)
			n.Await(t, want)
			n.Stop()
		}
		f(`prefix = "/test/app"`, map[string]string{"/a": "1", "/b/c": "two\nlines"})
		f(`prefix = "/test/app/"`, map[string]string{"/a": "1", "/b/c": "two\nlines"})
		f(`prefix = "/test/app/b/c"`, map[string]string{"/": "two\nlines"})
		f(`prefix = "/test"`+"\n"+`keys = ["/app/a", "/other"]`, map[string]string{"/app/a": "1", "/other/k": "o"})
		f(`prefix = "/test/none"`, map[string]string{})
	})
	t.Run("changes", func(t *testing.T) {
		n := s.Run(t, s.Addr(), `prefix = "/test/app"`+s.often())
		n.Await(t, map[string]string{"/a": "1", "/b/c": "two\nlines"})
		s.Set(map[string]string{"/test/app/a": "2"})
		n.Await(t, map[string]string{"/a": "2", "/b/c": "two\nlines"})
		s.Set(map[string]string{"/test/app/b/d": "new"})
		n.Await(t, map[string]string{"/a": "2", "/b/c": "two\nlines", "/b/d": "new"})
		s.Set(map[string]string{"/test/app/b/d": ""})
		n.Await(t, map[string]string{"/a": "2", "/b/c": "two\nlines"})
		for i := range 100 {
			s.Set(map[string]string{"/test/app/a": fmt.Sprint(i)})
		}
		n.Await(t, map[string]string{"/a": "99", "/b/c": "two\nlines"})
		if strings.Contains(n.Logs(), "level=ERROR") {
			t.Errorf("the log has errors:\n%s", n.Logs())
		}
	})
	t.Run("restart", func(t *testing.T) {
		s.Set(map[string]string{"/test/restart/a": "1"})
		n := s.Run(t, s.Addr(), `prefix = "/test/restart"`+quick)
		n.Await(t, map[string]string{"/a": "1"})
		s.Kill()
		n.AwaitHealth(t, component.Unhealthy, "cannot ")
		if got := n.Values(); !maps.Equal(got, map[string]string{"/a": "1"}) {
			t.Errorf("the values are %v while the server is down, want the last ones", got)
		}
		s.Restart()
		n.AwaitHealth(t, component.Healthy, "")
		s.Set(map[string]string{"/test/restart/a": "2"})
		n.Await(t, map[string]string{"/a": "2"})
	})
	t.Run("late", func(t *testing.T) {
		s.Kill()
		n := s.Run(t, s.Addr(), `prefix = "/test/restart"`+quick)
		n.AwaitHealth(t, component.Unhealthy, "cannot ")
		if n.Exports() != nil {
			t.Errorf("got exports %v although the server never answered", n.Exports())
		}
		s.Restart()
		n.Await(t, map[string]string{"/a": "2"})
	})
	t.Run("partition", func(t *testing.T) {
		link := NewLink(t, s.Addr())
		s.Set(map[string]string{"/test/restart/a": "1"})
		n := s.Run(t, link.Addr, `prefix = "/test/restart"`+quick)
		n.Await(t, map[string]string{"/a": "1"})
		link.Partition(true)
		s.Set(map[string]string{"/test/restart/a": "2"})
		n.AwaitHealth(t, component.Unhealthy, "cannot ")
		if got := n.Values(); !maps.Equal(got, map[string]string{"/a": "1"}) {
			t.Errorf("the values are %v during the partition, want the last ones", got)
		}
		link.Partition(false)
		n.Await(t, map[string]string{"/a": "2"})
		n.AwaitHealth(t, component.Healthy, "")
	})
}

// quick are arguments with which a node notices faults soon.
const quick = "\npoll_frequency = \"2s\"\npoll_timeout = \"2s\""

// often are arguments that let a store without notifications see changes.
func (s *Server) often() string {
	if s.Polls {
		return "\npoll_frequency = \"100ms\""
	}
	return "\npoll_frequency = \"1h\""
}
