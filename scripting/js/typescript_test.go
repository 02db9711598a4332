package js_test

import (
	"strings"
	"testing"

	"github.com/weir-run/weir/engine/component"
)

// TestTypesAreStripped runs what TypeScript adds to the language: what has a
// value has it, and types leave nothing behind. Each row is the text before the
// definition and an expression.
func TestTypesAreStripped(t *testing.T) {
	f := func(before, expr, want string) {
		t.Helper()
		fx := build(t, before+"\n"+metrics(`batch.setLabel("got", String(`+expr+`))`), "", "test/types.ts", "export const A = \"value\"\nexport type T = string\n")
		if got := fx.send(t, "a 1\n"); got != "a{got=\""+want+"\"} 1\n" {
			t.Errorf("%s %s: got %s, want %s: %s", before, expr, got, want, fx.Health().Message)
		}
	}
	// types alone
	f("interface A { a: string }\ntype B = A & { b?: number }\ndeclare const nowhere: B", "typeof nowhere", "undefined")
	f("function id<T extends object = {}>(x: T, ...rest: readonly T[]): T { return x }", `id({ a: 1 }).a`, "1")
	f("function over(x: string): string\nfunction over(x: number): number\nfunction over(x: any) { return x }", `over(5)`, "5")
	f("const x = <const T,>(v: T) => v\nlet y!: number", `x([1, 2] as const).length + (y === undefined ? "u" : "")`, "2u")
	f("const o = { a: 1 } satisfies Record<string, number>", `o.a! + (<number>o.a)`, "2")
	f("type Guard = (x: unknown) => x is string\nconst g: Guard = (x): x is string => typeof x === 'string'\nfunction must(x: unknown): asserts x {}", `(must(1), g("a"))`, "true")
	f("abstract class P { abstract a(): number; protected readonly b?: string; declare c: number }\nclass Q extends P { override a() { return 3 } }", `new Q().a() + Object.keys(new Q()).join()`, "3b")
	f("namespace T { export type X = string }\nimport type { Definition } from \"./types\"", `1`, "1")
	f("let u: unique symbol | bigint | `a${string}` | [a: string, b?: number] | keyof { x: 1 }[]", `u`, "undefined")
	f("class G<in out T> { #p: T; constructor(p: T) { this.#p = p } get p(): T { return this.#p } }", `new G<string>("x").p`, "x")
	// what has a value
	f("enum Color { Red, Green = 5, Blue }", `[Color.Blue, Color[5], Color.Red].join()`, "6,Green,0")
	f("const enum Level { Low = 1 << 2, High = Low | 1 }", `Level.High`, "5")
	f("enum Name { A = 'a', B = `b` }", `Name.A + Name.B`, "ab")
	f("namespace Math2 { export const two = 2; export function twice(n: number) { return n * two } }", `Math2.twice(4)`, "8")
	f("class Point { constructor(public x: number, private readonly y = x * 2) {} sum() { return this.x + this.y } }", `new Point(2).sum()`, "6")
	f("class S { static #n = 0; static { S.#n = 7 } static get n() { return S.#n } accessor = 1 }", `S.n + new S().accessor`, "8")
	f("class A { x = this.name(); name() { return 'A' } }\nclass B extends A { override name() { return 'B' } }", `new B().x`, "B")
	f("import { A, type T } from \"./types\"", `A`, "value")
	f("export { A as C } from \"./types\"\nexport type { T } from \"./types\"", `1`, "1")
	// of the language, as of the newest edition
	f("", `(null ?? 1) + ({ a: { b: 2 } } as any)?.a?.b + ((undefined as any)?.x ?? 3)`, "6")
	f("let n: any = null; n ??= 4; let m = 0; m ||= 5; m &&= 6", `n + m`, "10")
	f("", "1_000 + 0b11 + 0o17 + 0xff", "1273")
	f("", "2 ** 10", "1024")
	f("function* g() { const x: number = yield 1; yield x * 2 }", `(() => { const i = g(); i.next(); return i.next(5).value })()`, "10")
	f("class E extends Error { constructor(m: string, options?: any) { super(m, options); this.name = 'E' } }", `(() => { try { throw new E("x", { cause: 1 }) } catch (e: any) { return e instanceof E && e.name + e.message + e.cause } })()`, "Ex1")
	f("label: for (const i of [1, 2]) { for (;;) { continue label } }", `((a, { b = 2, ...rest }, [c, , d] = [3, 4, 5]) => a + b + rest.z + c + d)(1, { z: 10 } as any)`, "21")
}

// TestTypesThatCannotBe checks that unsupported TypeScript is refused with its position.
func TestTypesThatCannotBe(t *testing.T) {
	f := func(src, want string, line, col int) {
		t.Helper()
		r := load(t, src)
		if r.Err == nil {
			t.Errorf("%s: got no error", src)
			return
		}
		if e := scriptErr(t, r.Err); !strings.Contains(e.Err.Error(), want) || e.Line != line || e.Col != col {
			t.Errorf("%s: got %d:%d: %v, want %d:%d: %s", src, e.Line, e.Col, e.Err, line, col, want)
		}
	}
	f("const x: = 1", `Unexpected "="`, 1, 10)
	f("let a = 1\nlet a = 2", `The symbol "a" has already been declared`, 2, 5)
	f("function f(this x) {}", `Expected ")" but found "x"`, 1, 17)
	f("const x = <div/>", `Expected ">" but found "/"`, 1, 15)
	f("enum E { A = }", `Unexpected "}"`, 1, 14)
	f("class A { private constructor(public) { return } x: }", `Unexpected "}"`, 1, 53)
	f("import x = require('fs')\nx.y", "", 1, 12)
	f("await 1", "", 1, 1)
	f("const x = import('./y')", "", 1, 11)
}

// TestErrorsAcrossFiles places errors in the TypeScript that people wrote,
// whichever file they are in, and with the way there.
func TestErrorsAcrossFiles(t *testing.T) {
	e := failureOf(t, `// A comment.
import { defineTransform } from "weir"
interface Unused {
  a: string
}
import { check, Level } from "./check"

export default defineTransform({
  metrics(batch: any) {
    check<Unused>(
      Level.High,
    )
  },
})
`, "", "test/check.ts", `export enum Level {
  Low,
  High,
}

type Any<T> = { [K in keyof T]: T[K] }

export function check<T>(l: Level): Any<T> {
  if (l === Level.High) throw new RangeError(
    "too high")
  return {} as Any<T>
}
`)
	if e.File != "embedded/test/check.ts" || e.Line != 9 || e.Col != 31 || e.Err.Error() != "RangeError: too high" {
		t.Errorf("got %s:%d:%d: %v", e.File, e.Line, e.Col, e.Err)
	}
	if want := "stack: embedded/test/check.ts:9 < embedded/test/script.ts:10"; !strings.Contains(e.Error(), want) {
		t.Errorf("got %v, want %s", e, want)
	}
}

// TestLogText holds what values look like in the log.
func TestLogText(t *testing.T) {
	f := func(value, want string) {
		t.Helper()
		fx := build(t, metrics(`ctx.log.info(`+value+`)`), "")
		fx.send(t, "a{l=\"x\"} 1\n")
		if h := fx.Health(); h.State != component.Healthy {
			t.Errorf("%s: %s", value, h.Message)
		}
		_, line, _ := strings.Cut(fx.Logs(), "msg=")
		got, _, _ := strings.Cut(line, " component_id=")
		if got != want {
			t.Errorf("%s: got %s, want %s", value, got, want)
		}
	}
	f(`"text"`, "text")
	f(`1.5`, "1.5")
	f(`10n`, "10")
	f(`null`, "null")
	f(`undefined`, "undefined")
	f(`Symbol("s")`, `"a symbol"`)
	f(`() => 1`, `"a function"`)
	f(`class {}`, `"a function"`)
	f(`[1, "a", null]`, `"[1,\"a\",null]"`)
	f(`({ a: { b: [] } })`, `"{\"a\":{\"b\":[]}}"`)
	f(`new Error("broke")`, "broke")
	f(`new TypeError("broke")`, `"TypeError: broke"`)
	f(`new Date(0)`, "1970-01-01T00:00:00.000Z")
	f(`new Date(NaN)`, `"a Date"`)
	f(`new Map([[1, 2]])`, `"an object"`)
	f(`batch[0]`, `"a{l=\"x\"} 1 1700000000000"`)
	f(`batch[0].labels`, `"{l=\"x\"}"`)
	f(`"x".repeat(2000)`, strings.Repeat("x", 997)+"…")
	f(`(() => { const o: any = {}; o.o = o; return o })()`, `"an object"`)
}

// TestHandlesMisused uses objects of a batch in ways that they are not for.
func TestHandlesMisused(t *testing.T) {
	f := func(body, want string) {
		t.Helper()
		if got := failure(t, body).Err.Error(); !strings.Contains(got, want) {
			t.Errorf("%s: got %s, want %s", body, got, want)
		}
	}
	f(`delete batch[0]`, "cannot assign to a batch: set the fields of its records")
	f(`delete batch[0].name`, "cannot delete name of a record: set what can be set, or drop the record")
	f(`delete batch[0].copy().value`, "cannot delete value of a record: set what can be set")
	f(`delete batch[0].labels`, "cannot delete labels of a record: set what can be set, or drop the record")
	f(`batch[0] = {}`, "cannot assign to a batch: set the fields of its records")
	f(`batch.length = 0`, "cannot assign to a batch: set the fields of its records")
	f(`batch.push({})`, `a batch has no "push": there is length, dropWhere()`)
	f(`batch.each.call({}, () => {})`, "cannot use an object as a batch: call methods as batch.method()")
	f(`batch.each()`, "cannot call each: argument fn is missing; it is a function")
	f(`batch.each(1)`, "cannot call each: argument fn must be a function, not a number")
	f(`batch.rows("name").next.call({})`, "cannot use an object as an iterator: call a method on what it belongs to")
	f(`for (const row of batch.rows("name")) row.length = 0`, "cannot assign to a row: batch.set sets the fields of its record")
	f(`for (const row of batch.rows("name")) row[5] = 1`, "cannot assign to a row: batch.set sets the fields of its record")
	f(`batch.set(5, "value", 1)`, "cannot find record 5: the batch has 1, counted from 0")
	f(`batch.set(0.5, "value", 1)`, "cannot find record 0.5: its number is a whole number, as batch.rows gives it")
	f(`batch.drop(-1)`, "cannot find record -1: the batch has 1, counted from 0")
	f(`batch[0].drop(); batch[0].drop(1)`, "TypeError: Cannot read property 'drop' of undefined or null: batch[0] is undefined or null")
	f(`batch[0].labels.l = Symbol()`, `cannot set label "l" to a symbol: it must be a string`)
	f(`batch[0].labels = null`, "cannot set labels to null: it must be an object")
	f(`batch[0].labels = [1]`, "cannot set labels to an array: it must be an object")
	f(`ctx.emit()`, "cannot emit undefined: it must be an object or a record")
	f(`ctx.emit({ name: "x", value: 1, lables: {} })`, `cannot set "lables" of a copy of a record: did you mean labels?`)
	f(`ctx.emit({ name: "x", value: "1" })`, "cannot set value to a string: it must be a number")
	f(`ctx.log.info()`, "cannot log nothing: write ctx.log.info(message)")
	f(`ctx.log.fatal("x")`, `ctx.log has no "fatal": there is debug, info, warn, error`)
	f(`ctx.sleep("1s")`, "cannot call sleep: argument seconds must be a number, not a string")
	f(`batch.groupBy([])`, "cannot read 0 fields: name between 1 and 32")
	f(`batch.groupBy("name")`, "cannot call groupBy: argument fields must be an array of strings, not a string")
	f(`batch.mapValue(() => "1")`, "cannot use a string as a value: mapValue takes a function that returns a number, or undefined to leave it")
	f(`batch.mapLabel("l")`, "cannot call mapLabel: argument fn is missing; it is a function")
	f(`batch.filter(["name"], () => 1)`, "cannot filter by a number: the function must return true to keep or false to drop")
}

// TestLineHandlesMisused does the same with log lines.
func TestLineHandlesMisused(t *testing.T) {
	f := func(body, want string) {
		t.Helper()
		fx := build(t, logsHook(body), "")
		if got := fx.sendLogs(t, twoLines); got != twoLines {
			t.Errorf("%s: got %s", body, got)
		}
		if h := fx.Health(); !strings.Contains(h.Message, want) {
			t.Errorf("%s: got %q, want %q", body, h.Message, want)
		}
	}
	f(`delete batch[0].line`, "cannot delete line of a record: set what can be set, or drop the record")
	f(`delete batch[0].copy().line`, "cannot delete line of a record: set what can be set")
	f(`batch[0] = {}`, "cannot assign to a batch: set the fields of its records")
	f(`batch[0].metadata = 5`, "cannot set metadata to a number: it must be an object")
	f(`batch.set(0, "meta.x", Symbol())`, `to a symbol: it must be a string`)
	f(`batch.set(7, "line", "x")`, "cannot find record 7: the batch has 2, counted from 0")
	f(`batch.match("x")`, "cannot call match: argument fn is missing; it is a function")
	f(`batch.setLine("{app")`, "cannot")
	f(`batch.setLine(5)`, "cannot call setLine: argument")
	f(`batch[0].json()`, "cannot call json: argument")
	f(`batch[0].json("a..b")`, "")
	f(`batch.each.call({}, () => {})`, "cannot use an object as a batch: call methods as batch.method()")
	f(`ctx.emit({ line: 5 })`, "cannot set line to a number: it must be a string")
	f(`ctx.emit({ line: "x", lable: {} })`, `cannot set "lable" of a copy of a log record: what can be set is line, labels, metadata, time and ts`)
}
