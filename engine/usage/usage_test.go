package usage_test

import (
	"bytes"
	"context"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/usage"
)

// burn uses CPU time for a node.
func burn(node string, n int) (x float64) {
	pprof.Do(context.Background(), pprof.Labels(flow.NodeLabel, node), func(context.Context) {
		for i := range n {
			x += float64(i % 7)
		}
	})
	return x
}

// read burns CPU time for two nodes until one of them has used 0.2 s.
func read(t *testing.T, c *usage.CPU) map[string]time.Duration {
	t.Helper()
	for {
		for range 10 {
			burn("slow", 5_000_000)
			burn("fast", 100_000)
		}
		times, err := c.Read()
		if err != nil {
			t.Skip(err) // this test is being profiled
		}
		if times["slow"] >= 200*time.Millisecond {
			return times
		}
	}
}

// The time of a node is that of the goroutines with its label.
func TestCPU(t *testing.T) {
	var c usage.CPU
	c.Start()
	defer c.Stop()
	times := read(t, &c)
	if times["fast"] > times["slow"]/5 {
		t.Errorf("got %s for fast and %s for slow, which does 50 times as much", times["fast"], times["slow"])
	}
	c.Start()
	c.Stop()
	again := read(t, &c)
	if again["slow"] < times["slow"] {
		t.Errorf("the time of a node fell from %s to %s", times["slow"], again["slow"])
	}
}

// There is one CPU profile at a time: another one pauses the measurement.
func TestPause(t *testing.T) {
	var c usage.CPU
	profile := func() error {
		var b bytes.Buffer
		err := pprof.StartCPUProfile(&b)
		if err == nil {
			pprof.StopCPUProfile()
		}
		return err
	}
	if err := profile(); err != nil {
		t.Skip(err)
	}
	c.Pause()() // without clients
	c.Start()
	if profile() == nil {
		t.Error("nothing is measured")
	}
	resume := c.Pause()
	if err := profile(); err != nil {
		t.Errorf("paused: %s", err)
	}
	if _, err := c.Read(); err == nil || !strings.Contains(err.Error(), "another CPU profile is being taken") {
		t.Errorf("paused: got error %v", err)
	}
	resume()
	if _, err := c.Read(); err != nil || profile() == nil {
		t.Errorf("resumed: got error %v", err)
	}
	c.Stop()
	if err := profile(); err != nil {
		t.Errorf("stopped: %s", err)
	}

	// A profile of somebody else.
	var b bytes.Buffer
	if err := pprof.StartCPUProfile(&b); err != nil {
		t.Fatal(err)
	}
	c.Start()
	if _, err := c.Read(); err == nil {
		t.Error("another profile: got no error")
	}
	pprof.StopCPUProfile()
	if _, err := c.Read(); err != nil {
		t.Errorf("after another profile: %s", err)
	}
	c.Stop()
}
