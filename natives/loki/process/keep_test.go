package process_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
)

const blocks = `
stage.multiline {
	firstline = "^START"
}
`

// sent is a batch that was sent with an acknowledgement.
type sent struct {
	*batch.Logs
	done chan struct{}
}

// sendWith sends a batch with an acknowledgement, like a source that reads
// unaccepted lines again.
func (n *harness) sendWith(text string) sent {
	n.t.Helper()
	s := sent{n.parse(text), make(chan struct{})}
	s.Ack = batch.NewAck(func() { close(s.done) })
	if err := n.c.ConsumeLogs(n.t.Context(), s.Logs); err != nil {
		n.t.Fatal(err)
	}
	s.Ack.Accepted()
	return s
}

func (s sent) isDone() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

func (n *harness) await(what string, c <-chan struct{}) {
	n.t.Helper()
	select {
	case <-c:
	case <-time.After(time.Minute):
		n.t.Fatalf("%s does not happen", what)
	}
}

func (n *harness) wantOut(want string) {
	n.t.Helper()
	if diff := cmp.Diff(strings.TrimSpace(want), strings.TrimSpace(n.out())); diff != "" {
		n.t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestAcks: a batch is acknowledged when none of its lines waits any more.
func TestAcks(t *testing.T) {
	n := newHarness(t)
	n.reload(blocks)
	plain := n.sendWith(`{a="1"} before`)
	if !plain.isDone() {
		t.Error("a batch that nobody keeps is not done")
	}
	first := n.sendWith("{a=\"1\"} START 1\n{a=\"1\"} x")
	n.wantOut(`{a="1"} before`)
	second := n.sendWith("{a=\"1\"} y\n{a=\"1\"} START 2")
	n.wantOut(`{a="1"} "START 1\nx\ny"`)
	if first.isDone() || second.isDone() {
		t.Error("done while a line waits")
	}
	third := n.sendWith("{a=\"2\"} other")
	if !third.isDone() {
		t.Error("a batch has to wait for lines of others")
	}
	n.out()
	n.wait(3 * time.Second)
	n.await("the second being done", second.done)
	n.await("the first being done", first.done)
	n.wantOut(`{a="1"} START 2`)
}

// TestFlush: a source that stops need not wait for the deadline.
func TestFlush(t *testing.T) {
	n := newHarness(t)
	n.reload(blocks)
	s := n.sendWith("{a=\"1\"} START 1\n{a=\"1\"} x")
	s.Ack.Flush()
	n.await("the batch being done", s.done)
	n.wantOut(`{a="1"} "START 1\nx"`)

	flushed := n.parse("{a=\"1\"} START 2")
	done := make(chan struct{})
	flushed.Ack = batch.NewAck(func() { close(done) })
	flushed.Ack.Flush() // the flush comes first
	if err := n.c.ConsumeLogs(t.Context(), flushed); err != nil {
		t.Fatal(err)
	}
	flushed.Ack.Accepted()
	n.await("the batch being done", done)
	n.wantOut(`{a="1"} START 2`)
}

// TestDroppedAfterJoin: joined lines that a later stage drops do not block the
// acknowledgement.
func TestDroppedAfterJoin(t *testing.T) {
	n := newHarness(t)
	n.reload(blocks + `
stage.drop {
	expression = "x$"
}`)
	a := n.sendWith("{} START 1\n{} x")
	b := n.sendWith("{} START 2\n{} x")
	c := n.sendWith("{} START 3")
	n.Clock.Advance(3 * time.Second)
	for _, s := range []sent{a, b, c} {
		n.await("a batch being done", s.done)
	}
	n.wantOut(`{} START 3`)
	if diff := cmp.Diff("drop_stage 2\n", n.dropped()); diff != "" {
		t.Error(diff)
	}
}

// TestRefusedTimely: due lines are sent until they are accepted.
func TestRefusedTimely(t *testing.T) {
	n := newHarness(t)
	n.reload(blocks)
	s := n.sendWith("{} START 1")
	n.refuse(3)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for !s.isDone() {
		if err := n.Clock.WaitTimers(ctx, 1); err != nil {
			t.Fatal("the lines are not sent again: ", err)
		}
		n.Clock.Advance(time.Second)
	}
	n.wantOut(`{} START 1`)
}

// TestReload: an unchanged stage takes over its kept lines, even if the stages
// around it change. The lines of a removed stage are sent immediately.
func TestReload(t *testing.T) {
	n := newHarness(t)
	n.reload(blocks)
	a := n.sendWith("{a=\"1\"} START 1\n{a=\"1\"} x")
	n.reload(`
stage.json {
	expressions = { level = "" }
}` + blocks + `
stage.static_labels {
	values = { v = "2" }
}`)
	b := n.sendWith("{a=\"1\"} y\n{a=\"1\"} START 2")
	n.wantOut(`{a="1",v="2"} "START 1\nx\ny"`)
	if a.isDone() || b.isDone() {
		t.Error("done while a line waits")
	}
	n.reload(`
stage.static_labels {
	values = { v = "3" }
}`)
	n.await("the lines of the stage that went", b.done)
	n.await("the lines before them", a.done)
	n.wantOut(`{a="1",v="2"} START 2`)
	n.send(`{a="1"} START 3`)
	n.wantOut(`{a="1",v="3"} START 3`)
}

// TestRebuild: the next component of the node takes over the kept lines.
func TestRebuild(t *testing.T) {
	n := builtLab(t, blocks)
	old := n.c
	ctx, replaced := context.WithCancelCause(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- old.Run(ctx) }()
	n.c = old
	s := n.sendWith("{} START 1")
	n.rebuild(blocks)
	n.Run(t, n.c)
	replaced(component.ErrReplaced)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	n.wantOut("")
	n.send("{} x\n{} START 2")
	n.wantOut(`{} "START 1\nx"`)
	n.wait(3 * time.Second)
	n.await("the batch being done", s.done)
}

// TestStop: kept lines are sent when the node is removed. They are not
// acknowledged if they are refused.
func TestStop(t *testing.T) {
	n := builtLab(t, blocks)
	stop := n.Run(t, n.c)
	s := n.sendWith("{} START 1")
	stop()
	if !s.isDone() {
		t.Error("not done")
	}
	n.wantOut(`{} START 1`)
}

func TestStopInOutage(t *testing.T) {
	if testing.Short() {
		t.Skip("takes two seconds")
	}
	n := builtLab(t, blocks)
	stop := n.Run(t, n.c)
	s := n.sendWith("{} START 1")
	n.refuse(1 << 30)
	stop()
	if s.isDone() {
		t.Error("lines were acknowledged that nobody has")
	}
	n.wantOut("")
}

// TestOrder: the blocks of each Source are sent in order, even if some are sent
// because of a deadline.
func TestOrder(t *testing.T) {
	n := newHarness(t)
	n.reload(blocks)
	const sources, batches = 4, 50
	var wg sync.WaitGroup
	for i := range sources {
		b := n.parse(fmt.Sprintf("{s=\"%d\"} START", i))
		source := batch.NewSource()
		wg.Go(func() {
			for k := range batches {
				next := &batch.Logs{Source: source, Stream: []*batch.Stream{b.Stream[0], b.Stream[0]}, T: []int64{int64(2 * k), int64(2*k + 1)}, Line: []string{fmt.Sprint("START ", k), "x"}}
				if err := n.c.ConsumeLogs(context.Background(), next); err != nil {
					t.Error(err)
				}
				if k%7 == 0 {
					n.Clock.Advance(3 * time.Second)
				}
			}
		})
	}
	wg.Wait()
	got := map[string][]string{}
	for n.rows(got) < sources*batches {
		n.wait(3 * time.Second)
	}
	for s, lines := range got {
		var want []string
		for k := range batches {
			want = append(want, fmt.Sprintf("START %d\nx", k))
		}
		if diff := cmp.Diff(want, lines); diff != "" {
			t.Errorf("%s (-want +got):\n%s", s, diff)
		}
	}
}

// rows adds the received lines by stream and returns their number.
func (n *harness) rows(to map[string][]string) (all int) {
	for _, b := range n.takeBatches() {
		for i, s := range b.Stream {
			to[s.String()] = append(to[s.String()], b.Line[i])
		}
	}
	for _, lines := range to {
		all += len(lines)
	}
	return all
}

// TestShares: a batch that no stage changes is passed on as it is. If only
// streams change, the batch shares the other columns.
func TestShares(t *testing.T) {
	n := newHarness(t)
	n.reload(`
stage.drop {
	expression = "never"
}
stage.json {
	expressions = { level = "" }
}
stage.labels {
	values = { level = "" }
}`)
	in := n.parse("{a=\"1\"} x\n{a=\"1\"} y")
	send := func(in *batch.Logs) *batch.Logs {
		if err := n.c.ConsumeLogs(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		return n.takeBatches()[0]
	}
	if out := send(in); &out.Stream[0] != &in.Stream[0] || &out.Line[0] != &in.Line[0] {
		t.Error("a batch that does not change was copied")
	}
	in = n.parse(`{a="1"} {"level":"info"}`)
	out := send(in)
	if &out.Line[0] != &in.Line[0] || &out.T[0] != &in.T[0] || out.Stream[0].Label("level") != "info" {
		t.Error("columns that do not change are not shared")
	}
	if again := send(in); again.Stream[0] != out.Stream[0] {
		t.Error("one stream came out under two handles")
	}
	empty := n.parse("")
	if err := n.c.ConsumeLogs(t.Context(), empty); err != nil || len(n.takeBatches()) != 0 {
		t.Error("an empty batch was sent", err)
	}
}

// TestGivesBack: derived streams are released when the node is removed.
func TestGivesBack(t *testing.T) {
	n := builtLab(t, "stage.static_labels {\nvalues = { v = \"1\" }\n}")
	stop := n.Run(t, n.c)
	n.send(`{a="1"} x`)
	out := n.takeBatches()[0].Stream[0]
	if out.Released() {
		t.Error("given back while it is used")
	}
	stop()
	if !out.Released() {
		t.Error("not given back")
	}
}

// TestDroppedMetric: the counter of dropped lines has the same name as in Alloy
// and survives a rebuild.
func TestDroppedMetric(t *testing.T) {
	n := newHarness(t)
	count := func() string {
		fs, err := n.Registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(fs, func(f *dto.MetricFamily) bool { return f.GetName() == "loki_process_dropped_lines_total" })
		if i < 0 {
			return "none"
		}
		m := fs[i].GetMetric()[0]
		return fmt.Sprint(m.GetLabel()[1].GetValue(), " ", m.GetCounter().GetValue())
	}
	n.reload("stage.drop {\nexpression = \"x\"\ndrop_counter_reason = \"why\"\n}")
	n.send("{} x")
	n.Previous = n.c
	n.c = nil
	n.reload("stage.drop {\nexpression = \"x\"\ndrop_counter_reason = \"why\"\n}")
	n.send("{} x")
	if got := count(); got != "why 2" {
		t.Errorf("got %q", got)
	}
}

var errRefused = errors.New("refused")

// TestRebuildInOutage: due lines that no receiver accepted are sent by the next
// component.
func TestRebuildInOutage(t *testing.T) {
	n := builtLab(t, blocks)
	old := n.c
	ctx, replaced := context.WithCancelCause(t.Context())
	ended := make(chan error, 1)
	n.c = old
	n.refuse(1)
	s := n.sendWith("{} START 1")
	n.Clock.Advance(3 * time.Second) // the deadline passes before the component runs
	go func() { ended <- old.Run(ctx) }()
	n.await("a refusal", n.refused)
	replaced(component.ErrReplaced)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if s.isDone() {
		t.Error("lines were acknowledged that nobody has")
	}
	n.rebuild(blocks)
	n.Run(t, n.c)
	n.await("the batch being done", s.done)
	n.wantOut(`{} START 1`)
}
