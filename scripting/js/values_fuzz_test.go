package js_test

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/api"
	"github.com/weir-run/weir/scripting/hostiletest"
	"github.com/weir-run/weir/scripting/js"
	"github.com/weir-run/weir/scripting/node"
)

// hostileValues has the values and reads the cases.
//
//go:embed testdata/values/values.js
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
		fx := build(t, valuesScript(), "routes {\nother = [sink]\n}\nscript {\nlimits { time = \"50ms\" }\nallow {\nhttp = [\"http://127.0.0.1:1/*\"]\n}\n}", "test/values.js", hostileValues)
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
		_, err = js.New().Compile(scripting.File{Name: "test/script.ts", Text: valuesDefinition(codes)}, scripting.Env{
			Modules: modules,
			Import: func(scripting.File, string) (scripting.File, error) {
				return scripting.File{Name: "test/values.js", Text: hostileValues}, nil
			},
		})
	}
	if err != nil && strings.Contains(err.Error(), "BUG") {
		return err
	}
	if h := fx.Health(); h.State != component.Healthy && strings.Contains(h.Message, "BUG") {
		return fmt.Errorf("%s", h.Message)
	}
	return nil
}

// expressions are how a script comes by a value of each type of the table, by
// hook.
var expressions = map[string]struct{ hook, expr string }{
	"batch":                {"metrics", "batch"},
	"record":               {"metrics", "batch[0]"},
	"copy of a record":     {"metrics", "batch[0].copy()"},
	"group":                {"metrics", `[...batch.groupBy(["job"])][0][0]`},
	"series":               {"series", "s"},
	"labels":               {"metrics", "batch[0].labels"},
	"batch of log lines":   {"logs", "batch"},
	"log record":           {"logs", "batch[0]"},
	"copy of a log record": {"logs", "batch[0].copy()"},
	"group of log records": {"logs", `[...batch.groupBy(["app"])][0][0]`},
	"metadata":             {"logs", "batch[0].metadata"},
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
	"metrics.Counter":      {"metrics", `ctx.metrics.counter("c", "A counter.", ["a"])`},
	"metrics.Gauge":        {"metrics", `ctx.metrics.gauge("g", "A gauge.", ["a"])`},
	"metrics.Histogram":    {"metrics", `ctx.metrics.histogram("h", "A histogram.", ["a"])`},
	// Input from the network: the methods take only a name.
	"http.Request":  {},
	"http.Response": {},
}

// valuesTargets are the functions that call each member of a type, by hook.
func valuesTargets() map[string][]string {
	out := map[string][]string{}
	add := func(hook, format string, args ...any) {
		out[hook] = append(out[hook], "(a) => "+fmt.Sprintf(format, args...))
	}
	for _, typ := range api.Get().Types() {
		e, ok := expressions[typ.Name]
		if !ok {
			panic("there is no expression for the type " + typ.Name + ": add one to expressions")
		}
		if e.hook == "" {
			continue
		}
		for _, m := range typ.Methods {
			add(e.hook, "%s.%s(...a)", e.expr, scripting.CamelCase(m.Name))
			add(e.hook, "%s.%s.call(a[0], ...a)", e.expr, scripting.CamelCase(m.Name))
		}
		for _, f := range typ.Fields {
			add(e.hook, "{ %s.%s = a[0] }", e.expr, scripting.CamelCase(f.Name))
		}
		add(e.hook, "%s[a[0]]", e.expr)
		add(e.hook, "{ %s[a[0]] = a[1] }", e.expr)
		add(e.hook, "{ delete %s[a[0]] }", e.expr)
		add(e.hook, "a[0] in %s", e.expr)
		add(e.hook, "[...%s]", e.expr)
		add(e.hook, "`${%s}` + JSON.stringify(%s)", e.expr, e.expr)
	}
	for i, m := range modules {
		for _, f := range m.Funcs {
			add("metrics", "m%d.%s(...a)", i, scripting.CamelCase(f.Name))
		}
	}
	for _, k := range scripting.ComponentKinds {
		add("metrics", "define%s(...a)", strings.ToUpper(string(k)[:1])+string(k)[1:])
	}
	for _, k := range scripting.ArgKinds {
		add("metrics", "arg.%s(...a)", k)
	}
	for _, k := range scripting.StateKinds {
		add("metrics", "state.%s(...a)", k)
	}
	add("metrics", "console.log(...a)")
	add("metrics", "{ throw a[0] }")
	add("metrics", "a[0] + a[1]")
	add("metrics", "({ ...a[0] })")
	add("metrics", "[...a[0]]")
	add("metrics", "fake.call(...a)")
	add("metrics", "`${a[0]}`")
	add("metrics", "a[0](...a)")
	add("metrics", "new a[0](...a)")
	add("metrics", "a[0] instanceof a[1]")
	add("metrics", "Object(a[0])[a[1]]")
	add("metrics", "a[0] == a[1]")
	return out
}

// valuesHead imports everything.
func valuesHead() string {
	var b strings.Builder
	b.WriteString("import { defineTransform, defineSource, defineSink, arg, state } from \"weir\"\nimport { Case, play, values } from \"./values.js\"\n")
	for i, m := range modules {
		fmt.Fprintf(&b, "import m%d from \"weir/%s\"\n", i, m.Name)
		if m.Name == "fake" {
			b.WriteString("import fake from \"weir/fake\"\n")
		}
	}
	return b.String()
}

// valuesScript is a component whose hooks play the case in a label.
func valuesScript() string {
	var b strings.Builder
	b.WriteString(valuesHead())
	b.WriteString("export default defineTransform({\n outputs: [\"other\"], needs: { http: true },\n state: { counter: state.counter(), map: state.map(), set: state.set(), lru: state.lru({ max: 10 }), queue: state.queue({ max: 10 }) },\n")
	targets := valuesTargets()
	for _, hook := range []string{"metrics", "logs", "series", "stream"} {
		params, codes := "batch, ctx", "batch[0].labels.codes"
		if hook == "series" || hook == "stream" {
			params, codes = "s, ctx", "s.labels.codes"
		}
		fmt.Fprintf(&b, "%s(%s) {\n const codes = %s\n if (!codes) return\n const targets = [%s]\n return play(new Case(codes.split(\",\").map(Number)), targets)\n},\n",
			hook, params, codes, strings.Join(targets[hook], ",\n  "))
	}
	b.WriteString("})\n")
	return b.String()
}

// valuesDefinition is a component with hostile values in its definition.
func valuesDefinition(codes string) string {
	var keys []string
	for _, params := range api.Get().Keys {
		for _, p := range params {
			if k := scripting.CamelCase(p.Name); !slices.Contains(keys, k) {
				keys = append(keys, k)
			}
		}
	}
	slices.Sort(keys)
	return valuesHead() + fmt.Sprintf(`
const c = new Case([%s]), keys = %q.split(","), define = [defineTransform, defineSource, defineSink][c.next() %% 3]
const kinds = [x => x, x => ({ a: x }), x => ({ a: arg.string(x) }), x => ({ a: arg.list(x) }), x => ({ a: arg.map(x) }), x => ({ a: arg.block({ fields: x }) }), x => ({ a: arg.enum({ values: x }) }), x => ({ s: state.map(x) }), x => [x], x => Object.assign(() => 1, x)]
const d = { metrics() {} }
for (let n = 1 + c.next() %% 4; n > 0; n--) { const key = keys[c.index(keys.length)], kind = kinds[c.next() %% kinds.length]; d[key] = kind(c.value()) }
export default define(c.next() %% 8 ? d : c.value())
`, codes, strings.Join(keys, ","))
}
