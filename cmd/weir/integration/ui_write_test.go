//go:build integration

package integration

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestUIWrite: break a script, fix it in the playground, see that the file has changed, write it to
// disk and watch the reload. Without the block ui, nothing can be written.
func TestUIWrite(t *testing.T) {
	w, b, dir := startUI(t)
	script, config := filepath.Join(dir, "scripts/my/tidy.lua"), filepath.Join(dir, "config.alloy")
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	disk := func(want string) {
		t.Helper()
		got, err := os.ReadFile(script)
		if err != nil || string(got) != want {
			t.Errorf("the script contains %q, %v; want %q", got, err, want)
		}
	}
	const playground = "node/my.tidy.default?tab=playground"
	b.view(playground)
	b.shows(`site="lab" added`)
	b.await("nothing can be written", `![...document.querySelectorAll("button")].some(e => e.textContent == "Write to disk")`)

	write(t, config, string(text)+"\nui {\n\tedit = true\n}\n")
	broken := strings.Replace(tidyScript("lab"), "s:drop()", "s:drop(", 1)
	write(t, script, broken)
	b.view("")
	b.shows("refused by compile")
	b.shows("tidy.lua:7")

	b.complaints("409") // the conflict
	b.view(playground)
	b.shows("Write to disk")
	b.await("the editor is there", `document.querySelector(".editor")?.shadowRoot?.querySelector(".cm-content")`) // it is loaded separately
	b.do(`document.querySelector(".editor").shadowRoot.querySelector(".cm-content").focus()`)
	b.replace(tidyScript("shop"))
	b.shows(`site="shop" added`)
	broken += "-- by a colleague\n"
	write(t, script, broken)
	b.click("Write to disk")
	b.shows("has changed since it was read")
	b.shows("-- by a colleague")
	b.accessible("the conflict")
	b.screenshot("conflict")
	disk(broken)
	b.click("Replace this text")
	b.shows("Written.")
	b.screenshot("written")
	disk(tidyScript("shop"))

	b.view("reloads")
	b.shows("reloaded my.tidy")
	b.view("node/my.tidy.default?tab=live")
	b.shows(`site="shop"`)
	if log := w.request("/api/v0/audit"); strings.Count(log, "PUT /api/v0/control/my.tidy.default/source") != 2 || !strings.Contains(log, `"session `) {
		t.Errorf("the audit log has not both attempts: %s", log)
	}

	b.complaints("403")
	write(t, config, string(text)+"\nui {\n\tlive_data = false\n}\n")
	b.view("reloads")
	b.await("the block is reloaded", `document.querySelectorAll(".timeline li").length >= 4`)
	b.view(playground)
	b.shows("live data is off: set live_data = true")
	b.view("node/my.tidy.default?tab=live")
	b.shows("live data is off: set live_data = true")
	b.view("node/my.tidy.default?tab=script")
	b.shows(`s.labels.site = "shop"`) // the source of a script contains no live data
}

// TestUIRecord: live calls are recorded as a test, which is written to disk and passes. Markup in the
// records stays text.
func TestUIRecord(t *testing.T) {
	dir := t.TempDir()
	const hostile = `<img src=x onerror=document.title=1> ]] ]=] \u202e`
	write(t, filepath.Join(dir, "config.alloy"), `
prometheus.exporter.static "one" {
	text = "a{x=\"`+hostile+`\", pod=\"pod-of-ann\"} 1\n"
}

prometheus.scrape "one" {
	targets         = prometheus.exporter.static.one.targets
	scrape_interval = "200ms"
	scrape_timeout  = "200ms"
	forward_to      = [my.tidy.default.receiver, prometheus.relabel.rules.receiver]
}

my.tidy "default" {
	forward_to = [prometheus.echo.default.receiver]
}

prometheus.relabel "rules" {
	forward_to = [prometheus.echo.default.receiver]
}

prometheus.echo "default" { }

ui {
	edit = true
}
`)
	write(t, filepath.Join(dir, "scripts/my/tidy.lua"), tidyScript("lab"))
	w, b := openUI(t, dir)
	passes := func(file string) {
		t.Helper()
		if out, err := exec.Command(os.Getenv("WEIR"), "test", "--ci", file).CombinedOutput(); err != nil {
			t.Errorf("weir test: %v\n%s", err, out)
		}
	}
	fill := func(label, text string) {
		t.Helper()
		b.do(fmt.Sprintf(`{
			const input = [...document.querySelectorAll("input")].find(i => i.ariaLabel == %[1]q || i.labels[0]?.textContent.startsWith(%[1]q));
			input.value = %[2]q;
			input.dispatchEvent(new Event("input", {bubbles: true}));
		}`, label, text))
	}
	b.complaints("422") // an expression that matches nothing
	b.complaints("409") // the conflict
	b.view("node/my.tidy.default?tab=live&where=" + url.QueryEscape(`name == "nothing"`))
	b.click("Record as test")
	fill("Within seconds", "1")
	b.click("Record")
	b.shows("no call of my.tidy.default was recorded within 1s")

	b.view("node/my.tidy.default?tab=live&where=" + url.QueryEscape(`name == "a"`))
	b.await("the filter of the URL is shown", `[...document.querySelectorAll("input")].some(i => i.value == 'name == "a"')`)
	fill("Within seconds", "30")
	fill("Calls", "2")
	fill("Labels to mask", "pod")
	b.click("Record")
	b.shows("2 calls in")
	b.shows(`site="lab"`)
	b.shows(`pod="pod-1"`)
	b.await("markup is text", `!document.querySelector("img") && document.title != "1" && document.querySelector(".testfile").textContent.includes("<img src=x onerror=")`)
	b.await("other labels are hidden", `!document.querySelector(".testfile").textContent.includes("pod-of-ann")`)
	b.accessible("the recorded test")
	b.screenshot("recorded")
	b.click("Write to disk")
	b.shows("Written. 'weir test' runs it.")
	file := filepath.Join(dir, "scripts/my/tidy_recorded_test.lua")
	passes(file)
	if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), "<img src=x onerror=") {
		t.Errorf("the test is %q, %v", text, err)
	}

	// An existing file is replaced only after a question.
	write(t, file, "-- mine\n")
	fill("Calls", "1")
	b.click("Record")
	b.shows("1 call in")
	b.click("Write to disk")
	b.shows("tidy_recorded_test.lua exists already")
	b.shows("-- mine")
	b.screenshot("exists")
	if text, err := os.ReadFile(file); err != nil || string(text) != "-- mine\n" {
		t.Errorf("the file contains %q, %v", text, err)
	}
	fill("File of the test", "tidy_test.lua")
	b.click("Write to disk")
	b.shows("Written. 'weir test' runs it.")
	passes(filepath.Join(dir, "scripts/my/tidy_test.lua"))
	b.resize(400, 900)
	b.screenshot("recorded-narrow")
	b.resize(1300, 900)

	b.view("node/prometheus.relabel.rules?tab=live")
	b.shows("Only scripts can be recorded as a test.")
	if log := w.request("/api/v0/audit"); strings.Contains(log, "/api/v0/recording/") || strings.Count(log, "PUT /api/v0/control/my.tidy.default/source") != 3 {
		t.Errorf("the audit log is %s", log)
	}
}

// TestUIExport: the playground exports the script and a test with its input and output, which passes.
func TestUIExport(t *testing.T) {
	w, b, dir := startUI(t)
	config := filepath.Join(dir, "config.alloy")
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	write(t, config, string(text)+"\nui {\n\tedit = true\n}\n")
	b.view("node/my.tidy.default?tab=playground")
	b.shows(`site="lab" added`)
	b.shows("Write to disk")
	b.do(`{
		const input = document.querySelector("main textarea");
		input.value = 'up{x="<img src=x onerror=document.title=1>"} 1\ngo_goroutines 2\n';
		input.dispatchEvent(new Event("input", {bubbles: true}));
	}`)
	b.await("the editor is there", `document.querySelector(".editor")?.shadowRoot?.querySelector(".cm-content")`) // it is loaded separately
	b.do(`document.querySelector(".editor").shadowRoot.querySelector(".cm-content").focus()`)
	b.replace(tidyScript("shop"))
	b.shows(`site="shop" added`)
	b.await("the script can be downloaded", `decodeURIComponent(document.querySelector("a[download='tidy.lua']").href).includes('"shop"')`)
	b.click("Export as test")
	b.shows("Written in the playground of my.tidy.default")
	b.await("the test can be downloaded", `decodeURIComponent(document.querySelector("a[download='tidy_recorded_test.lua']").href).includes('site="shop"')`)
	b.await("markup is text", `!document.querySelector("img") && document.title != "1"`)
	b.accessible("the exported test")
	b.screenshot("exported")
	test := filepath.Join(dir, "scripts/my/tidy_recorded_test.lua")
	b.do(`[...document.querySelectorAll("button")].filter(e => e.textContent == "Write to disk").forEach(e => e.click())`)
	b.shows("Written. 'weir test' runs it.")
	b.shows("Written. weir tests and reloads the script.")
	if out, err := exec.Command(os.Getenv("WEIR"), "test", "--ci", test).CombinedOutput(); err != nil {
		t.Errorf("weir test: %v\n%s", err, out)
	}
	if log := w.request("/api/v0/audit"); strings.Contains(log, "/api/v0/recording/") {
		t.Errorf("the audit log is %s", log)
	}
}

// TestUILive: somebody pauses live records, changes the rate, the side and the filter, and copies them.
func TestUILive(t *testing.T) {
	_, b, _ := startUI(t)
	b.do(`navigator.clipboard.writeText = async text => { window.copied = text }`)
	pick := func(option string) {
		t.Helper()
		b.do(fmt.Sprintf(`{
			const select = [...document.querySelectorAll("main select")].find(s => [...s.options].some(o => o.value == %[1]q));
			select.value = %[1]q;
			select.dispatchEvent(new Event("change", {bubbles: true}));
		}`, option))
	}
	const count, first = `document.querySelectorAll("ol.live li:not(.note)").length`, `document.querySelector("ol.live li")?.innerText`
	b.view("node/my.tidy.default?tab=live&rate=5") // the view keeps 500 records, so the first one stays for 100 seconds
	b.shows(`site="lab"`)
	b.shows("at most 5 a second are shown")
	b.do(`window.first = ` + first)
	b.click("Pause")
	b.await("it is paused", `document.querySelector("[aria-pressed=true]")?.textContent == "Resume"`)
	b.click("Copy")
	b.shows("Copied")
	b.await("all records are copied", `window.copied.split("\n").length == document.querySelectorAll("ol.live li").length && window.copied.includes('site="lab"')`)
	b.do(`window.n = ` + count)
	b.click("Resume")
	b.await("new records follow the old ones", count+` > window.n && window.first == `+first)

	b.click("Pause")
	pick("1")
	b.shows("at most 1 a second are shown")
	b.await("the URL has the rate", `location.hash.includes("rate=1")`)
	pick("diff")
	b.shows(`site="lab" added`)
	b.await("the input is not shown any more", `!document.querySelector("ol.live li.record")`)
	pick("1000")
	b.view("node/my.tidy.default?tab=live&side=diff&rate=1000&where=" + url.QueryEscape(`name == "go_goroutines"`))
	b.await("dropped records are shown", `document.querySelector("ol.live li.dropped") && !document.querySelector("ol.live li.changed")`)
	b.screenshot("live-dropped")
	b.complaints("400")
	b.view("node/my.tidy.default?tab=live&where=" + url.QueryEscape(`name ==`))
	b.shows("unexpected token")
}
