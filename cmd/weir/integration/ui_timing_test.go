//go:build integration

package integration

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/systeminfo"
	"github.com/chromedp/chromedp"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// BenchmarkFirstPaint loads the web UI: the time until the browser first draws content.
func BenchmarkFirstPaint(b *testing.B) {
	_, page := startNodes(b, 10)
	var sum float64
	for b.Loop() {
		page.run(chromedp.Reload())
		const paint = `performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 0`
		page.await("the page is painted", paint)
		ms, err := ask(page, chromedp.Evaluate[float64](paint))
		if err != nil {
			b.Fatal(err)
		}
		sum += ms
	}
	b.ReportMetric(sum/float64(b.N), "ms/paint")
}

// BenchmarkGraph watches the graph of 1,000 nodes, all of which change twice a second: the
// CPU time of the browser and of weir, also without a page. Run it with -benchtime=1x.
func BenchmarkGraph(b *testing.B) {
	w, page := startNodes(b, 1000)
	page.view("graph")
	page.await("the graph has nodes", `document.querySelectorAll("g.box").length > 900`)
	measure := func(b *testing.B) {
		for b.Loop() {
			browser, weir := browserCPU(page), weirCPU(w)
			const window = 20 * time.Second
			time.Sleep(window)
			b.ReportMetric(100*(browserCPU(page)-browser)/window.Seconds(), "%browser")
			b.ReportMetric(100*(weirCPU(w)-weir)/window.Seconds(), "%weir")
		}
	}
	b.Run("open", measure)
	page.open("about:blank")
	b.Run("closed", measure)
}

// startNodes starts weir with a number of nodes that pass records twice a second, and
// opens the web UI.
func startNodes(b *testing.B, nodes int) (*weirRun, *browser) {
	b.Helper()
	dir := b.TempDir()
	var config, to strings.Builder
	for i := range nodes - 4 {
		fmt.Fprintf(&config, "prometheus.relabel \"r%d\" {\n\tforward_to = [prometheus.relabel.drop.receiver]\n}\n\n", i)
		fmt.Fprintf(&to, "prometheus.relabel.r%d.receiver,\n", i)
	}
	write(b, filepath.Join(dir, "config.alloy"), config.String()+`
prometheus.exporter.static "one" {
	text = "a 1\n"
}

prometheus.scrape "one" {
	targets         = prometheus.exporter.static.one.targets
	scrape_interval = "500ms"
	scrape_timeout  = "500ms"
	forward_to      = [`+to.String()+`]
}

prometheus.relabel "drop" {
	forward_to = [prometheus.echo.default.receiver]

	rule {
		action = "drop"
		regex  = ".*"
	}
}

prometheus.echo "default" { }
`)
	w, page := openUI(b, dir)
	page.shows("prometheus.scrape.one")
	return w, page
}

// browserCPU returns the CPU seconds of all processes of a browser.
func browserCPU(b *browser) (seconds float64) {
	b.t.Helper()
	r, err := cdp.Call(b.ctx, chromedp.FromContext(b.ctx).Browser, systeminfo.GetProcessInfo, cdp.Empty{})
	if err != nil {
		b.t.Fatal(err)
	}
	for _, p := range r.ProcessInfo {
		seconds += p.CPUTime
	}
	return seconds
}

// weirCPU returns the CPU seconds of a weir.
func weirCPU(w *weirRun) float64 {
	w.t.Helper()
	p := expfmt.NewTextParser(model.UTF8Validation)
	all, err := p.TextToMetricFamilies(strings.NewReader(w.request("/metrics")))
	if err != nil || all["process_cpu_seconds_total"] == nil {
		w.t.Fatalf("weir does not report its CPU time: %v", err)
	}
	return all["process_cpu_seconds_total"].Metric[0].GetCounter().GetValue()
}
