//go:build integration

package integration

import (
	"bytes"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
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
	b.complaints("/api/v0/history?node=") // a node that has just started has no history
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

	b.complaints("/api/v0/manual/demo.tidy") // a script with an error has no manual
	b.click("demo.tidy.default")
	b.shows("The running version stays active.") // also in the view of the node
	b.click("Overview")

	// Correct it in the playground, and write it to disk.
	b.click("Playground")
	b.shows("This is the text on disk, which weir has not accepted.")
	const wrong = `document.querySelector("[aria-labelledby=bench-output]").innerText.includes("syntax error at the end of the file")`
	b.await("the playground shows the error", wrong)
	b.screenshot("error")
	b.do(`document.querySelector(".editor").shadowRoot.querySelector(".cm-content").focus()`)
	fixed := strings.Replace(string(good), `"promhttp_"`, `"promhttp_", "weir_script_"`, 1)
	if fixed == string(good) {
		t.Fatal("scripts/demo/tidy.lua has no default that drops promhttp_")
	}
	b.replace(fixed)
	b.await("the error is corrected", "!"+wrong)
	b.click("Write to disk")
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

// largestPicture is how many bytes a picture of the documentation may have: all of them are in the binary.
const largestPicture = 150 << 10

// paletted returns a picture with its 256 most frequent colours, which takes half of the bytes.
func paletted(file []byte) ([]byte, error) {
	from, err := png.Decode(bytes.NewReader(file))
	if err != nil {
		return nil, err
	}
	size := from.Bounds()
	counts := map[color.Color]int{}
	for y := size.Min.Y; y < size.Max.Y; y++ {
		for x := size.Min.X; x < size.Max.X; x++ {
			counts[from.At(x, y)]++
		}
	}
	colors := slices.SortedFunc(maps.Keys(counts), func(a, b color.Color) int { return counts[b] - counts[a] })
	to := image.NewPaletted(size, colors[:min(len(colors), 256)])
	draw.Draw(to, size, from, size.Min, draw.Src)
	var out bytes.Buffer
	err = (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, to)
	return out.Bytes(), err
}

// TestUIPictures takes the pictures of the README and the documentation again: `make pictures`.
func TestUIPictures(t *testing.T) {
	folder := os.Getenv("PICTURES")
	if folder == "" {
		t.Skip("PICTURES does not name the folder of the pictures")
	}
	w, b, dir := openSandbox(t)
	b.resize(1280, 720)
	picture := func(name string) {
		t.Helper()
		file, err := ask(b, chromedp.CaptureScreenshot())
		if err == nil {
			file, err = paletted(file)
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(file) > largestPicture {
			t.Errorf("%s has %d bytes, more than %d", name, len(file), largestPicture)
		}
		if err := os.WriteFile(filepath.Join(folder, name), file, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	config := filepath.Join(w.storage, "quickstart.alloy")
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	write(t, config, string(text)+`
discovery.relabel "hosts" {
	targets = [
		{__address__ = "127.0.0.1:9", job = "api", env = "production"},
		{__address__ = "127.0.0.1:10", job = "api", env = "test"},
	]

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

prometheus.scrape "hosts" {
	targets         = discovery.relabel.hosts.output
	scrape_interval = "5s"
	scrape_timeout  = "4s"
	forward_to      = [demo.tidy.default.receiver]
}
`)
	b.shows("cannot scrape 1 target")

	b.view("targets?filter=127.0.0.1")
	b.shows("rule 2 drop")
	picture("targets.png")

	script, err := os.ReadFile(filepath.Join(dir, "scripts/demo/tidy.lua"))
	if err != nil {
		t.Fatal(err)
	}
	_, code, ok := strings.Cut(string(script), "\nlocal weir")
	if !ok {
		t.Fatal("scripts/demo/tidy.lua does not begin with a comment and the module weir")
	}
	b.view("node/demo.tidy.default?tab=live")
	b.shows("site=") // the playground begins with the last batch
	b.view("node/demo.tidy.default?tab=playground")
	b.shows("µs each")
	b.do(`document.querySelector(".editor").shadowRoot.querySelector(".cm-content").focus()`)
	b.replace("local weir" + strings.Replace(code, `"quickstart"`, `"lab"`, 1))
	b.run(chromedp.KeyEvent(kb.Home, chromedp.KeyModifiers(chromedp.ModifierCtrl)))
	b.do(`const input = document.querySelector("textarea");
		input.value = input.value.split("\n").filter((line) => !/go_(gc|memstats|sched)/.test(line)).slice(0, 40).join("\n");
		input.dispatchEvent(new Event("input", {bubbles: true}))`)
	b.await("the result is shown", `/site="\w+" added/.test(document.querySelector("ol.live")?.innerText)`)
	b.do(`scrollTo(0, 0)`)
	picture("playground.png")

	b.view("graph?node=demo.tidy.default")
	b.shows("Live records")
	b.await("the edges have rates", `document.querySelector(".edge .lost")`)
	picture("graph.png")

	b.view("")
	b.await("the charts have points", `document.querySelector(".about").innerText.includes("1 min")`)
	picture("page.png")
}
