//go:build integration

package integration

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// slowScript has a line that takes most of its time, and one that never runs.
const slowScript = `-- Adds the label site.
--
-- Example Input:
--   up 1
-- Example Output:
--   up{site="lab"} 1
local weir = require "weir"
local function slow()
  local x = 0
  for i = 1, 300000 do x = x + i * i end
  return x
end
return weir.transform {
  series = function(s)
    if s.name == "never" then
      s:drop()
    end
    s.labels.site = "lab"
  end,
  metrics = function()
    slow()
  end,
}
`

const mixedTests = `
local tidy = weir.test.component("tidy.lua")
describe("my.tidy", function()
  it("adds a site", function()
    assert.same({ "lab" }, tidy:metrics("up 1"):label_values("site"))
  end)
  it("<img src=x onerror=\"document.title='hacked'\">", function()
    print("<b>output</b>")
    error("<script>document.title='hacked'</script>\27[31m\226\128\174")
  end)
  it("adds a wrong site", function()
    assert.same({ "shop" }, tidy:metrics("up 1"):label_values("site"))
  end)
  pending("has a second site")
end)
`

// TestUITests: somebody runs the tests of a script, reads why one of them fails, sees which lines ran
// and how much time each of them takes; texts of tests are shown as text.
func TestUITests(t *testing.T) {
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
	forward_to = [demo.tidy.shipped.receiver]

	script {
		on_reload = "swap"
	}
}

demo.tidy "shipped" {
	forward_to = [prometheus.echo.default.receiver]
}

prometheus.echo "default" { }
`)
	script := filepath.Join(dir, "scripts/my/tidy.lua")
	write(t, script, slowScript)
	write(t, filepath.Join(dir, "scripts/my/tidy_test.lua"), mixedTests)
	_, b := openUI(t, dir)

	b.view("scripts")
	b.shows("not run")
	b.click("Run all tests")
	b.shows("✗ 2 of 4 failed, 1 skipped")
	b.screenshot("scripts")
	b.click("✗ 2 of 4 failed, 1 skipped")
	b.shows("Source and tests")
	b.shows("my.tidy adds a wrong site")

	// The failed test has its position, its message and the difference.
	b.shows("tidy_test.lua:11")
	b.shows(`- { "shop" }`)
	b.shows("○ skipped my.tidy has a second site")
	b.shows(`<img src=x onerror="document.title='hacked'">`)
	b.shows(`<script>document.title='hacked'</script>\u001b[31m\u202e`)
	b.await("nothing is executed", `!document.title.includes("hacked") && !document.querySelector("main img, main script, main b")`)

	// The lines that ran.
	row := func(text string) string {
		return fmt.Sprintf(`[...document.querySelectorAll(".source tbody tr")].find(e => e.lastChild.textContent.includes(%q))`, text)
	}
	b.await("a line ran", row("s.labels.site =")+`.cells[1].textContent.match(/^✓ \d+ran \d+ times$/)`)
	b.await("a line did not run", row("s:drop()")+`.cells[1].textContent == "✗ 0did not run"`)
	b.await("a line ran without a branch", row(`s.name == "never"`)+`.cells[1].textContent.includes("1 of 2 branches")`)
	b.await("a line begins no statement", row("-- Adds the label")+`.cells[1].textContent == ""`)

	// The time of each line.
	b.do(`document.querySelector("select[aria-label^=Duration]").value = "2";
		document.querySelector("select[aria-label^=Duration]").dispatchEvent(new Event("change", {bubbles: true}))`)
	b.click("Measure cost")
	b.shows("weir takes samples for 2 s")
	b.shows("of CPU time in 2")
	b.await("the loop takes most of the time", row("for i = 1")+`.cells[2].textContent.match(/^▲ \d+ %$/)`)
	b.await("the call has the time of the loop", row("    slow()")+`.cells[3].textContent.match(/^▲ \d+ %$/)`)
	for _, theme := range []string{"light", "dark"} {
		b.do(fmt.Sprintf(`document.querySelector("select[aria-label=Theme]").value = %q;
			document.querySelector("select[aria-label=Theme]").dispatchEvent(new Event("change", {bubbles: true}))`, theme))
		for _, width := range []int64{400, 1300} {
			b.resize(width, 900)
			for _, element := range []string{"#source", ".source"} {
				b.do(fmt.Sprintf(`document.querySelector(%q).scrollIntoView()`, element))
				b.screenshot(fmt.Sprintf("%s-%s-%d", strings.Trim(element, "#."), theme, width))
			}
			b.narrow("source and tests")
			b.accessible(fmt.Sprintf("source and tests (%s, %d px)", theme, width))
		}
	}

	// The error of a broken file on disk is at its line; the version that runs is shown as well.
	write(t, script, strings.Replace(slowScript, "s:drop()\n    end", "s:drop(\n    end -- broken", 1))
	b.click("Run the tests")
	b.shows("The file on disk differs from the version that runs.")
	b.await("the line has the error", `[...document.querySelectorAll("details .source tbody tr")].find(e => e.cells[0].textContent == "17")?.querySelector(".error")?.innerText.includes("syntax error")`)
	b.await("the version that runs has no error", `document.querySelectorAll(".source .error").length == 1`)
	b.screenshot("broken")

	// The outcome is not shown for another version.
	write(t, script, strings.Replace(slowScript, "s.labels.site =", "s.labels.place =", 1))
	b.await("the version has no outcome", `!document.body.innerText.includes("The file on disk differs") && document.querySelector(".source")?.innerText.includes("s.labels.place")`)
	b.view("scripts")
	b.shows("not run")

	// A script that ships with weir has a source and a cost, and no tests.
	b.view("node/demo.tidy.shipped?tab=script")
	b.shows("demo.tidy has one version, which ships with weir.")
	b.shows("The script ships with weir, without its tests.")
	b.shows("weir.transform")
}
