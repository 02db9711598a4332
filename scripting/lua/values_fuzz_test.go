package lua_test

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/api"
	"github.com/weir-run/weir/scripting/hostiletest"
	"github.com/weir-run/weir/scripting/lua"
	"github.com/weir-run/weir/scripting/node"
)

// hostileValues has the values and reads the cases.
//
//go:embed testdata/values/values.lua
var hostileValues string

// FuzzValues passes values that a script made to do harm to everything that it
// can call: the standard library, batches, records and ctx by the table of the
// API, what makes definitions, and the language's own functions. Whatever that
// does, the process lives and stays small, and no function of ours panics.
func FuzzValues(f *testing.F) {
	for _, seed := range hostiletest.ValueSeeds() {
		f.Add(seed)
	}
	child := hostiletest.NewChild(f, "TestValuesInChild")
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) < hostiletest.MaxValueCase {
			child.Run(t, data)
		}
	})
}

func TestValuesInChild(t *testing.T) {
	hostiletest.Serve(t, func(t testing.TB) func([]byte) error {
		fx := build(t, valuesScript(), "routes {\nother = [sink]\n}\nscript {\nlimits { time = \"50ms\" }\nallow {\nhttp = [\"http://127.0.0.1:1/*\"]\n}\n}", "values", hostileValues)
		return func(data []byte) error { return playValues(t, fx, data) }
	})
}

// playValues plays one case: its first byte says where.
func playValues(t testing.TB, fx *harness, data []byte) error {
	if len(data) == 0 {
		return nil
	}
	codes := strings.Trim(strings.ReplaceAll(fmt.Sprint(data[1:]), " ", ","), "[]")
	var err error
	ctx := node.Observe(context.Background(), func(e *scripting.Error) { err = e })
	switch data[0] % 4 {
	case 0:
		_ = fx.c.(flow.MetricsConsumer).ConsumeMetrics(ctx, parse(t, `a{job="x",codes="`+codes+"\"} 1 # {trace=\"t\"} 1\nb{job=\"y\"} 2\n"))
	case 1:
		_ = fx.c.(flow.LogsConsumer).ConsumeLogs(ctx, parseLogs(t, `{app="x",codes="`+codes+"\"} {\"a\":1}\n{app=\"y\"} a=1\n"))
	case 2:
		_ = fx.c.(flow.MetricsConsumer).ConsumeMetrics(ctx, parse(t, `a{series="1",codes="`+codes+"\"} 1\n"))
	case 3:
		_, err = lua.New().Compile(scripting.File{Name: "test/script.lua", Text: valuesDefinition(codes)}, scripting.Env{
			Modules: modules,
			Require: func(name string) (scripting.File, error) {
				if name != "values" {
					return scripting.File{}, errors.New("there is no such file")
				}
				return scripting.File{Name: "lib/values.lua", Text: hostileValues}, nil
			},
		})
	}
	if err != nil && strings.Contains(strings.ReplaceAll(err.Error(), "BUG: panic panicked: host bug", ""), "BUG") {
		return err
	}
	if h := fx.Health(); h.State != component.Healthy && strings.Contains(strings.ReplaceAll(h.Message, "BUG: panic panicked: host bug", ""), "BUG") {
		return errors.New(h.Message)
	}
	return nil
}

// expressions are how a script comes by a value of each type of the table, by
// hook.
var expressions = map[string]struct{ hook, expr string }{
	"batch":                {"metrics", "batch"},
	"record":               {"metrics", "batch[1]"},
	"copy of a record":     {"metrics", "batch[1]:copy()"},
	"group":                {"metrics", `batch:group_by({ "job" })()`},
	"series":               {"series", "s"},
	"labels":               {"metrics", "batch[1].labels"},
	"batch of log lines":   {"logs", "batch"},
	"log record":           {"logs", "batch[1]"},
	"copy of a log record": {"logs", "batch[1]:copy()"},
	"group of log records": {"logs", `batch:group_by({ "app" })()`},
	"metadata":             {"logs", "batch[1].metadata"},
	"stream":               {"stream", "s"},
	"ctx":                  {"metrics", "ctx"},
	"ctx of series":        {"series", "ctx"},
	"ctx.args":             {"metrics", "ctx.args"},
	"ctx.log":              {"metrics", "ctx.log"},
	"ctx.state":            {"metrics", "ctx.state"},
	"ctx.metrics":          {"metrics", "ctx.metrics"},
	"ctx.http":             {"metrics", "ctx.http"},
	"ctx.env":              {"metrics", "ctx.env"},
	"state.counter":        {"metrics", "ctx.state.counter"},
	"state.map":            {"metrics", "ctx.state.map"},
	"state.set":            {"metrics", "ctx.state.set"},
	"state.lru":            {"metrics", "ctx.state.lru"},
	"state.queue":          {"metrics", "ctx.state.queue"},
	"metrics.Counter":      {"metrics", `ctx.metrics.counter("c", "A counter.", { "a" })`},
	"metrics.Gauge":        {"metrics", `ctx.metrics.gauge("g", "A gauge.", { "a" })`},
	"metrics.Histogram":    {"metrics", `ctx.metrics.histogram("h", "A histogram.", { "a" })`},
	// Values from the network: their methods take at most a name.
	"http.Request":  {},
	"http.Response": {},
}

// valuesTargets are the functions that call each member of a type, by hook.
func valuesTargets() map[string][]string {
	out := map[string][]string{}
	add := func(hook, format string, args ...any) {
		out[hook] = append(out[hook], "function(a) "+fmt.Sprintf(format, args...)+" end")
	}
	for _, typ := range api.Get().Types() {
		e, ok := expressions[typ.Name]
		if !ok {
			panic("there is no expression for the type " + typ.Name + ": add one to expressions")
		}
		if e.hook == "" {
			continue
		}
		add(e.hook, "local x = %s return x[a[1]]", e.expr)
		add(e.hook, "local x = %s x[a[1]] = a[2]", e.expr)
		add(e.hook, "local x = %s return tostring(x) .. a[1]", e.expr)
		add(e.hook, "local x = %s for k, v in pairs(x) do a[1] = v end return #x", e.expr)
		for _, m := range typ.Methods {
			add(e.hook, "local x = %s return x.%s(unpack(a, 1, a.n))", e.expr, m.Name)
			add(e.hook, "local x = %s return x:%s(unpack(a, 1, a.n))", e.expr, m.Name)
		}
		for _, f := range typ.Fields {
			add(e.hook, "local x = %s x.%s = a[1]", e.expr, f.Name)
		}
	}
	for _, m := range modules {
		for _, f := range m.Funcs {
			add("metrics", "return require(%q).%s(unpack(a, 1, a.n))", m.Name, f.Name)
		}
	}
	for _, k := range scripting.ComponentKinds {
		add("metrics", "return weir.%s(a[1])", k)
	}
	for _, k := range scripting.ArgKinds {
		add("metrics", "return weir.arg.%s(a[1])", k)
	}
	for _, k := range scripting.StateKinds {
		add("metrics", "return weir.state.%s(a[1])", k)
	}
	for _, x := range []string{
		"return a[1] .. a[2]", "return a[1] + a[2]", "return a[1] < a[2]", "return a[1] == a[2]", "return -a[1]", "return #a[1]", "return a[1][a[2]]", "a[1][a[2]] = a[3]", "return a[1](unpack(a, 2, a.n))",
		"error(a[1])", "for k, v in a[1] do end", "for i = a[1], a[2], a[3] do end", "print(unpack(a, 1, a.n))", "return tostring(a[1])", "for _ in pairs(a[1]) do end", "table.sort(a[1], a[2])", "return a[1]:format(unpack(a, 2, a.n))", "return ('x'):gsub(a[1], a[2])", "return ('%s%d%q'):format(unpack(a, 1, a.n))",
	} {
		add("metrics", "%s", x)
	}
	return out
}

const valuesHead = "local weir = require \"weir\"\nlocal V = require \"values\"\n"

// valuesScript is a component whose hooks play the case in a label.
func valuesScript() string {
	var b strings.Builder
	b.WriteString(valuesHead)
	b.WriteString("local function codes(text) local out = {} for n in text:gmatch(\"%d+\") do out[#out + 1] = tonumber(n) end return out end\n")
	b.WriteString("return weir.transform {\n outputs = { \"other\" }, needs = { http = true },\n state = { counter = weir.state.counter {}, map = weir.state.map {}, set = weir.state.set {}, lru = weir.state.lru { max = 10 }, queue = weir.state.queue { max = 10 } },\n")
	targets := valuesTargets()
	for _, hook := range []string{"metrics", "logs", "series", "stream"} {
		params, label := "batch, ctx", "batch[1].labels.codes"
		if hook == "series" || hook == "stream" {
			params, label = "s, ctx", "s.labels.codes"
		}
		fmt.Fprintf(&b, "%s = function(%s)\n local text = %s\n if not text then return end\n V.play(V.case(codes(text)), { %s })\nend,\n", hook, params, label, strings.Join(targets[hook], ",\n  "))
	}
	b.WriteString("}\n")
	return b.String()
}

// valuesDefinition is a component with hostile values in its definition.
func valuesDefinition(codes string) string {
	var keys []string
	for _, params := range api.Get().Keys {
		for _, p := range params {
			if !slices.Contains(keys, p.Name) {
				keys = append(keys, p.Name)
			}
		}
	}
	slices.Sort(keys)
	return valuesHead + fmt.Sprintf(`
local c, keys, define = V.case({ %s }), {}, { weir.transform, weir.source, weir.sink }
for k in (%q):gmatch("[^,]+") do keys[#keys + 1] = k end
local make = define[c.next() %% 3 + 1]
local kinds = {
  function(x) return x end, function(x) return { a = x } end, function(x) return { a = weir.arg.string(x) } end, function(x) return { a = weir.arg.list(x) } end, function(x) return { a = weir.arg.map(x) } end,
  function(x) return { a = weir.arg.block { fields = x } } end, function(x) return { a = weir.arg.enum { values = x } } end, function(x) return { s = weir.state.map(x) } end, function(x) return { x } end,
}
local d = { metrics = function() end }
for _ = 1, 1 + c.next() %% 4 do
  local key, kind = keys[c.index(#keys)], kinds[c.next() %% #kinds + 1]
  d[key] = kind(c.value())
end
if c.next() %% 8 == 0 then d = c.value() end
return make(d)
`, codes, strings.Join(keys, ","))
}
