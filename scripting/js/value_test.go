package js_test

import (
	"strings"
	"testing"

	"github.com/weir-run/weir/engine/component"
)

// holds runs statements in the hook metrics, which throw what is wrong.
func holds(t *testing.T, args, attrs, body string) {
	t.Helper()
	f := build(t, `import { defineTransform, arg } from "weir"
import echo from "weir/echo"
import json from "weir/json"

function same(got: unknown, want: unknown, what?: string) {
  if (!Object.is(got, want)) throw new Error((what ?? "") + " got " + String(got) + ", want " + String(want))
}

function throws(fn: () => unknown, want: string) {
  try {
    fn()
  } catch (err: any) {
    if (!String(err.message).includes(want)) throw new Error("got " + err.message + ", want " + want)
    return
  }
  throw new Error("got nothing thrown, want " + want)
}

export default defineTransform({
  args: {`+args+`},
  metrics(batch: any, ctx: any) {
`+body+`
  },
})
`, attrs)
	f.send(t, "a 1\n")
	if h := f.Health(); h.State != component.Healthy {
		t.Errorf("got %s: %s\n%s", h.State, h.Message, f.Logs())
	}
}

func TestValuesCross(t *testing.T) {
	holds(t, "", "", `
    for (const x of [undefined, null, true, false, 0, -0, 1, -1.5, NaN, Infinity, 2 ** 53, "", "ä€😀"]) same(echo.sameValue(x), x)
    same(echo.sameValue(BigInt("9007199254740993")), BigInt("9007199254740993"))
    same(echo.sameValue(BigInt(5)), 5)
    throws(() => echo.sameValue(BigInt("18446744073709551616")), "does not fit 64 bits")

    for (const text of ['null', '[]', '{}', '{"a":null,"e":[],"o":{},"n":9007199254740993,"f":1.5,"s":"x"}', '[[null,[],{}]]', '-9223372036854775808', '{"__proto__":1}']) {
      same(json.encode(json.decode(text)), text)
    }
    const o = json.decode('{"b":1,"a":{"x":[1,null]},"__proto__":{"p":1}}')
    same(Object.keys(o).join(), "b,a,__proto__")
    same(o.p, undefined)
    same(o.a.x[1], null)
    same(typeof json.decode("9007199254740993"), "bigint")
    same(typeof json.decode("9007199254740991"), "number")

    same(json.encode(echo.sameValue({ a: undefined, b: [undefined], c: () => 1 }.b)), "[null]")
    throws(() => echo.sameValue(new Date(0)), "pass its getTime()")
    throws(() => echo.sameValue(new Map()), "Object.fromEntries")
    throws(() => echo.sameValue(new Set()), "[...set]")
    throws(() => echo.sameValue(Symbol("s")), "cannot pass a symbol")
    throws(() => echo.sameValue(Promise.resolve(1)), "write await before it")
    const circle: any = {}
    circle.self = circle
    throws(() => echo.sameValue(circle), "does it contain itself?")
    class Point { x = 1; get y() { return 2 } }
    same(json.encode(echo.sameValue(new Point())), '{"x":1}')

    throws(() => echo.fail("it is so"), "it is so")
    try { echo.fail("x") } catch (err) { same(err instanceof Error, true); same(err instanceof TypeError, false) }
    try { echo.upper(1) } catch (err) { same(err instanceof TypeError, true) }
    throws(() => echo.nope, 'module echo has no "nope"')
    throws(() => { (echo as any).upper = 1 }, "read only")
`)
}

func TestArguments(t *testing.T) {
	holds(t, `
    some_text: arg.string(), left_out: arg.string({ optional: true }), n: arg.int({ default: 3 }), d: arg.duration({ default: "1m" }),
    list: arg.list({ of: arg.number() }), map: arg.map({ of: arg.bool() }), key: arg.secret(), re: arg.regexp({ default: "^a" }),
    rule: arg.block({ fields: { name: arg.string() }, repeated: true }), level: arg.enum({ values: ["low", "high"], default: "low" }),
  `, "some_text = \"x\"\nlist = [1, 2.5]\nmap = { b = true, a = false }\nkey = \"hidden\"\nrule {\nname = \"one\"\n}", `
    const { args } = ctx
    same(args.some_text + args.n + args.d + args.level, "x360low")
    same(args.left_out, undefined)
    same(args.list.join(), "1,2.5")
    same(JSON.stringify(args.map), '{"a":false,"b":true}')
    same(args.rule[0].name, "one")
    same(String(args.key), "<secret>")
    same(JSON.stringify({ key: args.key }), '{"key":"<secret>"}')
    throws(() => args.key.length, "can only be passed on")
    same(args.re.replace("abc", "x"), "xbc")
    throws(() => args.sometext, 'there is no argument "sometext": declare it in args; did you mean some_text?')
    throws(() => { args.n = 4 }, "read only")
    throws(() => { args.list.push(1) }, "")
    throws(() => { args.rule[0].name = "two" }, "read only")
    throws(() => { delete args.n }, "")
`)
}

func TestLogLines(t *testing.T) {
	f := build(t, metrics(`
ctx.log.warn("hot", { degrees: 40, big: 9007199254740993, list: [1, "a", null], none: undefined })
console.log("a", 1, { b: [true] }, null, undefined, new Error("e"), () => 1)
console.log(batch[0], batch[0].labels, batch, new Date(0))
console.error("bad")`), "")
	f.send(t, "a 1\n")
	for _, want := range []string{
		`level=WARN msg=hot component_id=test.script.default pos=embedded/test/script.ts:4 degrees=40 big=9007199254740992 list="[1,\"a\",null]" none=undefined`,
		`msg="a 1 {\"b\":[true]} null undefined e a function" component_id=test.script.default pos=embedded/test/script.ts:5`,
		`msg="a 1 1700000000000 {} batch of 1 records 1970-01-01T00:00:00.000Z"`,
		`level=ERROR msg=bad`,
	} {
		if !strings.Contains(f.Logs(), want) {
			t.Errorf("got %s\nwant %s", f.Logs(), want)
		}
	}
}
