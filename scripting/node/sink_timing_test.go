package node_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/host"
	"github.com/weir-run/weir/scripting/internal/registrytest"
	"github.com/weir-run/weir/scripting/lua"
	"github.com/weir-run/weir/scripting/registry"
	"github.com/weir-run/weir/stdlib"
)

// BenchmarkSink is what a sample costs from a sink's gate, through its journal
// and batch:text(), to the end of a request that takes no time.
func BenchmarkSink(b *testing.B) {
	dir := b.TempDir()
	path := filepath.Join(dir, "scripts", "a", "b.lua")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("local weir = require \"weir\"\n"+poster), 0o600); err != nil {
		b.Fatal(err)
	}
	done := make(chan int, 64)
	cat, err := registry.NewCatalog(registry.Options{
		Languages: []scripting.Language{lua.New()}, UserDir: filepath.Join(dir, "scripts"), Modules: stdlib.Modules(),
		Outside: host.Outside{HTTP: &endpoint{answer: func(body string) int { done <- strings.Count(body, "\n"); return 200 }}},
	})
	if err != nil {
		b.Fatal(err)
	}
	r, _ := cat.Lookup("a.b")
	args := r.NewArgs()
	if err := registrytest.Evaluate(args, sinkAttrs, nil); err != nil {
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
	defer func() { stop(); <-ended }()
	var body strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&body, "node_cpu_seconds_total{cpu=\"%d\",instance=\"localhost:9100\",job=\"node\",mode=\"idle\"} %d.25\n", i, 90000+i)
	}
	in, err := batch.ParseText(body.String(), batch.TextOptions{T: time.Now().UnixMilli(), Source: batch.NewSource()})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := c.(flow.MetricsConsumer).ConsumeMetrics(ctx, in); err != nil {
			b.Fatal(err)
		}
		for n := 0; n < in.Len(); {
			n += <-done
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(in.Len()), "ns/sample")
}
