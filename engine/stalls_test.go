package engine_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"github.com/weir-run/weir/engine/component"
)

// stuck blocks calls until it is closed, or for the life of the test.
type stuck chan struct{}

// wantProblem expects a node to be unhealthy for a reason, since a time; no reason
// is healthy.
func (l *harness) wantProblem(id, reason, message string, since time.Time) {
	l.t.Helper()
	i := l.info(id)
	if reason == "" {
		if i.Health.State != component.Healthy || len(i.Problems) > 0 {
			l.t.Errorf("%s is %v %q, problems %v; want healthy", id, i.Health.State, i.Health.Message, i.Problems)
		}
		return
	}
	for _, p := range i.Problems {
		if p.Reason == reason {
			if !strings.Contains(p.Message, message) || !p.Time.Equal(since) {
				l.t.Errorf("%s has the problem %q since %s, want %q since %s", id, p.Message, p.Time, message, since)
			}
			return
		}
	}
	l.t.Errorf("%s has the problems %v, want %s", id, i.Problems, reason)
}

// wantMetric expects a line of the metrics, or with ! none that begins so.
func (l *harness) wantMetric(line string) {
	l.t.Helper()
	line, not := strings.CutPrefix(line, "!")
	got := gather(l.t, l.registry)
	if found := strings.Contains(got, line); found == not {
		l.t.Errorf("want %q (not: %v), got:\n%s", line, not, got)
	}
}

// A build or an update that does not return makes its node unhealthy while it
// hangs. The worker does not hang with it.
func TestStalledCall(t *testing.T) {
	for _, what := range []string{"build", "update"} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(l *harness) {
				hang := make(stuck)
				l.start(`test.upass "a" { }`)
				l.onBuild = func(string, *arguments, component.Options) error { <-hang; return nil }
				l.onUpdate = func(string, *arguments) error { <-hang; return nil }
				config := "test.upass \"a\" {\n  value = \"2\"\n}"
				if what == "build" {
					config = "test.upass \"a\" {\n  value = \"2\"\n  rebuild = true\n}"
					l.onUpdate = nil
				}
				l.write(config)
				began := time.Now()
				go l.e.Reload(context.Background())
				time.Sleep(10 * time.Second)
				l.wantProblem("test.upass.a", "", "", began)
				time.Sleep(10 * time.Second)
				l.wantProblem("test.upass.a", component.ReasonStalled, what+" has not returned since", began)
				l.wantMetric(`weir_component_unhealthy_since_timestamp_seconds{component_id="test.upass.a",reason="stalled"} 9.46684`)
				l.wantMetric("weir_engine_operations_stalled 1")
				if s := l.e.Overview().Stalled; len(s) > 0 {
					t.Errorf("the engine is stalled: %q", s)
				}
				time.Sleep(2 * time.Minute)
				if s := l.e.Overview().Stalled; len(s) > 0 {
					t.Errorf("the worker hangs: %q", s)
				}
				close(hang)
				synctest.Wait()
				time.Sleep(2 * time.Second)
				l.wantProblem("test.upass.a", "", "", began)
				l.wantMetric("!weir_component_unhealthy_since_timestamp_seconds")
				l.wantMetric("weir_engine_operations_stalled 0")
				l.wantMetric("weir_engine_stalls_total 1")
				if s := l.e.Overview().Stalled; len(s) > 0 {
					t.Errorf("the engine is stalled: %q", s)
				}
			})
		})
	}
}

// A version that was replaced and does not return is reported at the node.
func TestStalledStop(t *testing.T) {
	bubble(t, func(l *harness) {
		hang := make(stuck)
		l.onRun = func(ctx context.Context, f *fake) error {
			<-ctx.Done()
			if a, _ := f.get(); a.Value == "" {
				<-hang
			}
			return nil
		}
		l.start(`test.pass "a" { }`)
		began := time.Now()
		if err := l.reload("test.pass \"a\" {\n  value = \"2\"\n}"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Second)
		l.wantProblem("test.pass.a", component.ReasonStalled, "stop has not returned", began)
		close(hang)
		time.Sleep(2 * time.Second)
		l.wantProblem("test.pass.a", "", "", began)
	})
}

// A problem that a component reports for a reason of its own lasts until it ends,
// whatever else the component reports.
func TestProblems(t *testing.T) {
	bubble(t, func(l *harness) {
		l.start(`test.sink "a" { }`)
		f := l.fake("test.sink.a")
		began := time.Now()
		op := f.o.Watch.Begin("send to http://x", time.Minute)
		f.o.Health(component.Health{State: component.Unhealthy, Reason: component.ReasonQueue, Message: "3 blocks wait"})
		time.Sleep(50 * time.Second)
		l.wantProblem("test.sink.a", component.ReasonQueue, "3 blocks wait", began)
		f.o.Health(component.Health{State: component.Healthy, Message: "sending"})
		f.o.Health(component.Health{State: component.Unhealthy, Reason: component.ReasonQueue, Message: "4 blocks wait"})
		l.wantProblem("test.sink.a", component.ReasonQueue, "4 blocks wait", began)
		time.Sleep(20 * time.Second)
		l.wantProblem("test.sink.a", component.ReasonStalled, "send to http://x has not returned", began)
		l.wantHealth("test.sink.a", component.Unhealthy, "send to http://x has not returned since 2000-01-01T00:00:00Z (limit 1m0s)")
		op.End()
		time.Sleep(2 * time.Second)
		l.wantHealth("test.sink.a", component.Unhealthy, "4 blocks wait")
		f.o.Health(component.Health{State: component.Healthy, Reason: component.ReasonQueue})
		l.wantProblem("test.sink.a", "", "", began)
		l.wantHealth("test.sink.a", component.Healthy, "sending")
	})
}

// gather returns all metrics in the text format.
func gather(t *testing.T, r prometheus.Gatherer) string {
	t.Helper()
	fams, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, f := range fams {
		if _, err := expfmt.MetricFamilyToText(&b, f); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}
