package http_test

import (
	"encoding/json"
	"fmt"
	"io"
	"testing"

	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/service"
	"github.com/weir-run/weir/engine/service/http"
)

type scraping struct {
	Targets   []map[string]string `alloy:"targets,attr"`
	ForwardTo []*flow.Receiver    `alloy:"forward_to,attr"`
}

type discovered struct {
	Targets []map[string]string `alloy:"targets,attr"`
}

// manyTargets is a host with a discovery and a scrape of n targets.
func manyTargets(n int) *host {
	targets := make([]map[string]string, n)
	for i := range targets {
		targets[i] = map[string]string{
			"__address__": fmt.Sprintf("10.0.%d.%d:9100", i/250, i%250), "instance": fmt.Sprintf("host-%d.example.net", i),
			"job": "node", "zone": fmt.Sprintf("eu-%d", i%9), "team": "observability",
		}
	}
	return &host{infos: []service.Info{
		{ID: "discovery.file.f", Name: "discovery.file", Exports: discovered{targets}},
		{ID: "prometheus.scrape.a", Name: "prometheus.scrape", Arguments: &scraping{Targets: targets}, Stats: new(flow.Stats)},
	}}
}

func BenchmarkStatus(b *testing.B) {
	for _, n := range []int{100, 5_000, 50_000} {
		b.Run(fmt.Sprintf("targets=%d", n), func(b *testing.B) {
			h := manyTargets(n)
			b.ReportAllocs()
			for b.Loop() {
				e := json.NewEncoder(io.Discard)
				e.SetIndent("", "  ")
				if err := e.Encode(http.NewStatus(h)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
