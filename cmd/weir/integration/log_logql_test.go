//go:build integration

package integration

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/cmd/weirbench/logfiles"
)

// lineTotals counts lines by level, and emits the totals every second.
const lineTotals = `
local weir = require "weir"

return weir.transform {
  sends = { "metrics" },
  state = { total = weir.state.counter { max = 100 } },
  logs = function(batch, ctx)
    local n = {}
    batch:json({ "level" }, function(level) n[level] = (n[level] or 0) + 1 end)
    for level, more in pairs(n) do ctx.state.total:add(level, more) end
  end,
  every = {
    ["1s"] = function(ctx)
      for _, level in ipairs { "debug", "info", "warn", "error" } do
        ctx.emit { name = "log_lines_total", type = "counter", labels = { level = level }, value = ctx.state.total:get(level) }
      end
    end,
  },
}
`

// lineRewrite drops and rewrites lines and promotes values to labels.
const lineRewrite = `
local weir = require "weir"

return weir.transform {
  logs = function(batch, ctx)
    batch:json({ "level", "msg", "seq" }, function(level, msg, seq, r)
      if level == "debug" then return false end
      r.labels.level = level
      r.metadata.by = "lua"
      r.line = level .. ": " .. msg .. " " .. seq
    end)
  end,
}
`

// TestLogPipelines sends the same JSON lines on four paths to one real Loki:
// unchanged, and through native stages, stage.logql and a script, which do the
// same work. It also derives metrics from them for a real Prometheus. The lines
// of the last three paths are equal, line by line, to the result of a Loki query
// for the unchanged lines.
func TestLogPipelines(t *testing.T) {
	t.Parallel()
	l := startLines(t, logfiles.Options{Files: 3, JSON: true, Seed: 12})
	loki, prometheus := startLoki(t), startPrometheus(t, "")
	dir := t.TempDir()
	write(t, filepath.Join(dir, "scripts", "my", "totals.lua"), lineTotals)
	write(t, filepath.Join(dir, "scripts", "my", "rewrite.lua"), lineRewrite)
	write(t, filepath.Join(dir, "config.alloy"), l.source(`loki.process.raw.receiver, loki.process.stages.receiver, loki.process.logql.receiver, my.rewrite.lua.receiver, my.totals.lines.receiver`)+`
loki.process "raw" {
  stage.static_labels {
    values = { way = "raw" }
  }
  forward_to = [loki.write.out.receiver]
}

loki.process "stages" {
  stage.json {
    expressions = { level = "", msg = "", seq = "" }
  }
  stage.drop {
    source = "level"
    value  = "debug"
  }
  stage.labels {
    values = { level = "" }
  }
  stage.template {
    source   = "text"
    template = "{{ .level }}: {{ .msg }} {{ .seq }}"
  }
  stage.output {
    source = "text"
  }
  stage.static_labels {
    values = { way = "stages" }
  }
  forward_to = [loki.write.out.receiver]
}

loki.process "logql" {
  stage.logql {
    pipeline = "| json level=\"level\", msg=\"msg\", seq=\"seq\" | level != \"debug\" | line_format \"{{.level}}: {{.msg}} {{.seq}}\" | keep filename, job, level"
  }
  stage.static_labels {
    values = { way = "logql" }
  }
  forward_to = [loki.write.out.receiver]
}

my.rewrite "lua" {
  forward_to = [loki.process.lua.receiver]

  script {
    limits { time = "10s" }
  }
}

loki.process "lua" {
  stage.static_labels {
    values = { way = "lua" }
  }
  forward_to = [loki.write.out.receiver]
}

my.totals "lines" {
  forward_to = [prometheus.remote_write.out.receiver]

  script {
    limits { time = "10s" }
  }
}
`+lokiWrite(loki.endpoint())+remoteWrite(prometheus, ""))
	weir := startWeir(t, dir)
	for range 10 {
		l.add(400)
		l.rotate(1, logfiles.Rename, 20)
	}
	l.whole(loki, `{way="raw"}`)

	written, kept := map[string]int{}, 0
	for sequence, n := range l.Stats(true).Written {
		level := logfiles.Levels[sequence[len(sequence)-1]]
		if written[level] += n; level != "debug" {
			kept += n
		}
	}
	want := flat(loki.mustQuery(t, `{way="raw"} | json level="level", msg="msg", seq="seq" | level != "debug" | line_format "{{.level}}: {{.msg}} {{.seq}}" | keep filename, job, level`))
	if len(want) != kept {
		t.Fatalf("Loki makes %d lines of all, want %d", len(want), kept)
	}
	for _, way := range []string{"stages", "logql", "lua"} {
		loki.arrive(t, `{way="`+way+`"}`, kept)
		got := loki.mustQuery(t, `{way="`+way+`"}`)
		if way == "lua" {
			for _, e := range got {
				if e.metadata["by"] != "lua" {
					t.Errorf("a line has the metadata %v", e.metadata)
					break
				}
				delete(e.metadata, "by")
			}
		}
		sameLines(t, way, flat(got), want)
	}
	for level, n := range written {
		eventually(t, level+" lines are counted", func() error {
			got, err := number(prometheus, fmt.Sprintf(`log_lines_total{level=%q}`, level), time.Time{})
			if err == nil && int(got) != n {
				err = fmt.Errorf("%v, want %d", got, n)
			}
			return err
		})
	}
	if code := weir.stop(); code != 0 {
		t.Errorf("exit status %d after SIGTERM", code)
	}
}

// logQLPipelines are typical pipelines and difficult cases.
var logQLPipelines = []string{
	`|= "error"`,
	`!= "GET" |~ "(?i)order|cart"`,
	`| json`,
	`| json | status >= 400`,
	`| json | level=~"warn|error" | line_format "{{.level | ToUpper}} {{.msg}} {{.status}}"`,
	`| json user="user", first="list[0]", deep="a.b" | drop user`,
	`| json | label_format status_text="{{ if eq .status \"200\" }}ok{{ else }}bad{{ end }}", lvl=level`,
	`| json | duration_ms > 500 and status != 404`,
	`| logfmt`,
	`| logfmt | level="error" or status=200`,
	`| logfmt --strict --keep-empty`,
	`| regexp "(?P<verb>GET|POST) (?P<where>[^ ]+)"`,
	`| pattern "<ip> - <_> \"<verb> <where>\" <code>"`,
	`| pattern "<ip> - <_> \"<verb> <where>\" <code>" | code = 200 | ip = ip("10.0.0.0/8")`,
	`| unpack`,
	`| decolorize`,
	`| json | __error__=""`,
	`| json | line_format "{{.msg}}" |= "served"`,
	`| json | size > 1KB`,
	`| logfmt | duration > 100ms`,
	`|> "<_>order<_>"`,
	`| json | keep level, job`,
	`| line_format "{{ __line__ | trunc 20 }} {{ .job }}"`,
}

// logQLLines are lines that parsers can parse completely, partly or not at all.
var logQLLines = []string{
	`{"level":"info","msg":"request served","status":200,"duration_ms":17,"user":"ann","size":"2KB"}`,
	`{"level":"error","msg":"order failed","status":500,"duration_ms":900,"user":"bob","a":{"b":"deep","c":[1,2]},"list":["x","y"]}`,
	`{"level":"warn","msg":"zażółć \"gęślą\" \u00e9","status":404,"duration_ms":600,"size":"512B","job":"of the line"}`,
	`{"level":"info","msg":"","status":"200","empty":"","null":null,"bool":true,"num":1.5e3}`,
	`{"level":"error","msg":"cut in the`,
	`level=info msg="request served" status=200 duration=17ms path=/api/v1/orders`,
	`level=error msg="order \"7\" failed" status=500 duration=1.5s empty= flag`,
	`level=warn msg=unclosed" status=404 duration=300ms`,
	`10.0.0.1 - frank "GET /cart/7" 200`,
	`192.168.1.9 - - "POST /order" 503`,
	`{"_entry":"the line inside","pod":"web-0","job":"of the pack"}`,
	"\x1b[31mred error\x1b[0m and \x1b[1mbold\x1b[0m",
	`plain text about an error`,
	`ünïcödé GET ☃`,
	` `,
}

// TestLogQLIsLokis runs each of many pipelines in stage.logql, and in a query of
// a real Loki for the same lines. The results have the same text and labels, or
// are missing from both.
func TestLogQLIsLokis(t *testing.T) {
	t.Parallel()
	const each = 20
	loki := startLoki(t)
	dir := t.TempDir()
	var config, receivers strings.Builder
	for i, pipeline := range logQLPipelines {
		quoted, err := json.Marshal(pipeline)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&config, `
loki.process "p%d" {
  stage.logql {
    pipeline = %s
  }
  stage.static_labels {
    values = { way = "%[1]d" }
  }
  forward_to = [loki.write.out.receiver]
}
`, i, strings.ReplaceAll(strings.ReplaceAll(strings.ReplaceAll(string(quoted), `\u003e`, ">"), `\u003c`, "<"), `\u0026`, "&"))
		fmt.Fprintf(&receivers, "loki.process.p%d.receiver, ", i)
	}
	write(t, filepath.Join(dir, "config.alloy"), fmt.Sprintf(`
loki.source.file "load" {
  targets    = [{ __path__ = "%s/in.log", job = "load" }]
  forward_to = [%sloki.write.out.receiver]
}
`, dir, receivers.String())+config.String()+lokiWrite(loki.endpoint()))
	appendTo(t, filepath.Join(dir, "in.log"), strings.Repeat(strings.Join(logQLLines, "\n")+"\n", each))
	weir := startWeir(t, dir)
	loki.arrive(t, `{job="load",way=""}`, each*len(logQLLines))
	for i, pipeline := range logQLPipelines {
		want := flat(loki.mustQuery(t, `{job="load",way=""} `+pipeline+" | drop __error__, __error_details__")) // these labels are not stored
		selector := fmt.Sprintf(`{way="%d"}`, i)
		var got []string
		eventually(t, pipeline+" is there", func() error {
			es, err := loki.query(selector)
			if got = flat(es); err == nil && len(got) < len(want) {
				err = fmt.Errorf("%d of %d lines", len(got), len(want))
			}
			return err
		})
		if len(want) == 0 {
			t.Errorf("%s: nothing comes out: the test proves nothing", pipeline)
		}
		sameLines(t, pipeline, got, want)
	}
	if code := weir.stop(); code != 0 {
		t.Errorf("exit status %d after SIGTERM", code)
	}
}
