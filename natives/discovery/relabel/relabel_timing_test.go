package relabel_test

import (
	"fmt"
	"testing"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/natives/discovery/relabel"
)

// pods returns targets with as many labels as pods have.
func pods(n int) []target {
	ts := make([]target, n)
	for i := range ts {
		ts[i] = target{"__address__": fmt.Sprintf("10.0.%d.%d:9100", i/250, i%250), "env": "prod"}
		for j := range 25 {
			ts[i][fmt.Sprint("__meta_kubernetes_pod_label_", j)] = fmt.Sprint(i % (j + 1))
		}
	}
	return ts
}

// BenchmarkUpdate measures an update with 10,000 targets: all new, one new, or
// the same list again.
func BenchmarkUpdate(b *testing.B) {
	const n = 10_000
	run := func(name string, next func(i int, ts []target) []target) {
		b.Run(name, func(b *testing.B) {
			a := decode(b, rules)
			a.Targets = pods(n)
			up := componenttest.New(b, "r").Build(b, relabel.Registration(), a).(component.Updater)
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				b.StopTimer()
				args := *a
				args.Targets = next(i, a.Targets)
				b.StartTimer()
				if err := up.Update(&args); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	run("all", func(int, []target) []target { return pods(n) })
	run("one", func(i int, ts []target) []target {
		ts[i%n] = pods(1)[0]
		return ts
	})
	run("none", func(_ int, ts []target) []target { return ts })
}
