package batch_test

import (
	"strings"
	"testing"

	"github.com/weir-run/weir/engine/batch"
)

func BenchmarkBinary(b *testing.B) {
	m, err := batch.ParseText(scrapeBody(1000), batch.TextOptions{T: 1700000000000})
	if err != nil {
		b.Fatal(err)
	}
	logs, err := batch.ParseLogsText(strings.Repeat("{app=\"api\",env=\"prod\"} {trace_id=\"a1\"} level=info msg=\"a request was answered\" ms=3\n", 1000), batch.TextOptions{T: 1700000000000})
	if err != nil {
		b.Fatal(err)
	}
	o := batch.BinaryOptions{Handles: batch.NewInterner(0), Now: epoch}
	run := func(name string, rows int, op func() int) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				b.SetBytes(int64(op()))
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(rows), "ns/row")
		})
	}
	var buf []byte
	run("append metrics", m.Len(), func() int {
		buf = batch.AppendBinary(buf[:0], m)
		return len(buf)
	})
	run("parse metrics", m.Len(), func() int {
		if _, err := batch.ParseBinary(buf, o); err != nil {
			b.Fatal(err)
		}
		return len(buf)
	})
	run("append logs", logs.Len(), func() int {
		buf = batch.AppendLogsBinary(buf[:0], logs)
		return len(buf)
	})
	run("parse logs", logs.Len(), func() int {
		if _, err := batch.ParseLogsBinary(buf, o); err != nil {
			b.Fatal(err)
		}
		return len(buf)
	})
}
