//go:build unix

package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/flow/flowtest"
)

// pid returns the process of a component.
func pid(t testing.TB, c component.Component) int {
	t.Helper()
	data, err := json.Marshal(c.(component.Debugger).DebugInfo())
	if err != nil {
		t.Fatal(err)
	}
	var info struct{ Plugin struct{ PID int } }
	if err := json.Unmarshal(data, &info); err != nil || info.Plugin.PID == 0 {
		t.Fatalf("got %s, %v", data, err)
	}
	return info.Plugin.PID
}

// load sends numbers through a component from several sources until stop is called. A
// batch is sent again until it is accepted. It returns how many each source has sent.
func load(c flow.MetricsConsumer, accepted *atomic.Int64) (stop func() (sent []int, of []uint64)) {
	const sources = 4
	sent, of := make([]int, sources), make([]uint64, sources)
	done := make(chan struct{})
	var wg sync.WaitGroup
	for i := range sources {
		of[i] = batch.NewSource()
		series := []*batch.Series{batch.NewSeries([]batch.Label{{Name: batch.NameLabel, Value: "n"}})}
		wg.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-done:
					sent[i] = n
					return
				default:
				}
				b := &batch.Metrics{Source: of[i], Series: series, T: []int64{int64(n)}, V: []float64{float64(n)}}
				err := c.ConsumeMetrics(context.Background(), b)
				for err != nil {
					if p, ok := errors.AsType[*flow.Partial](err); ok {
						err = p.Retry(context.Background())
					} else {
						err = c.ConsumeMetrics(context.Background(), b)
					}
				}
				accepted.Add(1)
			}
		})
	}
	return func() ([]int, []uint64) {
		close(done)
		wg.Wait()
		return sent, of
	}
}

// TestKill kills the process under load. No sample may be lost or arrive twice.
func TestKill(t *testing.T) {
	kills := 10
	if testing.Short() {
		kills = 3
	}
	if os.Getenv("KILLS") != "" {
		kills = 100
	}
	c := catalog(t, install(t))
	r := lookup(t, c, "acme.scale")
	sink := flowtest.NewSink("a")
	n := componenttest.New(t, "acme.scale.x")
	comp := n.Build(t, r, decode(t, r, "forward_to = []\nfactor = 1", sink.Receiver()))
	stop := n.Run(t, comp)
	var accepted atomic.Int64
	end := load(comp.(flow.MetricsConsumer), &accepted)
	var longest, sum time.Duration
	for range kills {
		deadline := time.Now().Add(time.Minute)
		for before := accepted.Load(); accepted.Load() < before+100; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("no batch is accepted any more")
			}
		}
		old := pid(t, comp)
		if err := syscall.Kill(old, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		deadline = start.Add(time.Minute)
		for pid(t, comp) == old {
			if time.Now().After(deadline) {
				t.Fatal("the plugin was not started again")
			}
			time.Sleep(time.Millisecond)
		}
		for before := accepted.Load(); accepted.Load() == before; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("no batch is accepted after the restart")
			}
		}
		took := time.Since(start)
		longest, sum = max(longest, took), sum+took
	}
	sent, of := end()
	stop()
	t.Logf("%d kills, %d samples; recovered after %s on average, %s at most", kills, accepted.Load(), sum/time.Duration(kills), longest)
	got := map[uint64][]float64{}
	for _, b := range sink.Batches() {
		got[b.Source] = append(got[b.Source], b.V...)
	}
	for i, source := range of {
		if len(got[source]) != sent[i] {
			t.Errorf("source %d: %d samples arrived, %d were sent", i, len(got[source]), sent[i])
		}
		for at, v := range got[source] {
			if v != float64(at) {
				t.Fatalf("source %d: sample %d is %v", i, at, v)
			}
		}
	}
	if h := n.Problem("plugin_process"); h.State != component.Healthy {
		t.Errorf("got %+v", h)
	}
}

// TestHang stops the process. It must be ended and started again.
func TestHang(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for the time limit of the watchdog")
	}
	c := catalog(t, install(t))
	r := lookup(t, c, "acme.scale")
	n := componenttest.New(t, "acme.scale.x")
	comp := n.Build(t, r, decode(t, r, "forward_to = []"))
	defer n.Run(t, comp)()
	if err := syscall.Kill(pid(t, comp), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	in := comp.(flow.MetricsConsumer)
	for !strings.Contains(n.Logs(), "does not respond") {
		for in.ConsumeMetrics(t.Context(), samples(t, batch.NewSource(), "a 1 1\n")) != nil {
		}
	}
}

// TestPanic ends the component like a panic of a native component.
func TestPanic(t *testing.T) {
	c := catalog(t, install(t))
	r := lookup(t, c, "acme.scale")
	n := componenttest.New(t, "acme.scale.x")
	comp := n.Build(t, r, decode(t, r, "forward_to = []\nfault = \"panic\""))
	done := make(chan error, 1)
	go func() { done <- comp.Run(t.Context()) }()
	err := comp.(flow.MetricsConsumer).ConsumeMetrics(t.Context(), samples(t, batch.NewSource(), "a 1 1\n"))
	if err == nil || !strings.Contains(err.Error(), "panic: the fault was requested") {
		t.Errorf("got %v", err)
	}
	if err := <-done; err == nil || !strings.Contains(err.Error(), "panic: the fault was requested") {
		t.Errorf("got %v", err)
	}
}

// TestReplacedBinary changes the binary. The next version starts in a process of its own
// and gets the state.
func TestReplacedBinary(t *testing.T) {
	dir := install(t)
	path := filepath.Join(dir, "weir-plugin-acme")
	exe, err := os.Readlink(path)
	if err != nil {
		t.Fatal(err)
	}
	c := catalog(t, dir)
	first := lookup(t, c, "acme.scale")
	sink := flowtest.NewSink("a")
	n := componenttest.New(t, "acme.scale.x")
	comp := n.Build(t, first, decode(t, first, "forward_to = []", sink.Receiver()))
	stop := n.Run(t, comp)
	if err := comp.(flow.MetricsConsumer).ConsumeMetrics(t.Context(), samples(t, batch.NewSource(), "a 1 1\nb 1 1\n")); err != nil {
		t.Fatal(err)
	}
	// The same program with another digest.
	data, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".new", append(data, 0), 0o755); err != nil { //nolint:gosec // it is a program
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	c.Refresh([]string{path})
	second := lookup(t, c, "acme.scale")
	if second.Version == first.Version {
		t.Fatal("the version did not change")
	}
	m := componenttest.New(t, "acme.scale.x")
	m.Previous = comp
	next := m.Build(t, second, decode(t, second, "forward_to = []", sink.Receiver()))
	defer m.Run(t, next)()
	stop()
	if pid(t, next) == pid(t, comp) {
		t.Error("both versions run in one process")
	}
	if info, _ := json.Marshal(next.(component.Debugger).DebugInfo()); !strings.Contains(string(info), `"samples":2`) {
		t.Errorf("got %s", info)
	}
	if err := next.(flow.MetricsConsumer).ConsumeMetrics(t.Context(), samples(t, batch.NewSource(), "a 1 1\n")); err != nil {
		t.Error(err)
	}
}

// TestBrokenPlugins looks up programs that are no plugins.
func TestBrokenPlugins(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "weir-plugin-"+name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("exits", "#!/bin/sh\nexit 3\n", 0o755)
	write("talks", "#!/bin/sh\necho hello\nsleep 60\n", 0o755)
	write("plain", "text", 0o644)
	write("empty", "", 0o755)
	c := catalog(t, dir)
	f := func(name, want string) {
		t.Helper()
		r, ok := c.Lookup(name + ".x")
		if !ok || r.Err == nil || !strings.Contains(r.Err.Error(), want) {
			t.Errorf("%s: got %v, %v, want %q", name, ok, r.Err, want)
		}
	}
	f("exits", "cannot start the plugin "+dir)
	f("talks", "Unrecognized remote plugin message: hello")
	f("plain", "it is not executable; run chmod +x")
	f("empty", "cannot start the plugin")
	if _, ok := c.Lookup("none.x"); ok {
		t.Error("found none.x")
	}
	if got := c.Names(); len(got) != 0 {
		t.Errorf("got %v", got)
	}
	if got := c.List(); len(got) != 4 || got[0].Namespace != "empty" || got[0].Error == "" {
		t.Errorf("got %+v", got)
	}
}
