package tap_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/tap"
)

// BenchmarkSecond is one second of a tap at 20,000 samples in 20 batches, whose node
// drops every tenth sample, or changes nothing.
func BenchmarkSecond(b *testing.B) {
	var text strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&text, "http_requests_total{instance=\"10.0.0.%d:80\",job=\"api\",code=\"200\",path=\"/a/b\"} %d\n", i, i)
	}
	in, err := batch.ParseText(text.String(), batch.TextOptions{T: 5})
	if err != nil {
		b.Fatal(err)
	}
	var kept []int
	for i := range in.Len() {
		if i%10 > 0 {
			kept = append(kept, i)
		}
	}
	batches := func(m *batch.Metrics) flow.Batches { return flow.Batches{Metrics: []*batch.Metrics{m}} }
	for _, f := range []struct {
		name string
		side flow.Side
		o    flow.Tapped
	}{
		{"in", flow.In, flow.Tapped{In: batches(in)}},
		{"drops", flow.Calls, flow.Tapped{In: batches(in), Out: batches(in.Rows(kept))}},
		{"unchanged", flow.Calls, flow.Tapped{In: batches(in), Out: batches(in)}},
	} {
		b.Run(f.name, func(b *testing.B) {
			p, err := tap.New(tap.Options{Side: f.side, Format: "text", Rate: tap.Rate})
			if err != nil {
				b.Fatal(err)
			}
			f.o.Began, f.o.Time = time.Unix(1, 0), time.Unix(2, 0)
			b.ReportAllocs()
			var dst []byte
			for b.Loop() {
				dst = dst[:0]
				for range 20 {
					dst = p.Append(dst, f.o)
				}
				dst = p.Tick(dst)
			}
		})
	}
}
