//go:build integration

package integration

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// mixedConfig combines natives and scripts in all languages: a discovery and a
// source in TypeScript, transforms in Lua and JavaScript, an expression, and a
// sink in Lua.
const mixedConfig = `
discovery.http_json "load" {
  url      = "INVENTORY"
  interval = "1s"
  each     = "hosts"
  address  = "{ip}:{port}"
  labels   = { target = "{name}", __metrics_path__ = "/{name}/metrics" }

  script {
    allow { http = ["INVENTORY/*"] }
    limits { time = "10s" }
  }
}

prometheus.scrape "load" {
  targets         = discovery.http_json.load.targets
  scrape_interval = "500ms"
  scrape_timeout  = "400ms"
  forward_to      = [http.paths.fold.receiver]
}

http.paths "fold" {
  forward_to = [expr.filter.some.receiver]

  script {
    limits { time = "10s" }
  }
}

expr.filter "some" {
  drop       = "name == \"load_total\" && labels.i != \"0\""
  forward_to = [my.mark.all.receiver]
}

my.mark "all" {
  site       = "lab"
  forward_to = [prometheus.relabel.last.receiver]

  script {
    limits { time = "10s" }
  }
}

EVENTS

prometheus.relabel "last" {
  rule {
    target_label = "relabelled"
    replacement  = "yes"
  }
  forward_to = [prometheus.remote_write.out.receiver, my.post.out.receiver]
}

prometheus.remote_write "out" {
  endpoint {
    url = "PROMETHEUS/api/v1/write"
  }
}

my.post "out" {
  url = "WIRE"

  script {
    allow { http = ["WIRE/*"] }
    limits { time = "10s" }
  }
}
`

const mixedEvents = `my.events "in" {
  forward_to = [my.mark.all.receiver]

  script {
    limits { time = "10s" }
  }
}`

const mixedMark = `
import { arg, defineTransform } from "weir";

export default defineTransform({
  args: { site: arg.string() },
  series(s, ctx) {
    s.labels.site = ctx.args.site;
  },
  metrics(batch) {
    batch.each((m) => {
      if (m.name === "load_flag") m.value = m.value + 41;
    });
  },
});
`

// mixedHook receives events as requests. ROUTE and VERSION are replaced.
const mixedHook = `
import { defineSource, state, type Request } from "weir";

interface Event {
  kind: string;
  n: number;
}

export default defineSource({
  state: { total: state.counter({ max: 100 }) },
  http: {
    "POST /ROUTE"(req, ctx) {
      const event = req.json() as Event;
      if (!event.kind) {
        throw new Error("an event without a kind");
      }
      ctx.emit({ name: "events_total", type: "counter", labels: { kind: event.kind, version: "VERSION" }, value: ctx.state.total.add(event.kind, event.n) });
      return { status: 200, json: { taken: event.kind } };
    },
  },
});
`

const mixedPost = `
local weir = require "weir"

return weir.sink {
  needs = { http = true },
  args  = { url = weir.arg.string {} },
  batch = { max_records = 200, max_wait = "200ms" },
  send  = function(batch, ctx)
    local answer, err = ctx.http.post(ctx.args.url, batch:text())
    if not answer or answer.status ~= 200 then return ctx.retry { reason = err or tostring(answer.status) } end
  end,
}
`

// TestMixed runs natives and scripts in all languages in one config, against a
// real Prometheus. The targets of a scripted discovery are scraped, and their
// samples go through all scripts and arrive. Requests to a script arrive; a save
// replaces its routes, and they are removed together with the node.
func TestMixed(t *testing.T) {
	target := startLoad(t, 3)
	prometheus := startPrometheus(t, "")
	host, port, _ := strings.Cut(strings.TrimPrefix(target.URL, "http://"), ":")
	inventory := startAnswers(t)
	hosts := func(names ...string) {
		var list []string
		for _, name := range names {
			list = append(list, fmt.Sprintf(`{"name":%q,"ip":%q,"port":%s}`, name, host, port))
		}
		inventory.set(`{"hosts":[` + strings.Join(list, ",") + `]}`)
	}
	posted := startAnswers(t)
	dir := t.TempDir()
	config := func(events string) {
		write(t, filepath.Join(dir, "config.alloy"), strings.NewReplacer(
			"INVENTORY", inventory.URL, "PROMETHEUS", prometheus, "WIRE", posted.URL, "EVENTS", events).Replace(mixedConfig))
	}
	hook := func(route, version string) {
		write(t, filepath.Join(dir, "scripts", "my", "events.ts"), strings.NewReplacer("ROUTE", route, "VERSION", version).Replace(mixedHook))
	}
	hosts("1", "2")
	config(mixedEvents)
	hook("event", "one")
	write(t, filepath.Join(dir, "scripts", "my", "mark.js"), mixedMark)
	write(t, filepath.Join(dir, "scripts", "my", "post.lua"), mixedPost)
	weir := startWeir(t, dir)

	has := func(promql string, want int) {
		t.Helper()
		eventually(t, fmt.Sprintf("%s has %d series", promql, want), func() error {
			got, err := query(prometheus, promql, time.Time{})
			if err == nil && len(got) != want {
				err = fmt.Errorf("it has %d", len(got))
			}
			return err
		})
	}
	has(`load_flag{site="lab",relabelled="yes",target=~"1|2"} == 42`, 2)
	has(`load_total{site="lab"}`, 2)
	eventually(t, "the sink has posted", func() error {
		if got := posted.received(); !strings.Contains(got, `load_flag{`) || !strings.Contains(got, `site="lab"`) || strings.Contains(got, `i="1"`) {
			return fmt.Errorf("it got %s", tail(got, 500))
		}
		return nil
	})

	// Targets that are no longer discovered are no longer scraped.
	hosts("2")
	has(`load_flag`, 1)

	// Requests.
	const route = "/api/v0/component/my.events.in"
	ask := func(path, body string, want int, in string) {
		t.Helper()
		eventually(t, fmt.Sprintf("POST %s answers %d", path, want), func() error {
			resp, err := http.Post(weir.url+route+path, "application/json", strings.NewReader(body))
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			got, err := io.ReadAll(resp.Body)
			if err != nil || resp.StatusCode != want || !strings.Contains(string(got), in) {
				return fmt.Errorf("%s, %s, %v", resp.Status, got, err)
			}
			return nil
		})
	}
	ask("/event", `{"kind":"deploy","n":2}`, 200, `{"taken":"deploy"}`)
	has(`events_total{kind="deploy",version="one",site="lab"} == 2`, 1)
	ask("/event", `{"n":2}`, 500, "the script failed")
	weir.await(1, `(?m)an event without a kind.*$`)
	if out := weir.output(); !strings.Contains(out, `pos=scripts/my/events.ts:14`) && !strings.Contains(out, `scripts/my/events.ts:14:`) {
		t.Errorf("the error has no line of the TypeScript file:\n%s", tail(out, 2000))
	}

	// A save replaces the routes and keeps the state.
	hook("v2/event", "two")
	ask("/v2/event", `{"kind":"deploy","n":1}`, 200, "deploy")
	ask("/event", `{}`, 404, "")
	has(`events_total{kind="deploy",version="two"} == 3`, 1)

	// They are removed with the node; everything else stays.
	config("")
	ask("/v2/event", `{}`, 404, "no component runs as my.events.in")
	has(`load_flag{target="2"} == 42`, 1)

	// Scripts and natives are listed in the same way.
	list, err := exec.Command(env(t, "WEIR"), "components", "--scripts="+filepath.Join(dir, "scripts")).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"prometheus.scrape", "discovery.http_json", "my.mark", "my.post", "my.events", "expr.filter"} {
		if !strings.Contains(string(list), "\n"+name+" ") {
			t.Errorf("weir components does not list %s:\n%s", name, list)
		}
	}
	if code := weir.stop(); code != 0 {
		t.Errorf("exit status %d after SIGTERM", code)
	}
}

// answers is a server that gives the same response to all requests and records
// them.
type answers struct {
	*httptest.Server

	mu   sync.Mutex
	text string
	got  strings.Builder
}

func startAnswers(t *testing.T) *answers {
	a := &answers{}
	a.Server = httptest.NewServer(a)
	t.Cleanup(a.Close)
	return a
}

func (a *answers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.got.Write(body)
	io.WriteString(w, a.text)
}

func (a *answers) set(text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.text = text
}

func (a *answers) received() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.got.String()
}
