package node_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/weir-run/weir/engine/batch"
)

// BenchmarkState is what an operation costs a script, per record: that of each
// without one is the first.
func BenchmarkState(b *testing.B) {
	f := func(name, body string) {
		b.Run(name, func(b *testing.B) {
			n := newHarness(b)
			n.save(`return weir.transform {
	state = { c = weir.state.counter { max = 100000 }, p = weir.state.counter { scope = "persistent" }, s = weir.state.set {}, m = weir.state.map {} },
	metrics = function(batch, ctx)
		local s = ctx.state
		batch:each(function(r) local k = r.labels.s `+body+` end)
	end,
}`, "")
			const records = 1000
			var text strings.Builder
			for i := range records {
				fmt.Fprintf(&text, "a{s=\"%d\"} 1\n", i)
			}
			in, err := batch.ParseText(text.String(), batch.TextOptions{T: 1000, Source: 1})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := n.gate.ConsumeMetrics(context.Background(), in); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/records, "ns/record")
		})
	}
	f("none", ``)
	f("add", `s.c:add(k)`)
	f("persistent", `s.p:add(k)`)
	f("has", `s.s:has(k)`)
	f("set", `s.m:set(k, 7)`)
	f("get", `s.m:get(k)`)
	f("set list", `s.m:set(k, { 7, 8 })`)
	f("update", `s.m:update(k, function(old) return (old or 0) + 1 end)`)
}
