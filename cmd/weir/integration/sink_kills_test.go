//go:build integration

package integration

import (
	"fmt"
	"net/http"
	"path/filepath"
	"testing"
	"time"
)

const killedLua = `
local weir = require "weir"

return weir.sink {
  needs = { http = true },
  args  = { url = weir.arg.string {} },
  batch = { max_records = 700, max_wait = "100ms" },
  send  = function(batch, ctx)
    local answer, err = ctx.http.post(ctx.args.url, batch:text(), { timeout = "2s" })
    if not answer then return ctx.retry { reason = err } end
    if answer.status == 429 then return ctx.retry { after = answer.headers["retry-after"] .. "s" } end
    if answer.status >= 300 then error("status " .. answer.status) end
  end,
}
`

const killedTS = `
import { arg, defineSink } from "weir";

export default defineSink({
  needs: { http: true },
  args: { url: arg.string() },
  batch: { maxRecords: 700, maxWait: "100ms" },
  async send(batch, ctx) {
    const answer = await ctx.http.post(ctx.args.url, batch.text(), { timeout: "2s" });
    if (answer.status === 429) return ctx.retry({ after: answer.headers["retry-after"] + "s" });
    if (answer.status >= 300) throw new Error("status " + answer.status);
  },
});
`

// TestSinkKills is TestKills for scripted sinks, one in Lua and one in
// TypeScript: each has its own journal and endpoint, and the endpoints are never
// up at the same time.
func TestSinkKills(t *testing.T) {
	t.Parallel()
	const targets, perTarget, kills = 5, 300, 6
	target := startLoad(t, perTarget)
	nodes := []string{"my.lua.out", "my.ts.out"}
	var endpoints []*recorder
	dir := t.TempDir()
	config := target.scrapeBlock(targets, "500ms", nodes[0]+".receiver, "+nodes[1]+".receiver")
	for i, name := range []string{"lua", "ts"} {
		endpoint := startRecorder(t)
		endpoint.text = true
		endpoints = append(endpoints, endpoint)
		config += fmt.Sprintf(`
my.%s "out" {
  url = "%s/write"

  script {
    allow { http = ["%[2]s/*"] }
    limits { time = "10s" }
  }
}
`, name, endpoint.URL)
		write(t, filepath.Join(dir, "scripts", "my", name+"."+name), []string{killedLua, killedTS}[i])
	}
	write(t, filepath.Join(dir, "config.alloy"), config)

	last := make([]map[int]bool, targets) // by target: scrapes that a kill may have interrupted
	for i := range last {
		last[i] = map[int]bool{}
	}
	states := []func(int, http.ResponseWriter, *http.Request) bool{
		nil,
		func(_ int, w http.ResponseWriter, _ *http.Request) bool { return cut(w) },
		faulty,
	}
	before, output := make([]float64, len(nodes)), ""
	for k := range kills {
		for i, endpoint := range endpoints {
			endpoint.set(states[(k+i)%len(states)])
		}
		weir := startWeir(t, dir)
		target.scrapedAfter(t, targets, time.Now().Add(time.Duration(k)*230*time.Millisecond))
		page := metricsPage(t, weir)
		for i, node := range nodes {
			before[i] += counterOf(t, page, node, "weir_component_samples_in_total", "")
		}
		weir.kill()
		output += weir.output()
		for i := range last {
			last[i][target.served(i)] = true
		}
	}
	for _, endpoint := range endpoints {
		endpoint.set(nil)
	}
	weir := startWeir(t, dir)
	target.scrapedAfter(t, targets, time.Now())
	end := target.servedEach(targets)
	drained(t, weir, nodes...)
	if code := weir.stop(); code != 0 {
		t.Errorf("exit status %d after SIGTERM", code)
	}
	output += weir.output()
	for i, node := range nodes {
		t.Logf("%s: %v samples accepted before the kills, %d arrived in %d requests", node, before[i], endpoints[i].total(), endpoints[i].requests)
		arrivedWhole(t, target, endpoints[i], before[i], last, end, output)
	}
}
