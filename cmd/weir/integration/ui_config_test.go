//go:build integration

package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestUIConfig: break the config, read what is wrong with it, correct it, see what a reload would
// change, and reload; a password is never shown.
func TestUIConfig(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "config.alloy")
	const text = `
prometheus.exporter.self "weir" { }

prometheus.scrape "weir" {
	targets    = prometheus.exporter.self.weir.targets
	forward_to = [prometheus.remote_write.far.receiver]
}

prometheus.remote_write "far" {
	endpoint {
		url = "http://127.0.0.1:1/api/v1/write"

		basic_auth {
			username = "me"
			password = "hunter2"
		}
	}
}
`
	write(t, path, text)
	_, b := openUI(t, dir, "--config.watch=false")
	b.view("config")
	b.shows("The config on disk has no mistakes")
	b.shows(`password = "(secret)"`)
	b.shows("A reload would change no node")

	b.complaints("400") // the preview of a config with a mistake
	write(t, path, strings.Replace(text, "password", "pasword", 1))
	b.click("Check again")
	b.shows("The config on disk has 1 mistake")
	b.shows("unknown attribute endpoint.basic_auth.pasword")
	b.shows("A reload would be refused and change nothing.")
	b.await("the mistake has a link", `(e => e && (e.click(), true))([...document.querySelectorAll(".box a")].find(e => e.textContent.includes("config.alloy:")))`)
	b.await("the line is marked", `document.querySelector(".source .error")?.innerText.includes("pasword")`)
	b.await("a misspelt password is masked", `!document.body.innerText.includes("hunter2")`)
	b.screenshot("mistake")

	write(t, path, strings.Replace(text, "forward_to", `scrape_interval = "5s"
	forward_to`, 1)+"\nprometheus.echo \"more\" { }\n")
	b.click("Check again")
	b.shows("A reload would change 2 nodes")
	b.shows("arguments changed: scrape_interval")
	b.click("Difference")
	b.shows(`+ 	scrape_interval = "5s"`)
	b.screenshot("difference")
	b.click("Format")
	b.shows("would change the file")

	b.click("Reload")
	b.shows("A reload would change no node")
	b.click("Difference")
	b.shows("The files on disk are those that run")
	b.click("Running")
	b.shows(`prometheus.echo "more"`)
	b.await("the password is masked", `!document.body.innerText.includes("hunter2")`)
	if text, err := os.ReadFile(path); err != nil || !strings.Contains(string(text), "hunter2") {
		t.Errorf("the file was changed: %v", err)
	}
}

// TestUIJournals: what waits for an endpoint that does not respond is seen with its limits and its
// reason, in the view and in the files.
func TestUIJournals(t *testing.T) {
	_, b, _ := startUI(t)
	b.view("journals")
	b.shows("prometheus.remote_write.dead")
	b.shows("does not accept data")
	b.shows("connection refused")
	b.shows("10GiB, then sources wait; data is dropped after 8h")
	b.click("Read the journals")
	b.shows("the oldest for")
	b.do(`document.querySelector("main details").open = true`)
	b.shows("Blocks that wait")
	b.screenshot("journals")
}

// TestUIMetrics: the metrics of weir are found, its log is filtered, its flags and where they were
// set are listed, and a support bundle is downloaded.
func TestUIMetrics(t *testing.T) {
	_, b, _ := startUI(t)
	b.view("metrics?filter=weir_component_health")
	b.shows("prometheus.scrape.weir")
	b.await("other metrics are left out", `![...document.querySelectorAll("main code")].some(e => e.innerText.includes("go_threads"))`)
	b.await("the charts have points", `document.querySelector(".chart [aria-label^='Memory']")`)
	b.await("points are appended", `performance.getEntriesByType("resource").some(e => e.name.includes("/history?since="))`)
	b.await("the charts keep their lines", `document.querySelector(".chart [aria-label^='Memory']")`)
	b.screenshot("metrics")

	b.view("log")
	b.shows("started")
	b.do(`const s = document.querySelector("main select"); s.value = "error"; s.dispatchEvent(new Event("change", {bubbles: true}))`)
	b.await("only errors are shown", `document.querySelectorAll(".log div").length == document.querySelectorAll(".log .error").length`)
	b.await("the URL has the level", `location.hash.includes("level=error")`)

	b.view("build?filter=storage.path")
	b.shows("--storage.path")
	b.await("the flag was set", `[...document.querySelectorAll("main td")].some(e => e.innerText == "flag")`)
	b.do(`fetch(document.querySelector("a[download]").href + "?seconds=1").then(r => r.blob())
		.then(f => f.slice(0, 2).text()).then(text => { document.title = "bundle " + text })`)
	b.await("the bundle is a ZIP file", `document.title == "bundle PK"`)
}
