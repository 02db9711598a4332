// Package hostiletest sends a language's scripts bombs: hooks that would hang
// the process or eat its memory. It is for the tests of the languages, which
// know the bombs.
package hostiletest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/component"
)

const childVar = "WEIR_TEST_HOSTILE"

var passedRe = regexp.MustCompile(`--- PASS: (\S+)/`)

// InChild runs the test in a process of its own and reports true, or reports
// false: this is that process.
func InChild(t *testing.T) bool {
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
			if keep || strings.Contains(line, "_test.go:") || strings.Contains(line, "process.go:") {
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

// Node is a scripted node.
type Node struct {
	// Send passes a batch in text form through the script and returns what comes
	// out, in text form.
	Send   func(t testing.TB, in string) string
	Health func() component.Health
}

// Range explodes bombs next to a neighbour that must still be served.
type Range struct {
	Beside *Neighbour
	// Peak is what the process may have in memory while a bomb explodes, in bytes:
	// the largest limit of memory in the corpus, and what a language may need
	// until it sees that a script is over it.
	Peak int
}

// Explode sends a bomb: it must fail with want and leave the data as it was, and
// the neighbour must be served meanwhile and afterwards.
func (r Range) Explode(t *testing.T, n Node, in, want string) {
	t.Helper()
	forgetPeak()
	started := time.Now()
	if got := n.Send(t, in); got != in {
		t.Errorf("got %q, want %q", got, in)
	}
	took := time.Since(started)
	if h := n.Health(); h.State != component.Unhealthy || !strings.Contains(h.Message, want) {
		t.Errorf("got %s: %.1000q, want %q", h.State, h.Message, want)
	}
	// Generous: the machine may be busy, and -race is slow.
	if took > 5*time.Minute {
		t.Errorf("took %s", took)
	}
	most := peak()
	if most > r.Peak && !RaceDetector {
		t.Errorf("the process had %d MiB at its peak, want at most %d", most>>20, r.Peak>>20)
	}
	t.Logf("%s, %d MiB at the peak", took.Round(time.Millisecond), most>>20)
	r.Beside.served(t)
}

// Works sends a batch that is no bomb, which the script marks with ok="1".
func (n Node) Works(t *testing.T) {
	t.Helper()
	if got, want := n.Send(t, "work 1\n"), "work{ok=\"1\"} 1\n"; got != want {
		t.Errorf("after the bomb: got %q, want %q", got, want)
	}
	if h := n.Health(); h.State != component.Healthy {
		t.Errorf("after the bomb: %s: %s", h.State, h.Message)
	}
}

// Corpus runs what is in the files: one has many bombs, of which the label bomb
// of the batch says the one to explode. A line `want: …` in a comment above
// them is what their errors say, and `script: …` what the block says.
//
// bomb finds a bomb's name in a line. Every bomb but those of a file peak.* is
// sent twice: it may have left something behind.
func (r Range) Corpus(t *testing.T, pattern, comment string, bomb *regexp.Regexp, build func(t testing.TB, src, attrs string) Node) {
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("there is no corpus: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		attrs, want, again := "", "", !RaceDetector && !strings.HasPrefix(filepath.Base(file), "peak.")
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSuffix(line, "\n")
			if rest, ok := strings.CutPrefix(line, comment+" script: "); ok {
				attrs = "script {\n" + strings.Replace(rest, " memory", "\nmemory", 1) + "\n}"
				attrs = strings.NewReplacer("limits { ", "limits {\n", " }\n}", "\n}\n}").Replace(attrs)
			}
			if rest, ok := strings.CutPrefix(line, comment+" want: "); ok {
				want = rest
			}
			m := bomb.FindStringSubmatch(line)
			if m == nil {
				continue
			}
			t.Run(filepath.Base(file)+"/"+m[1], func(t *testing.T) {
				n := build(t, string(text), attrs)
				in := fmt.Sprintf("m{bomb=%q} 1\n", m[1])
				r.Explode(t, n, in, want)
				if again {
					r.Explode(t, n, in, want)
				}
				n.Works(t)
			})
		}
	}
}

// Neighbour is a node to which a batch is sent every millisecond.
type Neighbour struct{ sent chan error }

// NewNeighbour begins to send: send passes one batch to the node.
func NewNeighbour(t *testing.T, send func(context.Context) error, health func() component.Health) *Neighbour {
	n := &Neighbour{sent: make(chan error)}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			err := send(ctx)
			if h := health(); h.State == component.Unhealthy {
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
func (n *Neighbour) served(t *testing.T) {
	t.Helper()
	for range 2 {
		if err := <-n.sent; err != nil {
			t.Error(err)
		}
	}
}
