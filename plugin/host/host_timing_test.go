//go:build linux

package host_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/plugin/internal/acme"
)

// cpu returns the CPU time of this process and of a plugin.
func cpu(b *testing.B, plugin int) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	sum := time.Duration(u.Utime.Nano() + u.Stime.Nano())
	if plugin == 0 {
		return sum
	}
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", plugin))
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), ") ")
	f := strings.Fields(rest)
	for _, field := range f[11:13] { // utime and stime, in ticks of 10 ms
		n, err := strconv.Atoi(field)
		if err != nil {
			b.Fatal(err)
		}
		sum += time.Duration(n) * 10 * time.Millisecond
	}
	return sum
}

// discard is a receiver that accepts everything.
type discard struct{}

// ConsumeMetrics accepts b.
func (discard) ConsumeMetrics(context.Context, *batch.Metrics) error { return nil }

// BenchmarkTransform sends batches through acme.scale, compiled in and in a plugin. The
// CPU time is that of both processes.
func BenchmarkTransform(b *testing.B) {
	for _, rows := range []int{1, 100, 1000} {
		for _, where := range []string{"compiled in", "plugin"} {
			b.Run(fmt.Sprintf("%s/%d samples", where, rows), func(b *testing.B) {
				var c component.Catalog = component.NewList(acme.Components()...)
				if where == "plugin" {
					c = catalog(b, install(b))
				}
				r := lookup(b, c, "acme.scale")
				to := flow.NewReceiver("sink", batch.SignalMetrics, nil, nil)
				to.Set(discard{})
				n := componenttest.New(b, "acme.scale.x")
				comp := n.Build(b, r, decode(b, r, "forward_to = []\nfactor = 1", to))
				defer n.Run(b, comp)()
				process := 0
				if where == "plugin" {
					process = pid(b, comp)
				}
				one := &batch.Metrics{Source: batch.NewSource(), T: make([]int64, rows), V: make([]float64, rows)}
				for i := range rows {
					one.Series = append(one.Series, batch.NewSeries([]batch.Label{
						{Name: batch.NameLabel, Value: "http_requests_total"}, {Name: "instance", Value: strconv.Itoa(i)}, {Name: "job", Value: "bench"},
					}))
				}
				in := comp.(flow.MetricsConsumer)
				send := func() {
					if err := in.ConsumeMetrics(b.Context(), one); err != nil {
						b.Fatal(err)
					}
				}
				send()
				start := cpu(b, process)
				b.ResetTimer()
				for range b.N {
					send()
				}
				b.StopTimer()
				all := float64(b.N) * float64(rows)
				b.ReportMetric(float64(b.Elapsed())/all, "ns/sample")
				b.ReportMetric(float64(cpu(b, process)-start)/all, "cpu-ns/sample")
			})
		}
	}
}
