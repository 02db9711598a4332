package file_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/natives/loki/source/file"
)

// counter signals when it has received the expected number of lines.
type counter struct {
	left atomic.Int64
	all  chan struct{}
}

func (c *counter) ConsumeLogs(_ context.Context, b *batch.Logs) error {
	if c.left.Add(-int64(len(b.Line))) == 0 {
		c.all <- struct{}{}
	}
	return nil
}

// BenchmarkStart measures a start with many files without positions, and one with
// positions for all of them, each with one new line.
func BenchmarkStart(b *testing.B) {
	for _, files := range []int{1000, 10_000} {
		start := func(b *testing.B, again bool) {
			for b.Loop() {
				b.StopTimer()
				node := componenttest.New(b, "loki.source.file.f")
				c := &counter{all: make(chan struct{}, 1)}
				to := flow.NewReceiver("counter", batch.SignalLogs, nil, nil)
				to.Set(c)
				a := file.Registration().NewArgs().(*file.Arguments)
				a.ForwardTo = []*flow.Receiver{to}
				dir := b.TempDir()
				for i := range files {
					path := filepath.Join(dir, fmt.Sprintf("%d/%d.log", i%100, i))
					a.Targets = append(a.Targets, map[string]string{"__path__": path, "job": "j"})
				}
				write := func() {
					for i, t := range a.Targets {
						if i < 100 {
							_ = os.Mkdir(filepath.Dir(t["__path__"]), 0o755)
						}
						f, err := os.OpenFile(t["__path__"], os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
						if err != nil {
							b.Fatal(err)
						}
						if _, err := f.WriteString("a line\n"); err != nil {
							b.Fatal(err)
						}
						f.Close()
					}
				}
				run := func() (stop func()) {
					c.left.Store(int64(files))
					node.Registry = prometheus.NewRegistry()
					run := node.Build(b, file.Registration(), a)
					ctx, cancel := context.WithCancel(context.Background())
					done := make(chan error, 1)
					go func() { done <- run.Run(ctx) }()
					<-c.all
					return func() {
						cancel()
						if err := <-done; err != nil {
							b.Fatal(err)
						}
					}
				}
				write()
				if again {
					run()()
					write()
				}
				b.StartTimer()
				stop := run()
				b.StopTimer()
				stop()
				b.StartTimer()
			}
		}
		b.Run(fmt.Sprintf("first/files=%d", files), func(b *testing.B) { start(b, false) })
		b.Run(fmt.Sprintf("again/files=%d", files), func(b *testing.B) { start(b, true) })
	}
}
