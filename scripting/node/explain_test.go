package node_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/scripting/internal/registrytest"
)

// explains is a node whose steps are compared.
type explains struct {
	*debugs
	attrs string
}

func (f *explains) run(path, text string) {
	f.t.Helper()
	f.save(path, text)
	r := registrytest.Lookup(f.t, f.cat, "a.b")
	if r.Err != nil {
		f.t.Fatal(r.Err)
	}
	f.swap(r, f.attrs)
}

// steps returns the steps for a record, one a line, or the error. A text that begins
// with { is a log line.
func (f *explains) steps(record string) string {
	f.t.Helper()
	var one flow.Batches
	if strings.HasPrefix(record, "{") {
		l, err := batch.ParseLogsText(record, batch.TextOptions{T: 5})
		if err != nil {
			f.t.Fatal(err)
		}
		one.Logs = []*batch.Logs{l}
	} else {
		m, err := batch.ParseText(record, batch.TextOptions{T: 5})
		if err != nil {
			f.t.Fatal(err)
		}
		one.Metrics = []*batch.Metrics{m}
	}
	steps, err := f.c.(component.Explainer).Explain(f.t.Context(), one)
	if err != nil {
		return "error: " + err.Error() + "\n"
	}
	var b strings.Builder
	for _, s := range steps {
		fmt.Fprintf(&b, "%s %s (%s):", s.Kind, s.Name, s.Detail)
		text := func(sign string, of flow.Batches) {
			for _, m := range of.Metrics {
				if m.Len() > 0 {
					fmt.Fprintf(&b, "%s%s", sign, strings.TrimSuffix(string(batch.AppendText(nil, m)), "\n"))
				}
			}
			for _, l := range of.Logs {
				if l.Len() > 0 {
					fmt.Fprintf(&b, "%s%s", sign, strings.TrimSuffix(string(batch.AppendLogsText(nil, l)), "\n"))
				}
			}
		}
		text(" → ", s.After)
		text(" + ", s.Added)
		if s.After.Len() == 0 {
			b.WriteString(" dropped")
		}
		for _, also := range s.Also {
			b.WriteString(" " + also)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

const explainedLua = `local weir = require "weir"
local tidy = require "tidy"

return weir.transform {
  state   = { seen = weir.state.map {} },
  sends   = { "metrics", "logs" },
  outputs = { "other" },

  series  = function(s)
    if s.labels.env == "dev" then
      s:drop()
      return
    end
    s.labels.env = "prod"
    s.name = "app_" .. s.name
  end,

  metrics = function(batch, ctx)
    batch:drop_where('value > 100')
    batch:set_label("site", "lab")
    batch:each(function(s)
      s.labels.path = tidy.path(s.labels.path)
      if s.value == 7 then
        error("seven")
      end
      s.value = s.value * 2
      local co = coroutine.wrap(function() s.labels.co = "x" end)
      co()
      for name in pairs(s.labels) do
        if name:match("^tmp_") then
          s.labels[name] = nil
        end
      end
      if s.value == 6 then
        ctx.emit { name = "six", value = 6 }
        ctx.emit { line = "six", labels = { a = "b" } }
        s:drop()
      end
      if s.value == 8 then
        ctx.route("other", s)
      end
    end)
    batch:map_label("path", function(p)
      return p:upper()
    end)
    batch:keep_where('labels.hide != "1"')
  end,

  logs    = function(batch)
    batch:drop_where('line contains "debug"')
    batch:set_line("{line}!")
    batch:each(function(l)
      l.labels.level = "info"
      l.metadata.trace = "1"
      tidy.line(l)
    end)
  end,
}
`

const tidyLua = `local function path(p)
  return (p or ""):gsub("%d+", ":id")
end
return {
  path = function(p)
    local out = path(p)
    return out
  end,
  line = function(l)
    l.line = l.line .. "?"
  end,
}
`

const explainedTypeScript = `import { defineTransform, type Sample } from "weir";
import { path } from "./tidy";

interface Rule {
  env: string;
}

const rule: Rule = { env: "dev" };

export default defineTransform({
  sends: ["metrics", "logs"],
  series(s) {
    if (s.labels.env === rule.env) {
      s.drop();
    }
  },
  metrics(batch, ctx) {
    batch.dropWhere("value > 100");
    batch.filter(["value"], (value) => value !== 50);
    for (const s of batch) {
      s.labels.path = path(s);
      if (s.value === 7) {
        throw new Error("seven");
      }
      s.value *= 2;
      if (s.value === 6) {
        ctx.emit({ name: "six", value: 6 });
        s.drop();
      }
    }
    batch.mapLabel("path", (p) => p.toUpperCase());
  },
  logs(batch) {
    for (const l of batch) {
      if (l.contains("debug")) {
        l.drop();
        continue;
      }
      l.line = l.line + "?";
    }
  },
});
`

// newExplains returns a function that compares the steps for a record.
func newExplains(t *testing.T, attrs, path, text string) (f *explains, want func(record, want string)) {
	f = &explains{debugs: newDebugs(t), attrs: attrs}
	f.f.Write("lib/tidy.lua", tidyLua)
	f.f.Write("a/tidy.ts", `import { type Sample } from "weir";

export function path(s: Sample): string {
  return (s.labels.path ?? "").replace(/\d+/g, ":id");
}
`)
	f.run(path, text)
	return f, func(record, want string) {
		t.Helper()
		if got := f.steps(record); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", record, got, want)
		}
	}
}

// The steps name the line of each kind of edit.
func TestExplainLua(t *testing.T) {
	_, want := newExplains(t, "routes {\nother = [sink]\n}", "a/b.lua", explainedLua)
	want("x{env=\"dev\"} 1\n", "line scripts/a/b.lua:11 (s:drop()): dropped\n")
	want("x 1\n", `line scripts/a/b.lua:14 (s.labels.env = "prod"): → x{env="prod"} 1 5
line scripts/a/b.lua:15 (s.name = "app_" .. s.name): → app_x{env="prod"} 1 5
line scripts/a/b.lua:20 (batch:set_label("site", "lab")): → app_x{env="prod",site="lab"} 1 5
line scripts/a/b.lua:26 (s.value = s.value * 2): → app_x{env="prod",site="lab"} 2 5
line scripts/a/b.lua:27 (local co = coroutine.wrap(function() s.labels.co = "x" end)): → app_x{co="x",env="prod",site="lab"} 2 5
`)
	want("x{path=\"/a/12\",tmp_a=\"1\",tmp_b=\"2\"} 1\n", `line scripts/a/b.lua:14 (s.labels.env = "prod"): → x{env="prod",path="/a/12",tmp_a="1",tmp_b="2"} 1 5
line scripts/a/b.lua:15 (s.name = "app_" .. s.name): → app_x{env="prod",path="/a/12",tmp_a="1",tmp_b="2"} 1 5
line scripts/a/b.lua:20 (batch:set_label("site", "lab")): → app_x{env="prod",path="/a/12",site="lab",tmp_a="1",tmp_b="2"} 1 5
line scripts/a/b.lua:22 (s.labels.path = tidy.path(s.labels.path)): → app_x{env="prod",path="/a/:id",site="lab",tmp_a="1",tmp_b="2"} 1 5
line scripts/a/b.lua:26 (s.value = s.value * 2): → app_x{env="prod",path="/a/:id",site="lab",tmp_a="1",tmp_b="2"} 2 5
line scripts/a/b.lua:27 (local co = coroutine.wrap(function() s.labels.co = "x" end)): → app_x{co="x",env="prod",path="/a/:id",site="lab",tmp_a="1",tmp_b="2"} 2 5
line scripts/a/b.lua:31 (s.labels[name] = nil): → app_x{co="x",env="prod",path="/a/:id",site="lab"} 2 5
line scripts/a/b.lua:43 (batch:map_label("path", function(p)): → app_x{co="x",env="prod",path="/A/:ID",site="lab"} 2 5
`)
	want("x 101\n", `line scripts/a/b.lua:14 (s.labels.env = "prod"): → x{env="prod"} 101 5
line scripts/a/b.lua:15 (s.name = "app_" .. s.name): → app_x{env="prod"} 101 5
line scripts/a/b.lua:19 (batch:drop_where('value > 100')): dropped
`)
	want("x 7\n", `line scripts/a/b.lua:14 (s.labels.env = "prod"): → x{env="prod"} 7 5
line scripts/a/b.lua:15 (s.name = "app_" .. s.name): → app_x{env="prod"} 7 5
line scripts/a/b.lua:20 (batch:set_label("site", "lab")): → app_x{env="prod",site="lab"} 7 5
error scripts/a/b.lua:24 (seven): → app_x{env="prod",site="lab"} 7 5
`)
	want("x 3\n", `line scripts/a/b.lua:14 (s.labels.env = "prod"): → x{env="prod"} 3 5
line scripts/a/b.lua:15 (s.name = "app_" .. s.name): → app_x{env="prod"} 3 5
line scripts/a/b.lua:20 (batch:set_label("site", "lab")): → app_x{env="prod",site="lab"} 3 5
line scripts/a/b.lua:26 (s.value = s.value * 2): → app_x{env="prod",site="lab"} 6 5
line scripts/a/b.lua:27 (local co = coroutine.wrap(function() s.labels.co = "x" end)): → app_x{co="x",env="prod",site="lab"} 6 5
line scripts/a/b.lua:35 (ctx.emit { name = "six", value = 6 }): → app_x{co="x",env="prod",site="lab"} 6 5 + six 6 5
line scripts/a/b.lua:36 (ctx.emit { line = "six", labels = { a = "b" } }): → app_x{co="x",env="prod",site="lab"} 6 5 + {a="b"} @2025-01-01T00:00:00Z six
line scripts/a/b.lua:37 (s:drop()): dropped
`)
	want("x 4\n", `line scripts/a/b.lua:14 (s.labels.env = "prod"): → x{env="prod"} 4 5
line scripts/a/b.lua:15 (s.name = "app_" .. s.name): → app_x{env="prod"} 4 5
line scripts/a/b.lua:20 (batch:set_label("site", "lab")): → app_x{env="prod",site="lab"} 4 5
line scripts/a/b.lua:26 (s.value = s.value * 2): → app_x{env="prod",site="lab"} 8 5
line scripts/a/b.lua:27 (local co = coroutine.wrap(function() s.labels.co = "x" end)): → app_x{co="x",env="prod",site="lab"} 8 5
line scripts/a/b.lua:40 (ctx.route("other", s)): → app_x{co="x",env="prod",site="lab"} 8 5 sent to the output other
`)
	want("{a=\"b\"} 5 debug\n", `line scripts/a/b.lua:50 (batch:drop_where('line contains "debug"')): dropped
`)
	want("{a=\"b\"} 5 hello\n", `line scripts/a/b.lua:51 (batch:set_line("{line}!")): → {a="b"} @1970-01-01T00:00:00.000000005Z 5 hello!
line scripts/a/b.lua:53 (l.labels.level = "info"): → {a="b",level="info"} @1970-01-01T00:00:00.000000005Z 5 hello!
line scripts/a/b.lua:54 (l.metadata.trace = "1"): → {a="b",level="info"} @1970-01-01T00:00:00.000000005Z {trace="1"} 5 hello!
line scripts/lib/tidy.lua:10 (l.line = l.line .. "?"): → {a="b",level="info"} @1970-01-01T00:00:00.000000005Z {trace="1"} 5 hello!?
`)
}

// The lines are those of the TypeScript file, not of the compiled one.
func TestExplainTypeScript(t *testing.T) {
	_, want := newExplains(t, "", "a/b.ts", explainedTypeScript)
	want("x{env=\"dev\"} 1\n", `line scripts/a/b.ts:14 (s.drop();): dropped
`)
	want("x{path=\"/a/12\"} 1\n", `line scripts/a/b.ts:21 (s.labels.path = path(s);): → x{path="/a/:id"} 1 5
line scripts/a/b.ts:25 (s.value *= 2;): → x{path="/a/:id"} 2 5
line scripts/a/b.ts:31 (batch.mapLabel("path", (p) => p.toUpperCase());): → x{path="/A/:ID"} 2 5
`)
	want("x 101\n", `line scripts/a/b.ts:18 (batch.dropWhere("value > 100");): dropped
`)
	want("x 50\n", `line scripts/a/b.ts:19 (batch.filter(["value"], (value) => value !== 50);): dropped
`)
	want("x 7\n", `error scripts/a/b.ts:23 (seven): → x 7 5
`)
	want("x 3\n", `line scripts/a/b.ts:25 (s.value *= 2;): → x 6 5
line scripts/a/b.ts:27 (ctx.emit({ name: "six", value: 6 });): → x 6 5 + six 6 5
line scripts/a/b.ts:28 (s.drop();): dropped
`)
	want("{a=\"b\"} 5 debug\n", `line scripts/a/b.ts:36 (l.drop();): dropped
`)
	want("{a=\"b\"} 5 hello\n", `line scripts/a/b.ts:39 (l.line = l.line + "?";): → {a="b"} @1970-01-01T00:00:00.000000005Z 5 hello?
`)
}

// on_error decides what happens to the record after an error.
func TestExplainErrors(t *testing.T) {
	const script = `local weir = require "weir"
return weir.transform {
  metrics = function(batch)
    batch:set_label("a", "b")
    batch:each(function(s)
      s.labels.c = "d"
      error("oh no")
    end)
  end,
  logs    = function(batch)
    batch:set_label("a", "b")
    error("oh no")
  end,
}
`
	_, want := newExplains(t, `script { on_error = "drop" }`, "a/b.lua", script)
	want("x 1\n", `line scripts/a/b.lua:4 (batch:set_label("a", "b")): → x{a="b"} 1 5
line scripts/a/b.lua:6 (s.labels.c = "d"): → x{a="b",c="d"} 1 5
error scripts/a/b.lua:7 (oh no): dropped
`)
	want("{x=\"y\"} 5 hello\n", `line scripts/a/b.lua:11 (batch:set_label("a", "b")): → {a="b",x="y"} @1970-01-01T00:00:00.000000005Z 5 hello
error scripts/a/b.lua:12 (oh no): dropped
`)
	_, want = newExplains(t, `script { on_error = "pass" }`, "a/b.lua", script)
	want("x 1\n", `line scripts/a/b.lua:4 (batch:set_label("a", "b")): → x{a="b"} 1 5
line scripts/a/b.lua:6 (s.labels.c = "d"): → x{a="b",c="d"} 1 5
error scripts/a/b.lua:7 (oh no): → x{a="b"} 1 5
`)
	want("{x=\"y\"} 5 hello\n", `line scripts/a/b.lua:11 (batch:set_label("a", "b")): → {a="b",x="y"} @1970-01-01T00:00:00.000000005Z 5 hello
error scripts/a/b.lua:12 (oh no): → {x="y"} @1970-01-01T00:00:00.000000005Z 5 hello
`)
	_, want = newExplains(t, `script { on_error = "quarantine" }`, "a/b.lua", script)
	want("x 1\n", `line scripts/a/b.lua:4 (batch:set_label("a", "b")): → x{a="b"} 1 5
line scripts/a/b.lua:6 (s.labels.c = "d"): → x{a="b",c="d"} 1 5
error scripts/a/b.lua:7 (oh no): dropped the record goes to the quarantine, or is held
`)
	want("{x=\"y\"} 5 hello\n", `line scripts/a/b.lua:11 (batch:set_label("a", "b")): → {a="b",x="y"} @1970-01-01T00:00:00.000000005Z 5 hello
error scripts/a/b.lua:12 (oh no): dropped the record goes to the quarantine, or is held
`)
}

// An explanation uses a copy of the state, and has no effect.
func TestExplainState(t *testing.T) {
	f, want := newExplains(t, "", "a/b.lua", debuggedLua)
	equalText(t, f.send(f.parse("x 1\n")), "x{n=\"1\"} 1\n")
	want("x 1\n", "line scripts/a/b.lua:10 (s.labels.n = tostring(n)): → x{n=\"2\"} 1 5\n")
	want("x 1\n", "line scripts/a/b.lua:10 (s.labels.n = tostring(n)): → x{n=\"2\"} 1 5\n")
	equalText(t, f.send(f.parse("x 2\n")), "x{n=\"2\"} 2\n")
	want("{a=\"b\"} 5 hello\n", "error: the script does not process records of this signal\n")
}

// A script that needs an external system cannot be explained, and no request is sent.
func TestExplainOutside(t *testing.T) {
	_, want := newExplains(t, "script {\nallow {\nhttp = [\"http://127.0.0.1:1/*\"]\n}\n}", "a/b.lua", `local weir = require "weir"
return weir.transform {
  needs   = { http = { "http://127.0.0.1:1/*" } },
  metrics = function(batch, ctx)
    if not ctx.http.get("http://127.0.0.1:1/a") then
      batch:drop_where("true")
    end
  end,
}
`)
	want("x 1\n", "error: the script needs an answer to GET http://127.0.0.1:1/a, and the node has no recent one\n")
}
