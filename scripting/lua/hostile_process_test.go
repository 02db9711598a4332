package lua_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/scripting/lua"
)

const (
	childVar = "WEIR_TEST_HOSTILE"
	// peakLimit is what the process may have in memory while a bomb explodes: the
	// largest limit of memory in the corpus, and 256 MiB.
	peakLimit = (64 + 256) << 20
)

var passedRe = regexp.MustCompile(`--- PASS: (\S+)/`)

// inChild runs the test in a process of its own and reports true, or reports
// that this is that process.
func inChild(t *testing.T) bool {
	t.Helper()
	if testing.Short() {
		t.Skip("the bombs take half a minute")
	}
	if os.Getenv(childVar) != "" {
		return false
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=15m")
	cmd.Env = append(os.Environ(), childVar+"=1")
	started := time.Now()
	out, err := cmd.CombinedOutput()
	if err != nil {
		var failed []string
		keep := false
		for line := range strings.Lines(string(out)) {
			if trimmed := strings.TrimSpace(line); strings.HasPrefix(trimmed, "--- ") || strings.HasPrefix(line, "=== RUN") {
				keep = strings.HasPrefix(trimmed, "--- FAIL")
			} else if strings.HasPrefix(line, "panic") || strings.HasPrefix(line, "fatal") || strings.HasPrefix(line, "goleak") {
				keep = true
			}
			if keep || strings.Contains(line, "_test.go:") {
				failed = append(failed, line)
			}
		}
		t.Fatalf("%v\n%s", err, strings.Join(failed, ""))
	}
	n := len(passedRe.FindAll(out, -1))
	if n < 20 {
		t.Errorf("only %d bombs were run:\n%s", n, out)
	}
	t.Logf("%d bombs in %s", n, time.Since(started).Round(time.Millisecond))
	return true
}

// explode sends a bomb: it must fail with want and leave the data as it was,
// and a neighbour must be served meanwhile and afterwards.
func explode(t *testing.T, fx *fixture, beside *neighbour, in, want string) {
	t.Helper()
	forgetPeak()
	started := time.Now()
	equal(t, fx.send(t, in), in)
	took := time.Since(started)
	if h := fx.Health(); h.State != component.Unhealthy || !strings.Contains(h.Message, want) {
		t.Errorf("got %s: %.1000q, want %q", h.State, h.Message, want)
	}
	// Generous: the machine may be busy, and -race is slow.
	if took > 5*time.Minute {
		t.Errorf("took %s", took)
	}
	n := peak()
	if n > peakLimit && !lua.RaceDetector {
		t.Errorf("the process had %d MiB at its peak, want at most %d", n>>20, peakLimit>>20)
	}
	t.Logf("%s, %d MiB at the peak", took.Round(time.Millisecond), n>>20)
	beside.served(t)
}

// neighbour is a node to which a batch is sent every millisecond.
type neighbour struct{ sent chan error }

func newNeighbour(t *testing.T) *neighbour {
	n := &neighbour{sent: make(chan error)}
	fx := build(t, metrics(`batch:each(function(m) m.value = m.value + 1 end)`), "")
	fx.sink.Refuse(context.Canceled) // it would keep every batch
	b := parse(t, "a 1\nb 2\n")
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			err := fx.c.(flow.MetricsConsumer).ConsumeMetrics(ctx, b)
			if h := fx.Health(); h.State == component.Unhealthy {
				err = fmt.Errorf("the neighbour is unhealthy: %s", h.Message)
			} else if errors.Is(err, context.Canceled) {
				err = nil // of the sink
			}
			select {
			case n.sent <- err:
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	t.Cleanup(func() { stop(); <-ended })
	return n
}

// served waits until two more batches went through: one may be from before.
func (n *neighbour) served(t *testing.T) {
	t.Helper()
	for range 2 {
		if err := <-n.sent; err != nil {
			t.Error(err)
		}
	}
}
