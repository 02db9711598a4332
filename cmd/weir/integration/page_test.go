//go:build integration

package integration

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// browser returns a function that opens a URL in Chromium and returns the page
// after its scripts have run. Cookies are kept between calls.
func browser(t *testing.T) (open func(url string) (string, error)) {
	t.Helper()
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
	profile := t.TempDir()
	return func(url string) (string, error) {
		out, err := exec.Command(browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
			"--disable-background-networking", "--disable-component-update", "--disable-sync", "--user-data-dir="+profile,
			"--virtual-time-budget=30000", "--enable-logging=stderr", "--dump-dom", url).CombinedOutput()
		if err != nil {
			return "", fmt.Errorf("cannot open the page: %w\n%s", err, out)
		}
		return string(out), nil
	}
}

// link returns the output of weir page.
func (w *weirRun) link() string {
	w.t.Helper()
	out, err := exec.Command(env(w.t, "WEIR"), "page", "--storage.path="+w.storage).Output()
	if err != nil {
		w.t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// TestForeignPages: a page served by a route of a component, which has weir's
// address, cannot use weir's API in a browser with a session. The browser also
// does not send the session to a server on another port.
func TestForeignPages(t *testing.T) {
	open := browser(t)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "config.alloy"), `
my.echo "in" {
  forward_to = []
}
`)
	write(t, filepath.Join(dir, "scripts/my/echo.lua"), `
local weir = require "weir"
return weir.source {
  http = {
    ["GET /page"] = function(req, ctx)
      return { status = 200, headers = { ["Content-Type"] = "text/html" }, body = req.query.html }
    end,
  },
}
`)
	w := startWeir(t, dir)
	page, err := open(w.link())
	if err != nil || !strings.Contains(page, `<span class="id">my.echo.in</span>`) {
		t.Fatalf("the session does not show the nodes: %v\n%s", err, page)
	}
	const script = `<p id="out">nothing ran</p><script>
		const out = document.getElementById("out");
		fetch("/-/reload", {method: "POST"}).then(r => out.textContent = "reload: " + r.status, e => out.textContent = "reload: " + e);
	</script>`
	page, err = open(w.url + "/api/v0/component/my.echo.in/page?html=" + url.QueryEscape(script))
	if err != nil || !strings.Contains(page, `<p id="out">nothing ran</p>`) {
		t.Errorf("the page of the route ran its script: %v\n%s", err, page)
	}
	if out := w.output(); strings.Contains(out, "reloaded config") {
		t.Errorf("the page of the route reloaded weir:\n%s", out)
	}

	var mu sync.Mutex
	var got []string
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, r.Header.Get("Cookie"))
	}))
	_, err = open(other.URL)
	other.Close() // waits for the handler
	if err != nil || len(got) == 0 || strings.Join(got, "") != "" {
		t.Errorf("a server on another port got cookies %q, %v", got, err)
	}
}

// TestPage: a browser runs the script of the page to its end: it shows the nodes,
// their rates after the next poll, and errors with their source lines.
func TestPage(t *testing.T) {
	open := browser(t)
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
		page, err := open(w.link())
		if err != nil {
			return fatal{err}
		}
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
		// Rates are shown after the second response.
		rate := regexp.MustCompile(`<span class="id">my.good.default</span><span class="state">healthy</span><span class="num">([0-9.]+k?)</span><span class="num">([0-9.]+k?)</span>`).FindStringSubmatch(page)
		if rate == nil || rate[1] == "0" || rate[1] != rate[2] {
			return fmt.Errorf("got rates %q of my.good.default:\n%s", rate, page)
		}
		// The graph shows the same rates.
		if want := rate[1] + "/s in · " + rate[2] + "/s out</text>"; !strings.Contains(page, want) {
			return fmt.Errorf("no %s in the graph:\n%s", want, page)
		}
		return nil
	})
}
