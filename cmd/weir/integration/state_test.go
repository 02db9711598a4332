//go:build integration

package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestStateKills kills weir with SIGKILL while a script writes persistent state.
// The sent samples are never newer than the state of the next process: the scrape
// counter of a target only grows, over all kills, and nothing is damaged.
func TestStateKills(t *testing.T) {
	t.Parallel()
	const targets, perTarget, kills = 5, 400, 8
	target := startLoad(t, perTarget)
	endpoint := startRecorder(t)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "config.alloy"), target.scrapeBlock(targets, "200ms", "a.count.default.receiver")+
		"a.count \"default\" {\n  forward_to = [prometheus.remote_write.out.receiver]\n}\n"+remoteWrite(endpoint.URL, ""))
	// Each scrape writes as many keys as it has series, so that kills interrupt
	// writes, and the file is rewritten from time to time.
	write(t, filepath.Join(dir, "scripts", "a", "count.lua"), `local weir = require "weir"
return weir.transform {
  state = {
    scrapes = weir.state.counter { scope = "persistent" },
    series  = weir.state.lru { max = 1500, scope = "persistent" },
  },
  metrics = function(batch, ctx)
    for i, name, value in batch:rows("name", "value") do
      ctx.state.series:set(name .. tostring(batch[i].labels), { value, ctx.now() })
    end
    batch:keep_where [[ name == "up" ]]
    batch:each(function(r)
      r.name, r.value = "scrapes_counted", ctx.state.scrapes:add(r.labels.target)
    end)
  end,
}
`)
	output := ""
	for k := range kills {
		weir := startWeir(t, dir)
		target.scrapedAfter(t, targets, time.Now().Add(time.Duration(k)*170*time.Millisecond))
		weir.kill()
		output += weir.output()
	}
	weir := startWeir(t, dir)
	target.scrapedAfter(t, targets, time.Now())
	drained(t, weir)
	if code := weir.stop(); code != 0 {
		t.Errorf("exit status %d after SIGTERM", code)
	}
	output += weir.output()
	if strings.Contains(output, "damaged") || strings.Contains(output, "cannot write persistent state") {
		t.Errorf("a kill damaged the state:\n%s", output)
	}
	total := 0
	for key, ss := range endpoint.group("scrapes_counted") {
		for _, s := range ss {
			last := 0.0
			for i, v := range s.v {
				if v == v && v <= last { // NaN marks the end of a series
					t.Errorf("%s: %v comes after %v, at %d", key, v, last, s.t[i])
				}
				if v == v {
					last = v
					total++
				}
			}
		}
	}
	if total < targets*(kills+1) {
		t.Errorf("only %d counts arrived", total)
	}
	dirs, err := filepath.Glob(filepath.Join(dir, "data", "state", "*", "*"))
	if err != nil || len(dirs) != 1 {
		all, _ := filepath.Glob(filepath.Join(dir, "*"))
		t.Errorf("got %q, %v, want one file of state; there is %q", dirs, err, all)
	}
	if len(dirs) == 1 {
		if fi, err := os.Stat(dirs[0]); err != nil || fi.Size() > 8<<20 {
			t.Error(fmt.Errorf("the file of state is %d bytes: %v", fi.Size(), err))
		}
	}
}
