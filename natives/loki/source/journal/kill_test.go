package journal_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/natives/loki/source/journal"
)

// Environment variables that make the test binary run as another process, with a
// directory as the value.
const (
	childVariable    = "WEIR_TEST_JOURNAL_READER"
	journaldVariable = "WEIR_TEST_JOURNALD"
)

// fileSink appends lines with their times to a file, which survives a kill.
type fileSink struct{ f *os.File }

func (s fileSink) ConsumeLogs(_ context.Context, b *batch.Logs) error {
	var out strings.Builder
	for i, line := range b.Line {
		fmt.Fprintf(&out, "%d %s end\n", b.T[i], line)
	}
	_, err := s.f.WriteString(out.String())
	return err
}

// readForever is the process that TestKill kills. dir contains lines and
// position.
func readForever(dir, path, matches string) error {
	f, err := os.OpenFile(filepath.Join(dir, "out"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := f.WriteString("\n"); err != nil { // the previous process may have written an incomplete line
		return err
	}
	to := flow.NewReceiver("file", batch.SignalLogs, nil, nil)
	to.Set(fileSink{f})
	r := journal.Registration()
	a := r.NewArgs().(*journal.Arguments)
	a.Path, a.Matches, a.ForwardTo = path, matches, []*flow.Receiver{to}
	c, err := r.Build(component.Options{
		ID: "loki.source.journal.default", Logger: slog.New(slog.DiscardHandler), Registerer: prometheus.NewRegistry(),
		DataPath: filepath.Join(dir, "data"), Clock: clock.System{}, Stats: new(flow.Stats), Health: func(component.Health) {},
	}, a, nil)
	if err != nil {
		return err
	}
	return c.Run(context.Background())
}

// arrived returns the times of the lines that readForever has received. Lines are
// numbers.
func arrived(t *testing.T, dir string) map[uint64]string {
	t.Helper()
	m := map[uint64]string{}
	b, err := os.ReadFile(filepath.Join(dir, "out"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		words := strings.Fields(line)
		if len(words) != 3 || words[2] != "end" {
			continue // incomplete line
		}
		n, err := strconv.ParseUint(words[1], 10, 64)
		if err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		if at, ok := m[n]; ok && at != words[0] {
			t.Fatalf("entry %d arrived with the times %s and %s", n, at, words[0])
		}
		m[n] = words[0]
	}
	return m
}

// waitArrived waits until n entries have arrived and calls check repeatedly.
func waitArrived(t *testing.T, dir string, n int, check func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	for len(arrived(t, dir)) < n {
		check()
		if err := clock.Sleep(ctx, clock.System{}, 20*time.Millisecond); err != nil {
			t.Fatalf("%d entries have arrived, want %d", len(arrived(t, dir)), n)
		}
	}
}

// TestKill repeatedly kills a process that reads a journal, while the journal is
// written, rotated and vacuumed. Every entry arrives. Duplicates have the same
// time and text, so that Loki stores only one.
func TestKill(t *testing.T) {
	if testing.Short() {
		t.Skip("kills processes for some seconds")
	}
	l := newHarness(t)
	dir := t.TempDir()
	l.dir = filepath.Join(dir, "journal")
	seen := func() map[uint64]string { return arrived(t, dir) }
	const rounds, perRound = 12, 2000
	const written = rounds * perRound
	w := l.create("system.journal")
	var old []string
	random := rand.New(rand.NewPCG(1, 2))
	for round := range uint64(rounds) {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childVariable+"="+dir)
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		l.write(w, round*perRound+1, (round+1)*perRound)
		if round%3 == 2 {
			name := filepath.Join(l.dir, fmt.Sprintf("system@%d.journal", round))
			w.Archive(name)
			old = append(old, name)
			w = l.create("system.journal")
		}
		// Kill it when it has read some or all entries.
		until := int(round*perRound) + random.IntN(perRound+1)
		waitArrived(t, dir, until, func() {})
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		if len(old) > 1 { // it was read, or no process has it open
			all := seen()
			if _, ok := all[(round-2)*perRound]; ok && os.Remove(old[0]) == nil {
				old = old[1:]
			}
		}
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waitArrived(t, dir, written, func() {})
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	all := seen()
	for n := range uint64(written + 1) {
		if _, ok := all[n]; n > 0 && !ok {
			t.Fatalf("entry %d of %d never arrived; %d did", n, written, len(all))
		}
	}
	if got := len(all); got != written {
		t.Errorf("%d entries have arrived, want %d", got, written)
	}
}
