//go:build !nologql

package process_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/natives/loki/process"
)

type nowhere struct{}

func (nowhere) ConsumeLogs(context.Context, *batch.Logs) error { return nil }

// BenchmarkLogQL parses JSON, sets a label from one field, drops debug lines and
// rewrites the rest, once with stages and once with a LogQL pipeline. The batch
// has 1,000 lines of 200 bytes.
func BenchmarkLogQL(b *testing.B) {
	in := &batch.Logs{Source: batch.NewSource()}
	s := batch.NewSeries([]batch.Label{{Name: "app", Value: "api"}, {Name: "filename", Value: "/var/log/api.log"}})
	for i := range 1000 {
		line := fmt.Sprintf(`{"time":"2025-01-01T00:00:00.%09dZ","level":%q,"msg":"request %d was served, %s","status":200,"path":"/api/v1/users/%d","took":0.0034,"host":"web-1"}`,
			i, []string{"info", "debug", "warn", "error"}[i%4], i, strings.Repeat("x", 30), i)
		in.Stream, in.T, in.Line = append(in.Stream, s), append(in.T, int64(i)), append(in.Line, line)
	}
	f := func(name, stages string) {
		b.Run(name, func(b *testing.B) {
			a, mistakes := decodeStages(stages)
			if mistakes != "" {
				b.Fatal(mistakes)
			}
			to := flow.NewReceiver("nowhere", batch.SignalLogs, nil, nil)
			to.Set(nowhere{})
			a.ForwardTo = []*flow.Receiver{to}
			c := componenttest.New(b, "loki.process.p").Build(b, process.Registration(), a).(flow.LogsConsumer)
			b.ReportAllocs()
			for b.Loop() {
				if err := c.ConsumeLogs(context.Background(), in); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*in.Len()), "ns/line")
		})
	}
	f("stages", `
stage.json {
	expressions = { level = "", msg = "" }
}
stage.drop {
	source = "level"
	value  = "debug"
}
stage.labels {
	values = { level = "" }
}
stage.output {
	source = "msg"
}`)
	const pipeline = "pipeline = `| json | level!=\"debug\" | line_format \"{{.msg}}\"`\n"
	f("logql", "stage.logql {\n"+pipeline+"labels = [\"level\"]\nparsed = \"extracted\"\n}")
	f("logql_named", strings.ReplaceAll("stage.logql {\n"+pipeline+"labels = [\"level\"]\nparsed = \"extracted\"\n}", "json |", "json level, msg |"))
	f("logql_all", "stage.logql {\n"+pipeline+"labels = [\"level\"]\n}")
}
