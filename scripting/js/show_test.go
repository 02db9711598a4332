package js_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestShow checks how failures show values in a line.
func TestShow(t *testing.T) {
	var e expectations
	f := func(value, shown string) { e.add("expect("+value+").toBe(0.5)", "expected "+shown+" to be 0.5") }
	f("1", "1")
	f("-0", "-0")
	f("1e21", "1e+21")
	f("10n", "10n")
	f("undefined", "undefined")
	f("null", "null")
	f("true", "true")
	f(`"a\tb"`, `"a\tb"`)
	f(`"quote\""`, `"quote\""`)
	f(`Symbol("s")`, "Symbol(s)")
	f("Symbol()", "Symbol()")
	f("[]", "[]")
	f("{}", "{}")
	f("[1, [2, { a: 3 }]]", "[1, [2, { a: 3 }]]")
	f("[, 1]", "[undefined, 1]")
	f(`{ b: 1, a: "x", "with space": null, "0": 2 }`, `{ "0": 2, a: "x", b: 1, "with space": null }`)
	f("{ f() {}, g: () => 1, h: class H {} }", "{ f: [Function f], g: [Function g], h: [Function H] }")
	f("() => 1", "[Function]")
	f("function named() {}", "[Function named]")
	f("new Date(0)", "1970-01-01T00:00:00.000Z")
	f("new Date(NaN)", "Invalid Date")
	f("/a+/gi", "/a+/gi")
	f(`new Error("broke")`, "[broke]")
	f(`new TypeError("broke")`, "[TypeError: broke]")
	f("new Number(1)", "Number {1}")
	f("new Boolean(false)", "Boolean {false}")
	f("new Map([[1, { a: 2 }], ['k', []]])", `Map { 1 => { a: 2 }, "k" => [] }`)
	f("new Set([1, 'a'])", `Set { 1, "a" }`)
	f("new (class Point { x = 1 })()", "Point { x: 1 }")
	f("new (class { x = 1 })()", "{ x: 1 }")
	f("Object.create(null)", "{}")
	f("new Uint8Array([7])", `Uint8Array { "0": 7 }`)
	f("vi.fn()", "[Function spy]")
	f("vi.fn().mockName('asked')", "[Function asked]")
	f("{ a: expect.any(Number) }", "{ a: Any<Number> }")
	// Values that do not fit into a line are named by their kind.
	long := func(value, kind string) { e.add("expect("+value+").toBe(0.5)", "expected "+kind+" to be another") }
	f(`"x".repeat(100)`, "a string")
	long(`"two\nlines"`, "a string")
	long("Array.from({ length: 50 }, (_, i) => i)", "an array")
	long("Object.fromEntries(Array.from({ length: 50 }, (_, i) => ['k' + i, i]))", "an object")
	e.run(t, "")
}

// TestShownDifferences checks the lines that a failure shows of values that do not
// fit into a line.
func TestShownDifferences(t *testing.T) {
	f := func(got, want, diff string) {
		t.Helper()
		file := runTest(t, "import { expect, it } from \"weir/test\";\nit(\"x\", () => { expect("+got+").toEqual("+want+"); });\n")
		if file.Problem != nil || file.Tests[0].Problem == nil {
			t.Fatalf("%s: got %+v, want a failure", got, file.Problem)
		}
		if d := cmp.Diff(diff, file.Tests[0].Problem.Diff); d != "" {
			t.Errorf("%s (-want +got):\n%s", got, d)
		}
	}
	const long = `"` + "a long text that fills most of a line by itself" + `"`
	f("{ a: "+long+", b: 1, c: [1, 2] }", "{ a: "+long+", b: 2, c: [1, 2] }",
		"  {\n    a: \"a long text that fills most of a line by itself\",\n-   b: 2,\n+   b: 1,\n    c: [\n      1,\n  …\n")
	f("{ a: "+long+", list: ["+long+", 1], m: new Map([[1, "+long+"]]) }", "{ a: "+long+", list: ["+long+", 2], m: new Map([[1, "+long+"]]) }",
		"  …\n    list: [\n      \"a long text that fills most of a line by itself\",\n-     2,\n+     1,\n    ],\n    m: Map {\n  …\n")
	f(`"one\ntwo\nthree"`, `"one\n2\nthree"`, "  one\n- 2\n+ two\n  three\n")
	f("Array.from({ length: 1200 }, () => 1)", "Array.from({ length: 1201 }, () => 1)", "  …\n    1,\n    1,\n-   … and 201 more,\n+   … and 200 more,\n  ]\n")
	f("[1]", "[2]", "- [2]\n+ [1]\n")
}
