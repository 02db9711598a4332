package scrape_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/service"
	"github.com/weir-run/weir/natives/prometheus/scrape"
)

// manyTargets returns label maps like those of a discovery.
func manyTargets(n int) (maps []map[string]string) {
	for i := range n {
		maps = append(maps, map[string]string{
			"__address__": fmt.Sprintf("10.%d.%d.%d:9100", i>>16, i>>8&255, i&255), "__meta_kubernetes_namespace": "default",
			"namespace": "default", "pod": fmt.Sprintf("pod-%d", i), "container": "main",
		})
	}
	return maps
}

// BenchmarkTargets measures the cost of a target: ns and bytes to create it, ns
// for an update with one new target in the list, and bytes while it is scraped.
func BenchmarkTargets(b *testing.B) {
	const count = 100_000
	n := componenttest.New(b, "prometheus.scrape.test")
	n.Services["http"] = service.HTTPData{MemoryAddress: "weir.internal:1", DialContext: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("on purpose")
	}}
	o := n.Options()
	o.Clock = clock.System{}
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc + m.StackInuse
	}
	args := func(maps []map[string]string) *scrape.Arguments {
		a := new(scrape.Arguments)
		a.SetToDefault()
		a.ScrapeInterval = time.Hour
		a.Client.Proxy.ProxyURL = "http://weir.internal:1"
		a.ForwardTo = []*flow.Receiver{}
		a.Targets = maps
		return a
	}
	maps := manyTargets(count)
	before := heap()
	began := time.Now()
	built, err := scrape.Registration().Build(o, args(maps), nil)
	if err != nil {
		b.Fatal(err)
	}
	anew, made := time.Since(began), heap()-before
	c := built.(*scrape.Component)
	again, changed := time.Duration(0), 0
	for b.Loop() {
		changed++
		maps = append(maps[1:len(maps):len(maps)], map[string]string{"__address__": fmt.Sprintf("new%d:1", changed)})
		began := time.Now()
		if err := c.Update(args(maps)); err != nil {
			b.Fatal(err)
		}
		again += time.Since(began)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan bool)
	go func() { c.Run(ctx); close(done) }()
	for scraped := 0.0; scraped < count; { // each target once
		<-time.After(100 * time.Millisecond)
		fams, err := n.Registry.Gather()
		if err != nil {
			b.Fatal(err)
		}
		scraped = 0
		for _, f := range fams {
			if f.GetName() == "weir_scrape_scrapes_total" {
				for _, m := range f.Metric {
					scraped += m.GetCounter().GetValue()
				}
			}
		}
	}
	b.ReportMetric(float64(anew.Nanoseconds())/count, "ns/new-target")
	b.ReportMetric(float64(again.Nanoseconds())/count/float64(b.N), "ns/known-target")
	b.ReportMetric(float64(made)/count, "B/target")
	b.ReportMetric(float64(heap()-before)/count, "B/scraped-target")
	cancel()
	<-done
}
