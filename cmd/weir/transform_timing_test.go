package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/grafana/alloy/syntax/parser"
	"github.com/grafana/alloy/syntax/vm"

	"github.com/weir-run/weir/cmd/weirbench/target"
	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/natives"
	"github.com/weir-run/weir/scripting/registry"
	"github.com/weir-run/weir/stdlib"
)

// The same work as relabel of weirbench: half of the samples are dropped by name,
// and the rest gets a label.
const benchDropped = `http_request_duration_seconds_.*|http_requests_total`

// transforms are several ways to do that work, and other work, as users write
// them.
var transforms = []struct{ name, block, attrs string }{
	{"relabel", "prometheus.relabel", `
		rule {
			action        = "drop"
			source_labels = ["__name__"]
			regex         = "` + benchDropped + `"
		}
		rule {
			target_label = "env"
			replacement  = "production"
		}`},
	{"lua series", "bench.series", ``},
	{"lua metrics", "bench.operations", ``},
	{"lua scale", "bench.scale", ``},
	{"lua scale by value", "bench.scale_value", ``},
	{"expr drop", "expr.filter", `drop = "name matches '^(?:` + benchDropped + `)$'"`},
	{"expr set", "expr.set", `label "env" { value = "'production'" }`},
}

var transformScripts = fstest.MapFS{
	"bench/series.lua": script(`
local weir = require "weir"
local re   = require "re"
local DROP = re.compile [[^(?:` + benchDropped + `)$]]
return weir.transform {
  series = function(s)
    if DROP:match(s.name) then return s:drop() end
    s.labels.env = "production"
  end,
}`),
	"bench/operations.lua": script(`
local weir = require "weir"
return weir.transform {
  metrics = function(batch)
    batch:drop_where [[ name matches "^(?:` + benchDropped + `)$" ]]
    batch:set_label("env", "production")
  end,
}`),
	"bench/scale.lua": script(`
local weir = require "weir"
return weir.transform {
  metrics = function(batch)
    batch:scale([[ name startsWith "http_response_size_bytes" || name == "app_cache_entries" ]], 1e-6)
  end,
}`),
	"bench/scale_value.lua": script(`
local weir = require "weir"
return weir.transform {
  metrics = function(batch)
    batch:scale([[ (name startsWith "http_response_size_bytes" || name == "app_cache_entries") && value > 0 ]], 1e-6)
  end,
}`),
}

func script(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

// counter accepts all batches and keeps nothing.
type counter struct{ samples int }

func (c *counter) ConsumeMetrics(_ context.Context, b *batch.Metrics) error {
	c.samples += b.Len()
	return nil
}

const (
	benchSources = 100
	benchRows    = 1000
	benchRounds  = 4 // number of scrapes before the batches repeat
)

// benchBatches returns batches like those that prometheus.scrape sends for
// weirbench's targets: all batches of a target share the same column of series.
func benchBatches(b *testing.B) []*batch.Metrics {
	body, err := target.NewBody(target.Defaults())
	if err != nil {
		b.Fatal(err)
	}
	all := make([]*batch.Metrics, benchRounds*benchSources)
	for i := range benchSources {
		var columns []*batch.Series
		for n := range benchRounds {
			m, err := batch.ParseText(string(body.Append(nil, i, n+1)), batch.TextOptions{T: 1735689600000 + int64(n)*5000})
			if err != nil {
				b.Fatal(err)
			}
			if columns == nil {
				for _, s := range m.Series {
					var l batch.Builder
					l.Reset(s)
					l.Set("instance", fmt.Sprintf("host-%d.example.org:9100", i))
					l.Set("job", "bench")
					columns = append(columns, batch.NewSeries(l.Labels()))
				}
			}
			for _, s := range m.Series {
				s.Release()
			}
			m.Source, m.Series = uint64(i+1), columns
			all[n*benchSources+i] = m
		}
	}
	return all
}

// buildTransform builds one of the transforms in front of c. If block is empty, c
// receives the batches directly.
func buildTransform(b *testing.B, block, attrs string, c *counter) func(*batch.Metrics) error {
	gate := flow.NewReceiver("bench.counter", batch.SignalMetrics, nil, nil)
	gate.Set(c)
	out := flow.NewOutput(nil, []*flow.Receiver{gate})
	if block == "" {
		return func(m *batch.Metrics) error { return out.SendMetrics(b.Context(), m) }
	}
	scripted, err := registry.NewCatalog(registry.Options{Languages: languages(), Embedded: transformScripts, Modules: stdlib.Modules()})
	if err != nil {
		b.Fatal(err)
	}
	reg, ok := component.NewList(natives.All()...).Lookup(block)
	if !ok {
		reg, ok = scripted.Lookup(block)
	}
	if !ok || reg.Err != nil {
		b.Fatalf("cannot find %s: %v", block, reg.Err)
	}
	file, err := parser.ParseFile("bench.alloy", []byte("forward_to = [counter]\n"+attrs))
	if err != nil {
		b.Fatal(err)
	}
	args := reg.NewArgs()
	if err := vm.New(file).Evaluate(vm.NewScope(map[string]any{"counter": gate}), args); err != nil {
		b.Fatal(err)
	}
	node := componenttest.New(b, block+".bench")
	built := node.Build(b, reg, args)
	self := flow.NewReceiver(block+".bench", batch.SignalMetrics, nil, nil)
	self.Set(built)
	in := flow.NewOutput(nil, []*flow.Receiver{self})
	b.Cleanup(func() {
		if h := node.Health(); h.State == component.Unhealthy {
			b.Error(h.Message)
		}
	})
	return func(m *batch.Metrics) error { return in.SendMetrics(b.Context(), m) }
}

// BenchmarkTransform measures the cost of components that change samples, with
// 100 targets of 1,000 samples, half of which most components drop.
//
// The components take turns, each with some batches, and the median of all turns
// counts: on a busy machine, the ratio of two of these figures is more meaningful
// than the figures themselves. They include the cost of the gate in front of the
// component; pass-through includes only the gate after it.
func BenchmarkTransform(b *testing.B) {
	in := benchBatches(b)
	names := []string{"pass-through"}
	ways := []func(*batch.Metrics) error{buildTransform(b, "", "", new(counter))}
	for _, t := range transforms {
		names = append(names, t.name)
		ways = append(ways, buildTransform(b, t.block, t.attrs, new(counter)))
	}
	for _, m := range in { // fill the caches
		for _, send := range ways {
			if err := send(m); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("side by side", func(b *testing.B) {
		const turn = 20
		took := make([][]time.Duration, len(ways))
		n := 0
		for b.Loop() {
			for i := range ways {
				// Change the order, because the predecessor may warm the caches.
				at := (i + n) % len(ways)
				began := time.Now()
				for k := range turn {
					if err := ways[at](in[(n*turn+k)%len(in)]); err != nil {
						b.Fatal(err)
					}
				}
				took[at] = append(took[at], time.Since(began))
			}
			n++
		}
		median := make([]float64, len(ways))
		for i, name := range names {
			slices.Sort(took[i])
			median[i] = float64(took[i][n/2]) / (turn * benchRows)
			b.ReportMetric(median[i], "ns/sample:"+strings.ReplaceAll(name, " ", "-"))
		}
		b.ReportMetric(median[2]/median[1], "series/relabel")
		b.ReportMetric(0, "ns/op")
	})
	for i, name := range names {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				if err := ways[i](in[n%len(in)]); err != nil {
					b.Fatal(err)
				}
				n++
			}
			b.ReportMetric(float64(b.Elapsed())/float64(b.N*benchRows), "ns/sample")
		})
	}
}
