//go:build integration

package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// openSandbox starts weir as `make run` does, with a copy of the scripts, and opens the web UI. It
// returns the directory with the folders scripts and data.
func openSandbox(t *testing.T) (*weirRun, *browser, string) {
	t.Helper()
	dir := t.TempDir()
	storage, scripts := filepath.Join(dir, "data"), filepath.Join(dir, "scripts")
	if err := os.CopyFS(scripts, os.DirFS(filepath.FromSlash("../../../scripts"))); err != nil {
		t.Fatal(err)
	}
	p := start(t, env(t, "WEIR"), "run", "--sandbox", "--scripts="+scripts, "--storage.path="+storage,
		"--server.http.listen-addr=127.0.0.1:0", "--sandbox.listen-addr=127.0.0.1:0")
	w := &weirRun{process: p, url: p.await(1, pageLine), storage: storage}
	b := startBrowser(t)
	b.open(w.link())
	return w, b, dir
}

// TestUISandbox: start what `make run` starts, break a script, read the error, correct it in the
// playground, write it to disk, watch the reload, find out why a target is dropped, and roll back.
func TestUISandbox(t *testing.T) {
	_, b, dir := openSandbox(t)
	b.shows("All nodes are healthy")
	b.click("demo.tidy.default")
	b.click("Live records")
	b.shows("site=")

	// Break the script, and read the error.
	script := filepath.Join(dir, "scripts/demo/tidy.lua")
	good, err := os.ReadFile(script)
	if err != nil {
		t.Fatal(err)
	}
	broken := strings.Replace(string(good), "return weir.transform {", "return weir.transform {{", 1)
	write(t, script, broken)
	b.click("Overview")
	b.shows("demo.tidy.default is unhealthy.")
	b.shows("tidy.lua:")
	b.shows("The running version stays active.")
	b.screenshot("broken")

	// Correct it in the playground, and write it to disk.
	b.click("Playground")
	b.shows("site=")
	b.complaints("409") // the file is not the version that runs
	b.do(`document.querySelector(".editor").shadowRoot.querySelector(".cm-content").focus()`)
	fixed := strings.Replace(string(good), `"promhttp_"`, `"promhttp_", "weir_script_"`, 1)
	if fixed == string(good) {
		t.Fatal("scripts/demo/tidy.lua has no default that drops promhttp_")
	}
	const mark = `document.querySelector(".editor").shadowRoot.querySelector(".cm-lint-marker-error")`
	b.replace(broken)
	b.await("the line has a mark", mark)
	b.screenshot("error")
	b.replace(fixed)
	b.await("the line has no mark", "!"+mark)
	b.click("Write to disk")
	b.click("Replace this text")
	b.shows("Written.")
	b.screenshot("written")
	if got, err := os.ReadFile(script); err != nil || string(got) != fixed {
		t.Errorf("the file contains %q, %v", got, err)
	}

	// Watch the reload: the node is healthy again, with the new version.
	b.click("Reloads")
	b.shows("reloaded demo.tidy")
	b.screenshot("reloaded")
	b.click("Overview")
	b.shows("All nodes are healthy")

	// Find out why a target is dropped.
	config := filepath.Join(dir, "data/quickstart.alloy")
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	write(t, config, string(text)+`
discovery.relabel "mine" {
	targets = [{__address__ = "127.0.0.1:9", env = "test"}]

	rule {
		source_labels = ["env"]
		regex         = "test"
		action        = "drop"
	}
}

prometheus.scrape "mine" {
	targets    = discovery.relabel.mine.output
	forward_to = [demo.tidy.default.receiver]
}
`)
	b.shows("discovery.relabel.mine")
	b.click("Targets")
	b.shows("dropped discovery.relabel.mine")
	b.shows(`rule 1 drop (source_labels = ["env"], regex = "test")`)
	b.screenshot("targets")
	b.view("targets?filter=127.0.0.1:9")
	b.await("one target is shown", `[...document.querySelectorAll("a")].filter((e) => e.innerText == "why").length == 1`)
	b.click("why")
	b.shows("discovery.relabel.mine")
	b.await("the rule is named", `/rule 1 drop\s+dropped/.test(document.body.innerText)`)
	b.screenshot("why")

	// Roll back.
	b.click("Scripts")
	b.click("demo.tidy.default")
	b.click("Compare with the running version")
	b.shows(`"weir_script_"`)
	b.click("Roll back to this version")
	b.shows("The node is pinned to version")
	b.screenshot("rolled-back")
	if got, err := os.ReadFile(script); err != nil || string(got) != fixed {
		t.Errorf("rolling back has changed the file: %q, %v", got, err)
	}
}
