package js_test

import (
	"strings"
	"testing"

	"github.com/weir-run/weir/engine/component"
)

func TestAsyncHooks(t *testing.T) {
	f := build(t, `import { defineTransform } from "weir"

async function twice(n: number) {
  await Promise.resolve()
  return n * 2
}

export default defineTransform({
  async setup(ctx: any) {
    await ctx.sleep(0)
    ctx.log.info("set up")
  },
  metrics: async (batch: any, ctx: any) => {
    const [a, b] = await Promise.all([twice(1), ctx.sleep(0).then(() => twice(2))])
    try {
      await ctx.sleep(-1)
    } catch (err: any) {
      ctx.log.info(err.message)
    }
    for await (const n of [twice(4)]) ctx.log.info("for await " + n)
    batch.setLabel("sum", String(a + b))
  },
})
`, "")
	defer f.Run(t, f.c)()
	equal(t, f.send(t, "a 1\n"), "a{sum=\"6\"} 1\n")
	for _, want := range []string{"set up", "cannot sleep -1 seconds", "for await 8"} {
		if !strings.Contains(f.Logs(), want) {
			t.Errorf("got %s, want %s", f.Logs(), want)
		}
	}
	if h := f.Health(); h.State != component.Healthy {
		t.Errorf("got %+v", h)
	}
}

func TestAsyncErrors(t *testing.T) {
	f := func(body, want string, line int) {
		t.Helper()
		e := failureOf(t, "import { defineTransform } from \"weir\"\n\ninterface X { a: string }\n\nasync function fails() {\n  await null\n  throw new Error(\"late\")\n}\n\nexport default defineTransform({\n  async metrics(batch: any, ctx: any) {\n"+body+"\n} })\n", "")
		if !strings.Contains(e.Err.Error(), want) || e.Line != line || e.Hook != "metrics" {
			t.Errorf("%s: got line %d: %v", body, e.Line, e)
		}
	}
	f(`await fails()`, "late", 7)
	f(`fails()`, "late", 7) // nobody awaits it
	f(`await ctx.sleep(-1)`, "cannot sleep -1 seconds", 12)
	f(`ctx.sleep(-1)`, "cannot sleep -1 seconds", 12)
	f(`await new Promise(() => {})`, "the hook awaits a promise that nothing settles", 11)
	f(`await Promise.reject("a string")`, "a string", 11)
	f(`await Promise.all([fails(), fails()])`, "late", 7)
}

// TestForgottenAwait: what is read of a promise in place of what it gives is a
// mistake, which undefined would hide.
func TestForgottenAwait(t *testing.T) {
	f := build(t, `import { defineTransform } from "weir"
import { ask } from "weir/echo"

export default defineTransform({
  async metrics(batch: any, ctx: any) {
    const answer = await ask()
    const keys = Object.keys(ask())
    await ask().then((a: any) => batch.setLabel("then", String(a.maxBytes)))
    batch.setLabel("ok", String(answer.maxBytes) + keys.length)
  },
})
`, "")
	equal(t, f.send(t, "a 1\n"), "a{ok=\"70\",then=\"7\"} 1\n")

	e := failureOf(t, `import { defineTransform } from "weir"
import { ask } from "weir/echo"

export default defineTransform({
  metrics(batch: any) {
    batch.setLabel("n", String(ask().maxBytes))
  },
})
`, "")
	if want := "cannot read maxBytes of a promise: write await before echo.ask(…)"; e.Line != 6 || !strings.Contains(e.Err.Error(), want) {
		t.Errorf("got line %d: %v, want %s", e.Line, e, want)
	}
}

func TestRememberedHooksAreNotAsync(t *testing.T) {
	r := load(t, `import { defineTransform } from "weir"
export default defineTransform({
  async series(s) { s.labels.a = "b" },
})
`)
	if e := scriptErr(t, r.Err); e.Line != 3 || !strings.Contains(e.Error(), "cannot use an async function as hook series") {
		t.Errorf("got %v", e)
	}
	e := failureOf(t, `import { defineTransform } from "weir"
export default defineTransform({
  series(s) { return Promise.resolve() },
})
`, "")
	if !strings.Contains(e.Error(), "cannot use an async function as hook series") {
		t.Errorf("got %v", e)
	}
}
