package process_test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/natives/loki/process"
)

var update = flag.Bool("update", false, "rewrite testdata")

// TestFiles runs the archives in testdata. Their sections, in order:
//
//	config     the stages; a second one is a reload
//	in         a batch, in the text form of log lines; the default time is
//	           2025-01-01T00:00:00Z, the initial time of the clock
//	wait 3s    advances the clock and waits for a batch
//	out        the lines that were sent since the previous section out
//	explain    what Explain returns for each line of the previous section in
//	dropped    how many lines were dropped so far, by reason
//	error      the errors of config with their positions; config begins in line 2 of
//	           c.alloy
//	log        text that is in the log
//
// With -update, the sections out, dropped and error are rewritten. Write an empty
// section for each one that you want.
func TestFiles(t *testing.T) { runFiles(t, "testdata/*.txtar") }

func runFiles(t *testing.T, pattern string) {
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatal("no files", err)
	}
	for _, f := range files {
		t.Run(strings.TrimSuffix(filepath.Base(f), ".txtar"), func(t *testing.T) { runFile(t, f) })
	}
}

func runFile(t *testing.T, file string) {
	a, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	n := newHarness(t)
	in := ""
	for i, s := range a.Files {
		text := string(s.Data)
		what, arg, _ := strings.Cut(s.Name, " ")
		want := text
		got := text
		switch what {
		case "config":
			n.reload(text)
		case "in":
			in = text
			n.send(text)
		case "explain":
			got = n.explain(in)
		case "wait":
			d, err := time.ParseDuration(arg)
			if err != nil {
				t.Fatal(err)
			}
			n.wait(d)
		case "out":
			got = n.out()
		case "dropped":
			got = n.dropped()
		case "error":
			got = n.mistakes
			n.mistakes = ""
		case "log":
			if !strings.Contains(n.Logs(), strings.TrimSpace(text)) {
				t.Errorf("%s: the log has no %q:\n%s", s.Name, text, n.Logs())
			}
		default:
			t.Fatalf("unknown section %q", s.Name)
		}
		if *update {
			a.Files[i].Data = []byte(got)
			continue
		}
		if diff := cmp.Diff(strings.TrimSpace(want), strings.TrimSpace(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", s.Name, diff)
		}
	}
	if n.mistakes != "" {
		t.Error(n.mistakes)
	}
	if *update {
		if err := os.WriteFile(file, txtar.Format(a), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// harness is a loki.process node, its input and its output.
type harness struct {
	*componenttest.Node
	t        testing.TB
	to       *flow.Receiver
	came     chan struct{} // a batch was received
	c        consumer
	source   uint64
	streams  *batch.Interner
	mistakes string

	mu       sync.Mutex
	got      []*batch.Logs
	refusals int           // how often batches are refused
	refused  chan struct{} // closed after the last refusal
}

// refuse makes the next calls fail.
func (n *harness) refuse(calls int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.refusals, n.refused = calls, make(chan struct{})
}

type consumer interface {
	component.Component
	component.Updater
	component.Explainer
	flow.LogsConsumer
}

func newHarness(t testing.TB) *harness {
	n := &harness{
		Node: componenttest.New(t, "loki.process.default"), t: t, to: flow.NewReceiver("sink", batch.SignalLogs, nil, nil), came: make(chan struct{}, 1000),
		source: batch.NewSource(), streams: batch.NewInterner(0),
	}
	n.to.Set(n)
	return n
}

// arguments decodes the stages like weir check.
func (n *harness) arguments(stages string) *process.Arguments {
	n.t.Helper()
	a, mistakes := decodeStages(stages)
	if mistakes != "" {
		n.t.Fatal(mistakes)
	}
	a.ForwardTo = []*flow.Receiver{n.to}
	return a
}

func decodeStages(stages string) (*process.Arguments, string) {
	return componenttest.Decode[*process.Arguments](process.Registration(), stages+"\nforward_to = []")
}

func (n *harness) reload(stages string) {
	n.t.Helper()
	if _, n.mistakes = decodeStages(stages); n.mistakes != "" {
		return
	}
	if n.c == nil {
		n.rebuild(stages)
		n.Run(n.t, n.c)
		return
	}
	if err := n.c.Update(n.arguments(stages)); err != nil {
		n.t.Fatal(err)
	}
}

// parse parses a batch. Equal streams have the same handle in all batches.
func (n *harness) parse(text string) *batch.Logs {
	n.t.Helper()
	b, err := batch.ParseLogsText(text, batch.TextOptions{T: epoch.UnixNano(), Source: n.source, Series: func(ls []batch.Label, m *batch.Metadata) *batch.Series {
		return n.streams.Intern(ls, m, epoch)
	}})
	if err != nil {
		n.t.Fatal(err)
	}
	return b
}

var epoch = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

func (n *harness) send(text string) {
	n.t.Helper()
	if n.c == nil {
		n.t.Fatal("there is no component: ", n.mistakes)
	}
	if err := n.c.ConsumeLogs(n.t.Context(), n.parse(text)); err != nil {
		n.t.Fatal(err)
	}
}

// ConsumeLogs records the output of the component.
func (n *harness) ConsumeLogs(_ context.Context, b *batch.Logs) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.refusals > 0 {
		if n.refusals--; n.refusals == 0 {
			close(n.refused)
		}
		return errRefused
	}
	n.got = append(n.got, b)
	n.came <- struct{}{}
	return nil
}

// takeBatches returns the batches since the last call.
func (n *harness) takeBatches() []*batch.Logs {
	n.mu.Lock()
	defer n.mu.Unlock()
	got := n.got
	n.got = nil
	for len(n.came) > 0 {
		<-n.came
	}
	return got
}

// wait advances the clock and returns when a batch was received. If no timer is
// set yet, the component will set one for a time in the past.
func (n *harness) wait(d time.Duration) {
	n.t.Helper()
	n.Clock.Advance(d)
	select {
	case <-n.came:
	case <-time.After(time.Minute):
		n.t.Fatal("nothing comes")
	}
}

func (n *harness) out() string {
	var out []byte
	for _, b := range n.takeBatches() {
		out = batch.AppendLogsTextAt(out, b, epoch.UnixNano())
	}
	return string(out)
}

// explain describes the steps for each line of a batch.
func (n *harness) explain(text string) string {
	n.t.Helper()
	b := n.parse(text)
	var out strings.Builder
	for i := range b.Len() {
		one := b.Rows([]int{i})
		fmt.Fprintf(&out, "%s", batch.AppendLogsTextAt(nil, one, epoch.UnixNano()))
		steps, err := n.c.Explain(n.t.Context(), flow.Batches{Logs: []*batch.Logs{one}})
		if err != nil {
			fmt.Fprintf(&out, "  error: %v\n", err)
		}
		for _, s := range steps {
			fmt.Fprintf(&out, "  %s\n", strings.TrimLeft(fmt.Sprintf("%s %s %d %s (%s)", s.Within, s.Kind, s.Index, s.Name, s.Detail), " "))
			for _, also := range s.Also {
				fmt.Fprintf(&out, "    %s\n", also)
			}
			if s.Depends != "" {
				fmt.Fprintf(&out, "    depends on %s; later: %v\n", s.Depends, s.Later)
			}
			for _, after := range s.After.Logs {
				for line := range strings.Lines(string(batch.AppendLogsTextAt(nil, after, epoch.UnixNano()))) {
					fmt.Fprintf(&out, "    %s", line)
				}
			}
		}
	}
	return out.String()
}

func (n *harness) dropped() string {
	var out strings.Builder
	by := n.Stats.DroppedLines()
	for _, r := range slices.Sorted(maps.Keys(by)) {
		fmt.Fprintf(&out, "%s %d\n", r, by[r])
	}
	return out.String()
}
