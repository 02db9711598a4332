//go:build integration

package integration

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// hostileNames is a config in which components, modules, labels and keys have the names of members of
// every object in JavaScript, and values are links that would run code.
const hostileNames = `
prometheus.exporter.static "constructor" {
	text = "javascript{__proto__=\"javascript:alert(1)\", constructor=\"toString\", toString=\"__proto__\", u2028=\"a\u2028b\"} 1\n"
}

discovery.relabel "toString" {
	targets = array.concat(prometheus.exporter.static.constructor.targets, [{__address__ = "127.0.0.1:1", __proto__ = "javascript:alert(1)", constructor = "b"}])

	rule {
		target_label = "toString"
		replacement  = "javascript:alert(2)"
	}

	rule {
		source_labels = ["constructor"]
		regex         = "b"
		target_label  = "constructor"
		replacement   = "valueOf"
	}
}

discovery.relabel "valueOf" {
	targets = [{__address__ = "127.0.0.1:2", constructor = "__proto__", __proto__ = "dropped"}]

	rule {
		source_labels = ["__proto__"]
		regex         = "dropped"
		action        = "drop"
	}
}

prometheus.scrape "__proto__" {
	targets         = discovery.relabel.toString.output
	scrape_interval = "200ms"
	scrape_timeout  = "200ms"
	forward_to      = [my.evil.__proto__.receiver, constructor.toString.receiver]
}

my.evil "__proto__" {
	forward_to = [prometheus.echo.default.receiver]
}

declare "constructor" {
	argument "forward_to" { }

	prometheus.relabel "__proto__" {
		forward_to = argument.forward_to.value

		rule {
			target_label = "hasOwnProperty"
			replacement  = "javascript:alert(3)"
		}
	}

	export "receiver" {
		value = prometheus.relabel.__proto__.receiver
	}
}

constructor "toString" {
	forward_to = [prometheus.echo.default.receiver]
}

import.string "__proto__" {
	content = "declare \"valueOf\" {\n prometheus.relabel \"constructor\" {\n  forward_to = []\n }\n}\n"
}

__proto__.valueOf "constructor" { }

foreach "__proto__" {
	collection = ["constructor", "__proto__"]
	var        = "each"

	template {
		prometheus.relabel "constructor" {
			forward_to = []
		}
	}
}

loki.source.file "__proto__" {
	targets    = [{__path__ = FOLDER + "/app.log", constructor = "javascript:alert(1)"}]
	forward_to = [loki.process.constructor.receiver]
}

loki.process "constructor" {
	forward_to = [loki.echo.__proto__.receiver]

	stage.json {
		expressions = { __proto__ = "", constructor = "", toString = "" }
	}

	stage.labels {
		values = { __proto__ = "", toString = "" }
	}

	stage.structured_metadata {
		values = { constructor = "" }
	}
}

loki.echo "__proto__" { }
`

const evil = `<img src=x onerror="document.title='hacked'"><script>document.title='hacked'</script>`

// openHostile starts weir with data, scripts and names that attack the web UI, and opens it.
func openHostile(t *testing.T) *browser {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "config.alloy"), `
prometheus.exporter.self "weir" { }

prometheus.scrape "weir" {
	targets         = prometheus.exporter.self.weir.targets
	scrape_interval = "200ms"
	scrape_timeout  = "200ms"
	forward_to      = [my.evil.default.receiver]
}

my.evil "default" {
	forward_to = [prometheus.echo.default.receiver, prometheus.relabel.evil.receiver]
}

prometheus.relabel "evil" {
	forward_to = []

	rule {
		target_label = "copy"
		replacement  = "<img src=x onerror=\"document.title='hacked'\">"
	}
}

prometheus.echo "default" { }

// `+evil+`
`+strings.Replace(hostileNames, "FOLDER", strconv.Quote(dir), 1))
	write(t, filepath.Join(dir, "scripts/my/evil.lua"), fmt.Sprintf(`-- %[1]s
local weir = require "weir"
return weir.transform {
  series = function(s)
    if s.name == "go_threads" then error(%[2]q) end
    s.labels.evil = %[2]q .. "\27[2J\226\128\174"
    if s.name == "go_goroutines" then s.labels.long = string.rep("x", 60000) end
  end,
  state = { constructor = weir.state.map {}, __proto__ = weir.state.map {} },
  metrics = function(_, ctx)
    ctx.state.constructor:set("__proto__", "javascript:alert(1)")
    ctx.state["__proto__"]:set("toString", { __proto__ = "javascript:alert(1)" })
  end,
}
`, evil, evil))
	write(t, filepath.Join(dir, "app.log"), `{"__proto__": "javascript:alert(1)", "constructor": "toString", "toString": {"__proto__": {"x": 1}}}`+"\n")
	w := startWeir(t, dir)
	b := startBrowser(t)
	b.complaints("/api/v0/history?node=") // a node that has just started has no history
	b.open(w.link())
	b.shows("my.evil.default")
	return b
}

// TestUIHostile: markup, terminal escapes, long values and invalid text from the data, from scripts
// and from errors are shown as text.
func TestUIHostile(t *testing.T) {
	b := openHostile(t)
	for _, view := range []string{"", "graph", "node/my.evil.default", "node/my.evil.default?tab=live", "node/my.evil.default?tab=live&side=diff", "node/my.evil.default?tab=script",
		"node/prometheus.echo.default?tab=live", "targets", "scripts", "reloads", "config", "config?tab=disk", "journals", "metrics", "metrics?filter=%3Cscript%3E", "log", "build", "node/%3Cimg%20src=x%20onerror=alert(1)%3E", "docs?search=%3Cscript%3Ealert(1)%3C/script%3E", "docs/%3Cscript%3E", "%E0%A4%A"} {
		if strings.HasPrefix(view, "docs/") {
			b.complaints("404")
		}
		b.view(view)
		b.await("the view is drawn", `document.querySelector("main").innerText.trim() != ""`)
		if strings.Contains(view, "tab=live") {
			b.shows(`<img src=x onerror=`)
			b.await("escape sequences are visible", `/\\(u001b|x1b)\[2J\\u202e/.test(document.body.innerText)`)
		}
		b.await("nothing is executed", `!document.title.includes("hacked") && !document.querySelector("main img[src=x]")`)
		b.await("long values are cut", `document.body.innerText.length < 3e6`)
	}
	b.view("node/my.evil.default")
	b.shows("<script>document.title='hacked'</script>") // the error of the script
	b.screenshot("hostile")

	harmless := func(what string) {
		t.Helper()
		b.await("nothing is executed", `!document.title.includes("hacked") && !document.querySelector("main img") && !document.querySelector(".editor").shadowRoot.querySelector("img, script")`)
		b.narrow(what)
		b.accessible(what)
		b.screenshot(what)
	}
	b.resize(400, 900)
	b.view("node/prometheus.relabel.evil?tab=playground")
	b.shows(`copy="<img src=x onerror=`) // the difference, and the step that made it
	b.shows(`rule 1 replace`)
	b.await("escape sequences of a record are visible", `/\\(u001b|x1b)\[2J\\u202e/.test(document.querySelector("[aria-labelledby=bench-output]").innerText)`)
	b.await("long values are cut", `document.body.innerText.length < 3e6`)
	harmless("hostile-block")
	b.do(`document.querySelector(".editor").shadowRoot.querySelector(".cm-content").focus()`)
	b.replace("prometheus.relabel \"evil\" {\nforward_to = []\nrule {\nregex = \"(" + strings.ReplaceAll(evil, `"`, `\"`) + "\"\n}\n}")
	b.shows("Block, line 4")
	b.shows("cannot compile regex")
	b.shows("<script>document.title='hacked'</script>")
	harmless("hostile-block-error")
	b.do(`document.querySelector("textarea").focus()`)
	b.replace("up{" + evil + "} 1")
	b.shows("Input, line 1")
	harmless("hostile-input-error")
}

// TestUIHostileNames: names of members of JavaScript's objects are names like any others in every view,
// and links that would run code are text.
func TestUIHostileNames(t *testing.T) {
	b := openHostile(t)
	b.complaints("/api/v0/manual/") // modules of the user have no manual
	query := url.QueryEscape
	const labels = `__proto__="javascript:alert(1)"`
	for _, v := range []struct {
		view  string
		shows []string
	}{
		{"", []string{"my.evil.__proto__", "constructor.toString", "__proto__.valueOf.constructor"}},
		{"graph?filter=__proto__&node=my.evil.__proto__", []string{"my.evil.__proto__", "− constructor.toString", "prometheus.relabel.__proto__", "Live records"}},
		{"graph?collapsed=constructor.toString,foreach.__proto__", []string{"constructor.toString", "foreach.__proto__"}},
		{"node/my.evil.__proto__", []string{"my.evil.__proto__", "prometheus.scrape.__proto__", "Arguments"}},
		{"node/constructor.toString", []string{"constructor.toString"}},
		{"node/constructor.toString/prometheus.relabel.__proto__", []string{"hasOwnProperty", "javascript:alert(3)"}},
		{"node/__proto__.valueOf.constructor/prometheus.relabel.constructor", []string{"Exports"}},
		{"node/discovery.relabel.toString", []string{`"__proto__": "javascript:alert(1)"`, `"toString": "javascript:alert(2)"`, `"constructor": "valueOf"`}},
		{"node/my.evil.__proto__?tab=live&side=in&where=" + query(`name == "javascript"`), []string{labels, `constructor="toString"`, `exported_toString="__proto__"`, "why"}},
		{"node/my.evil.__proto__?tab=live&side=diff&where=" + query(`name == "javascript"`), []string{labels, `evil="<img src=x`}},
		{"node/constructor.toString/prometheus.relabel.__proto__?tab=live&side=diff&where=" + query(`name == "javascript"`), []string{`hasOwnProperty="javascript:alert(3)" added`}},
		{"node/my.evil.__proto__?tab=script", []string{"Versions of my.evil", "__proto__ = weir.state.map"}},
		{"node/my.evil.__proto__?tab=state", []string{"constructor", "__proto__", "1 of "}},
		{"node/my.evil.__proto__?tab=quarantine", []string{"There is nothing in quarantine."}},
		{"node/my.evil.__proto__?tab=playground", []string{"evil.lua", `toString="javascript:alert(2)"`}},
		{"node/loki.process.constructor?tab=live&side=out", []string{"No records yet", "Last batch", labels, `toString="{`}},
		{"node/loki.process.constructor?tab=playground", []string{labels + " added", "stage 2 labels", "µs each"}},
		{"node/discovery.relabel.toString?tab=playground", []string{`toString="javascript:alert(2)" added`, `constructor="b" → "valueOf"`}},
		{"targets", []string{labels, `toString="javascript:alert(2)" added`, `constructor="valueOf" changed`, "discovery.relabel.valueOf", "app.log"}},
		{"targets?filter=__proto__&sort=-constructor", []string{labels}},
		{"why?where=" + query(`labels["__proto__"] == "javascript:alert(1)" && name == "javascript"`), []string{"my.evil.__proto__", "constructor.toString/prometheus.relabel.__proto__", `hasOwnProperty="javascript:alert(3)" added`}},
		{"why?of=targets&where=" + query(`labels.constructor == "b"`), []string{"discovery.relabel.toString", `toString="javascript:alert(2)" added`}},
		{"why?of=toString&where=" + query(`constructor == "__proto__"`) + "&node=__proto__", []string{"Cannot follow the records."}},
		{"scripts", []string{"my.evil.__proto__"}},
		{"reloads", []string{"my.evil.__proto__"}},
		{"journals", []string{"journal"}},
		{"config", []string{`my.evil "__proto__" {`, `declare "constructor" {`, `__proto__ = "javascript:alert(1)"`}},
		{"config?tab=constructor", []string{`my.evil "__proto__" {`}},
		{"metrics?filter=" + query(`component_id="my.evil.__proto__"`), []string{`component_id="my.evil.__proto__"`}},
		{"metrics?filter=u2028&sort=toString", []string{"No metric matches the filter."}},
		{"log?level=__proto__", []string{"started"}},
		{"docs?search=__proto__", []string{"ound"}},
		{"docs?search=constructor", []string{"ound"}},
		{"docs/operating?at=__proto__", []string{"Operating weir"}},
		{"node/__proto__", []string{"There is no node __proto__."}},
		{"node/constructor?tab=toString", []string{"There is no node constructor."}},
		{"constructor", []string{"There is no such view."}},
		{"__proto__", []string{"There is no such view."}},
		{"?__proto__=x&constructor=javascript:alert(1)", []string{"my.evil.__proto__"}},
	} {
		if strings.HasPrefix(v.view, "why") {
			b.complaints("where=") // an invalid expression
		}
		b.view(v.view)
		for _, text := range v.shows {
			b.shows(text)
		}
		b.await("nothing is executed", `!document.title.includes("hacked") && !document.querySelector("main img") && ![...document.querySelectorAll("[href]")].some(e => /^\s*javascript:/i.test(e.getAttribute("href")))`)
		b.narrow(v.view)
	}
	b.view("node/my.evil.__proto__?tab=state")
	b.click("__proto__")
	b.shows(`"toString": {`)
	b.shows(`"__proto__": "javascript:alert(1)"`)
	b.click("constructor")
	b.shows(`"__proto__": "javascript:alert(1)"`)
	b.screenshot("state")

	// Pasted targets.
	b.view("node/discovery.relabel.valueOf?tab=playground")
	b.shows("dropped")
	b.do(`document.querySelector("main textarea").focus()`)
	b.replace(`{"__proto__": "dropped", "constructor": "y", "toString": "javascript:alert(1)"}`)
	b.await("the target keeps its labels", `(t => t.includes('__proto__="dropped"') && t.includes('constructor="y"') && t.includes('toString="javascript:alert(1)"'))(document.querySelector("ol.live")?.innerText ?? "")`)
}
