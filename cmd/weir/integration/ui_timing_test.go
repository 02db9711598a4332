//go:build integration

package integration

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/systeminfo"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// BenchmarkFirstPaint loads the web UI: the time until the browser first draws content.
func BenchmarkFirstPaint(b *testing.B) {
	_, page := startNodes(b, b.TempDir(), 10, "")
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
	w, page := startNodes(b, b.TempDir(), 1000, "")
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

// BenchmarkPlayground types in the editor of a playground, while weir scrapes: the time
// from a keystroke until the browser has drawn the result of a script or a block for the
// last batch of the node. Run it with -benchtime=100x.
func BenchmarkPlayground(b *testing.B) {
	dir := b.TempDir()
	const lua = `local weir = require "weir"
return weir.transform {
  series = function(s)
    s.labels.site = "lab"
  end,
}
`
	const ts = `import { type Batch, defineTransform } from "weir";

export default defineTransform({
  metrics(batch: Batch): void {
    batch.each((m) => {
      m.labels.site = "lab";
    });
  },
});
`
	const relabel = `prometheus.relabel "play" {
	forward_to = [prometheus.relabel.drop.receiver]

	rule {
		target_label = "site"
		replacement  = "lab"
	}
}
`
	write(b, filepath.Join(dir, "scripts/my/lua.lua"), lua)
	write(b, filepath.Join(dir, "scripts/my/ts.ts"), ts)
	_, page := startNodes(b, dir, 10, relabel+`
prometheus.exporter.self "weir" { }

prometheus.scrape "play" {
	targets         = prometheus.exporter.self.weir.targets
	scrape_interval = "500ms"
	scrape_timeout  = "500ms"
	forward_to      = [my.lua.play.receiver, my.ts.play.receiver, prometheus.relabel.play.receiver]
}

my.lua "play" {
	forward_to = [prometheus.relabel.drop.receiver]
}

my.ts "play" {
	forward_to = [prometheus.relabel.drop.receiver]
}
`)
	for _, of := range []struct{ name, node, text string }{
		{"lua", "my.lua.play", lua}, {"ts", "my.ts.play", ts}, {"relabel", "prometheus.relabel.play", relabel},
	} {
		b.Run(of.name, func(b *testing.B) {
			page.view("node/" + of.node + "?tab=live")
			page.shows(`site="lab"`) // there is a batch
			page.view("node/" + of.node + "?tab=playground")
			page.shows("100 records")
			page.do(`document.querySelector(".editor").shadowRoot.querySelector(".cm-content").focus()`)
			page.replace(of.text)
			page.shows(`site="lab" added`)
			end := len(of.text) - strings.Index(of.text, `"lab"`) - len(`"lab`)
			page.run(chromedp.KeyEvent(strings.Repeat(kb.ArrowLeft, end)))
			var took []float64
			press := func(key, want string) {
				page.do(fmt.Sprintf(`window.drawn = new Promise(done => {
					let pressed = 0;
					addEventListener("keydown", e => { pressed = e.timeStamp; }, {capture: true, once: true});
					const result = document.querySelector("[aria-labelledby=bench-output]");
					const observer = new MutationObserver(() => {
						if (!pressed || !result.textContent.includes(%q)) return;
						observer.disconnect();
						requestAnimationFrame(() => setTimeout(() => done(performance.now() - pressed)));
					});
					observer.observe(result, {subtree: true, childList: true, characterData: true});
				})`, want))
				page.run(chromedp.KeyEvent(key))
				ms, err := ask(page, chromedp.Evaluate[float64]("drawn", chromedp.EvalAwaitPromise))
				if err != nil {
					b.Fatalf("%v; the page shows:\n%s", err, page.text())
				}
				took = append(took, ms)
			}
			for b.Loop() {
				press("s", `site="labs" added`)
				press(kb.Backspace, `site="lab" added`)
			}
			slices.Sort(took)
			b.ReportMetric(took[len(took)/2], "p50-ms")
			b.ReportMetric(took[len(took)*95/100], "p95-ms")
			b.ReportMetric(0, "ns/op") // contains the benchmark itself
		})
	}
}

// startNodes starts weir with a number of nodes that pass records twice a second, and more
// config, and opens the web UI.
func startNodes(b *testing.B, dir string, nodes int, more string) (*weirRun, *browser) {
	b.Helper()
	var config, to strings.Builder
	for i := range nodes - 4 {
		fmt.Fprintf(&config, "prometheus.relabel \"r%d\" {\n\tforward_to = [prometheus.relabel.drop.receiver]\n}\n\n", i)
		fmt.Fprintf(&to, "prometheus.relabel.r%d.receiver,\n", i)
	}
	write(b, filepath.Join(dir, "config.alloy"), config.String()+more+`
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
