//go:build integration

package integration

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

const (
	focusEditor = `document.querySelector(".editor").shadowRoot.querySelector(".cm-content").focus()`
	editorMark  = `document.querySelector(".editor")?.shadowRoot?.querySelector(".cm-lint-marker-error")`
	editorText  = `document.querySelector(".editor")?.shadowRoot?.querySelector(".cm-content")?.innerText`
)

// markedLine is the number of the line that has a mark, in JavaScript.
const markedLine = `(() => {
	const root = document.querySelector(".editor").shadowRoot, y = root.querySelector(".cm-lint-marker-error")?.getBoundingClientRect().y;
	return Number([...root.querySelectorAll(".cm-lineNumbers .cm-gutterElement")].find(e => { const r = e.getBoundingClientRect(); return r.height > 0 && y >= r.y && y < r.bottom })?.textContent);
})()`

// TestUIPlaygroundBegins: the editor begins with the text that the user wants to correct, and the input
// with the first batch, also if that comes later.
func TestUIPlaygroundBegins(t *testing.T) {
	dir := t.TempDir()
	config := func(targets string) {
		t.Helper()
		write(t, filepath.Join(dir, "config.alloy"), fmt.Sprintf(`
prometheus.exporter.self "weir" { }

prometheus.scrape "weir" {
	targets         = %s
	scrape_interval = "200ms"
	scrape_timeout  = "200ms"
	forward_to      = [my.tidy.default.receiver]
}

my.tidy "default" {
	forward_to = [prometheus.echo.default.receiver]
}

prometheus.echo "default" { }
`, targets))
	}
	script := filepath.Join(dir, "scripts/my/tidy.lua")
	write(t, script, tidyScript("lab"))
	config("[]")
	w := startWeir(t, dir)
	b := startBrowser(t)
	b.complaints("/api/v0/history?node=") // a node that has just started has no history
	b.open(w.link())
	const playground = "node/my.tidy.default?tab=playground"
	b.view(playground)
	b.shows("The first batch of the node, when it arrives, or what you paste.")
	config("prometheus.exporter.self.weir.targets")
	b.shows(`site="lab" added`)
	b.await("the first batch stays", `document.querySelector("textarea").value.includes("go_goroutines")`)

	write(t, script, strings.Replace(tidyScript("lab"), "s:drop()", "s:drop( -- broken", 1))
	b.view("")
	b.shows("refused by compile")
	b.view(playground)
	b.shows("This is the text on disk, which weir has not accepted. The node runs an older version.")
	b.await("the editor has the text on disk", editorText+`?.includes("s:drop( -- broken")`)
	b.await("its line has the error", editorMark)
	b.await("the error is at its line", markedLine+` == 7`)
	for _, width := range []int64{400, 1300} {
		b.resize(width, 900)
		b.narrow("the playground of a broken script")
		b.accessible("the playground of a broken script")
		b.screenshot(fmt.Sprint("broken-", width))
	}
	b.click("Edit the running version")
	b.await("the editor has the running version", editorText+`?.includes("s:drop()")`)
	b.shows("This is the version that the node runs.")
	b.shows(`site="lab" added`)
	b.await("nothing is wrong with it", "!"+editorMark)
	b.click("Edit the text on disk")
	b.await("the editor has the text on disk", editorText+`?.includes("s:drop( -- broken")`)
	b.await("its line has the error", editorMark)
	write(t, script, tidyScript("shop"))
	b.await("the note goes away", `!document.body.innerText.includes("weir has not accepted")`)

	// A node that is pinned to an older version does not run the text on disk because of the user.
	b.view("node/my.tidy.default?tab=script")
	b.click("Roll back to this version")
	b.shows("The node is pinned to version")
	b.view(playground)
	b.shows(`site="lab" added`)
	b.await("there is no note", `!document.body.innerText.includes("weir has not accepted")`)
}

// TestUIPlaygroundLogQL: a LogQL pipeline and the components of expressions can be edited, show what
// they do to each line, and have errors at the line of the block.
func TestUIPlaygroundLogQL(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "config.alloy"), `
loki.process "query" {
	forward_to = []

	stage.logql {
		pipeline = "| json"
	}
}

expr.filter "large" {
	keep       = "true"
	forward_to = []
}

expr.set "site" {
	label "site" {
		value = "'lab'"
	}
	forward_to = []
}

expr.route "level" {
	route "errors" {
		when       = "line contains 'error'"
		forward_to = [loki.echo.default.receiver]
	}
	forward_to = []
}

loki.echo "default" { }
`)
	_, b := openUI(t, dir)
	paste := func(text string) {
		t.Helper()
		b.do(`document.querySelector("main textarea").focus()`)
		b.replace(text)
	}
	edit := func(text string) {
		t.Helper()
		b.do(focusEditor)
		b.replace(text)
	}
	open := func(id string) {
		t.Helper()
		b.view("node/" + id + "?tab=playground")
		b.await("the editor has the block", editorText+fmt.Sprintf(`?.includes(%q)`, id[:strings.LastIndex(id, ".")]+` "`+id[strings.LastIndex(id, ".")+1:]+`"`))
	}
	const output = `document.querySelector("[aria-labelledby=bench-output]").innerText`
	fails := func(line int, text string) {
		t.Helper()
		b.shows(fmt.Sprintf("Block, line %d", line))
		b.await("the error names the mistake", output+fmt.Sprintf(`.includes(%q)`, text))
		b.await("the line has a mark", editorMark)
		b.await(fmt.Sprintf("line %d has the mark", line), markedLine+fmt.Sprintf(` == %d`, line))
	}

	open("loki.process.query")
	lines := `{app="api"} {"level":"error","msg":"disk full"}` + "\n" + `{app="api"} {"level":"debug","msg":"tick"}` + "\n"
	paste(lines)
	b.await("the pipeline adds metadata", output+`.includes('level="error"')`)
	query := func(pipeline string) string {
		return "loki.process \"query\" {\nforward_to = []\nstage.logql {\npipeline = `" + pipeline + "`\nlabels = [\"level\"]\n}\n}"
	}
	edit(query(`| json | level != "debug" | line_format "{{.msg}}"`))
	b.await("a line is dropped", `document.querySelector("ol.live li.dropped")?.innerText.includes("tick")`)
	b.await("a line is changed, with its stage", `/disk full[^]*stage 1 logql/.test(document.querySelector("ol.live li.changed")?.innerText)`)
	b.screenshot("logql")
	edit(query(`| json | level != "debug`))
	fails(4, "level")
	b.screenshot("logql-error")
	edit(query("\n| json\n| line_frmat \"{{.msg}}\""))
	fails(4, "(3:14)") // the third line of the pipeline
	fails(4, "line_frmat")
	b.screenshot("logql-lines")
	edit(query(`| json | level = "error"`))
	b.await("the mark goes away", "!"+editorMark)
	b.await("the dropped line is shown again", `document.querySelector("ol.live li.dropped")?.innerText.includes("tick")`)

	open("expr.filter.large")
	paste("up 1\nm 200\n")
	edit("expr.filter \"large\" {\nkeep = \"value > 100\"\nforward_to = []\n}")
	b.await("a sample is dropped", `document.querySelector("ol.live li.dropped")?.innerText.includes("up")`)
	b.screenshot("filter")
	edit("expr.filter \"large\" {\nforward_to = []\nkeep = \"value >\"\n}")
	fails(3, "keep")
	b.screenshot("filter-error")

	open("expr.set.site")
	paste("up 1\n")
	b.await("a label is added", output+`.includes('site="lab" added')`)
	edit("expr.set \"site\" {\nforward_to = []\nlabel \"site\" {\nvalue = \"name + '!'\"\n}\n}")
	b.await("another label is added", output+`.includes('site="up!" added')`)
	edit("expr.set \"site\" {\nforward_to = []\nlabel \"site\" {\nvalue = \"nam\"\n}\n}")
	fails(4, "nam")

	open("expr.route.level")
	paste(`{} an error` + "\n" + `{} all is well` + "\n")
	b.await("a line takes the route", output+`.includes("errors")`)
	edit("expr.route \"level\" {\nforward_to = []\nroute \"well\" {\nwhen = \"line contains 'well'\"\nforward_to = []\n}\n}")
	b.await("the other line takes the new route", `[...document.querySelectorAll("ol.live li")].some(e => e.innerText.includes("all is well") && e.innerText.includes("route 1 well"))`)
	b.screenshot("route")
	edit("expr.route \"level\" {\nforward_to = []\nroute \"well\" {\nwhen = \"line\"\nforward_to = []\n}\n}")
	fails(4, "when")
}
