package flow_test

import (
	"context"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/flow"
)

func BenchmarkGate(b *testing.B) {
	r := newGate(nil)
	r.Set(consumer(func(context.Context, *batch.Metrics) error { return nil }))
	m := one(1, 1)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := r.ConsumeMetrics(context.Background(), m); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkFanOut(b *testing.B) {
	var to []*flow.Receiver
	for range 3 {
		r := newGate(nil)
		r.Set(consumer(func(context.Context, *batch.Metrics) error { return nil }))
		to = append(to, r)
	}
	out := flow.NewOutput(nil, to)
	m := one(1, 1)
	b.ReportAllocs()
	for b.Loop() {
		if err := out.SendMetrics(context.Background(), m); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkTap is BenchmarkGate with taps that are full.
func BenchmarkTap(b *testing.B) {
	for _, side := range []flow.Side{flow.In, flow.Calls} {
		b.Run([]string{"in", "out", "calls"}[side], func(b *testing.B) {
			stats := new(flow.Stats)
			r := flow.NewReceiver("a.b.c", batch.SignalMetrics, stats, nil)
			r.Set(consumer(func(context.Context, *batch.Metrics) error { return nil }))
			stats.Attach(flow.NewTap(side, time.Now))
			m := one(1, 1)
			b.ReportAllocs()
			for b.Loop() {
				if err := r.ConsumeMetrics(context.Background(), m); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkMeter is BenchmarkGate with a meter, for batches of 1,000 samples.
func BenchmarkMeter(b *testing.B) {
	m := &batch.Metrics{T: make([]int64, 1000), V: make([]float64, 1000)}
	for range 1000 {
		m.Series = append(m.Series, shared)
	}
	for _, name := range []string{"without", "with"} {
		b.Run(name, func(b *testing.B) {
			stats := new(flow.Stats)
			r := flow.NewReceiver("a.b.c", batch.SignalMetrics, stats, nil)
			r.Set(consumer(func(context.Context, *batch.Metrics) error { return nil }))
			if name == "with" {
				stats.SetMeter(flow.NewMeter("a.b.c"))
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := r.ConsumeMetrics(context.Background(), m); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
