package history_test

import (
	"fmt"
	"testing"

	"github.com/weir-run/weir/engine/service"
)

// BenchmarkTake is what a point costs, without the engine: it is taken every 10 seconds.
func BenchmarkTake(b *testing.B) {
	for _, n := range []int{50, 500} {
		b.Run(fmt.Sprint("nodes=", n), func(b *testing.B) {
			h, r := newHost()
			h.nodes = nil
			for i := range n {
				h.nodes = append(h.nodes, healthy(fmt.Sprint("node", i), fmt.Sprint("node", i+1)))
			}
			b.ReportAllocs()
			for b.Loop() {
				for _, i := range h.nodes {
					i.Stats.In.Add(1)
				}
				h.take(r)
			}
		})
	}
}

var _ service.Host = (*host)(nil)
