package flow_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/flow/flowtest"
)

// logsConsumer is a function as a component behind a gate.
type logsConsumer func(ctx context.Context, b *batch.Logs) error

func (f logsConsumer) ConsumeLogs(ctx context.Context, b *batch.Logs) error { return f(ctx, b) }

func lines(source uint64, text ...string) *batch.Logs {
	b := &batch.Logs{Source: source, Line: text}
	for range text {
		b.Stream, b.T = append(b.Stream, shared), append(b.T, 1)
	}
	return b
}

func TestLogsThroughAGate(t *testing.T) {
	var stats flow.Stats
	r := flow.NewReceiver("a.b.c", batch.SignalLogs, &stats, nil)
	var got []*batch.Logs
	refuse := errors.New("no")
	var answer error
	r.Set(logsConsumer(func(_ context.Context, b *batch.Logs) error { got = append(got, b); return answer }))
	b := lines(1, "x", "y")
	if err := r.ConsumeLogs(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	answer = refuse
	if err := r.ConsumeLogs(t.Context(), b); !errors.Is(err, refuse) {
		t.Errorf("got %v, want %v", err, refuse)
	}
	if len(got) != 2 || got[0] != b || stats.LinesIn.Load() != 2 || stats.In.Load() != 0 || stats.LastLogsIn() != b {
		t.Errorf("got %d batches, %d lines, %d samples, last %v", len(got), stats.LinesIn.Load(), stats.In.Load(), stats.LastLogsIn())
	}
	if err := r.ConsumeMetrics(t.Context(), one(1, 1)); err == nil || err.Error() != "a.b.c does not accept metrics" {
		t.Errorf("metrics: got %v", err)
	}
	r.Set(struct{}{})
	if err := r.ConsumeLogs(t.Context(), b); err == nil || err.Error() != "a.b.c does not accept logs" {
		t.Errorf("without a consumer: got %v", err)
	}
	r.Set(logsConsumer(func(context.Context, *batch.Logs) error { panic("ouch") }))
	if _, ok := errors.AsType[*flow.PanicError](r.ConsumeLogs(t.Context(), b)); !ok {
		t.Error("a panic was not returned")
	}
}

// TestEachSignalGoesWhereItIsTaken: if a node sends both signals, each receiver
// gets the signals that it takes. Data that no receiver takes is counted.
func TestEachSignalGoesWhereItIsTaken(t *testing.T) {
	var stats flow.Stats
	both := flowtest.NewSink("both")
	var samples, texts int
	metrics := flow.NewReceiver("metrics", batch.SignalMetrics, nil, nil)
	metrics.Set(consumer(func(_ context.Context, b *batch.Metrics) error { samples += b.Len(); return nil }))
	logs := flow.NewReceiver("logs", batch.SignalLogs, nil, nil)
	logs.Set(logsConsumer(func(_ context.Context, b *batch.Logs) error { texts += b.Len(); return nil }))

	s := flow.NewSender()
	s.To(flow.NewOutput(&stats, []*flow.Receiver{both.Receiver(), metrics, logs}))
	part := flow.Part{Sender: s, Batch: one(7, 1), Logs: lines(7, "x", "y")}
	if err := flow.SendParts(t.Context(), 1, []flow.Part{part}, 1); err != nil {
		t.Fatal(err)
	}
	if samples != 1 || texts != 2 || len(both.Batches()) != 1 || len(both.Logs()) != 1 {
		t.Errorf("got %d samples, %d lines, and of both %d and %d batches", samples, texts, len(both.Batches()), len(both.Logs()))
	}
	if stats.Out.Load() != 2 || stats.LinesOut.Load() != 4 || stats.LastLogsOut() != part.Logs {
		t.Errorf("counted %d samples and %d lines out", stats.Out.Load(), stats.LinesOut.Load())
	}

	only := flow.NewOutput(&stats, []*flow.Receiver{metrics})
	if err := only.SendLogs(t.Context(), part.Logs); err != nil {
		t.Fatal(err)
	}
	other := flow.NewOutput(&stats, []*flow.Receiver{logs})
	if err := other.SendMetrics(t.Context(), part.Batch); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]uint64{"no_receiver": 2}, stats.DroppedLines()); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]uint64{"no_receiver": 1}, stats.Dropped()); diff != "" {
		t.Errorf("samples (-want +got):\n%s", diff)
	}
}

// TestPartialOfBothSignals: a retry sends the refused data of both signals, and
// nothing else.
func TestPartialOfBothSignals(t *testing.T) {
	var stats flow.Stats
	good, bad := flowtest.NewSink("good"), flowtest.NewSink("bad")
	s := flow.NewSender()
	s.To(flow.NewOutput(&stats, []*flow.Receiver{good.Receiver(), bad.Receiver()}))
	bad.Refuse(flowtest.ErrRefused)
	err := flow.SendParts(t.Context(), 1, []flow.Part{{Sender: s, Batch: one(7, 1), Logs: lines(7, "x", "y")}}, 1)
	partial, ok := errors.AsType[*flow.Partial](err)
	if !ok || partial.Len() != 3 {
		t.Fatalf("got %v, want a refusal of 3", err)
	}
	if got, want := err.Error(), "bad refused 1 samples: refused; bad refused 2 lines: refused"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	bad.Refuse(nil)
	if err := partial.Retry(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, k := range []*flowtest.Sink{good, bad} {
		if len(k.Batches()) != 1 || len(k.Logs()) != 1 {
			t.Errorf("%s got %d batches of samples and %d of lines", k.Receiver().Node(), len(k.Batches()), len(k.Logs()))
		}
	}
	if stats.LinesOut.Load() != 4 {
		t.Errorf("%d lines out, want 4", stats.LinesOut.Load())
	}
}

func TestNoLinesAreNotSent(t *testing.T) {
	sink := flowtest.NewSink("sink")
	out := flow.NewOutput(nil, []*flow.Receiver{sink.Receiver()})
	if err := out.SendLogs(t.Context(), &batch.Logs{}); err != nil || len(sink.Logs()) != 0 {
		t.Errorf("got %v and %d batches", err, len(sink.Logs()))
	}
	if err := flow.NewOutput(nil, nil).SendLogs(t.Context(), lines(1, "x")); err != nil {
		t.Errorf("to nobody: %v", err)
	}
}

// TestWithoutStopped: data refused by nodes that left the graph is not sent
// again. The rest is.
func TestWithoutStopped(t *testing.T) {
	refuses, leaves := flowtest.NewSink("refuses"), flowtest.NewSink("leaves")
	refuses.Refuse(flowtest.ErrRefused)
	leaves.Receiver().Stop()
	err := flow.NewOutput(nil, []*flow.Receiver{refuses.Receiver(), leaves.Receiver()}).SendLogs(t.Context(), lines(1, "x"))
	partial, ok := errors.AsType[*flow.Partial](err)
	if !ok {
		t.Fatalf("got %v, want a refusal", err)
	}
	left := partial.WithoutStopped()
	if diff := cmp.Diff([]string{"refuses"}, left.Refused()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	refuses.Refuse(nil)
	if err := left.Retry(t.Context()); err != nil || len(refuses.Logs()) != 1 {
		t.Errorf("got %v and %d batches", err, len(refuses.Logs()))
	}
	err = flow.NewOutput(nil, []*flow.Receiver{leaves.Receiver()}).SendLogs(t.Context(), lines(1, "x"))
	if partial, _ := errors.AsType[*flow.Partial](err); partial.WithoutStopped() != nil {
		t.Errorf("got %v of a node that left", partial)
	}
}
