package scrape

import (
	"bytes"
	"strconv"
	"testing"
)

// BenchmarkFloor measures the minimum cost of reading a body, per sample:
// comparing its bytes with another body, finding its lines, computing
// fingerprints of names with labels, and parsing values with the code of this
// package and of the standard library.
func BenchmarkFloor(b *testing.B) {
	body := []byte(corpus(b, "node_exporter.txt").body)
	other := bytes.Clone(body)
	var keys, values [][]byte
	for _, line := range newPage(false, body).lines {
		if s, ok := cutSample(line); ok {
			keys, values = append(keys, []byte(s.name+s.labels)), append(values, []byte(s.value))
		}
	}
	run := func(name string, step func()) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				step()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(keys)), "ns/sample")
		})
	}
	run("compare bytes", func() {
		if !bytes.Equal(body, other) {
			b.Fatal("they differ")
		}
	})
	run("find lines", func() {
		for rest := body; len(rest) > 0; rest = rest[bytes.IndexByte(rest, '\n')+1:] {
		}
	})
	run("fingerprint", func() {
		for _, k := range keys {
			if fingerprintOf(k) == (fingerprint{}) {
				b.Fatal("no fingerprint")
			}
		}
	})
	run("parse float", func() {
		for _, v := range values {
			if _, _, ok := parseValue(v); !ok {
				b.Fatal("no number")
			}
		}
	})
	run("parse float, strconv", func() {
		for _, v := range values {
			if _, err := strconv.ParseFloat(string(v), 64); err != nil {
				b.Fatal(err)
			}
		}
	})
}
