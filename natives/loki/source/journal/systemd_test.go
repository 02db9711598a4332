//go:build linux && cgo && journal

package journal_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/flow/flowtest"
	"github.com/weir-run/weir/natives/loki/source/journal"
)

// write makes a journal file of messages with systemd's own tool.
func write(t *testing.T, dir string, at time.Time, messages ...string) {
	t.Helper()
	const tool = "/lib/systemd/systemd-journal-remote"
	if _, err := os.Stat(tool); err != nil {
		t.Skip("there is no systemd-journal-remote here")
	}
	var in strings.Builder
	for i, m := range messages {
		fmt.Fprintf(&in, "__REALTIME_TIMESTAMP=%d\n__MONOTONIC_TIMESTAMP=%d\n_BOOT_ID=0123456789abcdef0123456789abcdef\n_SYSTEMD_UNIT=u%d.service\nMESSAGE=%s\n\n", at.UnixMicro(), 1000+i, i%2, m)
	}
	cmd := exec.Command(tool, "-o", filepath.Join(dir, "test.journal"), "-")
	cmd.Stdin = strings.NewReader(in.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("cannot write a journal: %v\n%s", err, out)
	}
}

func TestRealJournal(t *testing.T) {
	dir := t.TempDir()
	node := componenttest.New(t, "loki.source.journal.default")
	write(t, dir, node.Clock.Now(), "one", strings.Repeat("long ", 40_000), "three")
	read := func(n int, edit func(*journal.Arguments)) (lines []string) {
		t.Helper()
		sink := flowtest.NewSink("sink")
		r := journal.Registration()
		a := r.NewArgs().(*journal.Arguments)
		a.Path, a.ForwardTo = dir, []*flow.Receiver{sink.Receiver()}
		if edit != nil {
			edit(a)
		}
		next := componenttest.New(t, node.ID)
		next.DataPath = node.DataPath
		stop := next.Run(t, next.Build(t, r, a))
		defer stop()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		bs, err := sink.WaitLines(ctx, n)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range bs {
			lines = append(lines, b.Line...)
		}
		return lines
	}
	if got := read(3, nil); got[0] != "one" || len(got[1]) != 200_000 || got[2] != "three" {
		t.Errorf("got %d lines, the second of %d bytes", len(got), len(got[1]))
	}
	write(t, dir, node.Clock.Now(), "four", "five")
	if got := read(1, func(a *journal.Arguments) { a.Matches = "_SYSTEMD_UNIT=u0.service" }); got[0] != "four" {
		t.Errorf("after a restart and with a match the first line is %.20q, want four", got[0])
	}
}
