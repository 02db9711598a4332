package file_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/natives/loki/source/file"
)

// sink accepts or refuses lines, and may keep their acknowledgements.
type sink struct {
	to *flow.Receiver

	mu     sync.Mutex
	got    []entry
	refuse error
	block  bool
	slow   <-chan time.Time // each call waits for a value
	hold   bool             // keep the acknowledgements
	holds  []*batch.Hold
	calls  int
}

type entry struct {
	labels, line string
	t            int64
}

func newSink(node string) *sink {
	s := &sink{to: flow.NewReceiver(node, batch.SignalLogs, nil, nil)}
	s.to.Set(s)
	return s
}

func (s *sink) ConsumeLogs(ctx context.Context, b *batch.Logs) error {
	s.mu.Lock()
	block, slow := s.block, s.slow
	s.calls++
	s.mu.Unlock()
	if block || slow != nil {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-slow:
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuse != nil {
		return s.refuse
	}
	if s.hold {
		s.holds = append(s.holds, b.Ack.Hold(nil))
	}
	for i, l := range b.Line {
		s.got = append(s.got, entry{b.Stream[i].String(), strings.Clone(l), b.T[i]})
	}
	return nil
}

func (s *sink) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *sink) entries() []entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.got)
}

func (s *sink) lines() (out []string) {
	for _, e := range s.entries() {
		out = append(out, e.line)
	}
	return out
}

func (s *sink) forget() { s.set(func() { s.got = nil }) }

// harness is a directory with logs and a component that follows them. It must be
// used in a synctest bubble.
type harness struct {
	t    testing.TB
	dir  string
	node *componenttest.Node
	sink *sink
	args *file.Arguments
	run  interface {
		component.Component
		component.Updater
		component.Debugger
	}
	stop    func()
	open    func(path string) (*os.File, error) // nil means the system's open
	boot    string                              // "" means the system's boot ID
	hidden  bool                                // it is unknown which files have writers
	rotated int64                               // limit of rotated files; 0 means the default
}

func newHarness(t testing.TB) *harness {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	h := &harness{t: t, dir: dir, node: componenttest.New(t, "loki.source.file.f"), sink: newSink("sink")}
	h.args = h.arguments()
	h.follow("app.log")
	return h
}

func (h *harness) arguments() *file.Arguments {
	a := file.Registration().NewArgs().(*file.Arguments)
	a.ForwardTo = []*flow.Receiver{h.sink.to}
	return a
}

// follow sets the targets to these paths.
func (h *harness) follow(names ...string) {
	h.args.Targets = nil
	for _, name := range names {
		h.args.Targets = append(h.args.Targets, map[string]string{"__path__": h.path(name), "job": "j"})
	}
}

func (h *harness) path(name string) string { return filepath.Join(h.dir, filepath.FromSlash(name)) }

func (h *harness) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

// append appends to a file and creates it if necessary.
func (h *harness) append(name, text string) {
	h.t.Helper()
	f, err := os.OpenFile(h.path(name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	h.must(err)
	_, err = f.WriteString(text)
	h.must(err)
	h.must(f.Close())
}

func (h *harness) rename(from, to string) {
	h.t.Helper()
	h.must(os.Rename(h.path(from), h.path(to)))
}

func (h *harness) remove(name string) {
	h.t.Helper()
	h.must(os.Remove(h.path(name)))
}

// age sets the time of a file to that of another one plus d. The clock of the
// bubble differs from that of the file system.
func (h *harness) age(name, as string, d time.Duration) {
	h.t.Helper()
	fi, err := os.Stat(h.path(as))
	h.must(err)
	at := fi.ModTime().Add(d)
	h.must(os.Chtimes(h.path(name), at, at))
}

// start builds and runs the component, like a start of weir.
func (h *harness) start() {
	h.t.Helper()
	if err := h.args.Validate(); err != nil {
		h.t.Fatal(err)
	}
	a := *h.args
	h.node.Registry = prometheus.NewRegistry() // the engine unregisters the metrics of a replaced component
	c := h.node.Build(h.t, file.Registration(), &a)
	if h.boot != "" {
		file.SetBoot(c, h.boot)
	}
	if h.hidden {
		file.HideWriters(c)
	}
	if h.rotated > 0 {
		file.SetMaxRotated(c, h.rotated)
	}
	if h.open != nil {
		file.SetOpen(c, h.open)
	}
	h.run = c.(interface {
		component.Component
		component.Updater
		component.Debugger
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	h.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			h.t.Errorf("Run: %v", err)
		}
	})
	synctest.Wait()
}

// pass advances the clock and waits until all goroutines are idle.
func (h *harness) pass(d time.Duration) {
	const step = 250 * time.Millisecond
	for ; d > 0; d -= step {
		synctest.Wait()
		h.node.Clock.Advance(min(step, d))
	}
	synctest.Wait()
}

func (h *harness) want(lines ...string) {
	h.t.Helper()
	if diff := cmp.Diff(lines, h.sink.lines()); diff != "" {
		h.t.Errorf("(-want +got):\n%s", diff)
	}
}

func numbers(prefix string, from, to int) (out []string) {
	for i := from; i <= to; i++ {
		out = append(out, fmt.Sprintf("%s%06d", prefix, i))
	}
	return out
}

// counts checks the sum of one of the component's metrics over all labels.
func (h *harness) counts(name string, want float64) {
	h.t.Helper()
	families, err := h.node.Registry.Gather()
	h.must(err)
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		var got float64
		for _, m := range f.GetMetric() {
			got += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
		if got != want {
			h.t.Errorf("%s is %v, want %v", name, got, want)
		}
		return
	}
	h.t.Errorf("there is no %s", name)
}
