package scrape

import (
	"fmt"
	"strings"
	"testing"
)

// BenchmarkChurn reads bodies in which one line in twenty has new labels each
// time, and "first" bodies that are completely new. ns/renamed is the additional
// cost of a renamed line compared to a line of the layout.
func BenchmarkChurn(b *testing.B) {
	const samples = 1000
	set := newTestSettings(b, "")
	// The generation of a line is a separate label that always has the same
	// number of digits.
	page := newPage(false, firstSamples([]byte(corpus(b, "node_exporter.txt").body), samples))
	page.samples(1, func(s *sampleLine) {
		s.labels = strings.TrimSuffix(`{generation="00000000",`+strings.TrimPrefix(s.labels, "{"), ",")
		if !strings.HasSuffix(s.labels, "}") {
			s.labels += "}"
		}
	})
	body := append(page.body(), 0)
	body = body[:len(body)-1]
	var at []int
	for i := range body {
		if strings.HasPrefix(string(body[i:min(i+13, len(body))]), `{generation="`) {
			at = append(at, i+13)
		}
	}
	if len(at) != samples {
		b.Fatalf("%d lines have a generation", len(at))
	}
	run := func(name string, every int, cacheOf func() *cache) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			scrape := 0
			step := func() {
				scrape++
				for i := range at {
					if every > 0 && (scrape+i)%every == 0 {
						copy(body[at[i]:], fmt.Sprintf("%08d", scrape))
					}
				}
				c := cacheOf()
				in := newIntake(set, c, int64(1e12)+int64(scrape)*1000)
				if err := in.body(body, textType); err != nil {
					b.Fatal(err)
				}
				if in.total != samples {
					b.Fatalf("%d samples", in.total)
				}
				for _, h := range c.gone {
					h.Release()
				}
				c.gone = c.gone[:0]
			}
			step()
			step()
			for b.Loop() {
				step()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/samples, "ns/sample")
		})
	}
	same := func() func() *cache {
		c := newCache()
		return func() *cache { return c }
	}
	run("none", 0, same())
	run("1 in 20", 20, same())
	run("1 in 2", 2, same())
	run("first", 0, newCache)
}
