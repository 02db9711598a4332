package main

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/grafana/alloy/syntax/parser"
	"github.com/grafana/alloy/syntax/vm"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/flow/flowtest"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/api"
	"github.com/weir-run/weir/scripting/registry"
	"github.com/weir-run/weir/stdlib"
)

// buildScript builds a script in front of a sink. language is the extension of
// its files.
func buildScript(t testing.TB, language, src string) (component.Component, *componenttest.Node, *flowtest.Sink) {
	t.Helper()
	c, err := registry.NewCatalog(registry.Options{
		Languages: languages(), Embedded: fstest.MapFS{"bench/script." + language: {Data: []byte(src)}}, Modules: stdlib.Modules(),
	})
	if err != nil {
		t.Fatal(err)
	}
	reg, ok := c.Lookup("bench.script")
	if !ok || reg.Err != nil {
		t.Fatalf("cannot load: %v\n%s", reg.Err, src)
	}
	file, err := parser.ParseFile("test.alloy", []byte("forward_to = [sink]\nscript {\nlimits { time = \"1m\" }\n}\n"))
	if err != nil {
		t.Fatal(err)
	}
	sink := flowtest.NewSink("sink")
	args := reg.NewArgs()
	if err := vm.New(file).Evaluate(vm.NewScope(map[string]any{"sink": sink.Receiver()}), args); err != nil {
		t.Fatal(err)
	}
	node := componenttest.New(t, "bench.script.default")
	return node.Build(t, reg, args), node, sink
}

// operation is a statement of a hook in both languages. In it, L stands for a
// label, V for a label value, N for a number and X for an expression.
type operation struct{ lua, js string }

var sampleOperations = []operation{
	{`batch:drop_where([[ X ]])`, "batch.dropWhere(`X`)"},
	{`batch:keep_where([[ X ]])`, "batch.keepWhere(`X`)"},
	{`batch:set_label("L", "V")`, `batch.setLabel("L", "V")`},
	{`batch:set_label("L", N)`, `batch.setLabel("L", N)`},
	{`batch:drop_label("L")`, `batch.dropLabel("L")`},
	{`batch:keep_labels { "L", "L", "row" }`, `batch.keepLabels(["L", "L", "row"])`},
	{`batch:rename_label("L", "L")`, `batch.renameLabel("L", "L")`},
	{`batch:scale([[ X ]], N)`, "batch.scale(`X`, N)"},
	{`batch:scale(nil, N)`, `batch.scale(undefined, N)`},
	{`batch:set_value([[ X ]], "value * N")`, "batch.setValue(`X`, \"value * N\")"},
	{`batch:map_label("L", function(x) if x ~= "V" then return x .. "!" end end)`, `batch.mapLabel("L", (x) => x !== "V" ? x + "!" : undefined)`},
	{`batch:map_value(function(v) if v < N then return v + N end end)`, `batch.mapValue((v) => { if (v < N) return v + N })`},
	{`batch:filter({ "L", "value" }, function(l, v) return l ~= "V" or v > N end)`, `batch.filter(["L", "value"], (l, v) => l !== "V" || v > N)`},
	{`batch:filter({ "name", "stale", "time", "type" }, function(n, s, t, k) return s or n ~= "m1" or k == "counter" end)`,
		`batch.filter(["name", "stale", "time", "type"], (n, s, t, k) => s || n !== "m1" || k === "counter")`},
	{`for i, l, v in batch:rows("L", "value") do if l == "V" then batch:set(i, "value", (v or 0) + N) else batch:set(i, { L = "V", name = "n" }) end end`,
		`for (const [i, l, v] of batch.rows("L", "value")) if (l === "V") batch.set(i, "value", (v ?? 0) + N); else batch.set(i, { L: "V", name: "n" })`},
	{`for i, l in batch:rows("L") do if not l then batch:drop(i) end end`, `for (const [i, l] of batch.rows("L")) if (l === undefined) batch.drop(i)`},
	{`batch:each(function(m) if m.labels.L == "V" then m:drop() else m.labels.L = "V" end end)`, `batch.each((m) => { if (m.labels.L === "V") m.drop(); else m.labels.L = "V" })`},
	{`batch:each(function(m) m.name = m.name .. "_x"; m.labels.L = nil; m.time = m.time + N; ctx.emit(m) if m.stale or (m.value or 0) > N then error("no") end end)`,
		`batch.each((m) => { m.name += "_x"; delete m.labels.L; m.time += N; ctx.emit(m); if (m.stale || (m.value ?? 0) > N) throw new Error("no") })`},
	{`batch:each(function(m) m.stale = not m.stale end)`, `batch.each((m) => { m.stale = !m.stale })`},
	{`for m in batch:records() do for k, v in pairs(m.labels) do m.labels[k .. "_"] = v end end`, `for (const m of batch) for (const k of Object.keys(m.labels)) m.labels[k + "_"] = m.labels[k]`},
	{`for m in batch:records() do if m.value and m.value == m.value then m.labels = { L = "V", n = N } end end`, `for (const m of batch.records()) if (m.value === m.value && m.value !== undefined) m.labels = { L: "V", n: N }`},
	{`for g, l in batch:group_by { "L" } do ctx.emit { name = "of", labels = { L = l, size = #g }, value = N } if l == "V" then g:drop() end end`,
		`for (const [g, l] of batch.groupBy(["L"])) { ctx.emit({ name: "of", labels: { L: l, size: g.length }, value: N }); if (l === "V") g.drop() }`},
	{`if batch[1] then local c = batch[1]:copy(); c.labels.L, c.name, c.type = "V", "copy", "gauge"; ctx.emit(c) end`, `if (batch[0]) { const c = batch[0].copy(); c.labels.L = "V"; c.name = "copy"; c.type = "gauge"; ctx.emit(c) }`},
	{`if N > 900 then error("no") end`, `if (N > 900) throw new Error("no")`},
	{`ctx.emit { name = "text", labels = { all = batch:text() }, value = 1 }`, `ctx.emit({ name: "text", labels: { all: batch.text() }, value: 1 })`},
	{`for m in batch:records() do local h = m.histogram; if h then m.labels.h = h.count .. "/" .. #h.buckets end local e = m.exemplars; if e then m.labels.e = e[1].labels.trace end end`,
		"for (const m of batch) { const h = m.histogram; if (h) m.labels.h = `${h.count}/${h.buckets.length}`; const e = m.exemplars; if (e) m.labels.e = e[0].labels.trace }"},
}

var lineOperations = []operation{
	{`batch:drop_where([[labels.L == "V"]])`, "batch.dropWhere(`labels.L == \"V\"`)"},
	{`batch:keep_where([[line contains "warn" || labels.L != "V"]])`, "batch.keepWhere(`line contains \"warn\" || labels.L != \"V\"`)"},
	{`batch:set_label("L", "V")`, `batch.setLabel("L", "V")`},
	{`batch:keep_labels { "L", "L" }`, `batch.keepLabels(["L", "L"])`},
	{`batch:drop_label("L")`, `batch.dropLabel("L")`},
	{`batch:rename_label("L", "L")`, `batch.renameLabel("L", "L")`},
	{`if batch:text():find("warn", 1, true) then batch:set_label("L", N) end`, `if (batch.text().includes("warn")) batch.setLabel("L", N)`},
	{`batch:map_label("L", function(x) return x .. "!" end)`, `batch.mapLabel("L", (x) => x + "!")`},
	{`batch:promote("json.level", "L")`, `batch.promote("json.level", "L")`},
	{`batch:set_line("{L}: {json.msg}{logfmt.msg} {time}")`, `batch.setLine("{L}: {json.msg}{logfmt.msg} {time}")`},
	{`batch:json({ "level", "n", "deep.a.0", "deep" }, function(level, n, a, deep, r) if level == "debug" then return false end r.labels.L = level r.metadata.n = n r.metadata.a = a r.metadata.d = deep end)`,
		`batch.json(["level", "n", "deep.a.0", "deep"], (level, n, a, deep, r) => { if (level === "debug") return false; r.labels.L = level; r.metadata.n = n; r.metadata.a = a; r.metadata.d = deep })`},
	{`batch:logfmt({ "level", "msg" }, function(level, msg) return level ~= "debug" end)`, `batch.logfmt(["level", "msg"], (level, msg) => level !== "debug")`},
	{`batch:match([[level=(\w+)( quick)?]], function(level, quick, r) r.labels.L = level r.line = r.line .. (quick or "") end)`,
		"batch.match(String.raw`level=(\\w+)( quick)?`, (level, quick, r) => { r.labels.L = level; r.line += quick ?? \"\" })"},
	{`batch:filter({ "L", "meta.n", "json.n", "line" }, function(l, m, n, line) return l ~= "V" or n ~= nil or #line > 20 end)`,
		`batch.filter(["L", "meta.n", "json.n", "line"], (l, m, n, line) => l !== "V" || n !== undefined || line.length > 20)`},
	{`for i, line, l in batch:rows("line", "L") do if l then batch:set(i, { line = line .. l, ["meta.x"] = N }) else batch:drop(i) end end`,
		`for (const [i, line, l] of batch.rows("line", "L")) if (l) batch.set(i, { line: line + l, "meta.x": N }); else batch.drop(i)`},
	{`batch:each(function(r) r.line = r.line .. "." r.labels.L = r:json("level") r.time = r.time + N if r:contains("warn") then error("no") end end)`,
		`batch.each((r) => { r.line += "."; r.labels.L = r.json("level"); r.time += N; if (r.contains("warn")) throw new Error("no") })`},
	{`for r in batch:records() do r.ts = r.ts; r.metadata = { L = "V", n = N } end`, `for (const r of batch) { r.ts = r.ts; r.metadata = { L: "V", n: N } }`},
	{`for g, l in batch:group_by { "L", "json.level" } do ctx.emit { line = "group", labels = { L = l, size = #g } } for r in g:records() do r.labels.g = #g end end`,
		`for (const [g, l] of batch.groupBy(["L", "json.level"])) { ctx.emit({ line: "group", labels: { L: l, size: g.length } }); for (const r of g) r.labels.g = g.length }`},
	{`if batch[1] then local c = batch[1]:copy() c.line, c.labels.L, c.metadata.x = "copy", nil, "V" ctx.emit(c) ctx.emit(batch[1]) batch[1]:drop() end`,
		`if (batch[0]) { const c = batch[0].copy(); c.line = "copy"; delete c.labels.L; c.metadata.x = "V"; ctx.emit(c); ctx.emit(batch[0]); batch[0].drop() }`},
	{`ctx.emit { line = "at " .. N, ts = "1700000000000000001", metadata = { L = "V" } }`, "ctx.emit({ line: `at ${N}`, ts: \"1700000000000000001\", metadata: { L: \"V\" } })"},
}

// TestLanguagesAgreeOnAll: sampleOperations and lineOperations call every method
// of a batch.
func TestLanguagesAgreeOnAll(t *testing.T) {
	f := func(list string, operations []operation, of *scripting.ObjectType) {
		t.Helper()
		for _, m := range of.Methods {
			called := func(o operation) bool { return regexp.MustCompile(`batch:` + m.Name + `\b`).MatchString(o.lua) }
			if !slices.ContainsFunc(operations, called) {
				t.Errorf("%s has no call of batch:%s: add one", list, m.Name)
			}
		}
	}
	f("sampleOperations", sampleOperations, api.Get().Batch)
	f("lineOperations", lineOperations, api.Get().Logs)
}

// filled returns an operation with its letters replaced, in the same way in both
// languages.
func (o operation) filled(r *rand.Rand) operation {
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	exprs := []string{`labels.job == "a"`, `value > 3`, `name startsWith "m" && value < 7`, `labels.zone == "" || type == "counter"`, `true`, `time > 0 && labels.job in ["a", "c"]`}
	for _, letter := range []string{"L", "V", "N", "X"} {
		for {
			var with string
			switch letter {
			case "L":
				with = pick("job", "zone", "pod", "app")
			case "V":
				with = pick("a", "b", "c", "ü")
			case "N":
				with = fmt.Sprint(r.IntN(1000))
			case "X":
				with = exprs[r.IntN(len(exprs))]
			}
			lua, js := cutLetter(o.lua, letter), cutLetter(o.js, letter)
			if lua < 0 || js < 0 {
				break
			}
			o.lua, o.js = o.lua[:lua]+with+o.lua[lua+1:], o.js[:js]+with+o.js[js+1:]
		}
	}
	return o
}

// cutLetter returns the first index in code at which a letter stands alone, or -1.
func cutLetter(code, letter string) int {
	word := func(c byte) bool {
		return c == '_' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
	}
	for from := 0; ; {
		i := strings.Index(code[from:], letter)
		if i < 0 {
			return -1
		}
		i += from
		if (i == 0 || !word(code[i-1])) && (i+1 == len(code) || !word(code[i+1])) {
			return i
		}
		from = i + 1
	}
}

func randomSamples(r *rand.Rand) string {
	var b strings.Builder
	b.WriteString("# TYPE m0 counter\n")
	for i := range 2 + r.IntN(12) {
		fmt.Fprintf(&b, "m%d{", r.IntN(3))
		for _, l := range []string{"job", "zone", "pod"} {
			if r.IntN(3) > 0 {
				fmt.Fprintf(&b, "%s=%q,", l, []string{"a", "b", "c", "ü"}[r.IntN(4)])
			}
		}
		fmt.Fprintf(&b, "row=\"%d\"} ", i)
		switch r.IntN(12) {
		case 0:
			b.WriteString("stale\n")
		case 1:
			b.WriteString("NaN\n")
		case 2:
			b.WriteString("{count:3,sum:1.5,schema:0,positive_spans:[0:2],positive_buckets:[1,2]}\n")
		case 3:
			b.WriteString("5 # {trace=\"t\"} 1 1699999999000\n")
		case 4:
			b.WriteString("-0\n")
		default:
			fmt.Fprintf(&b, "%g\n", float64(r.IntN(4000))/4)
		}
	}
	return b.String()
}

func randomLines(r *rand.Rand) string {
	lines := []string{
		`{"level":"debug","n":12,"deep":{"a":[true,null]},"msg":"hi"}`, `{"level":"warn","n":1.5,"msg":"ü"}`, `level=warn msg="not there" n=3`, `level=debug quick`,
		`plain`, `{"level":null,"n":"x"}`, `{"broken`, `warn: ` + strings.Repeat("long ", 20),
	}
	var b strings.Builder
	for range 1 + r.IntN(8) {
		fmt.Fprintf(&b, "{app=%q,job=%q} ", []string{"a", "b", "ü"}[r.IntN(3)], []string{"a", "c"}[r.IntN(2)])
		if r.IntN(3) == 0 {
			b.WriteString(`{n="1",trace="t"} `)
		}
		b.WriteString(lines[r.IntN(len(lines))] + "\n")
	}
	return b.String()
}

// agree runs the same operations in both languages on the same batches.
func agree(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 6))
	hook, operations := "metrics", sampleOperations
	if r.IntN(2) == 0 {
		hook, operations = "logs", lineOperations
	}
	var luas, jss []string
	for range 1 + r.IntN(4) {
		o := operations[r.IntN(len(operations))].filled(r)
		luas, jss = append(luas, o.lua), append(jss, o.js)
	}
	sources := map[string]string{
		"lua": "local weir = require \"weir\"\nreturn weir.transform { " + hook + " = function(batch, ctx)\n" + strings.Join(luas, "\n") + "\nend }\n",
		"js":  "import { defineTransform } from \"weir\"\nexport default defineTransform({ " + hook + "(batch, ctx) {\n" + strings.Join(jss, "\n") + "\n} })\n",
	}
	var in []string
	for range 2 {
		if hook == "metrics" {
			in = append(in, randomSamples(r))
		} else {
			in = append(in, randomLines(r))
		}
	}
	got := map[string]string{}
	for language, src := range sources {
		c, node, sink := buildScript(t, language, src)
		for _, text := range append(in, in[0]) { // the second pass uses caches
			sendText(t, c, hook, text)
		}
		var out []byte
		for _, b := range sink.Batches() {
			out = batch.AppendTextAt(append(out, "-\n"...), b, priceTime)
		}
		for _, b := range sink.Logs() {
			out = batch.AppendLogsTextAt(append(out, "-\n"...), b, priceTime*1_000_000)
		}
		got[language] = string(out) + string(node.Health().State.String())
	}
	if diff := cmp.Diff(got["lua"], got["js"]); diff != "" {
		t.Errorf("seed %d: Lua (-) and JavaScript (+) differ:\n%s\n%s\n%s\nof\n%s", seed, diff, sources["lua"], sources["js"], strings.Join(in, "-\n"))
	}
}

func sendText(t *testing.T, c component.Component, hook, text string) {
	t.Helper()
	if hook == "metrics" {
		b, err := batch.ParseText(text, batch.TextOptions{T: priceTime})
		if err != nil {
			t.Fatalf("cannot parse %s: %v", text, err)
		}
		if err := c.(flow.MetricsConsumer).ConsumeMetrics(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		return
	}
	b, err := batch.ParseLogsText(text, batch.TextOptions{T: priceTime * 1_000_000, Source: 1})
	if err != nil {
		t.Fatalf("cannot parse %s: %v", text, err)
	}
	if err := c.(flow.LogsConsumer).ConsumeLogs(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}

// TestLanguagesAgree: the same operations have the same result in every language.
func TestLanguagesAgree(t *testing.T) {
	for seed := range uint64(60) {
		agree(t, seed)
	}
}

// FuzzLanguages searches for operations with different results in the languages.
func FuzzLanguages(f *testing.F) {
	for seed := range uint64(10) {
		f.Add(seed)
	}
	f.Fuzz(agree)
}
