package target_test

import (
	"testing"

	"github.com/weir-run/weir/cmd/weirbench/target"
)

// BenchmarkAppend measures the cost of a scrape for the targets, per sample.
func BenchmarkAppend(b *testing.B) {
	body, err := target.NewBody(target.Defaults())
	if err != nil {
		b.Fatal(err)
	}
	var buf []byte
	b.ReportAllocs()
	for n := 1; b.Loop(); n++ {
		buf = body.Append(buf[:0], 3, n)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/sample")
	b.SetBytes(int64(body.Bytes()))
}
