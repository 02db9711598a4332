package batch_test

import (
	"strings"
	"testing"

	"github.com/weir-run/weir/engine/batch"
)

// BenchmarkFrames measures one batch of 1,000 rows with a warm dictionary, one way:
// its frame is encoded and decoded.
func BenchmarkFrames(b *testing.B) {
	const rows = 1000
	m, err := batch.ParseText(scrapeBody(rows), batch.TextOptions{T: 1700000000000, Source: batch.NewSource()})
	if err != nil {
		b.Fatal(err)
	}
	logs, err := batch.ParseLogsText(strings.Repeat("{app=\"api\",env=\"prod\"} {trace_id=\"a1\"} level=info msg=\"a request was answered\" ms=3\n", rows), batch.TextOptions{T: 1700000000000})
	if err != nil {
		b.Fatal(err)
	}
	pushed := *m
	pushed.Source = batch.NewPushSource()
	run := func(name string, append func(e *batch.FrameEncoder, dst []byte) []byte, decode func(d *batch.FrameDecoder, frame []byte) error) {
		b.Run(name, func(b *testing.B) {
			e, d := batch.NewFrameEncoder(64<<20), batch.NewFrameDecoder(64<<20)
			defer d.Close()
			var frame []byte
			step := func() {
				frame = append(e, frame[:0])
				if err := decode(d, frame); err != nil {
					b.Fatal(err)
				}
			}
			step()
			b.ReportAllocs()
			for b.Loop() {
				step()
			}
			b.SetBytes(int64(len(frame)))
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows, "ns/row")
		})
	}
	decodeMetrics := func(d *batch.FrameDecoder, frame []byte) error { _, err := d.Metrics(frame); return err }
	run("scraped", func(e *batch.FrameEncoder, dst []byte) []byte { return e.AppendMetrics(dst, m) }, decodeMetrics)
	run("pushed", func(e *batch.FrameEncoder, dst []byte) []byte { return e.AppendMetrics(dst, &pushed) }, decodeMetrics)
	run("new dictionary", func(e *batch.FrameEncoder, dst []byte) []byte {
		e.Reset()
		return e.AppendMetrics(dst, m)
	}, decodeMetrics)
	run("logs", func(e *batch.FrameEncoder, dst []byte) []byte { return e.AppendLogs(dst, logs) },
		func(d *batch.FrameDecoder, frame []byte) error { _, err := d.Logs(frame); return err })
}
