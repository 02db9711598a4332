package js_test

import (
	"strings"
	"testing"

	"github.com/weir-run/weir/engine/component"
)

func TestAHookRuns(t *testing.T) {
	f := build(t, `import { defineTransform, arg } from "weir"
import echo from "weir/echo"
import { upper } from "weir/echo"

type Text = string
enum Level { Low = 1, High }

export default defineTransform({
  args: { who: arg.string({ default: "me" }) },
  metrics(batch: unknown, ctx: any) {
    const word: Text = upper(ctx.args.who)
    if (echo.sameValue(word) !== "ME" || Level.High !== 2) throw new Error("no " + word)
    ctx.log.info("saw", { word })
  },
})
`, "")
	equal(t, f.send(t, "a 1\n"), "a 1\n")
	if h := f.Health(); h.State != component.Healthy {
		t.Errorf("got %+v", h)
	}
}

func TestAnErrorHasTheLineOfTheSource(t *testing.T) {
	e := failureOf(t, `import { defineTransform } from "weir"

interface Options {
  one: string
  two?: number
}

function inner(o: Options): never {
  throw new Error("broken " + o.one)
}

export default defineTransform({
  metrics(batch: unknown, ctx: any) {
    inner({ one: "x" })
  },
})
`, "")
	if e.Pos() != "embedded/test/script.ts:9:9" || e.Err.Error() != "broken x" || len(e.Trace) < 2 || e.Trace[1].Line != 14 {
		t.Errorf("got %+v", e)
	}
}

// TestKeysAreInCamelCase: tables in a definition have the names that everything
// else has.
func TestKeysAreInCamelCase(t *testing.T) {
	sink := func(batch string) error {
		return load(t, `import { defineSink } from "weir"
export default defineSink({
  batch: { `+batch+` },
  send() {},
})
`).Err
	}
	if err := sink(`maxRecords: 500, maxWait: "1s"`); err != nil {
		t.Error(err)
	}
	want := `embedded/test/script.ts:3: cannot use "max_records" in batch: there is maxRecords, maxBytes, maxWait, inFlight`
	if err := sink("max_records: 500"); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}
