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
	w := startWeir(t, dir, "--config.watch=false")
	b := startBrowser(t)
	b.open(w.link())
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
	b.click("On disk")
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
