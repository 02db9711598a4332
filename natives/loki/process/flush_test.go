package process_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/flow"
)

// TestFlushOfWhatLeft: who asks for lines that have left already, in a batch that
// is under way still, gets nothing made of no lines.
func TestFlushOfWhatLeft(t *testing.T) {
	f := func(stages, begin, end, want string) {
		t.Helper()
		n := newLab(t)
		n.reload(stages)
		first := n.sendWith(begin)
		second := n.parse(end)
		second.Receipt = batch.NewReceipt(nil) // not accepted yet
		if err := n.c.ConsumeLogs(t.Context(), second); err != nil {
			t.Fatal(err)
		}
		n.wantOut(want)
		first.Receipt.Flush()
		last := n.parse(begin)
		flushed := make(chan struct{})
		last.Receipt = batch.NewReceipt(func() { close(flushed) })
		last.Receipt.Flush()
		last.Stream[0] = n.parse(`{z="last"} x`).Stream[0]
		if err := n.c.ConsumeLogs(t.Context(), last); err != nil {
			t.Fatal(err)
		}
		last.Receipt.Accepted()
		n.await("what was flushed after it", flushed)
		if got := n.take(); len(got) != 1 || got[0].Len() != 1 || got[0].Stream[0].Label("z") != "last" {
			t.Errorf("got %d batches, want the last line only", len(got))
		}
		second.Receipt.Accepted()
		n.await("the first being done", first.done)
	}
	f("stage.multiline {\nfirstline = \"^START\"\nmax_lines = 2\n}", `{a="1"} START 1`, `{a="1"} x`, `{a="1"} "START 1\nx"`)
	f("stage.cri {}", `{a="1"} 2025-01-01T00:00:00Z stdout P a`, `{a="1"} 2025-01-01T00:00:00Z stdout F b`, `{a="1",stream="stdout"} ab`)
}

// TestReceiverLeaves: lines that time sent to a receiver which leaves the graph go
// to the one in its place.
func TestReceiverLeaves(t *testing.T) {
	n := newLab(t)
	n.reload(blocks)
	other := newLab(t)
	n.refuse(1)
	s := n.sendWith("{} START 1")
	n.Clock.Advance(3 * time.Second)
	n.await("a refusal", n.refused)
	n.to.Stop()
	a := n.arguments(blocks)
	a.ForwardTo = []*flow.Receiver{other.to}
	if err := n.c.Update(a); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for !s.isDone() {
		if err := n.Clock.WaitTimers(ctx, 1); err != nil {
			t.Fatal("the lines are not sent to the new receiver: ", err)
		}
		n.Clock.Advance(time.Second)
	}
	other.wantOut(`{} START 1`)
}

// TestEndlessPartialLine: parts of a line whose end does not come do not use up the
// memory.
func TestEndlessPartialLine(t *testing.T) {
	n := newLab(t)
	n.reload("stage.cri {}")
	b := n.parse("{} " + "2025-01-01T00:00:00Z stdout P x")
	part := strings.Repeat("x", 1<<20)
	b.Line[0] = "2025-01-01T00:00:00Z stdout P " + part
	for range 17 {
		if err := n.c.ConsumeLogs(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	if got := n.take(); len(got) != 1 || len(got[0].Line[0]) != 16<<20 {
		t.Errorf("got %d batches, want one of a line of 16 MiB", len(got))
	}
}
