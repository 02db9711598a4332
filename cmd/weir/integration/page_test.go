//go:build integration

package integration

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPage: a browser runs the page's script to its end: it shows the nodes, and
// after the next poll their rates; what is broken with its source line.
func TestPage(t *testing.T) {
	browser := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			browser = path
			break
		}
	}
	if browser == "" {
		t.Skip("there is no chromium to look at the page with")
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "config.alloy"), `
prometheus.exporter.self "weir" { }

prometheus.scrape "weir" {
  targets         = prometheus.exporter.self.weir.targets
  scrape_interval = "50ms"
  scrape_timeout  = "50ms"
  forward_to      = [my.good.default.receiver]
}

my.good "default" {
  forward_to = [prometheus.relabel.end.receiver]
}

prometheus.relabel "end" {
  forward_to = []
}

my.broken "default" {
  forward_to = []
}
`)
	write(t, filepath.Join(dir, "scripts/my/good.lua"), `
local weir = require "weir"
return weir.transform { series = function(s, ctx) s.labels.site = "lab" end }
`)
	write(t, filepath.Join(dir, "scripts/my/broken.lua"), `
local weir = require "weir"
return weir.transform { series = function(s, ctx) s.labels.site = end }
`)
	w := startWeir(t, dir)
	eventually(t, "the page has rates", func() error {
		dom, err := exec.Command(browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
			"--disable-background-networking", "--disable-component-update", "--disable-sync", "--user-data-dir="+t.TempDir(),
			"--virtual-time-budget=30000", "--enable-logging=stderr", "--dump-dom", w.url).CombinedOutput()
		if err != nil {
			return fatal{fmt.Errorf("cannot look at the page: %w\n%s", err, dom)}
		}
		page := string(dom)
		if m := regexp.MustCompile(`Uncaught.*`).FindString(page); m != "" {
			return fatal{fmt.Errorf("the page's script throws: %s", m)}
		}
		for _, want := range []string{
			`<span class="id">prometheus.scrape.weir</span><span class="state">healthy</span>`,
			`<span class="id">my.broken.default</span><span class="state">unhealthy</span>`,
			`<div class="error"><pre>`, `broken.lua:2:`, `2 | return weir.transform`,
			`<span class="dot"></span>service http`,
			`<g class="node unhealthy" data-id="my.broken.default">`, `<title>prometheus.scrape.weir → my.good.default</title>`,
		} {
			if !strings.Contains(page, want) {
				return fmt.Errorf("no %s in the page:\n%s", want, page)
			}
		}
		// Rates are there after the second answer.
		rate := regexp.MustCompile(`<span class="id">my.good.default</span><span class="state">healthy</span><span class="num">([0-9.]+k?)</span><span class="num">([0-9.]+k?)</span>`).FindStringSubmatch(page)
		if rate == nil || rate[1] == "0" || rate[1] != rate[2] {
			return fmt.Errorf("got rates %q of my.good.default:\n%s", rate, page)
		}
		// The same in the graph.
		if want := rate[1] + "/s in · " + rate[2] + "/s out</text>"; !strings.Contains(page, want) {
			return fmt.Errorf("no %s in the graph:\n%s", want, page)
		}
		return nil
	})
}
