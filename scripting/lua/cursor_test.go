package lua_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/node"
)

const cursorBatch = `
	# TYPE a counter
	a{job="x",path="/1"} 1
	a{job="y",path="/2",zone="b"} 2
	b{job="x",n="3"} 3
	gone{job="x"} stale
	c 0
	h{job="x"} {counts:float,count:2.5,sum:3.25,schema:0,positive_spans:[0:2],positive_buckets:[1.5,1]}
	`

// outcome returns what is sent and what fails when a callback gets a batch.
func outcome(t *testing.T, each string) string {
	t.Helper()
	src := metrics("local list, n, keep = {}, 0, nil\n" + each + "\n for _, x in ipairs(list) do batch:set_label(x, 'seen') end")
	fx := build(t, src, "")
	var errs []string
	ctx := node.Observe(t.Context(), func(e *scripting.Error) {
		errs = append(errs, fmt.Sprintf("%d %v %s %s", e.Line, e.Err, e.Record, e.Hint))
	})
	in, err := batch.ParseText(cursorBatch, batch.TextOptions{T: now})
	if err != nil {
		t.Fatal(err)
	}
	if err := fx.c.(flow.MetricsConsumer).ConsumeMetrics(ctx, in); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, b := range fx.sink.Batches() {
		out.Write(batch.AppendText(nil, b))
	}
	return out.String() + strings.Join(errs, "\n")
}

// sameAsHandles runs a body of each as it is, where its record may be a cursor,
// and in a function that the record is passed to, where it is a handle.
func sameAsHandles(t *testing.T, body string) {
	t.Helper()
	fast := outcome(t, "batch:each(function(m) "+body+" end)")
	slow := outcome(t, "batch:each(function(m) local function f(...) end f(m) "+body+" end)")
	if diff := cmp.Diff(slow, fast); diff != "" {
		t.Errorf("%s: handle (-) and cursor (+) differ:\n%s", body, diff)
	}
}

func TestCursor(t *testing.T) {
	f := func(body string) {
		t.Helper()
		t.Run(body, func(t *testing.T) { t.Helper(); sameAsHandles(t, body) })
	}
	// Reads after a write.
	f(`m.value = 2; m.labels.v = m.value`)
	f(`m.labels.job = "z"; m.labels.v = m.labels.job`)
	f(`m.labels.job = nil; m.labels.v = tostring(m.labels.job)`)
	f(`m.labels = { job = "only" }; m.labels.v = m.labels.job; m.labels.w = tostring(m.labels.path)`)
	f(`m.stale = true; m.labels.v = tostring(m.stale) .. tostring(m.value)`)
	f(`if m.stale then m.stale = false end; m.labels.v = tostring(m.value)`)
	f(`m.name = "n"; m.labels.v = m.name; m.time = m.time + 1; m.labels.t = m.time`)
	f(`m.labels.a, m.labels.b, m.value = "1", m.labels.job, 9`)
	f(`m.labels.v = m.labels.job and m.labels.job .. "!" or "none"`)
	f(`m.labels.v = (m.value > 1 and m.type or m.name)`)
	f(`m.labels.v = string.upper(m.labels.job or "")`)
	f(`m.labels[m.name] = "dynamic"; m.labels.v = m.labels[m.name]; m.labels.w = m.labels.a`)
	f(`local l = m.labels; l.v = "local"; l.w = l.v; m.labels.x = m.labels.w`)
	f(`local l = m.labels.job; l = l and l .. "?"; m.labels.v = l`)
	f(`for k, v in pairs(m.labels) do m.labels.v = (m.labels.v or "") .. k .. v end`)
	f(`for i = 1, 3 do m.labels["n" .. i] = m.value; m.value = m.value + i end`)
	f(`while m.value < 5 do m.value = m.value + 1 end`)
	f(`repeat local v = m.value; m.value = v + 1 until not (m.value <= 4)`) // one value is NaN
	// It is changed otherwise.
	f(`batch:set(1, "value", 77); m.labels.v = m.value`)
	f(`batch:set_label("job", "all"); m.labels.v = m.labels.job; m.labels.job = "mine"; m.labels.w = m.labels.job`)
	f(`keep = keep or batch[2]; keep.labels.job = "kept"; m.labels.v = m.labels.job`)
	f(`for r in batch:records() do r.value = 5; r.labels.job = "r" end; m.labels.v = m.value; m.labels.w = m.labels.job`)
	f(`local v = m.value; batch:scale(nil, 2); m.labels.v = m.value; m.labels.w = v`)
	// It is dropped, copied, emitted.
	f(`if m.value > 1 then m:drop() end; m.labels.v = m.name`)
	f(`local c = m:copy(); c.labels.v = "copy"; c.time = c.time + 1; ctx.emit(c)`)
	f(`local c = m:copy(); m.value = 5; c.name = "copied"; c.labels.v = c.value; ctx.emit(c)`)
	f(`list[#list + 1] = m.name`)
	f(`n = n + m.value; m.labels.v = n`)
	// It gets away.
	f(`keep = keep or m; m.labels.v = keep.name`)
	f(`list.x = list.x or { m }; m.labels.v = list.x[1].name`)
	f(`local function g() return m.name end; m.labels.v = g()`)
	f(`local ok = pcall(function() m.value = "x" end); m.labels.v = tostring(ok)`)
	f(`local r = m; r.labels.v = r.name`)
	f(`m.labels.v = type(m) .. tostring(m == m)`)
	f(`m.labels.v = m and "yes" or "no"`)
	f(`if m then m.labels.v = "yes" end`)
	f(`if not m then m.labels.v = "no" end`)
	f(`m = { labels = {} }; m.labels.v = "x"`)
	f(`do return m end`)
	// It fails.
	f(`m.value = "x"`)
	f(`m.labels.v = {}`)
	f("m.value = m.value + 1\nm.labels.v = 'a'\nm.name = nil")
	f(`m.labels["9 "] = 1; m.labels.v = "x"`)
	f(`m.labels.job = m.labels.job.x.y`)
	f(`m.colour = 1`)
	f(`m.labels.v = m.colour`)
	f(`m.type = "gauge"`)
	f(`m.value = m.value + nil`)
	f(`if m.value > 1 then error("over " .. m.value) end; m.labels.v = "under"`)
	f(`m:dorp()`)
	f(`m:each(1)`)
	f(`m[1] = 2`)
	f(`m.labels.v = m[1]`)
	f(`m.histogram = 1`)
	f(`m.labels.v = #m`)
	f(`m.labels.v = m .. "x"`)
	f(`m.labels.v = m.help .. m.unit .. m.labels.job`)
}

var pieces = struct{ statements, expressions []string }{
	statements: []string{
		`m.value = E`, `m.labels.job = E`, `m.labels.v = E`, `m.labels.w, m.labels.v = E, E`, `m.name = E`, `m.time = m.time + 1`,
		`m.stale = E == E`, `if E == E then S else S end`, `if E then S end`, `local x = E; m.labels.x = x`, `m.labels[E] = E`,
		`for i = 1, 2 do S end`, `local l = m.labels; l.y = E; S`, `m.labels.z = f(E, E)`, `list[#list + 1] = E`, `keep = E; S`,
		`batch:set_label("job", "b"); S`, `m.labels = { job = E, k = E }`, `ctx.emit(m:copy())`, `S; S`, `S; S`,
		`for k, v in pairs(m.labels) do m.labels.q = k .. v end`, `m:drop()`, `local x, y = E, E; m.labels.x = y; m.labels.y = x; S`,
		`while true do S; if E then break end; break end`, `local c = m:copy(); c.value = 3; m.labels.c = c.name`,
	},
	expressions: []string{
		`m.value`, `m.name`, `m.labels.job`, `m.labels.v`, `m.labels.path`, `m.time`, `m.type`, `m.stale`, `1`, `"s"`, `nil`, `true`, `E .. E`,
		`(E and E)`, `(E or E)`, `not E`, `tostring(E)`, `f(E, m.labels.zone)`, `keep`, `#tostring(E)`, `m.labels["job"]`, `m.labels[E]`, `m.value * 2`,
		`(function() return E end)()`, `(m.labels.n or E)`, `m.help`,
	},
}

// write replaces S by statements and E by expressions.
func write(r *rand.Rand, text string, depth int) string {
	var out strings.Builder
	for i := range len(text) {
		edge := (i == 0 || !isWord(text[i-1])) && (i+1 == len(text) || !isWord(text[i+1]))
		switch {
		case edge && text[i] == 'S' && depth <= 0:
			out.WriteString(`m.labels.v = "s"`)
		case edge && text[i] == 'E' && depth <= 0:
			out.WriteString(`m.labels.job`)
		case edge && text[i] == 'S':
			out.WriteString(write(r, pieces.statements[r.IntN(len(pieces.statements))], depth-1))
		case edge && text[i] == 'E':
			out.WriteString(write(r, pieces.expressions[r.IntN(len(pieces.expressions))], depth-1))
		default:
			out.WriteByte(text[i])
		}
	}
	return out.String()
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// FuzzCursor makes callbacks of statements that a script may have.
func FuzzCursor(f *testing.F) {
	for seed := range uint64(120) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 1))
		sameAsHandles(t, "local function f(a, b) return tostring(a) .. tostring(b) end\n"+write(r, "S; S; S", 4))
	})
}
