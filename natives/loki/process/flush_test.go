package process_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/natives/loki/process"
)

// TestFlushOfWhatLeft: flushing lines that have already left, in a batch that is
// still in flight, does not send an empty group.
func TestFlushOfWhatLeft(t *testing.T) {
	f := func(stages, begin, end, want string) {
		t.Helper()
		n := newHarness(t)
		n.reload(stages)
		first := n.sendWith(begin)
		second := n.parse(end)
		second.Ack = batch.NewAck(nil) // not accepted yet
		if err := n.c.ConsumeLogs(t.Context(), second); err != nil {
			t.Fatal(err)
		}
		n.wantOut(want)
		first.Ack.Flush()
		last := n.parse(begin)
		flushed := make(chan struct{})
		last.Ack = batch.NewAck(func() { close(flushed) })
		last.Ack.Flush()
		last.Stream[0] = n.parse(`{z="last"} x`).Stream[0]
		if err := n.c.ConsumeLogs(t.Context(), last); err != nil {
			t.Fatal(err)
		}
		last.Ack.Accepted()
		n.await("what was flushed after it", flushed)
		if got := n.takeBatches(); len(got) != 1 || got[0].Len() != 1 || got[0].Stream[0].Label("z") != "last" {
			t.Errorf("got %d batches, want the last line only", len(got))
		}
		second.Ack.Accepted()
		n.await("the first being done", first.done)
	}
	f("stage.multiline {\nfirstline = \"^START\"\nmax_lines = 2\n}", `{a="1"} START 1`, `{a="1"} x`, `{a="1"} "START 1\nx"`)
	f("stage.cri {}", `{a="1"} 2025-01-01T00:00:00Z stdout P a`, `{a="1"} 2025-01-01T00:00:00Z stdout F b`, `{a="1",stream="stdout"} ab`)
}

// TestReceiverLeaves: if due lines are sent to a receiver that leaves the graph,
// they are sent to its replacement.
func TestReceiverLeaves(t *testing.T) {
	n := newHarness(t)
	n.reload(blocks)
	other := newHarness(t)
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

// TestEndlessPartialLine: parts of a line that never ends do not exhaust the
// memory.
func TestEndlessPartialLine(t *testing.T) {
	n := newHarness(t)
	n.reload("stage.cri {}")
	b := n.parse("{} " + "2025-01-01T00:00:00Z stdout P x")
	part := strings.Repeat("x", 1<<20)
	b.Line[0] = "2025-01-01T00:00:00Z stdout P " + part
	for range 17 {
		if err := n.c.ConsumeLogs(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	if got := n.takeBatches(); len(got) != 1 || len(got[0].Line[0]) != 16<<20 {
		t.Errorf("got %d batches, want one of a line of 16 MiB", len(got))
	}
}

// TestCrowd: blocks of many streams do not exhaust the memory. If all waiting
// blocks together are too long, they are sent incomplete, and so are lines that
// arrive until then.
func TestCrowd(t *testing.T) {
	f := func(stages, begin, next, metric string) {
		t.Helper()
		n := newHarness(t)
		n.reload(stages)
		process.KeepAtMost(n.c, 1000)
		text := strings.Repeat("x", 300)
		send := func(stream, line string) {
			t.Helper()
			b := n.parse(`{a="` + stream + `"} ` + begin)
			b.Line[0] = line
			if err := n.c.ConsumeLogs(t.Context(), b); err != nil {
				t.Fatal(err)
			}
		}
		send("1", begin+text)
		send("2", begin+text)
		send("3", begin+text)
		if got := n.takeBatches(); len(got) != 0 {
			t.Fatalf("%d batches are sent before their blocks are complete", len(got))
		}
		send("4", begin+text) // the fourth leaves immediately
		got := n.takeBatches()
		if len(got) == 0 || got[0].Stream[0].Label("a") != "4" {
			t.Fatalf("got %v, want the block of the fourth stream at once", got)
		}
		for lines(got) < 4 { // the other blocks leave when it is their turn
			n.await("a batch", n.came)
			got = append(got, n.takeBatches()...)
		}
		if got := n.counted(metric); got != 4 {
			t.Errorf("%s is %v, want 4", metric, got)
		}
		send("5", begin+text) // there is space again
		send("5", next+text)
		if got := n.takeBatches(); len(got) != 0 {
			t.Errorf("%d batches are sent though there is room", len(got))
		}
	}
	f("stage.multiline {\nfirstline = \"^START\"\n}", "START", "", "weir_loki_process_multiline_cut_blocks_total")
	const part = "2025-01-01T00:00:00Z stdout P "
	f("stage.cri {}", part, part, "loki_process_cri_partial_lines_flushed_total")
}

func lines(bs []*batch.Logs) (n int) {
	for _, b := range bs {
		n += b.Len()
	}
	return n
}

// counted returns the value of a counter that has no labels of its own.
func (n *harness) counted(name string) float64 {
	n.t.Helper()
	fs, err := n.Registry.Gather()
	if err != nil {
		n.t.Fatal(err)
	}
	for _, f := range fs {
		if f.GetName() == name {
			return f.Metric[0].GetCounter().GetValue()
		}
	}
	return 0
}
