package relabel_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/flow/flowtest"
	"github.com/weir-run/weir/engine/rule"
	"github.com/weir-run/weir/natives/prometheus/relabel"
)

func with(edit func(*rule.Rule)) *rule.Rule {
	r := new(rule.Rule)
	r.SetToDefault()
	edit(r)
	return r
}

// set returns a rule that sets a label.
func set(name, value string) *rule.Rule {
	return with(func(r *rule.Rule) { r.TargetLabel, r.Replacement = name, value })
}

// drop returns a rule that drops metrics by name.
func drop(re rule.Regexp) *rule.Rule {
	return with(func(r *rule.Rule) { r.Action, r.SourceLabels, r.Regex = "drop", []string{"__name__"}, re })
}

func arguments(to *flow.Receiver, rules ...*rule.Rule) *relabel.Arguments {
	a := relabel.Registration().NewArgs().(*relabel.Arguments)
	a.ForwardTo, a.Rules = []*flow.Receiver{to}, rules
	return a
}

func name(n string) *batch.Series {
	return batch.NewSeries([]batch.Label{{Name: "__name__", Value: n}})
}

// at returns a batch of source 1 with one row of value 1 per series.
func at(ms int64, ss ...*batch.Series) *batch.Metrics {
	b := &batch.Metrics{Source: 1, Series: ss}
	for range ss {
		b.T, b.V = append(b.T, ms), append(b.V, 1)
	}
	return b
}

func text(b *batch.Metrics) (rows []string) {
	for i, s := range b.Series {
		row := s.String()
		if batch.IsStale(b.V[i]) {
			row += " stale"
		}
		rows = append(rows, row)
	}
	return rows
}

type consumer interface {
	component.Component
	component.Updater
	flow.MetricsConsumer
}

func build(t *testing.T, n *componenttest.Node, a *relabel.Arguments) consumer {
	t.Helper()
	return n.Build(t, relabel.Registration(), a).(consumer)
}

func send(t *testing.T, c flow.MetricsConsumer, b *batch.Metrics) {
	t.Helper()
	if err := c.ConsumeMetrics(t.Context(), b); err != nil {
		t.Fatalf("cannot send: %v", err)
	}
}

func TestConsume(t *testing.T) {
	sink := flowtest.NewSink("sink")
	n := componenttest.New(t, "prometheus.relabel.default")
	rules := []*rule.Rule{drop("go_.*"), set("cluster", "eu")}
	c := build(t, n, arguments(sink.Receiver(), rules...))
	if diff := cmp.Diff(relabel.Exports{Rules: rules}, n.Exports()); diff != "" {
		t.Errorf("exports (-want +got):\n%s", diff)
	}

	a, g := name("a"), name("go_threads")
	send(t, c, at(10, a, g))
	send(t, c, at(20, g))
	send(t, c, at(30, a))
	got := sink.Batches()
	if len(got) != 2 {
		t.Fatalf("got %d batches, want 2: one had nothing left", len(got))
	}
	if diff := cmp.Diff([]string{`a{cluster="eu"}`}, text(got[0])); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	if got[0].Series[0] != got[1].Series[0] {
		t.Error("one series came out under two handles")
	}
	if diff := cmp.Diff(map[string]uint64{"relabel": 2}, n.Stats.Dropped()); diff != "" {
		t.Errorf("dropped (-want +got):\n%s", diff)
	}
	if in, out := n.Stats.In.Load(), n.Stats.Out.Load(); in != 0 || out != 2 {
		t.Errorf("got %d in, %d out, want 0 (the gate counts them) and 2", in, out)
	}
}

func TestUnchangedBatchPasses(t *testing.T) {
	sink := flowtest.NewSink("sink")
	c := build(t, componenttest.New(t, "r"), arguments(sink.Receiver(), drop("go_.*")))
	b := at(10, name("a"), name("b"))
	send(t, c, b)
	if &sink.Last().Series[0] != &b.Series[0] {
		t.Error("a batch that the rules leave alone was copied")
	}
}

func TestUpdate(t *testing.T) {
	sink, sink2 := flowtest.NewSink("sink"), flowtest.NewSink("sink2")
	n := componenttest.New(t, "r")
	c := build(t, n, arguments(sink.Receiver(), set("v", "1")))
	a := name("a")
	send(t, c, at(10, a))
	v1 := sink.Last().Series[0]

	// Another receiver: the handle stays, and the series ends at the previous
	// receiver.
	if err := c.Update(arguments(sink2.Receiver(), set("v", "1"))); err != nil {
		t.Fatal(err)
	}
	send(t, c, at(20, a))
	if got := sink2.Last(); got == nil || got.Len() != 1 || got.Series[0] != v1 {
		t.Errorf("after a change of forward_to got %v, want the same handle only", text(sink2.Last()))
	}
	if diff := cmp.Diff([]string{`a{v="1"} stale`}, text(sink.Last())); diff != "" || len(sink.Batches()) != 2 || sink.Last().T[0] != 19 {
		t.Errorf("the receiver that left forward_to got %d batches, want the markers at 19 last (-want +got):\n%s", len(sink.Batches()), diff)
	}

	// Other rules: the new series, and one marker for the old one.
	if err := c.Update(arguments(sink2.Receiver(), set("v", "2"))); err != nil {
		t.Fatal(err)
	}
	send(t, c, at(30, a))
	if diff := cmp.Diff([]string{`a{v="2"}`, `a{v="1"} stale`}, text(sink2.Last())); diff != "" {
		t.Errorf("after a change of rules (-want +got):\n%s", diff)
	}
	if got := sink2.Last().T[1]; got != 30 {
		t.Errorf("got the marker at %d, want 30", got)
	}
	send(t, c, at(40, a))
	if diff := cmp.Diff([]string{`a{v="2"}`}, text(sink2.Last())); diff != "" {
		t.Errorf("one batch later (-want +got):\n%s", diff)
	}

	// Rules that drop everything still end the existing series.
	if err := c.Update(arguments(sink2.Receiver(), drop(".*"))); err != nil {
		t.Fatal(err)
	}
	send(t, c, at(50, a))
	if diff := cmp.Diff([]string{`a{v="2"} stale`}, text(sink2.Last())); diff != "" {
		t.Errorf("after rules that drop all (-want +got):\n%s", diff)
	}
}

func TestMarkersWaitForAcceptance(t *testing.T) {
	sink := flowtest.NewSink("sink")
	c := build(t, componenttest.New(t, "r"), arguments(sink.Receiver(), set("v", "1")))
	a := name("a")
	send(t, c, at(10, a))
	if err := c.Update(arguments(sink.Receiver(), set("v", "2"))); err != nil {
		t.Fatal(err)
	}
	sink.Refuse(flowtest.ErrRefused)
	err := c.ConsumeMetrics(t.Context(), at(20, a))
	if !errors.Is(err, flowtest.ErrRefused) {
		t.Fatalf("got %v, want the refusal", err)
	}
	sink.Refuse(nil)
	send(t, c, at(30, a))
	if diff := cmp.Diff([]string{`a{v="2"}`, `a{v="1"} stale`}, text(sink.Last())); diff != "" {
		t.Errorf("after a refusal (-want +got):\n%s", diff)
	}
}

// blocking blocks its first batch until it is opened, then forwards all batches.
type blocking struct {
	receiver      *flow.Receiver
	entered, open chan struct{}
	once          sync.Once
	to            *flowtest.Sink
}

func newBlocking(to *flowtest.Sink) *blocking {
	b := &blocking{entered: make(chan struct{}), open: make(chan struct{}), to: to}
	b.receiver = flow.NewReceiver("blocking", batch.SignalMetrics, nil, nil)
	b.receiver.Set(b)
	return b
}

func (b *blocking) ConsumeMetrics(ctx context.Context, m *batch.Metrics) error {
	b.once.Do(func() {
		close(b.entered)
		<-b.open
	})
	return b.to.ConsumeMetrics(ctx, m)
}

// TestBatchInFlightAcrossUpdate: a batch of the old rules is accepted only after
// the rules changed, and its derived series are still ended.
func TestBatchInFlightAcrossUpdate(t *testing.T) {
	sink := flowtest.NewSink("sink")
	blocking := newBlocking(sink)
	c := build(t, componenttest.New(t, "r"), arguments(blocking.receiver, set("v", "1")))
	a := name("a")
	done := make(chan error)
	go func() { done <- c.ConsumeMetrics(t.Context(), at(10, a)) }()
	<-blocking.entered
	if err := c.Update(arguments(blocking.receiver, set("v", "2"))); err != nil {
		t.Fatal(err)
	}
	close(blocking.open)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	send(t, c, at(20, a))
	if diff := cmp.Diff([]string{`a{v="2"}`, `a{v="1"} stale`}, text(sink.Last())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRebuildIsNoChange(t *testing.T) {
	sink := flowtest.NewSink("sink")
	n := componenttest.New(t, "r")
	c := build(t, n, arguments(sink.Receiver(), set("v", "1")))
	stop := n.Run(t, c)
	a := name("a")
	send(t, c, at(10, a))
	n.Previous = c
	next := build(t, n, arguments(sink.Receiver(), set("v", "1")))
	stopNext := n.Run(t, next)
	stop()
	send(t, next, at(20, a))
	if got := sink.Batches(); text(got[1])[0] != `a{v="1"}` || got[1].Len() != 1 {
		t.Errorf("after a rebuild got %q", text(got[1]))
	}
	n.Previous = next
	last := build(t, n, arguments(sink.Receiver(), set("v", "2")))
	stopNext()
	send(t, last, at(30, a))
	if diff := cmp.Diff([]string{`a{v="2"}`, `a{v="1"} stale`}, text(sink.Last())); diff != "" {
		t.Errorf("after a rebuild with other rules (-want +got):\n%s", diff)
	}
}

// TestIDsComeBack follows one ID: it is released with the derived series and
// reused for the next new series.
func TestIDsComeBack(t *testing.T) {
	sink := flowtest.NewSink("sink")
	n := componenttest.New(t, "r")
	c := build(t, n, arguments(sink.Receiver(), set("v", "1")))
	stop := n.Run(t, c)
	// sweep advances the clock by a minute when the given number of timers is
	// set: that of the sweep and, after the start and an update, that of removed
	// receivers.
	sweep := func(timers int) {
		t.Helper()
		if err := n.Clock.WaitTimers(t.Context(), timers); err != nil {
			t.Fatal(err)
		}
		n.Clock.Advance(time.Minute)
		// The timer is set again when the sweep is done.
		if err := n.Clock.WaitTimers(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
	}
	next := func(what string, want *batch.Series) {
		t.Helper()
		s := name("next")
		if s.ID() != want.ID() {
			t.Errorf("%s: the next series got ID %d, want %d, that of %s", what, s.ID(), want.ID(), want)
		}
	}

	a := name("a")
	send(t, c, at(10, a))
	derived := sink.Last().Series[0]
	a.Release()
	sweep(2)
	next("source released", derived)

	b := name("b")
	send(t, c, at(20, b))
	derived = sink.Last().Series[0]
	if err := c.Update(arguments(sink.Receiver(), set("v", "2"))); err != nil {
		t.Fatal(err)
	}
	sweep(2)
	if derived.Released() {
		t.Error("a derived series was released one sweep after its rules went, before its marker could be sent")
	}
	sweep(1)
	next("rules replaced", derived)

	send(t, c, at(30, b))
	derived = sink.Last().Series[0]
	stop()
	next("stopped", derived)
}

func TestWithoutEffect(t *testing.T) {
	size, zero, ttl, short := 100, 0, time.Hour, time.Second
	var a relabel.Arguments
	if got := a.Warnings(); len(got) != 0 {
		t.Errorf("got warnings %q, want none", got)
	}
	a.MaxCacheSize, a.CacheTTL = &zero, &ttl
	if diff := cmp.Diff([]string{"max_cache_size has no effect", "cache_ttl has no effect"}, a.Warnings()); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}

	f := func(size *int, ttl *time.Duration, want string) {
		t.Helper()
		a := &relabel.Arguments{MaxCacheSize: size, CacheTTL: ttl}
		err := a.Validate()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	f(nil, nil, "")
	f(&size, nil, "")
	f(&zero, &ttl, "")
	f(&zero, nil, "greater than 0")
	f(&zero, &short, "at least 1m")
	f(&size, &ttl, "needs max_cache_size = 0")
	f(nil, &ttl, "needs max_cache_size = 0")
}
