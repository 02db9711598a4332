package process_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/flow"
)

// Explain does not change the counters, the metrics and the token bucket of a node.
func TestExplainHasNoEffect(t *testing.T) {
	n := builtLab(t, `
stage.metrics {
	metric.counter {
		name      = "lines_total"
		action    = "inc"
		match_all = true
	}
}
stage.truncate {
	rule {
		limit = "3B"
	}
}
stage.limit {
	rate          = 1
	burst         = 2
	drop          = true
	by_label_name = "a"
}`)
	n.send("{a=\"1\"} 1234\n")
	for range 5 {
		n.explain("{a=\"1\"} 1234\n")
	}
	n.send("{a=\"1\"} 2\n{a=\"1\"} 3\n")
	n.wantLines("123 2")
	n.wantMetrics(`
# HELP loki_process_custom_lines_total
# TYPE loki_process_custom_lines_total counter
loki_process_custom_lines_total{a="1",component_id="loki.process.default"} 3
# HELP loki_process_truncated_fields_total Lines, labels, extracted values and structured metadata that stage.truncate cut.
# TYPE loki_process_truncated_fields_total counter
loki_process_truncated_fields_total{component_id="loki.process.default",field="line"} 1
`, "loki_process_custom_lines_total", "loki_process_truncated_fields_total")
	if got, want := n.dropped(), "ratelimit_drop_stage 1\n"; got != want {
		t.Errorf("got %q dropped, want %q", got, want)
	}
}

// A call that ends, and a stage that cannot be compiled again, are errors.
func TestExplainErrors(t *testing.T) {
	n := builtLab(t, "stage.drop {\nlonger_than = \"1B\"\n}")
	one := flow.Batches{Logs: []*batch.Logs{n.parse("{} long")}}
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(os.ErrDeadlineExceeded)
	if _, err := n.c.Explain(ended, one); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got error %v", err)
	}
}
