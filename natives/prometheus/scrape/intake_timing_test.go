package scrape

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"slices"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/service"
)

// BenchmarkIntake measures the cost of a body that was scraped before with other
// values: read with its layout, with a layout that has one additional line, and
// with textparse and a look-up for each line. "textparse" is the parser alone.
func BenchmarkIntake(b *testing.B) {
	for _, name := range []string{"node_exporter.txt", "alltypes.txt", "histogram.om.txt", "exemplars.om.txt"} {
		one := corpus(b, name)
		two := shift(one, 1)
		bodies := [2][]byte{[]byte(one.body), []byte(two.body)}
		for i := range bodies {
			bodies[i] = append(make([]byte, 0, len(bodies[i])+1), bodies[i]...)
		}
		set, err := newSettings(component.Options{ID: "x", Logger: slog.New(slog.DiscardHandler)}, decode(b, ""), service.HTTPData{}, nil)
		if err != nil {
			b.Fatal(err)
		}
		tags := []labels.Label{{Name: "instance", Value: "host:9100"}, {Name: "job", Value: "node"}}
		scrape := func(c *cache, body []byte, i int) int {
			now := int64(1e12) + int64(i)*1000
			in := &intake{set: set, tags: tags, c: c, now: now, maxT: now + maxAhead}
			if err := in.body(body, one.contentType); err != nil {
				b.Fatal(err)
			}
			if in.wholly {
				in.rows.series = c.columns(set, nil)
			}
			return in.total
		}
		run := func(kind string, bodies [2][]byte, before func(*cache)) {
			b.Run(name+"/"+kind, func(b *testing.B) {
				c := newCache()
				for i := range 3 {
					scrape(c, bodies[i%2], i)
				}
				b.ReportAllocs()
				b.SetBytes(int64(len(bodies[0])))
				n := 0
				for i := 0; b.Loop(); i++ {
					before(c)
					n += scrape(c, bodies[i%2], i)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/sample")
			})
		}
		run("layout", bodies, func(*cache) {})
		middle := len(bodies[1])/2 + bytes.IndexByte(bodies[1][len(bodies[1])/2:], '\n') + 1
		changed := slices.Insert(slices.Clone(bodies[1]), middle, []byte("# TYPE added gauge\n")...)
		run("changed", [2][]byte{bodies[0], append(changed, 0)[:len(changed)]}, func(*cache) {})
		run("parsed", bodies, func(c *cache) { c.dropLayout() })
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
