//go:build integration

package integration

import (
	"os"
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
	b.do(`document.querySelector(".editor").shadowRoot.querySelector(".cm-content").focus()`)
	b.replace(tidyScript("shop"))
	b.shows(`site="shop" added`)
	b.click("Write to disk")
	b.shows("has changed since it was read")
	b.shows("s:drop(\n")
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
}
