package clause_test

import (
	"encoding"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/prometheus/model/histogram"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/engine/expr"
	"github.com/weir-run/weir/natives/expr/internal/clause"
)

// TestArguments: an expression is accepted or refused depending on the type of
// its result.
func TestArguments(t *testing.T) {
	f := func(into interface {
		encoding.TextMarshaler
		encoding.TextUnmarshaler
	}, src, want string) {
		t.Helper()
		err := into.UnmarshalText([]byte(src))
		if want == "" {
			if back, _ := into.MarshalText(); err != nil || string(back) != src {
				t.Errorf("%s: got %q, %v", src, back, err)
			}
			return
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", src, err, want)
		}
		if back, _ := into.MarshalText(); len(back) != 0 {
			t.Errorf("%s: %q was kept", src, back)
		}
	}
	f(new(clause.Predicate), `labels.job == "api" && value > 3`, "")
	f(new(clause.Predicate), `labels.job == "api" && line contains "x"`, "")
	f(new(clause.SampleNumber), `value * 1000`, "")
	f(new(clause.SampleText), `name + "_x"`, "")
	f(new(clause.LineText), `meta.trace + line`, "")
	f(new(clause.Text), `name + labels.x`, "")
	f(new(clause.Text), `line + labels.x`, "")
	// Wrong types, and invalid expressions.
	f(new(clause.Predicate), `value`, "must be true or false, not a number")
	f(new(clause.SampleNumber), `name`, "number")
	f(new(clause.SampleNumber), `len(line)`, "a sample has no line")
	f(new(clause.SampleText), `line`, "a sample has no line")
	f(new(clause.LineText), `name`, "a log line has no name")
	f(new(clause.Predicate), `line contains name`, "; and a sample has no line")
	f(new(clause.Text), `value > 3`, "string")
	f(new(clause.Predicate), ``, "empty")
	f(new(clause.Predicate), `labels.job ==`, "1:")
}

func series(name, job string) *batch.Series {
	return batch.NewSeries([]batch.Label{{Name: batch.NameLabel, Value: name}, {Name: "job", Value: job}})
}

// TestJudge: if the labels decide, no row is needed. If they do not, and there is
// no value, the parts that do not read it decide.
func TestJudge(t *testing.T) {
	api, web := series("a", "api"), series("a", "web")
	row := func(s *batch.Series, v float64) *batch.Metrics {
		return &batch.Metrics{Series: []*batch.Series{s}, T: []int64{5000}, V: []float64{v}}
	}
	hist := row(api, 7)
	hist.Histograms = []batch.Histogram{{Row: 0, Float: &histogram.FloatHistogram{Count: 1, Sum: 7}}}
	f := func(src string, b *batch.Metrics, decided bool, want expr.Verdict) {
		t.Helper()
		j := clause.NewJudges(clause.Predicate(src)).Samples
		var x expr.Sample
		for range 2 { // computed, then cached
			v := j.Labels(&x, b.Series[0])
			if got := j.LabelPart(&x, b.Series[0]); got != v {
				t.Errorf("%s: labels say %v, and without a memory %v", src, v, got)
			}
			if got := j.Decides(v); got != decided {
				t.Errorf("%s: labels decide: %v", src, got)
			}
			if !decided {
				var err error
				if v, err = j.Row(&x, b, 0, v); err != nil {
					t.Errorf("%s: %v", src, err)
				}
			}
			if v != want {
				t.Errorf("%s of %s %v: got %v, want %v", src, b.Series[0], b.V[0], v, want)
			}
		}
	}
	f(`labels.job == "api"`, row(api, 1), true, expr.True)
	f(`labels.job == "api"`, row(web, 1), true, expr.False)
	f(`labels.job == "api" && value > 3`, row(web, 9), true, expr.False)
	f(`labels.job == "api" && value > 3`, row(api, 9), false, expr.True)
	f(`labels.job == "api" && value > 3`, row(api, 2), false, expr.False)
	f(`labels.job == "api" || value > 3`, row(api, 2), false, expr.True)
	f(`labels.job == "api" || value > 3`, row(web, 2), false, expr.False)
	f(`time == 5000`, row(api, 1), false, expr.True)
	// Without a value.
	f(`labels.job == "api" && value > 3`, row(api, batch.Stale()), false, expr.True)
	f(`value > 3`, row(api, batch.Stale()), false, expr.Open)
	f(`value > 3`, hist, false, expr.Open)
	f(`time == 5000`, row(api, batch.Stale()), false, expr.True)
}

// TestJudgeLines: like samples, but a line always has all fields.
func TestJudgeLines(t *testing.T) {
	api, web := series("a", "api"), series("a", "web")
	f := func(src string, s *batch.Stream, decided bool, want expr.Verdict) {
		t.Helper()
		j := clause.NewJudges(clause.Predicate(src)).Lines
		b := &batch.Logs{Stream: []*batch.Stream{s}, T: []int64{5_999_999}, Line: []string{"a warning"}, Meta: [][]batch.Label{{{Name: "id", Value: "7"}}}}
		var x expr.Sample
		v := j.Labels(&x, s)
		if got := j.Decides(v); got != decided {
			t.Errorf("%s: labels decide: %v", src, got)
		}
		if !decided {
			var err error
			if v, err = j.Line(&x, b, 0, v); err != nil {
				t.Errorf("%s: %v", src, err)
			}
		}
		if v != want {
			t.Errorf("%s of %s: got %v, want %v", src, s, v, want)
		}
	}
	f(`labels.job == "api"`, api, true, expr.True)
	f(`labels.job == "api" && line contains "warn"`, web, true, expr.False)
	f(`labels.job == "api" && line contains "warn"`, api, false, expr.True)
	f(`labels.job == "api" && line contains "x"`, api, false, expr.False)
	f(`labels.job == "api" || line contains "warn"`, web, false, expr.True)
	f(`meta.id == "7" && time == 5`, web, false, expr.True)
	f(`labels.__name__ == "a"`, web, true, expr.True) // an ordinary label
}

// TestJudgeFails: if the predicate fails on labels, they decide nothing, and the
// error is returned for the row.
func TestJudgeFails(t *testing.T) {
	j := clause.NewJudges(`float(labels.job) > 3`).Samples
	var x expr.Sample
	b := &batch.Metrics{Series: []*batch.Series{series("a", "api"), series("a", "4")}, T: []int64{1, 1}, V: []float64{1, 1}}
	v := j.Labels(&x, b.Series[0])
	if v != expr.Open || j.Decides(v) {
		t.Errorf("got %v", v)
	}
	if got, err := j.Row(&x, b, 0, v); got != expr.Open || err == nil {
		t.Errorf("got %v, %v", got, err)
	}
	if v := j.Labels(&x, b.Series[1]); v != expr.True {
		t.Errorf("got %v", v)
	}
}

// TestJudgeOfReleased: the cached result for a released series is not used for
// another series with the same ID.
func TestJudgeOfReleased(t *testing.T) {
	js := clause.NewJudges(`labels.job == "api"`)
	j := js.Samples
	var x expr.Sample
	s := series("a", "api")
	s.Release()
	if v := j.Labels(&x, s); v != expr.True {
		t.Errorf("got %v", v)
	}
	next := series("a", "web")
	if v := j.Labels(&x, next); v != expr.False {
		t.Errorf("got %v", v)
	}
	js.Sweep()
	if v := j.Labels(&x, next); v != expr.False {
		t.Errorf("got %v", v)
	}
}

// harness is the Failures of a node.
type harness struct {
	t *testing.T
	n *componenttest.Node
	o component.Options
	f *clause.Failures
}

func newHarness(t *testing.T) *harness {
	n := componenttest.New(t, "expr.filter.f")
	l := &harness{t, n, n.Options(), clause.NewFailures("drop", "keep")}
	for range 2 { // a component takes it over while the previous one runs
		if err := l.f.Register(l.o.Registerer); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

// done reports a batch with the given number of failed samples.
func (l *harness) done(source uint64, failed int) {
	var b clause.Batch
	for range failed {
		b.Add("drop", series("a", "api"), &expr.Error{Line: 1, Column: 3, Msg: "no number"})
	}
	l.f.Done(&l.o, source, &b)
}

func (l *harness) wantHealth(state component.HealthState, message string) {
	l.t.Helper()
	if h := l.n.Health(); h.State != state || h.Message != message {
		l.t.Errorf("got health %s %q, want %s %q", h.State, h.Message, state, message)
	}
}

const failed = `drop: no number (1:3), in a sample of a{job="api"}`

func TestFailures(t *testing.T) {
	l := newHarness(t)
	l.done(1, 0)
	l.wantHealth(component.Unknown, "") // nothing to report
	l.done(1, 2)
	l.done(2, 1)
	l.done(1, 1)
	l.wantHealth(component.Unhealthy, failed)
	// Until no source has failures.
	l.done(1, 0)
	l.done(3, 0)
	l.wantHealth(component.Unhealthy, failed)
	l.done(2, 0)
	l.wantHealth(component.Healthy, "")
	want := `# HELP weir_expr_errors_total Samples and log lines on which an expression failed, by the argument it is in. They were forwarded unchanged.
# TYPE weir_expr_errors_total counter
weir_expr_errors_total{argument="drop",component_id="expr.filter.f"} 4
weir_expr_errors_total{argument="keep",component_id="expr.filter.f"} 0
`
	if err := testutil.GatherAndCompare(l.n.Registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	var lines []string
	for line := range strings.Lines(l.n.Logs()) {
		_, line, _ = strings.Cut(strings.TrimSpace(line), "level=")
		lines = append(lines, line)
	}
	if diff := cmp.Diff([]string{
		`ERROR msg="expression failed" component_id=expr.filter.f err="drop: no number (1:3), in a sample of a{job=\"api\"}"`,
		`INFO msg="expressions work again" component_id=expr.filter.f`,
	}, lines); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
	// Different expressions start without failures.
	l.done(1, 1)
	l.f.Start(&l.o)
	l.wantHealth(component.Healthy, "")
	l.done(1, 1)
	l.wantHealth(component.Unhealthy, failed)
}

// TestFailuresOnLines: a failing line is reported with its stream.
func TestFailuresOnLines(t *testing.T) {
	l := newHarness(t)
	var b clause.Batch
	b.AddLine("keep", batch.NewSeries([]batch.Label{{Name: "app", Value: "api"}}), &expr.Error{Line: 1, Column: 3, Msg: "no number"})
	l.f.Done(&l.o, 1, &b)
	l.wantHealth(component.Unhealthy, `keep: no number (1:3), in a line of {app="api"}`)
}

// TestFit: the signals that all arguments of a block support.
func TestFit(t *testing.T) {
	f := func(add func(*clause.Fit), want batch.Signals, why, wrong string) {
		t.Helper()
		var fit clause.Fit
		add(&fit)
		if s, got := fit.Signals(); s != want || got != why {
			t.Errorf("got %s, %q, want %s, %q", s, got, want, why)
		}
		if err := fit.Err(); err == nil && wrong != "" || err != nil && err.Error() != wrong {
			t.Errorf("got %v, want %q", err, wrong)
		}
	}
	const both = batch.SignalMetrics | batch.SignalLogs
	reads := func(f *clause.Fit, p clause.Predicate) { f.Reads("drop", p.Compile()) }
	f(func(f *clause.Fit) {}, both, "", "")
	f(func(f *clause.Fit) { reads(f, `time > 3`) }, both, "", "")
	f(func(f *clause.Fit) { reads(f, `time > 3`); reads(f, `value > 3`) }, batch.SignalMetrics, "drop: a log line has no value", "")
	f(func(f *clause.Fit) { reads(f, `line == ""`); reads(f, `time > 3`) }, batch.SignalLogs, "drop: a sample has no line", "")
	f(func(f *clause.Fit) { f.Sets("line", batch.SignalLogs) }, batch.SignalLogs, "line: a sample has none", "")
	f(func(f *clause.Fit) { f.Sets("name", batch.SignalMetrics); reads(f, `value > 3`) }, batch.SignalMetrics, "name: a log line has none", "")
	f(func(f *clause.Fit) { f.Sets("name", batch.SignalMetrics); reads(f, `meta.x == ""`) }, both, "",
		"name: a log line has none, and drop: a sample has no meta; write a block for samples and one for log lines")
}

// TestFailuresOfGoneSources: a source that does not send any more neither keeps
// the node unhealthy nor is it remembered, whether other sources are active or
// not.
func TestFailuresOfGoneSources(t *testing.T) {
	l := newHarness(t)
	for source := range uint64(100) {
		l.done(source, 1)
	}
	l.n.Clock.Advance(11 * time.Minute)
	l.done(1000, 1)
	if n := l.f.Failing(); n != 1 {
		t.Errorf("%d sources are remembered", n)
	}
	l.wantHealth(component.Unhealthy, failed)
	l.n.Clock.Advance(11 * time.Minute)
	l.done(1, 0)
	l.wantHealth(component.Healthy, "")
}

func TestFailuresSideBySide(t *testing.T) {
	l := newHarness(t)
	var wg sync.WaitGroup
	for source := range uint64(8) {
		wg.Go(func() {
			for i := range 100 {
				l.done(source, i%2)
			}
			l.done(source, 0)
		})
	}
	wg.Wait()
	l.wantHealth(component.Healthy, "")
}
