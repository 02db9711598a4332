package scrape

import (
	"log/slog"
	"testing"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/service"
)

// BenchmarkInTurn reads bodies with layouts in turn, for 500 targets with 1,000
// series each, so that the data of a target is not in the processor's caches when
// its turn comes.
func BenchmarkInTurn(b *testing.B) {
	const targets, series = 500, 1000
	set, err := newSettings(component.Options{ID: "x", Logger: slog.New(slog.DiscardHandler)}, decode(b, ""), service.HTTPData{}, nil)
	if err != nil {
		b.Fatal(err)
	}
	one := corpus(b, "node_exporter.txt")
	text := firstSamples([]byte(one.body), series)
	body := append(make([]byte, 0, len(text)+1), text...)
	tags := targetTags(0, 2)
	caches := make([]*cache, targets)
	scrape := func(c *cache, i int) {
		now := int64(1e12) + int64(i)*1000
		in := &intake{set: set, tags: tags, c: c, now: now, maxT: now + maxAhead}
		if err := in.body(body, one.contentType); err != nil {
			b.Fatal(err)
		}
	}
	for i := range caches {
		caches[i] = newCache()
		scrape(caches[i], 0)
	}
	i := 0
	for b.Loop() {
		scrape(caches[i%targets], 1+i/targets)
		i++
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(i*series), "ns/sample")
}
