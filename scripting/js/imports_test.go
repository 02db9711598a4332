package js_test

import (
	"strings"
	"testing"
)

func TestImports(t *testing.T) {
	f := build(t, `import { defineTransform } from "weir"
import { one, next, Shape } from "./shapes"
import type { Name } from "./types"
import "./types"
import * as all from "../lib/shapes.js"
import shapes from "shapes"
import countries, { de } from "./countries.json"
import list from "list.json"

export default defineTransform({
  metrics(batch: unknown, ctx: any) {
    const shape: Shape = { sides: 3 }
    ctx.log.info("got", { a: one, b: next(one), c: all.name, d: shapes(shape), e: countries.de.name, f: de.name, g: list.length })
    try { (countries as any).de.name = "x" } catch (err) { ctx.log.info(String(err)) }
  },
})
`, "", "test/shapes.ts", `export interface Shape { sides: number }
export let one = 1
export function next(n: number): number { return n + 1 }
`, "lib/shapes.ts", `export const name = "shapes"
export default (s: { sides: number }) => s.sides * 2
`, "test/countries.json", `{"de": {"name": "Germany"}}`, "lib/list.json", `[1, null, []]`, "test/types.ts", "// Types alone.\nexport type Name = string\n")
	f.send(t, "a 1\n")
	log := f.Logs()
	for _, want := range []string{"msg=got component_id=test.script.default pos=embedded/test/script.ts:13 a=1 b=2 c=shapes d=6 e=Germany f=Germany g=3", "TypeError: Cannot assign to read only property 'name'"} {
		if !strings.Contains(strings.ReplaceAll(log, `"`, ""), want) {
			t.Errorf("got log %s, want %s", log, want)
		}
	}
}

func TestImportsThatMeetInACircle(t *testing.T) {
	f := build(t, `import { defineTransform } from "weir"
import { a } from "./_a"
export default defineTransform({ metrics(batch, ctx) { ctx.log.info("a is " + a()) } })
`, "", "test/_a.ts", `import { b } from "./_b"
export function a() { return b() + 1 }
export const base = 40
`, "test/_b.ts", `import { base } from "./_a"
export function b() { return base + 1 }
`)
	f.send(t, "a 1\n")
	if !strings.Contains(f.Logs(), "a is 42") {
		t.Errorf("got %s", f.Logs())
	}
}

func TestImportsThatCannotBe(t *testing.T) {
	f := func(name, want string, files ...string) {
		t.Helper()
		r := load(t, "// A comment.\nimport { defineTransform } from \"weir\"\nimport x from \""+name+"\"\nexport default defineTransform({ metrics(batch, ctx) { x() } })\n", files...)
		if r.Err == nil {
			t.Fatalf("%s: got no error", name)
		}
		if e := scriptErr(t, r.Err); !strings.Contains(e.Error(), want) || e.Line != 3 {
			t.Errorf("%s: got %v, want %s", name, e, want)
		}
	}
	f("fs", "there are no modules of Node or npm")
	f("node:fs", "there are no modules of Node or npm")
	f("@acme/x", "there are no modules of Node or npm")
	f("https://example.org/x.js", "there are no modules of Node or npm")
	f("echo", `the standard library's is "weir/echo"`)
	f("weir/nope", "there is no module nope in the standard library, there is weir/")
	f("nope", "there is no lib/nope.ts in the scripts folder")
	f("./nope", "there is no embedded/test/nope.ts")
	f("../../etc/passwd", "it lies outside of the scripts folder")
}

func TestDataThatIsBroken(t *testing.T) {
	r := load(t, `import { defineTransform } from "weir"
import x from "./x.json"
export default defineTransform({ metrics(batch, ctx) { x() } })
`, "test/x.json", "{")
	if e := scriptErr(t, r.Err); e.File != "embedded/test/x.json" || !strings.Contains(e.Error(), "cannot read the data") {
		t.Errorf("got %v", e)
	}
}
