//go:build integration

package integration

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// startUI starts weir with a script, a target that does not respond and an endpoint that does not
// exist, and opens the web UI.
func startUI(t *testing.T) (*weirRun, *browser, string) {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "config.alloy"), `
prometheus.exporter.self "weir" { }

prometheus.scrape "weir" {
	targets         = array.concat(prometheus.exporter.self.weir.targets, [{__address__ = "127.0.0.1:1", job = "dead"}])
	scrape_interval = "200ms"
	scrape_timeout  = "200ms"
	forward_to      = [my.tidy.default.receiver]
}

my.tidy "default" {
	forward_to = [prometheus.echo.default.receiver, prometheus.remote_write.dead.receiver]
}

prometheus.echo "default" { }

prometheus.remote_write "dead" {
	endpoint {
		url = "http://127.0.0.1:1/api/v1/write"
	}
}

discovery.relabel "hosts" {
	targets = [{__address__ = "127.0.0.1:2", env = "prod"}, {__address__ = "127.0.0.1:3", env = "test"}]

	rule {
		source_labels = ["env"]
		target_label  = "stage"
	}

	rule {
		source_labels = ["stage"]
		regex         = "test"
		action        = "drop"
	}
}
`)
	write(t, filepath.Join(dir, "scripts/my/tidy.lua"), tidyScript("lab"))
	write(t, filepath.Join(dir, "scripts/my/tidy_test.lua"), `
describe("my.tidy", function()
  it("adds a site", function()
    local out = weir.test.component("tidy.lua"):metrics [[ up 1 ]]
    assert.equals(1, #out:label_values "site")
  end)
end)
`)
	w, b := openUI(t, dir)
	return w, b, dir
}

// openUI starts weir with the config in dir, and opens the web UI.
func openUI(t testing.TB, dir string, flags ...string) (*weirRun, *browser) {
	t.Helper()
	w := startWeir(t, dir, flags...)
	b := startBrowser(t) // after weir: it ends before weir does
	b.open(w.link())
	return w, b
}

func tidyScript(site string) string {
	return fmt.Sprintf(`-- Adds the label site.
local weir = require "weir"
return weir.transform {
  series = function(s)
    if s.name == "go_goroutines" then
      s:drop()
      return
    end
    s.labels.site = %q
  end,
  state = { seen = weir.state.map {} },
  metrics = function(_, ctx) ctx.state.seen:set("last", "metrics") end,
}
`, site)
}

// TestUI: every view shows the running weir, at every width, in both themes, and for screen readers.
func TestUI(t *testing.T) {
	_, b, _ := startUI(t)
	b.complaints("where=name+%3D%3D") // the mistake
	b.shows("prometheus.remote_write.dead is unhealthy.")
	views := []struct {
		name, view string
		shows      []string
	}{
		{"overview", "", []string{" problems", "Check the address in the arguments", "prometheus.scrape.weir cannot scrape 1 target.", "my.tidy.default", "healthy", "started config.alloy"}},
		{"graph", "graph?node=my.tidy.default", []string{"prometheus.scrape.weir", "Live records", "/s in"}},
		{"node", "node/my.tidy.default", []string{"Gets records from", "prometheus.scrape.weir", "Arguments", "forward_to", "Documentation", "Adds the label site."}},
		{"live", "node/my.tidy.default?tab=live&side=diff", []string{`site="lab" added`, "go_goroutines"}},
		{"script", "node/my.tidy.default?tab=script", []string{"Versions of my.tidy", "running"}},
		{"state", "node/my.tidy.default?tab=state", []string{"seen", "1 of "}},
		{"quarantine", "node/my.tidy.default?tab=quarantine", []string{"There is nothing in quarantine."}},
		{"playground", "node/my.tidy.default?tab=playground", []string{"tidy.lua", `site="lab" added`, "µs each"}},
		{"block-playground", "node/discovery.relabel.hosts?tab=playground", []string{`stage="prod" added`, "rule 2 drop", `source_labels = ["stage"], regex = "test"`, "µs each"}},
		{"why", `why?where=name == "go_goroutines"`, []string{"prometheus.scrape.weir", "my.tidy.default", "Ended: "}},
		{"why-mistake", "why?where=name+==", []string{"Cannot follow the records.", "unexpected token"}},
		{"targets", "targets", []string{"http://127.0.0.1:1/metrics", "connection refused", "▲ down", "● up"}},
		{"why-targets", `why?of=targets&where=labels.job == "dead"`, []string{"prometheus.scrape.weir down", "connection refused"}},
		{"scripts", "scripts", []string{"my.tidy.default", "tidy.lua"}},
		{"reloads", "reloads", []string{"start", "my.tidy.default", "compile"}},
		{"config", "config", []string{"The config on disk has no mistakes", "A reload would change no node", `my.tidy "default" {`}},
		{"journals", "journals", []string{"prometheus.remote_write.dead", "does not accept data", "connection refused"}},
		{"metrics", "metrics?filter=weir_component_health", []string{"weir_component_health", "CPU, in cores"}},
		{"log", "log?level=info", []string{"started", "the newest first"}},
		{"build", "build", []string{"Storage path", "--storage.path", "flag", "Download a support bundle"}},
		{"docs", "docs/operating", []string{"Contents", "Operating weir", "weir journal stats"}},
		{"search", "docs?search=live+records", []string{"Found for “live records”", "Operating weir – Live records"}},
		{"lost", "no-such-view", []string{"There is no such view."}},
		{"no-node", "node/no.such", []string{"There is no node no.such."}},
	}
	for _, theme := range []string{"light", "dark"} {
		b.do(fmt.Sprintf(`document.querySelector("select[aria-label=Theme]").value = %q;
			document.querySelector("select[aria-label=Theme]").dispatchEvent(new Event("change", {bubbles: true}))`, theme))
		widths := []int64{1300, 400, 2000}
		if theme == "dark" {
			widths = widths[:1] // the colours do not depend on the width
		}
		for _, width := range widths {
			b.resize(width, 900)
			for _, v := range views {
				b.view(v.view)
				for _, text := range v.shows {
					b.shows(text)
				}
				b.narrow(v.name)
				b.accessible(fmt.Sprintf("%s (%s, %d px)", v.name, theme, width))
				b.screenshot(fmt.Sprintf("%s-%s-%d", v.name, theme, width))
			}
		}
	}
}

// TestUIKeyboard: the views can be reached and used without a mouse.
func TestUIKeyboard(t *testing.T) {
	_, b, _ := startUI(t)
	b.shows("my.tidy.default")
	b.run(chromedp.KeyEvent("\t"))
	b.await("the first stop is the link to the content", `document.activeElement.textContent == "Skip to the content"`)
	b.run(chromedp.KeyEvent("\r"))
	b.await("the link leads there", `document.activeElement.id == "main"`)
	b.view("graph")
	b.await("the graph has nodes", `document.querySelectorAll("g.box").length == 6`)
	b.do(`[...document.querySelectorAll("g.box")].find(e => e.textContent.includes("my.tidy.default")).focus()`)
	b.run(chromedp.KeyEvent("\r"))
	b.await("Enter selects a node", `document.querySelector("aside h2")?.innerText == "my.tidy.default"`)
	b.await("the URL holds the selection", `location.hash.includes("node=my.tidy.default")`)

	const left = `Number(document.querySelector(".canvas > svg").getAttribute("viewBox").split(" ")[0])`
	b.do(`window.left = ` + left + `; document.querySelector(".canvas > svg").focus()`)
	b.run(chromedp.KeyEvent(kb.ArrowRight))
	b.await("an arrow key moves the graph", left+" > window.left")
	b.do(`document.querySelector("input[type=search]").focus()`)
	b.run(chromedp.KeyEvent("dead\r"))
	b.await("the search selects a node", `document.querySelector("aside h2")?.innerText == "prometheus.remote_write.dead"`)

	// On a narrow screen, records flow down, and nodes can be read.
	b.resize(400, 900)
	b.await("the text of a node is readable", `document.querySelector("g.box text:nth-of-type(2)")?.getBoundingClientRect().height >= 9`)
	b.await("the node below its sender is drawn", `(() => {
		const y = (id) => [...document.querySelectorAll("g.box")].find((e) => e.textContent.includes(id)).getBoundingClientRect().y;
		return y("my.tidy.default") > y("prometheus.scrape.weir") + 40;
	})()`)
}

// TestUIWhy: the record that somebody clicks on is followed through the graph.
func TestUIWhy(t *testing.T) {
	_, b, _ := startUI(t)
	b.view("node/my.tidy.default?tab=live&where=" + url.QueryEscape(`name == "go_threads"`))
	b.click("why")
	b.shows("prometheus.scrape.weir")
	b.shows(`site="lab" added`)
	b.shows("prometheus.echo.default accepted")
	b.view("why?where=" + url.QueryEscape(`name == "no_such_metric"`) + "&node=my.tidy.default")
	b.shows("Waiting for records that match")

	// A pasted series becomes an expression.
	follow := func(text, where string) {
		t.Helper()
		b.await("there is a field", `document.querySelector("form.bar input[type=text]")`)
		b.do(`document.querySelector("form.bar input[type=text]").focus()`)
		b.replace(text)
		b.run(chromedp.KeyEvent(kb.Enter))
		b.await("the expression is "+where, fmt.Sprintf(`document.querySelector("form.bar input[type=text]").value == %[1]q && new URLSearchParams(location.hash.split("?")[1]).get("where") == %[1]q`, where))
	}
	b.view("why")
	follow(`go_threads{job=~"integrations/.*"} 9`, `name == "go_threads" && labels.job matches "^(?:integrations/.*)$"`)
	b.shows("prometheus.echo.default accepted")
	follow(`{app="a"} @2026-01-01T00:00:00Z x{"} y`, `labels.app == "a" && line == "x{\"} y"`)
	b.complaints("where=no+expression")
	follow("no expression", "no expression")
	b.click("Follow log lines that contain this text")
	b.await("the lines are followed", `document.querySelector("form.bar input[type=text]").value == 'line contains "no expression"'`)
	b.view("why?of=targets")
	follow("http://127.0.0.1:3/metrics", `labels.__address__ == "127.0.0.1:3"`)
	b.shows("discovery.relabel.hosts dropped")
}

// TestUITargets: somebody finds out why a target is dropped.
func TestUITargets(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "config.alloy"), `
discovery.relabel "all" {
	targets = [{__address__ = "127.0.0.1:1", env = "prod"}, {__address__ = "127.0.0.1:2", env = "test"}]

	rule {
		source_labels = ["env"]
		target_label  = "stage"
	}

	rule {
		source_labels = ["stage"]
		regex         = "test"
		action        = "drop"
	}
}

prometheus.scrape "all" {
	targets    = discovery.relabel.all.output
	forward_to = [prometheus.echo.default.receiver]
}

prometheus.echo "default" { }
`)
	_, b := openUI(t, dir)
	b.view("targets?filter=127.0.0.1:2")
	b.shows("dropped discovery.relabel.all")
	b.shows(`rule 2 drop (source_labels = ["stage"], regex = "test")`)
	b.screenshot("dropped")
	b.click("why")
	b.shows(`stage="test" added`)
	b.shows("dropped")
	b.screenshot("why")
	b.view("targets?filter=127.0.0.1:1")
	b.shows(`stage="prod" added`)
}

// TestUIPlayground: a change in the editor is run at once on the last batch, and nothing else changes.
func TestUIPlayground(t *testing.T) {
	_, b, _ := startUI(t)
	b.view("node/my.tidy.default?tab=playground")
	b.shows(`site="lab" added`)
	b.do(`document.querySelector(".editor").shadowRoot.querySelector(".cm-content").focus()`)
	const list = `document.querySelector(".editor").shadowRoot.querySelector(".cm-tooltip-autocomplete")?.innerText.includes(%q)`
	b.replace("")
	b.run(chromedp.KeyEvent("batch:drop_w"))
	b.await("the editor completes a method", fmt.Sprintf(list, "batch:drop_where(where)"))
	b.screenshot("completion")
	b.replace(tidyScript("shop"))
	b.shows(`site="shop" added`)
	b.replace(strings.Replace(tidyScript("shop"), "s:drop()", "s:drop(", 1))
	b.shows("tidy.lua:7")
	b.await("the line has a mark", `document.querySelector(".editor").shadowRoot.querySelector(".cm-lint-marker-error")`)
	b.screenshot("error")
	b.view("node/my.tidy.default?tab=live&side=diff")
	b.shows(`site="lab" added`) // the node still runs its script
}

// TestUIBlockPlayground: the block of a node can be edited, and a copy of the node processes the last
// batch, pasted records or targets.
func TestUIBlockPlayground(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "config.alloy"), `
prometheus.exporter.self "weir" { }

discovery.relabel "hosts" {
	targets = array.concat(prometheus.exporter.self.weir.targets, [{__address__ = "127.0.0.1:1", env = "test"}])

	rule {
		source_labels = ["env"]
		regex         = "test"
		action        = "drop"
	}
}

prometheus.scrape "weir" {
	targets         = discovery.relabel.hosts.output
	scrape_interval = "200ms"
	scrape_timeout  = "200ms"
	forward_to      = [prometheus.relabel.rules.receiver]
}

prometheus.relabel "rules" {
	forward_to = [prometheus.echo.default.receiver]

	rule {
		target_label = "site"
		replacement  = "lab"
	}
}

loki.process "stages" {
	forward_to = []
}

prometheus.echo "default" { }
`)
	w := startWeir(t, dir)
	b := startBrowser(t)
	b.complaints("/api/v0/history?node=") // a node that has just started has no history
	b.open(w.link())
	b.view("node/prometheus.relabel.rules")
	b.shows("Records in")
	b.await("the node has sent a batch", `[...document.querySelectorAll("dd")].some(e => /^[1-9].*\//.test(e.innerText))`)
	b.click("Playground")
	b.shows(`site="lab" added`)
	for _, width := range []int64{400, 1300} {
		b.resize(width, 900)
		b.narrow("block playground")
		b.accessible(fmt.Sprintf("block playground (%d px)", width))
		b.screenshot(fmt.Sprint("block-", width))
	}
	focus := `document.querySelector(".editor").shadowRoot.querySelector(".cm-content").focus()`
	block := func(value string) string {
		return fmt.Sprintf("prometheus.relabel \"rules\" {\nforward_to = []\nrule {\ntarget_label = \"site\"\nreplacement = %q\n}\n}", value)
	}
	b.do(focus)
	b.replace("prometheus.relabel \"rules\" {\nrule {\n")
	b.run(chromedp.KeyEvent("sour"))
	b.await("the editor completes an argument", `document.querySelector(".editor").shadowRoot.querySelector(".cm-tooltip-autocomplete")?.innerText.includes("source_labels")`)
	b.screenshot("block-completion")
	b.replace(block("shop"))
	b.shows(`site="shop" added`)
	b.replace(block(`<img src=x onerror="document.title='hacked'">`))
	b.shows(`site="<img src=x onerror=`)
	b.await("nothing is executed", `!document.title.includes("hacked") && !document.querySelector("main img")`)
	b.replace(strings.Replace(block("shop"), "replacement", "replacment", 1))
	b.shows("Block, line 5")
	b.shows("did you mean replacement")
	b.await("the line has a mark", `document.querySelector(".editor").shadowRoot.querySelector(".cm-lint-marker-error")`)
	b.screenshot("block-error")

	b.view("node/loki.process.stages?tab=playground")
	b.shows("The block leaves no records")
	b.do(focus)
	b.replace("loki.process \"stages\" {\nforward_to = []\nstage.match {\nselector = `{app=\"api\"} |= \"debug\"`\naction = \"drop\"\n}\n}")
	b.do(`document.querySelector("textarea").focus()`)
	b.replace(`{app="api"} a debug line`)
	b.shows("µs each")
	b.await("the line is dropped", `document.querySelector("ol.live li.dropped")`)
	b.screenshot("stages")

	b.view("node/discovery.relabel.hosts?tab=playground")
	b.await("a target is dropped", `document.querySelector("ol.live li.dropped")?.innerText.includes("127.0.0.1:1")`)
	b.screenshot("targets-playground")
	b.view("node/prometheus.relabel.rules?tab=live&side=diff")
	b.shows(`site="lab" added`) // the node still runs its block
}

// TestUIState: a click shows the entries of a state.
func TestUIState(t *testing.T) {
	_, b, _ := startUI(t)
	b.view("node/my.tidy.default?tab=state")
	b.click("seen")
	b.shows(`"last": "metrics"`)
	b.screenshot("entries")
}

// TestUIQuarantine: somebody looks at a record on which the script failed, fixes the script and
// replays it.
func TestUIQuarantine(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "config.alloy"), `
prometheus.exporter.static "one" {
	text = "a 1\nb 2\n"
}

prometheus.scrape "one" {
	targets         = prometheus.exporter.static.one.targets
	scrape_interval = "2s" // the page shows 200 entries
	scrape_timeout  = "2s"
	forward_to      = [my.strict.default.receiver]
}

my.strict "default" {
	forward_to = [prometheus.echo.default.receiver]

	script {
		on_error = "quarantine"
	}
}

prometheus.echo "default" { }
`)
	script := func(bad string) {
		write(t, filepath.Join(dir, "scripts/my/strict.lua"), `local weir = require "weir"
return weir.transform {
  metrics = function(batch)
    batch:each(function(m) if m.name == "`+bad+`" then error("no <b>`+bad+`</b>") end end)
  end,
}
`)
	}
	script("a")
	w, b := openUI(t, dir)
	b.view("scripts")
	b.await("the records in quarantine have a link", `document.querySelector("main a[href*='tab=quarantine']")`)
	b.view("node/my.strict.default?tab=quarantine")
	b.shows("no <b>a</b>")
	b.click("1")
	b.shows("Entry 1")
	b.shows(`instance="`)
	b.screenshot("entry")
	b.click("Replay")
	b.shows("Some entries stay in quarantine.")
	script("none")
	w.await(1, "reloaded my.strict")
	b.click("Replay all")
	b.shows("replayed.")
	b.shows("There is nothing in quarantine.")
	b.screenshot("empty")
}

// TestUIShadow: the difference that a saved version makes to recent input is shown with the script.
func TestUIShadow(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "config.alloy"), `
prometheus.exporter.self "weir" { }

prometheus.scrape "weir" {
	targets         = prometheus.exporter.self.weir.targets
	scrape_interval = "200ms"
	scrape_timeout  = "200ms"
	forward_to      = [my.tidy.default.receiver]
}

my.tidy "default" {
	forward_to = [prometheus.echo.default.receiver]

	script {
		on_reload = "shadow"
	}
}

prometheus.echo "default" { }
`)
	script := filepath.Join(dir, "scripts/my/tidy.lua")
	write(t, script, tidyScript("lab"))
	_, b := openUI(t, dir)
	b.view("node/my.tidy.default?tab=live")
	b.shows(`site="lab"`)
	write(t, script, tidyScript("shop"))
	b.view("node/my.tidy.default?tab=script")
	b.shows("on recent input")
	b.shows(`site="shop"`)
	b.screenshot("difference")
}

// TestUIReload: break a script, read the error, fix it, watch the reload, and return to the version before.
func TestUIReload(t *testing.T) {
	w, b, dir := startUI(t)
	script := filepath.Join(dir, "scripts/my/tidy.lua")
	b.view("node/my.tidy.default?tab=live")
	b.shows(`site="lab"`)

	write(t, script, strings.Replace(tidyScript("lab"), "s:drop()", "s:drop(", 1))
	b.view("")
	b.shows("my.tidy.default is unhealthy.")
	b.shows("refused by compile")
	b.shows("tidy.lua:7")
	b.screenshot("broken")

	write(t, script, strings.Replace(tidyScript("lab"), "s.labels.site =", "s.labels.sight =", 1))
	b.shows("refused by test")
	b.shows("'weir test")

	write(t, script, tidyScript("shop"))
	b.await("the problem is over", `!document.body.innerText.includes("my.tidy.default is unhealthy")`)
	b.view("reloads")
	b.shows("reloaded my.tidy")
	b.screenshot("reloads")
	b.view("node/my.tidy.default?tab=live")
	b.shows(`site="shop"`)

	b.view("node/my.tidy.default?tab=script")
	b.click("Compare with the running version")
	b.shows(`+     s.labels.site = "shop"`)
	b.shows("Refused versions")
	b.screenshot("versions")
	b.click("Roll back to this version")
	b.shows("The node is pinned to version")
	b.view("node/my.tidy.default?tab=live")
	b.shows(`site="lab"`)
	b.view("node/my.tidy.default?tab=script")
	b.click("Unpin")
	b.await("the node runs the version on disk", `!document.body.innerText.includes("The node is pinned")`)

	// An error in the config is shown by the button and by the overview.
	config := filepath.Join(dir, "config.alloy")
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	b.complaints("400") // the refused reload
	write(t, config, string(text)+"\nno.such \"block\" { }\n")
	b.view("")
	b.shows("The config on disk was refused. An older one runs.")
	b.click("Reload")
	b.shows("weir has refused the change.")
	b.shows("no.such")
	b.screenshot("refused")
	b.click("Close")
	if out := w.output(); strings.Contains(out, "panic") {
		t.Error(out)
	}
}
