package js_test

import (
	"strings"
	"testing"

	"github.com/weir-run/weir/engine/component"
)

// TestEmitOutsideOfHooksThatSend holds that ctx.emit and ctx.route say in which
// hooks they can be used. setup keeps the messages until a batch comes.
func TestEmitOutsideOfHooksThatSend(t *testing.T) {
	fx := build(t, `import { defineTransform } from "weir"
const said: string[] = []
function tries(fn: () => void) { try { fn() } catch (e: any) { said.push(e.message) } }
export default defineTransform({
  outputs: ["other"],
  setup(ctx: any) {
    tries(() => ctx.emit({ name: "x", value: 1 }))
    tries(() => ctx.emit(null))
    tries(() => ctx.route("other", { name: "x", value: 1 }))
  },
  metrics(batch: any, ctx: any) {
    for (const message of said) ctx.log.info(message)
  },
})
`, routed)
	defer fx.Run(t, fx.c)()
	equal(t, fx.send(t, "a 1\n"), "a 1\n")
	const emit, route = "cannot use ctx.emit here: it is for metrics, logs, every, poll, run and http", "cannot use ctx.route here: it is for metrics, logs, every, poll, run and http"
	if log := fx.Logs(); strings.Count(log, emit) != 2 || strings.Count(log, route) != 1 {
		t.Errorf("got %s", log)
	}
}

// TestRouteWithoutABatch holds that a timer routes objects, and that it cannot
// route a record by its number.
func TestRouteWithoutABatch(t *testing.T) {
	allPass(t, runScriptTest(t, `import { defineTransform } from "weir";
export default defineTransform({
  outputs: ["other"], sends: ["metrics"],
  metrics() {},
  every: {
    "10s": (ctx) => ctx.route("other", { name: "x", value: 1 }),
    "1m": (ctx) => ctx.route("other", 0),
  },
});
`, `
it("routes an object", () => {
  const t = component("a.ts");
  const out = t.advance("10s");
  expect(out.length).toBe(0);
  expect(out.routed("other").text()).toBe("x 1\n");
});
it("has no record 0", () => {
  const t = component("a.ts");
  expect(() => t.advance("1m")).toThrow("cannot route a record by its number here: there is no batch");
});
`), 2)
}

// TestSeriesHasArgumentsAlone holds that the hook series, whose answer is
// remembered, is refused whatever may change it, also by a ctx that another hook
// left behind.
func TestSeriesHasArgumentsAlone(t *testing.T) {
	f := func(body, want string) {
		t.Helper()
		fx := build(t, `import { defineTransform, state } from "weir"
let kept: any
export default defineTransform({
  state: { seen: state.set() },
  setup(ctx: any) { kept = ctx },
  series(s: any, ctx: any) {
`+body+`
  },
})
`, "")
		defer fx.Run(t, fx.c)()
		equal(t, fx.send(t, "a 1\n"), "a 1\n")
		if h := fx.Health(); h.State != component.Unhealthy || !strings.Contains(h.Message, "script.ts:7:") || !strings.Contains(h.Message, want) {
			t.Errorf("%s: got %s: %q, want %q", body, h.State, h.Message, want)
		}
	}
	const because = " in series: its result is cached and may depend only on labels and ctx.args; use metrics"
	f(`ctx.now()`, "cannot use ctx.now"+because)
	f(`ctx.log.info("x")`, "cannot use ctx.log"+because)
	f(`ctx.http.get("http://a/")`, "cannot use ctx.http"+because)
	f(`ctx.nothing`, `ctx has no "nothing" in series: there is args`)
	f(`kept.now()`, "cannot use ctx.now"+because)
	f(`kept.sleep(0)`, "cannot use ctx.sleep"+because)
	f(`kept.state.seen.add("x")`, "cannot use ctx.state in series or stream")
	f(`kept.emit({ name: "x", value: 1 })`, "cannot use ctx.emit here")
}

// TestLateBatches holds that a batch, a line and a series end with their hook, and
// that the methods of a batch of samples refuse one of lines, and the other way round.
func TestLateBatches(t *testing.T) {
	fx := build(t, asserting+`import { defineTransform } from "weir"
		const kept: any = {}
		export default defineTransform({
			series(s: any) { kept.series = s },
			metrics(batch: any, ctx: any) {
				kept.batch = batch
				kept.mapValue = batch.mapValue
				fails(() => kept.series.name, "cannot use a series after its hook returned")
				fails(() => kept.series.labels.job, "cannot use a series after its hook returned")
				if (!kept.lines) return
				fails(() => kept.lines.length, "cannot use a batch after its hook returned")
				fails(() => kept.line.line, "cannot use a record after its hook returned")
				fails(() => kept.setLine.call(batch, "x"), "cannot use a batch of samples as one of log lines")
				batch.setLabel("checked", "all")
			},
			logs(batch: any, ctx: any) {
				kept.lines = batch
				kept.line = batch[0]
				kept.setLine = batch.setLine
				fails(() => kept.batch.length, "cannot use a batch after its hook returned")
				fails(() => kept.batch[0], "cannot use a batch after its hook returned")
				fails(() => [...kept.batch], "cannot use a batch after its hook returned")
				fails(() => kept.batch.text(), "cannot use a batch after its hook returned")
				fails(() => kept.mapValue.call(batch, (v: number) => v), "cannot use a batch of log lines as one of samples")
				batch.setLabel("checked", "all")
			},
		})`, `script { concurrency = "single" }`) // one VM, which keeps the variable
	equal(t, fx.send(t, "a 1\n"), "a 1\n")
	if got, want := fx.sendLogs(t, "{} hi\n"), "{checked=\"all\"} hi\n"; got != want {
		t.Errorf("got %s: %s", got, fx.Health().Message)
	}
	if got, want := fx.send(t, "b 1\n"), "b{checked=\"all\"} 1\n"; got != want {
		t.Errorf("got %s: %s", got, fx.Health().Message)
	}
}

// TestRouteRecords holds that a record that is routed leaves forward_to, however it
// is named, and that copies go there in addition.
func TestRouteRecords(t *testing.T) {
	f := func(body, want, other string) {
		t.Helper()
		allPass(t, runScriptTest(t, `import { defineTransform } from "weir";
export default defineTransform({ outputs: ["other"], metrics(batch, ctx) { `+body+` } });
`, `
it("routes", () => {
  const t = component("a.ts");
  const out = t.metrics("a 1\nb 2");
  expect(out.text()).toBe(`+want+`);
  expect(out.routed("other").text()).toBe(`+other+`);
});
`), 1)
	}
	f(`ctx.route("other", batch[0])`, `"b 2\n"`, `"a 1\n"`)
	f(`ctx.route("other", 1)`, `"a 1\n"`, `"b 2\n"`)
	f(`for (const r of [...batch]) ctx.route("other", r)`, `""`, `"a 1\nb 2\n"`)
	f(`ctx.route("other", batch[0].copy())`, `"a 1\nb 2\n"`, `"a 1\n"`)
	f(`for (const [i, v] of batch.rows("value")) if (v > 1) ctx.route("other", i)`, `"a 1\n"`, `"b 2\n"`)
	f(`const r = batch[0]; r.value = 5; ctx.route("other", r); r.labels.x = "y"`, `"b 2\n"`, "'a{x=\"y\"} 5\\n'")
}
