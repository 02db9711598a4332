package set_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/flow/flowtest"
	"github.com/weir-run/weir/natives/expr/set"
)

type node interface {
	component.Component
	component.Updater
	flow.MetricsConsumer
}

// decode decodes the body of a block without forward_to.
func decode(body string) (*set.Arguments, string) {
	return componenttest.Decode[*set.Arguments](set.Registration(), "forward_to = []\n"+body)
}

func arguments(t testing.TB, to *flow.Receiver, body string) *set.Arguments {
	t.Helper()
	a := componenttest.Arguments[*set.Arguments](t, set.Registration(), "forward_to = []\n"+body)
	a.ForwardTo = []*flow.Receiver{to}
	return a
}

func label(name, src string) string { return fmt.Sprintf("label %q {\nvalue = %q\n}\n", name, src) }

// harness is a component and its sink, and the handles of the test's series.
type harness struct {
	t      testing.TB
	n      *componenttest.Node
	sink   *flowtest.Sink
	c      node
	series map[string]*batch.Series
}

func newHarness(t testing.TB, body string) *harness {
	l := &harness{t: t, n: componenttest.New(t, "expr.set.s"), sink: flowtest.NewSink("sink"), series: map[string]*batch.Series{}}
	l.c = l.n.Build(t, set.Registration(), arguments(t, l.sink.Receiver(), body)).(node)
	return l
}

// parse gives the same series the same handles in every batch.
func (l *harness) parse(text string) *batch.Metrics {
	l.t.Helper()
	b, err := batch.ParseText(text, batch.TextOptions{Source: 1, Series: func(ls []batch.Label, m *batch.Metadata) *batch.Series {
		k := fmt.Sprint(ls)
		if l.series[k] == nil {
			l.series[k] = batch.NewSeries(ls)
			l.series[k].SetMeta(m)
		}
		return l.series[k]
	}})
	if err != nil {
		l.t.Fatal(err)
	}
	return b
}

func (l *harness) send(text string) *batch.Metrics {
	l.t.Helper()
	if err := l.c.ConsumeMetrics(l.t.Context(), l.parse(text)); err != nil {
		l.t.Fatal(err)
	}
	return l.sink.Last()
}

// want sends text and compares the output.
func (l *harness) want(in string, want ...string) {
	l.t.Helper()
	got := strings.TrimSpace(string(batch.AppendTextAt(nil, l.send(in), 0)))
	if diff := cmp.Diff(strings.Join(want, "\n"), got); diff != "" {
		l.t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSet(t *testing.T) {
	f := func(body, in, want string) {
		t.Helper()
		l := newHarness(t, body)
		l.want(in, want)
		l.want(in, want) // from the cache
	}
	// Names and labels.
	f(`name = "name + '_x'"`, `a{b="1"} 1`, `a_x{b="1"} 1`)
	f(`name = "labels.b == '1' ? 'one' : name"`, "a{b=\"1\"} 1\na{b=\"2\"} 2", "one{b=\"1\"} 1\na{b=\"2\"} 2")
	f(label("c", "upper(labels.b)"), `a{b="x"} 1`, `a{b="x",c="X"} 1`)
	f(label("b", "''"), `a{b="x"} 1`, `a 1`)
	f(label("a", "labels.b")+label("b", "labels.a"), `m{a="1",b="2"} 1`, `m{a="2",b="1"} 1`)
	f(label("t", "type"), "# TYPE a counter\na 1", "# TYPE a counter\na{t=\"counter\"} 1")
	// Values, alone and together with names and labels.
	f(`value = "value * 1000"`, `a 1.5`, `a 1500`)
	f(`value = "labels.unit == 'ms' ? value / 1000 : value"`, "a{unit=\"ms\"} 5\na{unit=\"s\"} 5", "a{unit=\"ms\"} 0.005\na{unit=\"s\"} 5")
	f("name = \"replace(name, '_ms', '_seconds')\"\nvalue = \"value / 1000\"", `lat_ms 5`, `lat_seconds 0.005`)
	f(`value = "value / 0"`, "b 1\nc -1", "b +Inf\nc -Inf")
	f(`value = "1"`, "a 5", "a 1")
	// Labels that depend on the sample.
	f(label("state", "value > 3 ? 'high' : 'low'"), "a 5\nb 1", "a{state=\"high\"} 5\nb{state=\"low\"} 1")
	f(`name = "value > 3 ? 'high' : name"`, "a 5\nb 1", "high 5\nb 1")
	f("value = \"value + 1\"\n"+label("was", "string(value)"), "a 5", `a{was="5"} 6`)
	f(label("even", "time % 2 == 0 ? 'yes' : ''"), "a 5 2\nb 5 3", "a{even=\"yes\"} 5 2\nb 5 3")
	// Rows without a value are not changed and get the labels.
	f("value = \"value * 2\"\n"+label("x", "'1'"), "a stale\nb {count:1,sum:2}", "a{x=\"1\"} stale\nb{x=\"1\"} {count:1,sum:2}")
	f(label("x", "value > 1 ? 'a' : 'b'"), "b {count:1,sum:2}", "b {count:1,sum:2}")
}

func TestSharesAndRemembers(t *testing.T) {
	l := newHarness(t, label("x", "'1'"))
	in := l.parse("a 1 10 # {t=\"1\"} 2\nb{x=\"1\"} 2 10")
	if err := l.c.ConsumeMetrics(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	out := l.sink.Last()
	if &out.V[0] != &in.V[0] || &out.T[0] != &in.T[0] || &out.Exemplars[0] != &in.Exemplars[0] {
		t.Error("columns that did not change are not shared")
	}
	if out.Series[1] != in.Series[1] {
		t.Error("a series whose labels stay has another handle")
	}
	if out.Series[0].Source() != in.Series[0] {
		t.Error("the handle is not derived from its source")
	}
	if again := l.send("a 2"); again.Series[0] != out.Series[0] {
		t.Error("the same series became another handle")
	}
}

// TestMarkerFollowsSample: a marker ends the series to which the previous sample
// was changed.
func TestMarkerFollowsSample(t *testing.T) {
	l := newHarness(t, label("state", "value > 3 ? 'high' : 'low'"))
	l.want("a 5", `a{state="high"} 5`)
	l.want("a 1", `a{state="low"} 1`)
	l.want("a stale", `a{state="low"} stale`)
	l.want("a stale", `a stale`) // no series is known to end
	l.want("a 7", `a{state="high"} 7`)
	l.want("a stale", `a{state="high"} stale`)
}

func TestFailures(t *testing.T) {
	l := newHarness(t, label("code", "string(int(labels.code) / 100)")+`value = "value + 1"`)
	l.want("a{code=\"500\"} 1\na{code=\"x\"} 1", "a{code=\"5\"} 2\na{code=\"x\"} 1")
	if h := l.n.Health(); h.State != component.Unhealthy || !strings.HasPrefix(h.Message, "label: ") {
		t.Errorf("got health %+v", h)
	}
	l.want("a{code=\"x\"} 2", "a{code=\"x\"} 2")

	// For each sample, all expressions or none.
	l = newHarness(t, label("v", "string(value)")+`value = "value > 3 ? int(labels.code) : value"`)
	l.want("a{code=\"x\"} 1\na{code=\"x\"} 5\na{code=\"7\"} 5", "a{code=\"x\",v=\"1\"} 1\na{code=\"x\"} 5\na{code=\"7\",v=\"5\"} 7")
	// The last sample was forwarded unchanged because of a failure, so its own
	// series ends.
	l.want("a{code=\"x\"} stale", `a{code="x"} stale`)

	l = newHarness(t, `name = "labels.n"`)
	l.want("a{n=\"b\"} 1\na 1", "b{n=\"b\"} 1\na 1")
	if h := l.n.Health(); !strings.Contains(h.Message, "cannot use an empty name") {
		t.Errorf("got health %+v", h)
	}
	// A name that is cut within a character.
	l = newHarness(t, `name = "labels.n[0:1]"`)
	l.want("a{n=\"xy\"} 1", "x{n=\"xy\"} 1")
}

func TestCollisions(t *testing.T) {
	l := newHarness(t, label("pod", "''"))
	l.send("a{pod=\"1\"} 1\na{pod=\"2\"} 1")
	want := `
# HELP weir_expr_samples_collided_total Samples that left with the labels and the timestamp of another sample of their batch.
# TYPE weir_expr_samples_collided_total counter
weir_expr_samples_collided_total{component_id="expr.set.s"} 1
`
	if err := testutil.GatherAndCompare(l.n.Registry, strings.NewReader(want), "weir_expr_samples_collided_total"); err != nil {
		t.Error(err)
	}
}

func TestChangeEndsSeries(t *testing.T) {
	l := newHarness(t, label("v", "'1'"))
	l.want("a 1", `a{v="1"} 1`)
	if err := l.c.Update(arguments(t, l.sink.Receiver(), label("v", "'2'"))); err != nil {
		t.Fatal(err)
	}
	l.want("a 1", `a{v="2"} 1`, `a{v="1"} stale`)
	l.want("a 1", `a{v="2"} 1`)
	// Equal expressions are not a change, also in another component.
	l.n.Previous = l.c
	l.c = l.n.Build(t, set.Registration(), arguments(t, l.sink.Receiver(), label("v", "'2'"))).(node)
	l.want("a 1", `a{v="2"} 1`)
}

// TestIDsComeBack: derived series are released after their source.
func TestIDsComeBack(t *testing.T) {
	l := newHarness(t, label("v", "'1'"))
	stop := l.n.Run(t, l.c)
	derived := l.send("a 1").Series[0]
	for _, s := range l.series {
		s.Release()
	}
	if err := l.n.Clock.WaitTimers(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	l.n.Clock.Advance(time.Minute)
	if err := l.n.Clock.WaitTimers(t.Context(), 1); err != nil { // set again after the sweep
		t.Fatal(err)
	}
	if next := batch.NewSeries([]batch.Label{{Name: "x", Value: "y"}}); next.ID() != derived.ID() {
		t.Errorf("the next series got ID %d, want %d", next.ID(), derived.ID())
	}
	stop()
}

func TestMistakes(t *testing.T) {
	f := func(body, want string) {
		t.Helper()
		_, got := decode(body)
		if diff := cmp.Diff(strings.TrimSpace(want), got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	f("", `c.alloy:1:1: there is nothing to set: write name, value, line or a label or meta block`)
	f(label("__name__", "'a'"), `c.alloy:3:1: label "__name__" is the metric's name: set name instead`)
	f(label("a", "'a'")+label("a", "'b'"), `c.alloy:3:1: label "a" is set twice`)
	f(`value = "name"`, `
c.alloy:3:9: value: cannot use expression: it must be a number, not a string (1:1)
   | name
   | ^
   'weir help expr' describes expressions`)
	f(label("a", "value"), `
c.alloy:4:9: label.value: cannot use expression: it must be a string, not a number (1:1)
   | value
   | ^
   'weir help expr' describes expressions`)
	f(`name = "now()"`, `
c.alloy:3:8: name: cannot use expression: function now is not supported: an expression sees the time of the record, not the clock (1:1)
   | now()
   | ^
   'weir help expr' describes expressions`)
}
