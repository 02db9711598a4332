package scrape

import (
	"bytes"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/service"
)

// BenchmarkResident measures the memory of a live series: the heap after
// collections, with targets that are scraped repeatedly. Targets of a fleet have
// the same bodies. label-B is the size of the labels of a series, which they
// share. "first-" is the allocation per series in the first scrape of a target.
func BenchmarkResident(b *testing.B) {
	for _, fleet := range []bool{true, false} {
		for _, tags := range []int{2, 10} {
			b.Run(fmt.Sprintf("fleet=%t/tags=%d", fleet, tags), func(b *testing.B) { benchmarkResident(b, fleet, tags) })
		}
	}
}

func benchmarkResident(b *testing.B, fleet bool, tags int) {
	const targets, series = 100, 1000
	set, err := newSettings(component.Options{ID: "x", Logger: slog.New(slog.DiscardHandler)}, decode(b, ""), service.HTTPData{}, nil)
	if err != nil {
		b.Fatal(err)
	}
	one := corpus(b, "node_exporter.txt")
	var bodies [2][]byte
	for i := range bodies {
		text := firstSamples([]byte(shift(one, uint64(i)).body), series)
		bodies[i] = append(make([]byte, 0, len(text)+1), text...)
	}
	scrape := func(c *cache, target int, tags []labels.Label, i int) {
		body := bodies[i%2]
		if !fleet { // other names of the same length
			body = bytes.ReplaceAll(body, []byte("node"), fmt.Appendf(nil, "n%03d", target))
			body = append(bytes.ReplaceAll(body, []byte("go_"), fmt.Appendf(nil, "g%02d", target)), 0)
			body = body[:len(body)-1]
		}
		now := int64(1e12) + int64(i)*1000
		in := &intake{set: set, tags: tags, c: c, now: now, maxT: now + maxAhead}
		if err := in.body(body, one.contentType); err != nil {
			b.Fatal(err)
		}
		if in.wholly {
			c.columns(set, nil)
		} else if i == 2 {
			b.Fatal("the third body is not of the layout")
		}
	}
	for b.Loop() {
		var before, first, after runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&before)
		caches := make([]*cache, targets)
		own := make([][]labels.Label, targets)
		for i := range caches {
			caches[i], own[i] = newCache(), targetTags(i, tags)
			scrape(caches[i], i, own[i], 0)
		}
		runtime.ReadMemStats(&first)
		for i, c := range caches {
			scrape(c, i, own[i], 1)
			scrape(c, i, own[i], 2)
		}
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&after)
		n, wire := 0, 0
		for _, c := range caches {
			for h := range c.all {
				n++
				wire += h.WireSize()
			}
		}
		if n != targets*series {
			b.Fatalf("%d series", n)
		}
		per := func(bytes uint64) float64 { return float64(bytes) / float64(n) }
		b.ReportMetric(per(after.HeapAlloc-before.HeapAlloc), "B/series")
		b.ReportMetric(per(uint64(wire)), "label-B/series")
		b.ReportMetric(per(first.TotalAlloc-before.TotalAlloc), "first-B/series")
		b.ReportMetric(per(first.Mallocs-before.Mallocs), "first-allocs/series")
		runtime.KeepAlive(caches)
	}
}

// firstSamples returns the lines of a body up to the nth sample.
func firstSamples(body []byte, n int) []byte {
	end := 0
	for n > 0 && end < len(body) {
		line := body[end : end+1+bytes.IndexByte(body[end:], '\n')]
		if line[0] != '#' {
			n--
		}
		end += len(line)
	}
	return body[:end]
}

// targetTags returns the labels of a target: instance, job, and labels like those
// of a Kubernetes discovery.
func targetTags(i, n int) []labels.Label {
	ls := []labels.Label{
		{Name: "instance", Value: fmt.Sprintf("127.0.0.1:%d", 20000+i)}, {Name: "job", Value: "bench"},
		{Name: "cluster", Value: "prod-eu-west-1"}, {Name: "namespace", Value: "monitoring"}, {Name: "pod", Value: fmt.Sprintf("node-exporter-%05d-x7k2p", i)},
		{Name: "container", Value: "node-exporter"}, {Name: "node", Value: fmt.Sprintf("ip-10-20-30-%d.eu-west-1.compute.internal", i)},
		{Name: "app_kubernetes_io_name", Value: "node-exporter"}, {Name: "app_kubernetes_io_version", Value: "1.12.1"}, {Name: "endpoint", Value: "metrics"},
	}[:n]
	slices.SortFunc(ls, func(a, b labels.Label) int { return strings.Compare(a.Name, b.Name) })
	return ls
}
