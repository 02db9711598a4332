// Package componenttest stands in for the engine in tests of one component:
// it has the Options to build it with, and keeps what it reports.
package componenttest

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/engine/clock/clocktest"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/stall"
)

// Node is what the engine would be to one component. Its fields are set by New
// and may be changed before Options is called.
type Node struct {
	ID          string
	Clock       *clocktest.Fake
	Registry    *prometheus.Registry
	Stats       *flow.Stats
	StoragePath string
	DataPath    string // below StoragePath, not created
	Services    map[string]any
	Previous    component.Component // what Build replaces
	Watch       *stall.Watch

	mu      sync.Mutex
	logs    bytes.Buffer
	exports []any
	health  []component.Health
	// problems are the last reports that had a reason.
	problems map[string]component.Health
	changed  chan struct{} // closed and replaced at every export and health report
}

// New returns a Node whose clock stands at 2025-01-01T00:00:00Z.
func New(t testing.TB, id string) *Node {
	dir := t.TempDir()
	clk := clocktest.New(time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC))
	return &Node{
		ID:          id,
		Clock:       clk,
		Watch:       stall.New(clk),
		Registry:    prometheus.NewRegistry(),
		Stats:       new(flow.Stats),
		StoragePath: dir,
		DataPath:    filepath.Join(dir, id),
		Services:    map[string]any{},
		changed:     make(chan struct{}),
	}
}

// Options returns what the engine would pass to Build.
func (n *Node) Options() component.Options {
	return component.Options{
		ID:          n.ID,
		Logger:      slog.New(slog.NewTextHandler(writer{n}, nil)).With("component_id", n.ID),
		Registerer:  prometheus.WrapRegistererWith(prometheus.Labels{"component_id": n.ID}, n.Registry),
		DataPath:    n.DataPath,
		StoragePath: n.StoragePath,
		UserAgent:   "weir/test",
		Clock:       n.Clock,
		Stats:       n.Stats,
		Export:      n.export,
		Health:      n.report,
		Watch:       n.Watch,
		Service: func(name string) (any, error) {
			if s, ok := n.Services[name]; ok {
				return s, nil
			}
			return nil, fmt.Errorf("no service %q", name)
		},
	}
}

// Build builds what r describes, and fails the test if that fails.
func (n *Node) Build(t testing.TB, r component.Registration, args any) component.Component {
	t.Helper()
	c, err := r.Build(n.Options(), args, n.Previous)
	if err != nil {
		t.Fatalf("cannot build %s: %v", n.ID, err)
	}
	return c
}

// Run runs c until the test ends or stop is called, whichever is first, as if
// weir then stopped. It fails the test if Run returns an error.
func (n *Node) Run(t testing.TB, c component.Component) (stop func()) {
	end := n.Start(t, c)
	return func() { end(nil) }
}

// Start is Run, but end takes the cause, such as component.ErrRemoved.
func (n *Node) Start(t testing.TB, c component.Component) (end func(cause error)) {
	ctx, cancel := context.WithCancelCause(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	var once sync.Once
	end = func(cause error) {
		once.Do(func() {
			cancel(cause)
			if err := <-done; err != nil {
				t.Errorf("%s ended with %v", n.ID, err)
			}
		})
	}
	t.Cleanup(func() { end(nil) })
	return end
}

// Exports returns the last exports, nil when there were none.
func (n *Node) Exports() any {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.exports) == 0 {
		return nil
	}
	return n.exports[len(n.exports)-1]
}

// Health returns the last health reported without a reason, the zero value when there was none.
func (n *Node) Health() component.Health {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.health) == 0 {
		return component.Health{}
	}
	return n.health[len(n.health)-1]
}

// Problem returns the last health that was reported for a reason, the zero value
// when there was none.
func (n *Node) Problem(reason string) component.Health {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.problems[reason]
}

// Logs returns the log so far.
func (n *Node) Logs() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.logs.String()
}

// Wait returns once ok, which is asked after every export and health report;
// it fails the test when that does not happen within two minutes: the machine may
// be busy.
func (n *Node) Wait(t testing.TB, ok func() bool) {
	t.Helper()
	timeout := time.NewTimer(2 * time.Minute)
	defer timeout.Stop()
	for {
		n.mu.Lock()
		changed := n.changed
		n.mu.Unlock()
		if ok() {
			return
		}
		select {
		case <-changed:
		case <-timeout.C:
			t.Fatalf("%s did not report what was waited for; last health %+v, last exports %+v", n.ID, n.Health(), n.Exports())
		}
	}
}

func (n *Node) export(e any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.exports = append(n.exports, e)
	n.wake()
}

func (n *Node) report(h component.Health) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if h.Reason == "" {
		n.health = append(n.health, h)
	} else {
		if n.problems == nil {
			n.problems = map[string]component.Health{}
		}
		n.problems[h.Reason] = h
	}
	n.wake()
}

func (n *Node) wake() {
	close(n.changed)
	n.changed = make(chan struct{})
}

type writer struct{ n *Node }

func (w writer) Write(p []byte) (int, error) {
	w.n.mu.Lock()
	defer w.n.mu.Unlock()
	return w.n.logs.Write(p)
}
