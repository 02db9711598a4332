package process_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/natives/loki/process"
)

func registration() component.Registration { return process.Registration() }

func TestSampling(t *testing.T) {
	n := builtLab(t, "stage.sampling {\nrate = 0.5\n}")
	n.send(strings.Repeat("{} x\n", 1000))
	got := len(strings.Fields(n.lines()))
	if got < 300 || got > 700 { // 12 standard deviations
		t.Errorf("%d of 1000 lines stay", got)
	}
	if d := n.dropped(); d != fmt.Sprintf("sampling_stage %d\n", 1000-got) {
		t.Errorf("got dropped %q", d)
	}
}

func TestTruncateCounts(t *testing.T) {
	n := builtLab(t, "stage.truncate {\nrule {\nlimit = 3\n}\nrule {\nlimit = 1\nsource_type = \"label\"\n}\n}")
	n.send("{a=\"xx\",b=\"yy\"} abcd\n{a=\"x\"} abc\n")
	n.wantMetrics(`# HELP loki_process_truncated_fields_total Lines, labels, extracted values and structured metadata that stage.truncate cut.
# TYPE loki_process_truncated_fields_total counter
loki_process_truncated_fields_total{component_id="loki.process.default",field="label"} 2
loki_process_truncated_fields_total{component_id="loki.process.default",field="line"} 1
`, "loki_process_truncated_fields_total")
}

// TestCRIAck: the source moves past a part when the complete line was sent.
func TestCRIAck(t *testing.T) {
	n := builtLab(t, "stage.cri { }")
	done := 0
	send := func(text string) {
		t.Helper()
		b := n.parse(text)
		b.Ack = batch.NewAck(func() { done++ })
		if err := n.c.ConsumeLogs(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		b.Ack.Accepted()
	}
	send("{a=\"1\"} \"2025-01-01T00:00:00Z stdout P one \"\n")
	if done != 0 {
		t.Fatal("a part counts as sent")
	}
	send("{a=\"2\"} 2025-01-01T00:00:00Z stdout F other\n")
	if done != 1 {
		t.Fatalf("%d batches are done, want 1", done)
	}
	send("{a=\"1\"} 2025-01-01T00:00:00Z stdout F two\n")
	if done != 3 {
		t.Errorf("%d batches are done, want 3", done)
	}
	n.wantLines("other one two")
}

// TestCRITooMany: if too many streams wait, all except the last leave.
func TestCRITooMany(t *testing.T) {
	n := newHarness(t)
	n.reload("stage.cri {\nmax_partial_lines = 2\n}")
	n.send("{a=\"1\"} 2025-01-01T00:00:01Z stdout P one\n{a=\"2\"} 2025-01-01T00:00:02Z stdout P two\n")
	if got := n.lines(); got != "" {
		t.Errorf("got %q before there were too many", got)
	}
	n.send("{a=\"3\"} 2025-01-01T00:00:03Z stdout P three\n")
	n.wait(0)
	n.wantLines("one two")
	n.wantMetrics(`# HELP loki_process_cri_partial_lines_flushed_total Partial lines that stage.cri sent before their end came: there were more than max_partial_lines, or one was longer than 16 MiB or all than 64 MiB.
# TYPE loki_process_cri_partial_lines_flushed_total counter
loki_process_cri_partial_lines_flushed_total{component_id="loki.process.default"} 2
`, "loki_process_cri_partial_lines_flushed_total")
	n.send("{a=\"3\"} 2025-01-01T00:00:04Z stdout F !\n{a=\"1\"} 2025-01-01T00:00:05Z stdout F 1\n")
	n.wantLines("three! 1")
}

const counting = `stage.json {
	expressions = { n = "", took = "", level = "" }
}
stage.metrics {
	metric.counter {
		name        = "lines_total"
		description = "Lines."
		match_all   = true
		action      = "inc"
	}
	metric.counter {
		name              = "bytes_total"
		match_all         = true
		count_entry_bytes = true
		action            = "add"
		prefix            = "my_"
	}
	metric.counter {
		name   = "errors_total"
		source = "level"
		value  = "error"
		action = "inc"
	}
	metric.counter {
		name   = "sum_total"
		source = "n"
		action = "add"
	}
	metric.gauge {
		name   = "n"
		action = "set"
	}
	metric.gauge {
		name   = "back"
		source = "n"
		action = "sub"
	}
	metric.histogram {
		name    = "took_seconds"
		source  = "took"
		buckets = [0.1, 1]
	}
}
`

func TestMetrics(t *testing.T) {
	n := builtLab(t, counting)
	n.send(`{app="a",__tenant_id__="t"} {"n":2,"level":"error","took":"50ms"}
{app="a"} {"n":-1,"level":"info","took":0.1}
{app="b",component_id="x"} {"n":"1.5","took":"2s"}
{app="a"} none
{app="a"} {"n":"many","level":null,"took":true}
`)
	const id = `component_id="loki.process.default"`
	n.wantMetrics(strings.ReplaceAll(`# HELP loki_process_custom_lines_total Lines.
# TYPE loki_process_custom_lines_total counter
loki_process_custom_lines_total{app="a",ID} 4
loki_process_custom_lines_total{app="b",ID,exported_component_id="x"} 1
`, "ID", id), "loki_process_custom_lines_total")
	n.wantMetrics(strings.ReplaceAll(`# HELP my_bytes_total 
# TYPE my_bytes_total counter
my_bytes_total{app="a",ID} 112
my_bytes_total{app="b",ID,exported_component_id="x"} 23
# HELP loki_process_custom_errors_total 
# TYPE loki_process_custom_errors_total counter
loki_process_custom_errors_total{app="a",ID} 1
# HELP loki_process_custom_sum_total 
# TYPE loki_process_custom_sum_total counter
loki_process_custom_sum_total{app="a",ID} 2
loki_process_custom_sum_total{app="b",ID,exported_component_id="x"} 1.5
# HELP loki_process_custom_n 
# TYPE loki_process_custom_n gauge
loki_process_custom_n{app="a",ID} -1
loki_process_custom_n{app="b",ID,exported_component_id="x"} 1.5
# HELP loki_process_custom_back 
# TYPE loki_process_custom_back gauge
loki_process_custom_back{app="a",ID} -1
loki_process_custom_back{app="b",ID,exported_component_id="x"} -1.5
# HELP loki_process_custom_took_seconds 
# TYPE loki_process_custom_took_seconds histogram
loki_process_custom_took_seconds_bucket{app="a",ID,le="0.1"} 2
loki_process_custom_took_seconds_bucket{app="a",ID,le="1"} 3
loki_process_custom_took_seconds_bucket{app="a",ID,le="+Inf"} 3
loki_process_custom_took_seconds_sum{app="a",ID} 1.15
loki_process_custom_took_seconds_count{app="a",ID} 3
loki_process_custom_took_seconds_bucket{app="b",ID,exported_component_id="x",le="0.1"} 0
loki_process_custom_took_seconds_bucket{app="b",ID,exported_component_id="x",le="1"} 0
loki_process_custom_took_seconds_bucket{app="b",ID,exported_component_id="x",le="+Inf"} 1
loki_process_custom_took_seconds_sum{app="b",ID,exported_component_id="x"} 2
loki_process_custom_took_seconds_count{app="b",ID,exported_component_id="x"} 1
`, "ID", id), "my_bytes_total", "loki_process_custom_errors_total", "loki_process_custom_sum_total", "loki_process_custom_n", "loki_process_custom_back", "loki_process_custom_took_seconds")
}

// TestMetricsReload: a metric keeps its value while a stage defines it in the
// same way, also in the next component. It disappears when no stage defines it.
func TestMetricsReload(t *testing.T) {
	counter := func(name, more string) string {
		return "stage.metrics {\nmetric.counter {\nname = \"" + name + "\"\nmatch_all = true\naction = \"inc\"\n" + more + "\n}\n}\n"
	}
	n := builtLab(t, counter("a", ""))
	want := func(name string, v int) {
		t.Helper()
		text := ""
		if v > 0 {
			text = fmt.Sprintf("# HELP loki_process_custom_%s \n# TYPE loki_process_custom_%s counter\nloki_process_custom_%s{component_id=\"loki.process.default\"} %d\n", name, name, name, v)
		}
		n.wantMetrics(text, "loki_process_custom_"+name)
	}
	n.send("{} x\n")
	want("a", 1)
	n.reload("stage.decolorize { }\n" + counter("a", "") + counter("b", ""))
	n.send("{} x\n")
	want("a", 2)
	want("b", 1)
	n.rebuild(counter("a", "") + counter("a", "")) // one metric that counts each line twice
	n.send("{} x\n")
	want("a", 4)
	want("b", 0)
	n.reload(counter("a", "max_idle_duration = \"1m\""))
	want("a", 0)
	n.send("{} x\n")
	want("a", 1)
	n.reload("stage.decolorize { }")
	want("a", 0)
}

// TestMetricsIdle: series that do not change for a long time disappear and start
// again at 0.
func TestMetricsIdle(t *testing.T) {
	n := builtLab(t, "stage.metrics {\nmetric.counter {\nname = \"a\"\nmatch_all = true\naction = \"inc\"\nmax_idle_duration = \"10s\"\n}\n}")
	series := func(want string) {
		t.Helper()
		if want != "" {
			want = "# HELP loki_process_custom_a \n# TYPE loki_process_custom_a counter\n" + want
		}
		n.wantMetrics(want, "loki_process_custom_a")
	}
	const a, b = `loki_process_custom_a{app="a",component_id="loki.process.default"} `, `loki_process_custom_a{app="b",component_id="loki.process.default"} `
	n.send("{app=\"a\"} x\n{app=\"b\"} x\n")
	n.Clock.Advance(9 * time.Second)
	n.send("{app=\"a\"} x\n")
	n.Clock.Advance(time.Second)
	series(a + "2\n" + b + "1\n") // they are shown once more
	series(a + "2\n")
	n.send("{app=\"b\"} x\n")
	series(a + "2\n" + b + "1\n")
	n.Clock.Advance(time.Hour)
	series(a + "2\n" + b + "1\n")
	series("")
}

// TestMetricsBounded: labels that come from lines do not exhaust the memory.
func TestMetricsBounded(t *testing.T) {
	n := builtLab(t, "stage.metrics {\nmetric.counter {\nname = \"a\"\nmatch_all = true\naction = \"inc\"\n}\n}")
	var many strings.Builder
	for i := range 20_010 {
		fmt.Fprintf(&many, "{app=\"app%d\"} x\n", i)
	}
	n.send(many.String())
	n.wantMetrics(`# HELP loki_process_metrics_refused_total Lines that a metric of stage.metrics does not count because it has too many series.
# TYPE loki_process_metrics_refused_total counter
loki_process_metrics_refused_total{component_id="loki.process.default",metric="loki_process_custom_a"} 10
`, "loki_process_metrics_refused_total")
}
