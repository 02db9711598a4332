package node_test

import (
	"testing"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/js"
	"github.com/weir-run/weir/scripting/registry"
	"github.com/weir-run/weir/stdlib"
)

// TestServeTypeScript holds that a source in TypeScript answers requests.
func TestServeTypeScript(t *testing.T) {
	n := newHarness(t)
	var err error
	n.cat, err = registry.NewCatalog(registry.Options{Languages: []scripting.Language{js.New()}, UserDir: n.f.Dir, Modules: stdlib.Modules()})
	if err != nil {
		t.Fatal(err)
	}
	path := n.f.Write("a/b.ts", `import { defineSource } from "weir"
export default defineSource({
  http: {
    "POST /hook/{team}": async (req, ctx) => {
      await ctx.sleep(0)
      if (req.query.fail) throw new Error("boom")
      if (req.query.status) return Number(req.query.status)
      const alerts = req.json()
      for (const a of alerts) ctx.emit({ name: "alerts", labels: { team: req.params.team, kind: req.header("x-kind") ?? "none" }, value: a.n })
      return { status: 202, headers: { "X-From": req.remoteAddress }, json: { all: req.queryAll("q"), got: alerts.length } }
    },
    "GET /none": () => undefined,
  },
})
`)
	n.cat.Refresh([]string{path})
	r, _ := n.cat.Lookup("a.b")
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	n.swap(r, "")
	f := func(method, path, body string, want int, text string) {
		t.Helper()
		if got := n.served(method, path, body); got.Code != want || got.Body.String() != text {
			t.Errorf("%s %s: got %d %q, want %d %q\n%s", method, path, got.Code, got.Body, want, text, n.Logs())
		}
	}
	f("POST", "/hook/db?q=1&q=2", `[{"n":1.5}]`, 202, `{"all":["1","2"],"got":1}`)
	f("POST", "/hook/db?status=204", "", 204, "")
	f("POST", "/hook/db?fail=1", "", 500, "the script failed; weir's log says why\n")
	if got := n.Health(); got.State != component.Unhealthy {
		t.Errorf("got health %+v", got)
	}
	f("GET", "/none", "", 200, "")
	f("GET", "/hook/db", "", 405, "Method Not Allowed\n")
	var got []byte
	for _, b := range n.sink.Batches() {
		got = batch.AppendTextAt(got, b, b.T[0])
	}
	same(t, string(got), "alerts{kind=\"none\",team=\"db\"} 1.5\n")
}
