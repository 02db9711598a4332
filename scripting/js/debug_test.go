package js_test

import (
	"strings"
	"testing"

	"github.com/google/go-dap"

	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/debug/debugtest"
	"github.com/weir-run/weir/scripting/js"
)

// debugs is a client that debugs a script.
type debugs struct {
	t *testing.T
	c *debugtest.Client
}

const debuggedPath = "/w/scripts/x.ts"

func debugged(t *testing.T, text string) *debugs {
	t.Helper()
	return &debugs{t, debugtest.Run(t, js.New(), scripting.File{Name: "scripts/x.ts", Path: debuggedPath, Text: text}, "a{b=\"c\"} 1\nd 2\n")}
}

func (d *debugs) equal(got, want string) {
	d.t.Helper()
	if got != want {
		d.t.Errorf("got  %s\nwant %s", got, want)
	}
}

// fields returns the values in the value of an expression.
func (d *debugs) fields(code string) string {
	d.t.Helper()
	r := debugtest.Do[*dap.EvaluateResponse](d.c, "evaluate", &dap.EvaluateRequest{Arguments: dap.EvaluateArguments{Expression: code, FrameId: 1}})
	if r.Body.VariablesReference == 0 {
		return ""
	}
	return debugtest.Join(d.c.Variables(r.Body.VariablesReference))
}

func TestDebug(t *testing.T) {
	d := debugged(t, `import { defineTransform, type Batch } from "weir";
const factor: number = 3;
function scale(x: number): number {
  const y = x * factor;
  return y;
}
interface Unused {
  a: string;
}
export default defineTransform({
  metrics(batch: Batch) {
    let sum = 0;
    for (let i = 1; i <= 3; i++) {
      const z = scale(i);
      sum += z;
    }
    const x = { a: 1, b: ["first"] };
    return scale(sum) as any;
  },
});
`)
	got := d.c.Start(debuggedPath, dap.SourceBreakpoint{Line: 3, Condition: "x === 2"}, dap.SourceBreakpoint{Line: 99})
	if !got[0].Verified || got[0].Line != 4 || got[1].Verified {
		t.Fatalf("%+v", got)
	}
	c, f := d.c, d.equal
	f(c.Stopped(), "breakpoint scale:4 metrics:14")
	f(c.Scope(1, "Locals"), "x=2")
	f(c.Scope(1, "File"), "defineTransform=function defineTransform factor=3 scale=function scale")
	f(c.Scope(2, "Locals"), "batch=batch of 2 records sum=3 i=2")
	f(c.Evaluate(1, "x + factor"), "5")
	f(c.Evaluate(2, "sum as number"), "3")
	f(c.Evaluate(2, "sum = 100"), "100")
	c.Step("next")
	f(c.Stopped(), "step scale:5 metrics:14")
	f(c.Scope(1, "Locals"), "x=2 y=6")
	c.Step("stepOut")
	f(c.Stopped(), "step metrics:15")
	c.Step("next")
	f(c.Stopped(), "step metrics:14")
	f(c.Evaluate(0, "sum"), "106")
	c.Break(debuggedPath)
	c.Step("next")
	c.Stopped()
	c.Step("next")
	f(c.Stopped(), "step metrics:17")
	c.Step("next")
	f(c.Stopped(), "step metrics:18")
	f(c.Scope(1, "Locals"), "batch=batch of 2 records sum=115 x={a, b}")
	c.Step("stepIn")
	f(c.Stopped(), "step scale:4 metrics:18")
	c.Step("continue")
	c.Output("done")
}

// stops sets breakpoints at lines and returns a function that continues and returns
// the next stop.
func (d *debugs) stops(lines ...int) func() string {
	d.t.Helper()
	var points []dap.SourceBreakpoint
	for _, n := range lines {
		points = append(points, dap.SourceBreakpoint{Line: n})
	}
	for i, b := range d.c.Start(debuggedPath, points...) {
		if b.Line != lines[i] {
			d.t.Errorf("the breakpoint of line %d is in line %d: %s", lines[i], b.Line, b.Message)
		}
	}
	first := true
	return func() string {
		d.t.Helper()
		if !first {
			d.c.Step("continue")
		}
		first = false
		return d.c.Stopped()
	}
}

func TestDebugScopes(t *testing.T) {
	d := debugged(t, `import { defineTransform, type Metrics } from "weir";
const x = 1;
class Counter {
  #n = 1;
  constructor(private step: number) {}
  add(n: number) {
    return (this.#n += n * this.step);
  }
}
const fail = (x: string): never => {
  throw new Error(x);
};
function outer(a: number, { b, c: [d, ...e] }: { b: number; c: number[] }, f = a + 1) {
  const g = 10;
  const inner = (h: number) => {
    if (h > 100) {
      return 0;
    } else if (h > 1) {
      return g + h;
    }
    return x;
  };
  switch (inner(2)) {
    case 12:
      let late = 1;
      late++;
  }
  for (const [x, y] of [[5, 6]]) {
    inner(x + y);
  }
  for (const x in { q: 1 }) {
    for (let i = 0, x = 1; i < 1; i++) inner(x);
  }
  try {
    fail("oh");
  } catch (err) {
    var hoisted = String(err);
  }
  return hoisted + d + e + f;
}
export default defineTransform({
  async metrics(batch: Metrics) {
    const before = new Counter(2);
    before.add(3);
    await Promise.resolve(1);
    const text = outer(1, { b: 2, c: [3, 4, 5] });
    return text as never;
  },
});
`)
	next := d.stops(7, 11, 14, 19, 26, 29, 32, 39)
	d.equal(next(), "breakpoint add:7 metrics:44")
	d.equal(d.c.Scope(1, "Locals"), "n=3 this=Counter {step}")
	d.equal(d.c.Evaluate(1, "this.step * n"), "6")
	d.equal(d.c.Scope(2, "Locals"), "batch=batch of 2 records before=Counter {step}")
	d.equal(next(), "breakpoint outer:14 metrics:46")
	d.equal(d.c.Scope(1, "Locals"), "a=1 b=2 d=3 e=Array(2) f=2 hoisted=undefined")
	d.equal(next(), "breakpoint inner:19 outer:23 metrics:46")
	d.equal(d.c.Scope(1, "Locals"), "h=2")
	d.equal(d.c.Scope(1, "Closure"), "a=1 b=2 d=3 e=Array(2) f=2 hoisted=undefined g=10 inner=function inner")
	d.equal(d.c.Scope(1, "File"), "defineTransform=function defineTransform x=1 Counter=function Counter fail=function fail outer=function outer")
	d.equal(next(), "breakpoint outer:26 metrics:46")
	d.equal(d.c.Evaluate(1, "late"), "1")
	d.equal(d.c.Evaluate(1, "late = 7"), "7")
	d.equal(d.c.Evaluate(1, "late"), "7")
	d.equal(next(), "breakpoint outer:29 metrics:46")
	d.equal(d.c.Evaluate(1, "x + y"), "11") // not the x of the file
	d.equal(next(), "breakpoint inner:19 outer:29 metrics:46")
	d.equal(next(), "breakpoint outer:32 metrics:46")
	d.equal(d.c.Evaluate(1, "x"), `"q"`)
	d.equal(next(), "breakpoint fail:11 outer:35 metrics:46")
	d.equal(d.c.Scope(1, "Locals"), `x="oh"`)
	d.equal(next(), "breakpoint outer:39 metrics:46")
	d.equal(d.c.Evaluate(1, "hoisted"), `"Error: oh"`)
	d.equal(d.c.Evaluate(1, "x = 2"), "error: TypeError: Assignment to constant variable.")
	d.equal(d.c.Evaluate(1, "defineTransform = 2"), "error: cannot assign to defineTransform: it is imported")
	d.equal(d.c.Evaluate(1, "a = 1; f = 3"), "undefined")
	d.equal(d.c.Evaluate(1, "a + f"), "4")
	d.c.Break(debuggedPath)
	d.c.Step("continue")
	d.c.Output("done")
}

func TestDebugValues(t *testing.T) {
	d := debugged(t, `import { defineTransform } from "weir";
export default defineTransform({
  metrics(batch, ctx) {
    const record = batch[0];
    for (const r of batch) {
      const values = [1.5, -0, 10n, null, undefined, true, "a\nb", Symbol("s"), new Date(0), /x/g, new Error("oh")];
      const map = new Map<unknown, unknown>([["k", { a: 1 }], [2, new Set([3])]]);
      const odd = { get bad() { throw new Error("no") }, fn: () => 1, p: Promise.resolve(4), self: null as unknown };
      odd.self = odd;
      const wide = { a: 1, b: 2, c: 3, d: 4, e: 5, f: 6 };
      const many = Array.from({ length: 600 }, (_, i) => i);
      r.labels.z = "1";
    }
  },
});
`)
	next := d.stops(12)
	next()
	d.equal(d.fields("values"), `[0]=1.5 [1]=-0 [2]=10n [3]=null [4]=undefined [5]=true [6]="a\nb" [7]=Symbol(s) [8]=`+"Thu Jan 01 1970 00:00:00 GMT+0000 (UTC) [9]=/x/g [10]=oh")
	d.equal(d.fields("map"), `"k"={a} 2=Set(1)`)
	d.equal(d.fields("odd"), `bad=error: no fn=function fn p=Promise, fulfilled self={bad, fn, p, self}`)
	d.equal(d.c.Evaluate(0, "wide"), "{a, b, c, d, e, …}")
	d.equal(d.c.Evaluate(0, "many"), "Array(600)")
	if got := d.fields("many"); !strings.HasSuffix(got, "[499]=499 …=100 more") {
		t.Errorf("got %s", got)
	}
	d.equal(d.fields("batch"), `[0]=a{b="c"} 1 1700000000000 [1]=d 2 1700000000000`)
	d.equal(d.fields("r"), `name="a" type="unknown" value=1 labels={b="c"} time=1700000000000 stale=false help="" unit="" histogram=undefined exemplars=undefined`)
	d.equal(d.fields("r.labels"), `b="c"`)
	// Evaluated code has limits of its own.
	d.equal(d.c.Evaluate(0, "(() => { for (;;) {} })()"), "error: limit exceeded: the call ran longer than 1s")
	d.equal(d.c.Evaluate(0, "(function f() { f() })()"), "error: the calls nest too deep")
	d.equal(d.c.Evaluate(0, "eval('1')"), "error: ReferenceError: eval is not defined")
	d.equal(d.c.Evaluate(0, "1 +"), "error: Unexpected \")\"")
	d.equal(d.c.Evaluate(0, "1), (2"), "error: write one expression, or statements without return")
	d.equal(d.c.Evaluate(0, "return 1"), "error: write one expression, or statements without return")
	d.equal(d.c.Evaluate(0, "later"), "error: ReferenceError: later is not defined")
	d.equal(d.c.Evaluate(0, "r.labels.z = 'set'"), `"set"`)
	d.equal(d.fields("r.labels"), `b="c" z="set"`)
	d.c.Break(debuggedPath)
	d.c.Step("continue")
	d.c.Output("done")
}

// TestDebugAwait checks stops after an await.
func TestDebugAwait(t *testing.T) {
	d := debugged(t, `import { defineTransform } from "weir";
async function one(n: number) {
  await null;
  return n + 1;
}
export default defineTransform({
  async metrics(batch) {
    const x = await one(1);
    const y = await one(x);
    batch.length + y;
  },
});
`)
	next := d.stops(4)
	d.equal(next(), "breakpoint one:4 metrics:8")
	d.equal(d.c.Scope(1, "Locals"), "n=1")
	d.equal(d.c.Scope(2, "Locals"), "batch=batch of 2 records")
	d.c.Break(debuggedPath)
	d.c.Step("next")
	d.equal(d.c.Stopped(), "step metrics:9")
	d.c.Step("next")
	d.equal(d.c.Stopped(), "step metrics:10")
	d.equal(d.c.Scope(1, "Locals"), "batch=batch of 2 records x=2 y=3")
	d.c.Step("continue")
	d.c.Output("done")
}

// TestDebugError checks that the inserted calls do not appear in errors.
func TestDebugError(t *testing.T) {
	d := debugged(t, `import { defineTransform } from "weir";
export default defineTransform({
  metrics(batch) {
    const q: any = { n: batch.length };
    q.bar();
  },
});
`)
	d.c.Start(debuggedPath)
	d.equal(d.c.Output("error"), `error: scripts/x.ts:5:7: in metrics: TypeError: q.bar is not a function
  5 | q.bar();
    |   ^
`)
}
