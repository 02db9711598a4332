package flow_test

import (
	"bytes"
	"context"
	"errors"
	"regexp"
	"runtime/pprof"
	"strings"
	"testing"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/flow"
)

var nodeLabel = regexp.MustCompile(`"node":"([^"]*)"`)

// labelHere returns the label of the goroutine that calls it, or "" if it has none.
// Only one goroutine may call it at a time.
func labelHere(t *testing.T) string {
	t.Helper()
	var all bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&all, 1); err != nil {
		t.Fatal(err)
	}
	for _, g := range strings.Split(all.String(), "\n\n") {
		if strings.Contains(g, "flow_test.labelHere") {
			if m := nodeLabel.FindStringSubmatch(g); m != nil {
				return m[1]
			}
			return ""
		}
	}
	t.Fatal("the goroutine is not in the profile")
	return ""
}

// A meter counts batches and bytes, and goroutines have the label of the node that they
// work for, also when a call of the next node has returned.
func TestMeter(t *testing.T) {
	var source, middle, sink flow.Stats
	var refuse error
	var seen []string
	end := flow.NewReceiver("sink", batch.SignalMetrics|batch.SignalLogs, &sink, nil)
	end.Set(consumer(func(context.Context, *batch.Metrics) error {
		seen = append(seen, labelHere(t))
		return refuse
	}))
	next := flow.NewOutput(&middle, []*flow.Receiver{end})
	gate := flow.NewReceiver("middle", batch.SignalMetrics, &middle, nil)
	gate.Set(consumer(func(ctx context.Context, b *batch.Metrics) error {
		seen = append(seen, labelHere(t))
		err := next.SendMetrics(ctx, b)
		seen = append(seen, labelHere(t))
		return err
	}))
	out := flow.NewOutput(&source, []*flow.Receiver{gate})
	send := func() {
		seen = nil
		_ = out.SendMetrics(t.Context(), one(1, 1)) // refused or not
		seen = append(seen, labelHere(t))
	}
	want := func(labels ...string) {
		t.Helper()
		if got, want := strings.Join(seen, " "), strings.Join(labels, " "); got != want {
			t.Errorf("got labels %q, want %q", got, want)
		}
	}
	counts := func(name string, c *flow.Counts, batches, bytes uint64) {
		t.Helper()
		if b, n := c.Batches.Load(), c.Bytes.Load(); b != batches || n != bytes {
			t.Errorf("%s: got %d batches with %d bytes, want %d with %d", name, b, n, batches, bytes)
		}
	}

	send()
	want("", "", "", "")
	ms, mm, mk := flow.NewMeter("source"), flow.NewMeter("middle"), flow.NewMeter("sink")
	source.SetMeter(ms)
	middle.SetMeter(mm)
	sink.SetMeter(mk)
	send()
	want("middle", "sink", "middle", "source")
	size := uint64(one(1, 1).Bytes())
	counts("source in", &ms.In, 0, 0)
	counts("source out", &ms.Out, 1, size)
	counts("middle in", &mm.In, 1, size)
	counts("middle out", &mm.Out, 1, size)
	counts("sink in", &mk.In, 1, size)

	// The sink refuses the batch; the node before it has accepted it.
	refuse = errors.New("full")
	send()
	if r := [3]uint64{ms.Refused.Load(), mm.Refused.Load(), mk.Refused.Load()}; r != [3]uint64{0, 0, 1} {
		t.Errorf("got %d refused, want that only the sink refused one", r)
	}
	refuse = nil

	source.SetMeter(nil)
	middle.SetMeter(nil)
	sink.SetMeter(nil)
	pprof.SetGoroutineLabels(context.Background())
	send()
	want("", "", "", "")
	counts("sink in", &mk.In, 2, 2*size)
}

// Lines count with their text.
func TestMeterLogs(t *testing.T) {
	defer pprof.SetGoroutineLabels(context.Background())
	var stats flow.Stats
	m := flow.NewMeter("a")
	stats.SetMeter(m)
	r := flow.NewReceiver("a", batch.SignalMetrics, &stats, nil)
	r.Set(consumer(nil)) // which accepts no logs
	b := &batch.Logs{Stream: []*batch.Stream{shared, shared}, T: []int64{1, 2}, Line: []string{"abc", "defg"}}
	if err := r.ConsumeLogs(t.Context(), b); err == nil {
		t.Error("logs were accepted")
	}
	if n, bytes, refused := m.In.Batches.Load(), m.In.Bytes.Load(), m.Refused.Load(); n != 1 || bytes != 7 || refused != 1 {
		t.Errorf("got %d batches, %d bytes, %d refused; want 1, 7, 1", n, bytes, refused)
	}
}
