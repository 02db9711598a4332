package engine_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"context"

	"github.com/weir-run/weir/engine/component"
)

func TestMetrics(t *testing.T) {
	bubble(t, func(l *harness) {
		l.start(chain + `test.value "bad" {
  value = "cannot build"
}`)
		_, out := l.fake("test.source.a").get()
		if err := out.SendMetrics(context.Background(), samples(3)); err != nil {
			t.Fatal(err)
		}
		l.fake("test.pass.b").o.Stats.Drop("filtered", 2)
		if err := l.reload("nonsense"); err == nil {
			t.Fatal("nonsense was accepted")
		}
		want := `
# HELP weir_build_info 1, with the version as a label.
# TYPE weir_build_info gauge
weir_build_info{version="v1"} 1
# HELP weir_component_builds_total Times the node's component was built and took over, the first included.
# TYPE weir_component_builds_total counter
weir_component_builds_total{component_id="test.pass.b"} 1
weir_component_builds_total{component_id="test.sink.c"} 1
weir_component_builds_total{component_id="test.source.a"} 1
weir_component_builds_total{component_id="test.value.bad"} 0
# HELP weir_component_health 1 for the state the node is in: unknown, healthy, unhealthy or exited.
# TYPE weir_component_health gauge
weir_component_health{component_id="test.pass.b",state="exited"} 0
weir_component_health{component_id="test.pass.b",state="healthy"} 1
weir_component_health{component_id="test.pass.b",state="unhealthy"} 0
weir_component_health{component_id="test.pass.b",state="unknown"} 0
weir_component_health{component_id="test.sink.c",state="exited"} 0
weir_component_health{component_id="test.sink.c",state="healthy"} 1
weir_component_health{component_id="test.sink.c",state="unhealthy"} 0
weir_component_health{component_id="test.sink.c",state="unknown"} 0
weir_component_health{component_id="test.source.a",state="exited"} 0
weir_component_health{component_id="test.source.a",state="healthy"} 1
weir_component_health{component_id="test.source.a",state="unhealthy"} 0
weir_component_health{component_id="test.source.a",state="unknown"} 0
weir_component_health{component_id="test.value.bad",state="exited"} 0
weir_component_health{component_id="test.value.bad",state="healthy"} 0
weir_component_health{component_id="test.value.bad",state="unhealthy"} 1
weir_component_health{component_id="test.value.bad",state="unknown"} 0
# HELP weir_component_samples_dropped_total Samples that the node did not send on, by reason.
# TYPE weir_component_samples_dropped_total counter
weir_component_samples_dropped_total{component_id="test.pass.b",reason="filtered"} 2
# HELP weir_component_samples_in_total Samples that came in through the node's receiver and were accepted.
# TYPE weir_component_samples_in_total counter
weir_component_samples_in_total{component_id="test.pass.b"} 3
weir_component_samples_in_total{component_id="test.sink.c"} 3
weir_component_samples_in_total{component_id="test.source.a"} 0
weir_component_samples_in_total{component_id="test.value.bad"} 0
# HELP weir_component_samples_out_total Samples that were accepted by a receiver the node sends to, or by an endpoint of a sink, once for each.
# TYPE weir_component_samples_out_total counter
weir_component_samples_out_total{component_id="test.pass.b"} 3
weir_component_samples_out_total{component_id="test.sink.c"} 0
weir_component_samples_out_total{component_id="test.source.a"} 3
weir_component_samples_out_total{component_id="test.value.bad"} 0
# HELP weir_engine_builds_total Components that were built, by outcome: ok or failed.
# TYPE weir_engine_builds_total counter
weir_engine_builds_total{outcome="failed"} 1
weir_engine_builds_total{outcome="ok"} 3
# HELP weir_engine_reloads_total Changes of the configuration or of scripts, the start included, by outcome: applied, partial (a node stayed on its last good version) or refused.
# TYPE weir_engine_reloads_total counter
weir_engine_reloads_total{outcome="applied"} 0
weir_engine_reloads_total{outcome="partial"} 1
weir_engine_reloads_total{outcome="refused"} 1
`
		var names []string
		for line := range strings.SplitSeq(want, "\n") {
			if rest, ok := strings.CutPrefix(line, "# TYPE "); ok {
				name, _, _ := strings.Cut(rest, " ")
				names = append(names, name)
			}
		}
		if err := testutil.GatherAndCompare(l.registry, strings.NewReader(want), names...); err != nil {
			t.Error(err)
		}
	})
}

// TestComponentMetrics: instances and nodes may register the same metrics.
func TestComponentMetrics(t *testing.T) {
	bubble(t, func(l *harness) {
		block := make(chan struct{})
		l.onRun = func(ctx context.Context, f *fake) error {
			<-ctx.Done()
			if a, _ := f.get(); a.Value == "old" {
				<-block // the old one is in no hurry
			}
			return nil
		}
		l.onBuild = func(id string, a *arguments, o component.Options) error {
			c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "test_things_total", Help: "Things."}, []string{"value"})
			o.Registerer.MustRegister(c)
			c.WithLabelValues(a.Value).Add(3)
			// A second registration returns the existing collector, not its wrapper.
			err := o.Registerer.Register(c)
			if twice, ok := err.(prometheus.AlreadyRegisteredError); !ok || twice.ExistingCollector != prometheus.Collector(c) {
				t.Errorf("got %v", err)
			}
			o.Registerer.MustRegister(panicking{prometheus.NewGauge(prometheus.GaugeOpts{Name: "test_panics", Help: "Never."})})
			if !strings.HasPrefix(id, "test.source") {
				// Another type of a name that is taken is left out.
				o.Registerer.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "test_kind", Help: "A gauge."}))
			} else {
				o.Registerer.MustRegister(prometheus.NewCounter(prometheus.CounterOpts{Name: "test_kind", Help: "A counter."}))
			}
			return nil
		}
		config := "test.source \"a\" {\n value = \"old\"\n}\ntest.sink \"b\" { }\n"
		l.start(config)
		check := func(want string) {
			t.Helper()
			if err := testutil.GatherAndCompare(l.registry, strings.NewReader(want), "test_things_total", "test_panics", "test_kind"); err != nil {
				t.Error(err)
			}
		}
		head := "# HELP test_kind A counter.\n# TYPE test_kind counter\ntest_kind{component_id=\"test.source.a\"} 0\n" +
			"# HELP test_things_total Things.\n# TYPE test_things_total counter\n"
		check(head + "test_things_total{component_id=\"test.source.a\",value=\"old\"} 3\ntest_things_total{component_id=\"test.sink.b\",value=\"\"} 3\n")
		if err := l.reload(strings.Replace(config, "old", "new", 1)); err != nil {
			t.Fatal(err)
		}
		after := head + "test_things_total{component_id=\"test.source.a\",value=\"new\"} 3\ntest_things_total{component_id=\"test.sink.b\",value=\"\"} 3\n"
		check(after)
		close(block)
		check(after)
		if err := l.reload("test.sink \"b\" { }\n"); err != nil {
			t.Fatal(err)
		}
		check("# HELP test_kind A gauge.\n# TYPE test_kind gauge\ntest_kind{component_id=\"test.sink.b\"} 0\n" +
			"# HELP test_things_total Things.\n# TYPE test_things_total counter\ntest_things_total{component_id=\"test.sink.b\",value=\"\"} 3\n")
	})
}

type panicking struct{ prometheus.Gauge }

func (panicking) Collect(chan<- prometheus.Metric) { panic("no") }
