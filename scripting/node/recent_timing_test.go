package node

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/outbox"
)

// BenchmarkKeepInput measures what on_reload = "shadow" adds to a batch. Compare it with
// the cases hook of BenchmarkConsume.
func BenchmarkKeepInput(b *testing.B) {
	for _, rows := range []int{1, 1000} {
		var samples, lines strings.Builder
		for i := range rows {
			fmt.Fprintf(&samples, "node_cpu_seconds_total{cpu=\"%d\",job=\"node\"} %d.25\n", i, 90000+i)
			fmt.Fprintf(&lines, "{cpu=\"%d\",job=\"node\"} line %d\n", i%10, i)
		}
		metrics, err := batch.ParseText(samples.String(), batch.TextOptions{T: 1, Source: 1})
		if err != nil {
			b.Fatal(err)
		}
		logs, err := batch.ParseLogsText(lines.String(), batch.TextOptions{T: 1, Source: 1})
		if err != nil {
			b.Fatal(err)
		}
		for name, p := range map[string]payload{"metrics": {outbox.Batch{Metrics: metrics}}, "logs": {outbox.Batch{Logs: logs}}} {
			b.Run(fmt.Sprintf("%s/%d", name, rows), func(b *testing.B) {
				var r recent
				b.ReportAllocs()
				for b.Loop() {
					r.add(p, 4<<20)
				}
			})
		}
	}
}
