package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/engine/component"
)

// deaf is a component whose answers about itself take until the test lets it answer.
type deaf struct {
	updatable
	wait func(question string)
}

func (d *deaf) DebugInfo() any { d.wait("debug"); return "details" }

func (d *deaf) Backlog() component.Backlog {
	d.wait("backlog")
	return component.Backlog{Journal: true, Samples: 7}
}

func (d *deaf) Sourced() []string { d.wait("files"); return d.updatable.Sourced() }

// collected is a collector of a deaf component.
type collected struct {
	prometheus.Gauge
	wait func(question string)
}

func (c collected) Collect(ch chan<- prometheus.Metric) { c.wait("metrics"); c.Gauge.Collect(ch) }

// deaf has the components of test.usource with the value "deaf" not answer a question
// until answer is called.
func (l *harness) deaf(question string) (answer func()) {
	hang := make(stuck)
	wait := func(c updatable) func(string) {
		return func(q string) {
			if a, _ := c.get(); a.Value == "deaf" && q == question {
				<-hang
			}
		}
	}
	l.wrap(func(c updatable) component.Component {
		gauge := prometheus.NewGauge(prometheus.GaugeOpts{Name: "deaf_gauge", Help: "A gauge."})
		c.o.Registerer.MustRegister(collected{gauge, wait(c)})
		return &deaf{c, wait(c)}
	})
	return func() { close(hang) }
}

// TestDeafComponents: components that do not answer a question about themselves delay
// neither the status nor a reload, are named in their health, and can be replaced.
func TestDeafComponents(t *testing.T) {
	const nodes = 20
	f := func(question string, limit time.Duration, operation string) {
		t.Run(question, func(t *testing.T) {
			bubble(t, func(l *harness) {
				answer := l.deaf(question)
				config := func(value, other string) string {
					var b strings.Builder
					for i := range nodes {
						fmt.Fprintf(&b, "test.usource \"d%d\" {\n  value = %q\n}\n", i, value)
					}
					return b.String() + fmt.Sprintf("test.uvalue \"other\" {\n  value = %q\n}\n", other)
				}
				l.start(config("", "1"))
				l.write(config("deaf", "1"))
				go l.e.Reload(context.Background())
				synctest.Wait()

				status := func(want time.Duration) {
					t.Helper()
					began := time.Now()
					for _, i := range l.e.ListComponents() {
						if i.Debug != nil {
							i.Debug()
						}
					}
					if question == "metrics" {
						gather(t, l.registry)
					}
					if took := time.Since(began); took > want {
						t.Errorf("the status took %s, want at most %s", took, want)
					}
				}
				status(limit)
				status(0) // they are not asked again
				began := time.Now()
				if err := l.reload(config("deaf", "2")); err != nil {
					t.Fatal(err)
				}
				if a, _ := l.fake("test.uvalue.other").get(); a.Value != "2" {
					t.Errorf("the other node has the value %q", a.Value)
				}
				if took := time.Since(began); took > time.Second {
					t.Errorf("the reload of another node took %s", took)
				}

				time.Sleep(20 * time.Second)
				l.wantHealth("test.usource.d0", component.Unhealthy, operation+" has not returned since")
				l.wantHealth("test.uvalue.other", component.Healthy, "")
				if s := l.e.Overview().Stalled; len(s) > 0 {
					t.Errorf("the engine is stalled: %q", s)
				}
				if err := l.reload(config("new", "2")); err != nil {
					t.Fatal(err)
				}
				if a, _ := l.fake("test.usource.d0").get(); a.Value != "new" {
					t.Errorf("the node has the value %q", a.Value)
				}
				answer()
				time.Sleep(2 * time.Second)
				l.wantHealth("test.usource.d0", component.Healthy, "")
				if i := l.info("test.usource.d0"); i.Debug() != any("details") || i.Backlog.Samples != 7 {
					t.Errorf("got details %v and backlog %+v", i.Debug(), i.Backlog)
				}
				l.wantMetric(`deaf_gauge{component_id="test.usource.d0"} 0`)
			})
		})
	}
	f("debug", 100*time.Millisecond, "status")
	f("backlog", 100*time.Millisecond, "status")
	f("metrics", 2*time.Second+100*time.Millisecond, "collect metrics")
	f("files", 0, "ask for its files")
}

// TestDeafAtShutdown: a component that does not answer delays no shutdown.
func TestDeafAtShutdown(t *testing.T) {
	bubble(t, func(l *harness) {
		answer := l.deaf("debug")
		l.start("test.usource \"d\" {\n  value = \"deaf\"\n}")
		l.info("test.usource.d").Debug()
		began := time.Now()
		if err := l.end(); err != nil {
			t.Error(err)
		}
		l.stop = nil
		if took := time.Since(began); took > time.Second {
			t.Errorf("the shutdown took %s", took)
		}
		answer()
	})
}
