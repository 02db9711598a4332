package process_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/weir-run/weir/cmd/weirbench/logfiles"
	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/natives/loki/process"
)

// takes accepts all batches.
type takes struct{ component.Component }

func (takes) ConsumeLogs(context.Context, *batch.Logs) error { return nil }

// benchLines returns a batch like those of loki.source.file: lines of 200 bytes
// from one file.
func benchLines(b *testing.B, asJSON bool) *batch.Logs {
	b.Helper()
	w, err := logfiles.New(logfiles.Options{Dir: b.TempDir(), Files: 1, JSON: asJSON})
	if err != nil {
		b.Fatal(err)
	}
	defer w.Close()
	if err := w.Write(0, 1300); err != nil {
		b.Fatal(err)
	}
	text, err := os.ReadFile(w.Path(0))
	if err != nil {
		b.Fatal(err)
	}
	out := &batch.Logs{Source: batch.NewSource()}
	s := batch.NewSeries([]batch.Label{{Name: "filename", Value: "/var/log/app.log"}, {Name: "job", Value: "bench"}})
	for line := range strings.Lines(string(text)) {
		out.Stream, out.T, out.Line = append(out.Stream, s), append(out.T, int64(len(out.T))), append(out.Line, strings.TrimSuffix(line, "\n"))
	}
	return out
}

// benchStages passes batches through stages.
func benchStages(b *testing.B, name, stages string, in *batch.Logs) {
	b.Run(name, func(b *testing.B) {
		n := componenttest.New(b, "loki.process.bench")
		to := flow.NewReceiver("sink", batch.SignalLogs, nil, nil)
		to.Set(takes{})
		a, mistakes := decodeStages(stages)
		if mistakes != "" {
			b.Fatal(mistakes)
		}
		a.ForwardTo = []*flow.Receiver{to}
		p := n.Build(b, process.Registration(), a).(flow.LogsConsumer)
		b.ReportAllocs()
		for b.Loop() {
			if err := p.ConsumeLogs(b.Context(), in); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(in.Len()), "ns/line")
	})
}

// BenchmarkStages measures the cost of stages per line.
func BenchmarkStages(b *testing.B) {
	in := benchLines(b, true)
	fields := "stage.json {\nexpressions = { level = \"\", msg = \"\", path = \"\", seq = \"\" }\n}\n"
	debug := "stage.drop {\nsource = \"level\"\nvalue = \"debug\"\n}\n"
	label := "stage.labels {\nvalues = { level = \"\" }\n}\n"
	output := "stage.output {\nsource = \"msg\"\n}\n"
	benchStages(b, "json", fields+output, in)
	benchStages(b, "json and label", fields+label, in)
	benchStages(b, "json, drop, label, output", fields+debug+label+output, in)
}
