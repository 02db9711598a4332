package scrape

import (
	"errors"
	"io"
	"log/slog"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/service"
)

// BenchmarkIntake measures what a body costs that came before with other
// values: taken from its layout, by a layout that has one line more, and by
// textparse with a look-up for each line. "textparse" is the parser alone.
func BenchmarkIntake(b *testing.B) {
	for _, name := range []string{"node_exporter.txt", "alltypes.txt", "histogram.om.txt", "exemplars.om.txt"} {
		one := corpus(b, name)
		two := shift(one, 1)
		bodies := [][]byte{[]byte(one.body), []byte(two.body)}
		for i := range bodies {
			bodies[i] = append(make([]byte, 0, len(bodies[i])+1), bodies[i]...)
		}
		set, err := newSettings(component.Options{ID: "x", Logger: slog.New(slog.DiscardHandler)}, decode(b, ""), service.HTTPData{})
		if err != nil {
			b.Fatal(err)
		}
		tags := []labels.Label{{Name: "instance", Value: "host:9100"}, {Name: "job", Value: "node"}}
		scrape := func(c *cache, i int) int {
			now := int64(1e12) + int64(i)*1000
			in := &intake{set: set, tags: tags, c: c, now: now, maxT: now + maxAhead}
			if err := in.body(bodies[i%2], one.contentType); err != nil {
				b.Fatal(err)
			}
			if in.wholly {
				in.rows.series = c.layout.columns(set, nil)
			}
			return in.total
		}
		run := func(kind string, before func(*cache)) {
			b.Run(name+"/"+kind, func(b *testing.B) {
				c := newCache()
				for i := range 3 {
					scrape(c, i)
				}
				b.ReportAllocs()
				b.SetBytes(int64(len(bodies[0])))
				n := 0
				for i := 0; b.Loop(); i++ {
					before(c)
					n += scrape(c, i)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/sample")
			})
		}
		run("layout", func(*cache) {})
		run("changed", func(c *cache) {
			if lo := c.layout; lo != nil && len(lo.text) > 0 { // a letter in the middle is another one
				at := len(lo.text) / 2
				lo.text[at] ^= 0x80
			}
		})
		run("parsed", func(c *cache) { c.dropLayout() })
		b.Run(name+"/textparse", func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(bodies[0])))
			n := 0
			for i := 0; b.Loop(); i++ {
				p, _ := textparse.New(bodies[i%2], one.contentType, labels.NewSymbolTable(), textparse.ParserOptions{})
				for {
					et, err := p.Next()
					if errors.Is(err, io.EOF) {
						break
					}
					if et == textparse.EntrySeries {
						p.Series()
						n++
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/sample")
		})
	}
}
