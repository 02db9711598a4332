package js_test

import (
	"fmt"
	"testing"
)

// TestEquality compares pairs of values by the three matchers, in both orders. The
// rules are vitest's.
func TestEquality(t *testing.T) {
	var e expectations
	pass := func(holds bool, matcher, got, want string) {
		not := ""
		if !holds {
			not = ".not"
		}
		e.add(fmt.Sprintf("expect(%s)%s.%s(%s)", got, not, matcher, want), "")
	}
	// f checks a pair for which got and want may change places.
	f := func(a, b string, equal, strict bool) {
		pass(equal, "toEqual", a, b)
		pass(equal, "toEqual", b, a)
		pass(strict, "toStrictEqual", a, b)
		pass(strict, "toStrictEqual", b, a)
	}
	// Primitive values.
	f("1", "1", true, true)
	f("1", "2", false, false)
	f("0", "-0", false, false)
	f("NaN", "NaN", true, true)
	f("1", "1n", false, false)
	f(`"1"`, "1", false, false)
	f("null", "undefined", false, false)
	f("true", "1", false, false)
	f(`Symbol.iterator`, `Symbol.iterator`, true, true)
	f(`Symbol("a")`, `Symbol("a")`, false, false)
	// Objects: keys that are undefined count when strict.
	f("{ a: 1, b: 2 }", "{ b: 2, a: 1 }", true, true)
	f("{ a: undefined }", "{}", true, false)
	f("{ a: undefined, b: 1 }", "{ b: 1 }", true, false)
	f("{ a: null }", "{}", false, false)
	f("{ a: { b: { c: [1, { d: 2 }] } } }", "{ a: { b: { c: [1, { d: 2 }] } } }", true, true)
	f("{ a: { b: { c: [1, { d: 2 }] } } }", "{ a: { b: { c: [1, { d: 3 }] } } }", false, false)
	f("{}", "[]", false, false)
	f("{}", "null", false, false)
	f("Object.create(null)", "{}", true, false)
	f("new (class A { x = 1 })()", "{ x: 1 }", true, false)
	f("new (class A { x = 1 })()", "new (class A { x = 1 })()", true, false)
	f("{ get x() { return 1 } }", "{ x: 1 }", true, true)
	f("Object.defineProperty({}, 'x', { value: 1 })", "{}", true, true)
	// Arrays: holes count when strict.
	f("[1, 2]", "[1, 2]", true, true)
	f("[1, 2]", "[2, 1]", false, false)
	f("[1]", "[1, undefined]", false, false)
	f("[, 1]", "[undefined, 1]", true, false)
	f("[[[]]]", "[[[]]]", true, true)
	f("[1, 2]", "{ 0: 1, 1: 2, length: 2 }", false, false)
	f("Object.assign([1], { x: 1 })", "[1]", false, false)
	// Objects of the language.
	f("new Date(5)", "new Date(5)", true, true)
	f("new Date(5)", "new Date(6)", false, false)
	f("new Date(NaN)", "new Date(NaN)", true, true)
	f("new Date(5)", "5", false, false)
	f("/a/g", "/a/g", true, true)
	f("/a/g", "/a/i", false, false)
	f("/a/", "/b/", false, false)
	f(`new Error("x")`, `new Error("x")`, true, true)
	f(`new Error("x")`, `new Error("y")`, false, false)
	f(`new Error("x")`, `new TypeError("x")`, false, false)
	f(`new Error("x", { cause: 1 })`, `new Error("x", { cause: 2 })`, false, false)
	f(`new Error("x")`, `{ message: "x" }`, false, false)
	f("new Map([[1, 2], [3, 4]])", "new Map([[3, 4], [1, 2]])", true, true)
	f("new Map([[1, 2]])", "new Map([[1, 3]])", false, false)
	f("new Map([[1, 2]])", "new Map([[1, 2], [3, 4]])", false, false)
	f("new Map([[{ k: 1 }, [2]]])", "new Map([[{ k: 1 }, [2]]])", true, true)
	f("new Map([[1, undefined]])", "new Map()", false, false)
	f("new Set([1, 2])", "new Set([2, 1])", true, true)
	f("new Set([{ a: 1 }, { a: 1 }])", "new Set([{ a: 1 }, { a: 2 }])", false, false)
	f("new Set([1])", "[1]", false, false)
	f("new Set()", "new Map()", false, false)
	f("new Uint8Array([1, 2])", "new Uint8Array([1, 2])", true, true)
	f("new Uint8Array([1, 2])", "new Int8Array([1, 2])", true, false)
	f("new Boolean(true)", "new Boolean(false)", false, false)
	f(`new String("a")`, `"a"`, false, false)
	f("() => 1", "() => 1", false, false)
	f("Promise.resolve(1)", "Promise.resolve(1)", false, false)
	// Symbols are keys.
	f("{ [Symbol.iterator]: 1 }", "{ [Symbol.iterator]: 1 }", true, true)
	f("{ [Symbol.iterator]: 1 }", "{ [Symbol.iterator]: 2 }", false, false)
	e.run(t, "")
}

// TestMatchObject checks what may be left out of the object that is wanted.
func TestMatchObject(t *testing.T) {
	var e expectations
	f := func(got, want string, holds bool) {
		not := ""
		if !holds {
			not = ".not"
		}
		e.add("expect("+got+")"+not+".toMatchObject("+want+")", "")
	}
	f("{ a: 1, b: 2 }", "{}", true)
	f("{ a: 1, b: 2 }", "{ b: 2 }", true)
	f("{ a: 1 }", "{ a: 1, b: 2 }", false)
	f("{ a: 1 }", "{ a: 1, b: undefined }", false)
	f("{ a: undefined }", "{ a: undefined }", true)
	f("{ a: { b: 1, c: 2 }, d: 3 }", "{ a: { c: 2 } }", true)
	f("{ a: { b: 1, c: 2 }, d: 3 }", "{ a: { c: 3 } }", false)
	f("{ a: [{ b: 1, c: 2 }] }", "{ a: [{ b: 1 }] }", true)
	f("{ a: [1, 2] }", "{ a: [1] }", false)
	f("[{ a: 1, b: 1 }, { a: 2, b: 2 }]", "[{ a: 1 }, { a: 2 }]", true)
	f("[{ a: 1 }]", "[{ a: 1 }, { a: 2 }]", false)
	f("new (class A { x = 1; get y() { return 2 } })()", "{ x: 1, y: 2 }", true)
	f("{ a: 'abc' }", "{ a: expect.stringContaining('b') }", true)
	f("{ a: new Date(5) }", "{ a: new Date(5) }", true)
	f("{ a: new Date(5) }", "{ a: new Date(6) }", false)
	f("{ m: new Map([[1, 2]]) }", "{ m: new Map([[1, 2]]) }", true)
	e.run(t, "")
}

// TestEqualityInCircles: values that contain themselves are compared, and values
// that nest too deep are refused.
func TestEqualityInCircles(t *testing.T) {
	var e expectations
	const circle = "const round = (n: any) => { const o: any = { n }; o.self = o; o.list = [o]; return o; };\n" +
		"const deep = (n: number) => { let o: any = {}; for (let i = 0; i < n; i++) o = { o }; return o; };\n"
	f := e.add
	f(`expect(round(1)).toEqual(round(1))`, "")
	f(`expect(round(1)).not.toEqual(round(2))`, "")
	f(`const a = round(1), b = round(1); a.other = b; b.other = a; expect(a).toEqual(b)`, "")
	f(`const a = round(1); expect(a).toEqual({ n: 1, self: a, list: [a] })`, "")
	f(`expect(deep(100)).toEqual(deep(100))`, "")
	f(`expect(deep(100)).not.toEqual(deep(101))`, "")
	f(`expect(deep(5000)).toEqual(deep(5000))`, "cannot compare values that nest deeper than 1000")
	f(`expect(round(1)).toBe(2)`, "expected { list: [[Circular]], n: 1, self: [Circular] } to be 2")
	e.run(t, circle)
}

// TestAsymmetricMatchers: they stand for values wherever values are compared.
func TestAsymmetricMatchers(t *testing.T) {
	var e expectations
	f := e.add
	f(`expect([1, "a", null]).toEqual([expect.any(Number), expect.any(String), null])`, "")
	f(`expect({ a: { b: 5 } }).toStrictEqual({ a: { b: expect.any(Number) } })`, "")
	f(`expect(new Map([["k", 5]])).toEqual(new Map([["k", expect.anything()]]))`, "")
	f(`expect(new Set([5])).toEqual(new Set([expect.any(Number)]))`, "")
	f(`expect([{ a: 1 }]).toContainEqual({ a: expect.any(Number) })`, "")
	f(`expect({ a: undefined }).not.toEqual({ a: expect.anything() })`, "")
	f(`expect({}).not.toEqual({ a: expect.anything() })`, "")
	f(`expect({}).toEqual({ a: expect.not.anything() })`, "")
	f(`expect(5).toEqual(expect.not.any(String))`, "")
	f(`expect([1, 2]).toEqual(expect.not.arrayContaining([3]))`, "")
	f(`expect({ a: 1 }).toEqual(expect.not.objectContaining({ b: 1 }))`, "")
	f(`expect({ a: { b: 1, c: 2 } }).toEqual({ a: expect.objectContaining({ c: 2 }) })`, "")
	f(`expect("abc").toEqual(expect.not.stringContaining("x"))`, "")
	f(`expect("abc").toEqual(expect.stringMatching("b"))`, "")
	f(`expect(5).not.toEqual(expect.stringMatching(/5/))`, "")
	f(`expect(0.30000001).toEqual(expect.closeTo(0.3, 5))`, "")
	f(`expect(0.31).not.toEqual(expect.closeTo(0.3, 5))`, "")
	f(`expect("0.3").not.toEqual(expect.closeTo(0.3))`, "")
	f(`expect(new Error("x")).toEqual(expect.any(Error))`, "")
	f(`expect(new TypeError("x")).toEqual(expect.any(Error))`, "")
	f(`expect(new Error("x")).not.toEqual(expect.any(TypeError))`, "")
	f(`expect("a").not.toBe(expect.any(String))`, "")
	f(`expect([1]).toEqual([expect.any(Number), expect.any(Number)])`, "expected [1] to equal [Any<Number>, Any<Number>]")
	e.run(t, "")
}
