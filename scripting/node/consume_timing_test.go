package node_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/internal/registrytest"
	"github.com/weir-run/weir/scripting/lua"
	"github.com/weir-run/weir/scripting/registry"
	"github.com/weir-run/weir/stdlib"
)

// BenchmarkConsume measures the path of a batch through a scripted node, from
// ConsumeMetrics or ConsumeLogs to a receiver that accepts at once. The scripts do
// next to nothing.
func BenchmarkConsume(b *testing.B) {
	const (
		series    = `series = function(s) s.labels.env = "prod" end`
		metrics   = `metrics = function(batch) batch:scale(2) end`
		parallel  = `script { concurrency = "parallel" }`
		partition = "script {\nconcurrency = \"partition\"\nby = [\"cpu\"]\n}"
		outputs   = `outputs = { "other" }, `
		routes    = "routes {\nother = [sink]\n}"
	)
	for _, bc := range []struct {
		name, hooks, attrs string
		rows               int
	}{
		{"remembered", series, "", 1000},
		{"hook/1", metrics, "", 1},
		{"hook/1000", metrics, "", 1000},
		{"outputs/1000", outputs + metrics, routes, 1000},
		{"parallel/10000", metrics, parallel, 10000},
		{"partition/1000", metrics, partition, 1000},
	} {
		b.Run("metrics/"+bc.name, func(b *testing.B) {
			c := benchmarkedNode(b, bc.hooks, bc.attrs)
			var text strings.Builder
			for i := range bc.rows {
				fmt.Fprintf(&text, "node_cpu_seconds_total{cpu=\"%d\",instance=\"localhost:9100\",job=\"node\"} %d.25\n", i, 90000+i)
			}
			in, err := batch.ParseText(text.String(), batch.TextOptions{T: 1, Source: batch.NewSource()})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := c.(flow.MetricsConsumer).ConsumeMetrics(b.Context(), in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	const logs = `logs = function(batch) batch:set_label("env", "prod") end`
	for _, bc := range []struct {
		name, hooks, attrs string
		rows               int
	}{
		{"hook/1", logs, "", 1},
		{"hook/1000", logs, "", 1000},
		{"parallel/10000", logs, parallel, 10000},
		{"partition/1000", logs, partition, 1000},
	} {
		b.Run("logs/"+bc.name, func(b *testing.B) {
			c := benchmarkedNode(b, bc.hooks, bc.attrs)
			var text strings.Builder
			for i := range bc.rows {
				fmt.Fprintf(&text, "{cpu=\"%d\",job=\"node\"} line %d\n", i%10, i)
			}
			in, err := batch.ParseLogsText(text.String(), batch.TextOptions{T: 1, Source: batch.NewSource()})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := c.(flow.LogsConsumer).ConsumeLogs(b.Context(), in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkOnReload compares a node that keeps its recent input with one that does not.
// Each batch is a new one, so that the work of the garbage collector for kept batches
// counts. The heap of a benchmark is so small that kept batches also make the collector
// run less often, which hides their cost; only a process shows its share.
func BenchmarkOnReload(b *testing.B) {
	const series, logs = `series = function(s) s.labels.env = "prod" end`, `logs = function(batch) batch:drop_where [[ line contains "nothing" ]] end`
	var samples, lines strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&samples, "node_cpu_seconds_total{cpu=\"%d\",instance=\"localhost:9100\",job=\"node\"} %d.25\n", i, 90000+i)
	}
	for i := range 50 {
		fmt.Fprintf(&lines, "{job=\"node\"} GET /api/v1/items/%d from 10.1.2.3 took 17 ms and returned 200 with 1234 bytes\n", i)
	}
	for _, mode := range []string{"swap", "shadow"} {
		attrs := fmt.Sprintf("script { on_reload = %q }", mode)
		b.Run("metrics/"+mode, func(b *testing.B) {
			c := benchmarkedNode(b, series, attrs)
			source := batch.NewSource()
			first, err := batch.ParseText(samples.String(), batch.TextOptions{T: 1, Source: source})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				in := *first // the column of series is that of the last scrape
				in.T, in.V = slices.Clone(first.T), slices.Clone(first.V)
				if err := c.(flow.MetricsConsumer).ConsumeMetrics(b.Context(), &in); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("logs/"+mode, func(b *testing.B) {
			c := benchmarkedNode(b, logs, attrs)
			b.ReportAllocs()
			for b.Loop() {
				in, err := batch.ParseLogsText(lines.String(), batch.TextOptions{T: 1, Source: 1})
				if err == nil {
					err = c.(flow.LogsConsumer).ConsumeLogs(b.Context(), in)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// benchmarkedNode runs a transform whose receivers accept everything at once.
func benchmarkedNode(b *testing.B, hooks, attrs string) component.Component {
	b.Helper()
	dir := filepath.Join(b.TempDir(), "a")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		b.Fatal(err)
	}
	src := "local weir = require \"weir\"\nreturn weir.transform { " + hooks + " }"
	if err := os.WriteFile(filepath.Join(dir, "b.lua"), []byte(src), 0o600); err != nil {
		b.Fatal(err)
	}
	cat, err := registry.NewCatalog(registry.Options{Languages: []scripting.Language{lua.New()}, UserDir: filepath.Dir(dir), Modules: stdlib.Modules()})
	if err != nil {
		b.Fatal(err)
	}
	r, ok := cat.Lookup("a.b")
	if !ok {
		b.Fatal("a.b was not found")
	}
	receiver := flow.NewReceiver("receiver", batch.SignalMetrics|batch.SignalLogs, new(flow.Stats), nil)
	receiver.Set(accepting{})
	args := r.NewArgs()
	if err := registrytest.Evaluate(args, "forward_to = [sink]\n"+attrs, receiver); err != nil {
		b.Fatal(err)
	}
	c, err := r.Build(component.Options{
		ID: "a.b.default", Logger: slog.New(slog.DiscardHandler), Registerer: prometheus.NewRegistry(), StoragePath: dir,
		Clock: clock.System{}, Stats: new(flow.Stats), Health: func(component.Health) {}, Export: func(any) {},
	}, args, nil)
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- c.Run(ctx) }()
	b.Cleanup(func() { stop(); <-ended })
	return c
}

// accepting is a component that accepts every batch.
type accepting struct{}

func (accepting) ConsumeMetrics(context.Context, *batch.Metrics) error { return nil }
func (accepting) ConsumeLogs(context.Context, *batch.Logs) error       { return nil }
