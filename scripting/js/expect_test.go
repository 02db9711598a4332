package js_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/js"
	"github.com/weir-run/weir/scripting/scripttest"
	"github.com/weir-run/weir/stdlib"
)

// runTest runs one test file in TypeScript.
func runTest(t *testing.T, text string) scripttest.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "scripts", "a", "x.test.ts")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	r, err := scripttest.Run(t.Context(), scripttest.Options{Languages: []scripting.Language{js.New()}, Modules: stdlib.Modules(), Paths: []string{path}})
	if err != nil {
		t.Fatal(err)
	}
	return r.Files[0]
}

// expectations are statements, each the body of a test, and the message of the
// failure; "" is a test that passes.
type expectations struct{ bodies, want []string }

func (e *expectations) add(body, want string) {
	e.bodies, e.want = append(e.bodies, body), append(e.want, want)
}

// run runs each body as a test in a line of its own, after the lines of head.
func (e *expectations) run(t *testing.T, head string) {
	t.Helper()
	head = "import { expect, it, vi, describe } from \"weir/test\";\n" + head
	var b strings.Builder
	b.WriteString(head)
	for i, body := range e.bodies {
		fmt.Fprintf(&b, "it(\"%d\", async () => { %s });\n", i, body)
	}
	f := runTest(t, b.String())
	if f.Problem != nil || len(f.Tests) != len(e.bodies) {
		t.Fatalf("got %d tests of %d: %+v", len(f.Tests), len(e.bodies), f.Problem)
	}
	for i, test := range f.Tests {
		got := ""
		if test.Problem != nil {
			got = test.Problem.Msg
			if line := strings.Count(head, "\n") + 1 + i; test.Problem.Line != line {
				t.Errorf("%s: got line %d, want %d", e.bodies[i], test.Problem.Line, line)
			}
		}
		if got != e.want[i] {
			t.Errorf("%s\n got %q\nwant %q", e.bodies[i], got, e.want[i])
		}
	}
}

// TestMatchers checks each matcher: what holds, what does not, and the same with
// not.
func TestMatchers(t *testing.T) {
	var e expectations
	f := func(holds, fails, msg, notMsg string) {
		e.add(holds, "")
		e.add(fails, msg)
		e.add(strings.Replace(fails, ").to", ").not.to", 1), "")
		e.add(strings.Replace(holds, ").to", ").not.to", 1), notMsg)
	}
	f(`expect(1).toBe(1)`, `expect(1).toBe(2)`, "expected 1 to be 2", "expected 1 not to be 1")
	f(`expect({ a: 1 }).toEqual({ a: 1 })`, `expect({ a: 1 }).toEqual({ a: 2 })`, "expected { a: 1 } to equal { a: 2 }", "expected { a: 1 } not to equal { a: 1 }")
	f(`expect([1]).toStrictEqual([1])`, `expect([,]).toStrictEqual([undefined])`, "expected [undefined] to strictly equal [undefined]", "expected [1] not to strictly equal [1]")
	f(`expect({ a: 1, b: 2 }).toMatchObject({ a: 1 })`, `expect({ a: 1 }).toMatchObject({ b: 1 })`, "expected { a: 1 } to match { b: 1 }", "expected { a: 1, b: 2 } not to match { a: 1 }")
	f(`expect("x").toBeTruthy()`, `expect("").toBeTruthy()`, "expected \"\" to be truthy", "expected \"x\" not to be truthy")
	f(`expect(0).toBeFalsy()`, `expect([]).toBeFalsy()`, "expected [] to be falsy", "expected 0 not to be falsy")
	f(`expect(null).toBeDefined()`, `expect(undefined).toBeDefined()`, "expected undefined to be defined", "expected null not to be defined")
	f(`expect(undefined).toBeUndefined()`, `expect(null).toBeUndefined()`, "expected null to be undefined", "expected undefined not to be undefined")
	f(`expect(null).toBeNull()`, `expect(undefined).toBeNull()`, "expected undefined to be null", "expected null not to be null")
	f(`expect(undefined).toBeNullish()`, `expect(0).toBeNullish()`, "expected 0 to be undefined or null", "expected undefined not to be undefined or null")
	f(`expect(NaN).toBeNaN()`, `expect("NaN").toBeNaN()`, "expected \"NaN\" to be NaN", "expected NaN not to be NaN")
	for _, c := range [][2]string{{"undefined", "undefined"}, {`"x"`, "string"}, {"1.5", "number"}, {"1n", "bigint"}, {"true", "boolean"}, {`Symbol("s")`, "symbol"}, {"() => 1", "function"}, {"class {}", "function"}, {"null", "object"}, {"[]", "object"}} {
		e.add("expect("+c[0]+").toBeTypeOf(\""+c[1]+"\")", "")
	}
	f(`expect(1).toBeTypeOf("number")`, `expect(1).toBeTypeOf("string")`, "expected 1 to be of type string", "expected 1 not to be of type number")
	f(`expect(new Map()).toBeInstanceOf(Map)`, `expect({}).toBeInstanceOf(Map)`, "expected {} to be made by Map", "expected Map {} not to be made by Map")
	f(`expect(1).toBeOneOf([1, 2])`, `expect(3).toBeOneOf([1, 2])`, "expected 3 to be one of [1, 2]", "expected 1 not to be one of [1, 2]")
	f(`expect(2).toBeGreaterThan(1)`, `expect(1).toBeGreaterThan(1)`, "expected 1 to be greater than 1", "expected 2 not to be greater than 1")
	f(`expect(1).toBeGreaterThanOrEqual(1)`, `expect(0).toBeGreaterThanOrEqual(1)`, "expected 0 to be at least 1", "expected 1 not to be at least 1")
	f(`expect(1).toBeLessThan(2)`, `expect(NaN).toBeLessThan(2)`, "expected NaN to be less than 2", "expected 1 not to be less than 2")
	f(`expect(18446744073709551616n).toBeLessThanOrEqual(2 ** 64)`, `expect(18446744073709551617n).toBeLessThanOrEqual(2 ** 64)`, "expected 18446744073709551617n to be at most 18446744073709552000", "expected 18446744073709551616n not to be at most 18446744073709552000")
	f(`expect(0.1 + 0.2).toBeCloseTo(0.3)`, `expect(1).toBeCloseTo(1.01)`, "expected 1 to be close to 1.01", "expected 0.30000000000000004 not to be close to 0.3")
	f(`expect(1).toBeCloseTo(1.4, 0)`, `expect(1).toBeCloseTo(1.001, 3)`, "expected 1 to be close to 1.001", "expected 1 not to be close to 1.4")
	f(`expect(Infinity).toBeCloseTo(Infinity)`, `expect(Infinity).toBeCloseTo(-Infinity)`, "expected Infinity to be close to -Infinity", "expected Infinity not to be close to Infinity")
	f(`expect([1, NaN]).toContain(NaN)`, `expect([{}]).toContain({})`, "expected [{}] to contain {}", "expected [1, NaN] not to contain NaN")
	f(`expect("abc").toContain("b")`, `expect("abc").toContain("x")`, "expected \"abc\" to contain \"x\"", "expected \"abc\" not to contain \"b\"")
	f(`expect(new Set([1])).toContain(1)`, `expect(new Set([1])).toContain(2)`, "expected Set { 1 } to contain 2", "expected Set { 1 } not to contain 1")
	f(`expect([{ a: 1 }]).toContainEqual({ a: 1 })`, `expect([{ a: 1 }]).toContainEqual({ a: 2 })`, "expected [{ a: 1 }] to contain what equals { a: 2 }", "expected [{ a: 1 }] not to contain what equals { a: 1 }")
	f(`expect("abc").toHaveLength(3)`, `expect([1]).toHaveLength(2)`, "expected [1] to have length 2, it has 1", "expected \"abc\" not to have length 3")
	f(`expect({ length: 2 }).toHaveLength(2)`, `expect({ length: 2 }).toHaveLength(3)`, "expected { length: 2 } to have length 3, it has 2", "expected { length: 2 } not to have length 2")
	f(`expect({ a: { b: [1] } }).toHaveProperty("a.b.0")`, `expect({ a: {} }).toHaveProperty("a.b")`, "expected { a: {} } to have the property \"a.b\"", "expected { a: { b: [1] } } not to have the property \"a.b.0\"")
	f(`expect({ "a.b": 1 }).toHaveProperty(["a.b"], 1)`, `expect({ a: 1 }).toHaveProperty("a", 2)`, "expected { a: 1 } to have the property \"a\" with 2", "expected { \"a.b\": 1 } not to have the property [\"a.b\"] with 1")
	f(`expect("abc").toMatch(/b./)`, `expect("abc").toMatch("x")`, "expected \"abc\" to match \"x\"", "expected \"abc\" not to match /b./")
	f(`expect(3).toSatisfy((x: any) => x > 2)`, `expect(1).toSatisfy((x: any) => x > 2)`, "expected 1 to satisfy the function", "expected 3 not to satisfy the function")
	f(`expect(() => { throw new TypeError("broke") }).toThrow()`, `expect(() => {}).toThrow()`, "expected [Function] to throw", "expected [Function] not to throw, it threw \"broke\"")
	f(`expect(() => { throw new TypeError("broke") }).toThrow("rok")`, `expect(() => { throw new Error("broke") }).toThrow("fire")`, "expected [Function] to throw fire", "expected [Function] not to throw rok")
	f(`expect(() => { throw new TypeError("broke") }).toThrow(/^b/)`, `expect(() => { throw new Error("broke") }).toThrow(/^x/)`, "expected [Function] to throw /^x/", "expected [Function] not to throw /^b/")
	f(`expect(() => { throw new TypeError("broke") }).toThrow(TypeError)`, `expect(() => { throw new Error("broke") }).toThrow(TypeError)`, "expected [Function] to throw a TypeError", "expected [Function] not to throw a TypeError")
	f(`expect(() => { throw new Error("broke") }).toThrowError(new Error("broke"))`, `expect(() => { throw new Error("broke") }).toThrowError(new Error("other"))`, "expected [Function] to throw other", "expected [Function] not to throw broke")
	// equality of what is not plain
	f(`expect(new Number(1)).toEqual(new Number(1))`, `expect(new String("a")).toEqual(new String("b"))`, "expected String {\"a\"} to equal String {\"b\"}", "expected Number {1} not to equal Number {1}")
	f(`expect({ [Symbol.iterator]: 1 }).toEqual({ [Symbol.iterator]: 1 })`, `expect({ [Symbol.iterator]: 1 }).toEqual({ [Symbol.iterator]: 2 })`, "expected {} to equal {}", "expected {} not to equal {}")
	f(`expect({ [Symbol.iterator]: undefined }).toEqual({})`, `expect({ [Symbol.iterator]: 1 }).toEqual({})`, "expected {} to equal {}", "expected {} not to equal {}")
	f(`expect({}).toEqual({ [Symbol.iterator]: undefined })`, `expect({}).toEqual({ [Symbol.iterator]: 1 })`, "expected {} to equal {}", "expected {} not to equal {}")
	f(`expect(new Set([[1]])).toEqual(new Set([[1]]))`, `expect(new Set([[1]])).toEqual(new Set([[2]]))`, "expected Set { [1] } to equal Set { [2] }", "expected Set { [1] } not to equal Set { [1] }")
	f(`expect(new Uint8Array([1])).toEqual(new Uint8Array([1]))`, `expect(new Uint8Array([1])).toEqual(new Uint8Array([2]))`, "expected Uint8Array { \"0\": 1 } to equal Uint8Array { \"0\": 2 }", "expected Uint8Array { \"0\": 1 } not to equal Uint8Array { \"0\": 1 }")
	f(`expect(expect.anything()).toEqual(1)`, `expect(expect.any(String)).toEqual(1)`, "expected Any<String> to equal 1", "expected Anything not to equal 1")
	// alike
	f(`expect({ a: "abc" }).toEqual({ a: expect.stringContaining("b") })`, `expect({ a: "abc" }).toEqual({ a: expect.stringContaining("x") })`, "expected { a: \"abc\" } to equal { a: StringContaining<\"x\"> }", "expected { a: \"abc\" } not to equal { a: StringContaining<\"b\"> }")
	f(`expect(["abc"]).toEqual([expect.stringMatching(/^a/)])`, `expect(["abc"]).toEqual([expect.not.stringMatching(/^a/)])`, "expected [\"abc\"] to equal [NotStringMatching</^a/>]", "expected [\"abc\"] not to equal [StringMatching</^a/>]")
	f(`expect({ n: 0.3 }).toEqual({ n: expect.closeTo(0.1 + 0.2) })`, `expect({ n: 0.3 }).toEqual({ n: expect.closeTo(0.4) })`, "expected { n: 0.3 } to equal { n: CloseTo<0.4> }", "expected { n: 0.3 } not to equal { n: CloseTo<0.30000000000000004> }")
	f(`expect([3, 1, 2]).toEqual(expect.arrayContaining([1, 2]))`, `expect([1]).toEqual(expect.arrayContaining([1, 2]))`, "expected [1] to equal ArrayContaining<[1, 2]>", "expected [3, 1, 2] not to equal ArrayContaining<[1, 2]>")
	f(`expect({ a: 1, b: 2 }).toEqual(expect.objectContaining({ b: 2 }))`, `expect("x").toEqual(expect.objectContaining({ b: 2 }))`, "expected \"x\" to equal ObjectContaining<{ b: 2 }>", "expected { a: 1, b: 2 } not to equal ObjectContaining<{ b: 2 }>")
	f(`expect(null).toEqual(expect.not.anything())`, `expect(undefined).toEqual(expect.anything())`, "expected undefined to equal Anything", "expected null not to equal NotAnything")
	for _, c := range [][3]string{
		{"String", `"x"`, `"x"`}, {"Number", "1", "1"}, {"Boolean", "false", "false"}, {"BigInt", "1n", "1n"}, {"Symbol", "Symbol()", "Symbol()"},
		{"Function", "() => 1", "[Function]"}, {"Object", "{}", "{}"}, {"Array", "[]", "[]"}, {"Map", "new Map()", "Map {}"},
	} {
		class, value, shown := c[0], c[1], c[2]
		f("expect("+value+").toEqual(expect.any("+class+"))", "expect(null).toEqual(expect.any("+class+"))",
			"expected null to equal Any<"+class+">", "expected "+shown+" not to equal Any<"+class+">")
	}
	e.run(t, "")
}

// TestMatchersMisused gives matchers what they cannot use.
func TestMatchersMisused(t *testing.T) {
	var e expectations
	f := e.add
	f(`expect("1").toBeCloseTo(1)`, "cannot use toBeCloseTo on what is no number")
	f(`expect(1).toContain(1)`, "cannot look for an element in a number")
	f(`expect(1).toContainEqual(1)`, "cannot look for an element in a number")
	f(`expect(1).toHaveLength(1)`, "cannot take the length of a number")
	f(`expect(1).toMatch("1")`, "cannot match a number: toMatch takes a string")
	f(`expect("a").toMatch(1)`, "expected \"a\" to match 1")
	f(`expect(1).toSatisfy(1)`, "cannot use toSatisfy without a function: write toSatisfy((x) => …)")
	f(`expect(1).toBeOneOf(1)`, "cannot use toBeOneOf without a list")
	f(`expect(1).toBeInstanceOf("Number")`, "cannot use toBeInstanceOf without a class")
	f(`expect(1).toThrow()`, "cannot look whether a number throws: write expect(() => …).toThrow()")
	f(`expect(() => { throw new Error("x") }).toThrow(1)`, "cannot compare an error with a number: write a part of its message, a regular expression, a class or an error")
	f(`expect("a").toBeGreaterThan("b")`, "expected \"a\" to be greater than \"b\"")
	f(`expect(undefined).toHaveProperty("a")`, "expected undefined to have the property \"a\"")
	f(`expect(1).toHaveBeenCalled()`, "cannot use a matcher of calls on a number: it is no spy; make one with vi.fn() or vi.spyOn(object, \"name\")")
	f(`expect.any()`, "cannot use expect.any without a class: write expect.any(Number)")
	f(`expect(1).toBee(1)`, "there is no toBee here: did you mean toBe?")
	f(`expect(1).not.toBee(1)`, "there is no toBee here: did you mean toBe?")
	f(`expect.anithing()`, "there is no expect.anithing here: there is not, anything, any, objectContaining, arrayContaining, stringContaining, stringMatching, closeTo, assertions, hasAssertions, unreachable")
	f(`expect.not.any(Number)`, "")
	f(`const { toBe } = expect(1); toBe(1)`, "cannot call toBe without an expectation: write expect(x).toBe")
	f(`await expect(1).resolves.toBe(1)`, "cannot use resolves: it takes a promise, not a number")
	f(`await expect(Promise.reject(new Error("no"))).resolves.toBe(1)`, "expected the promise to give a value, it was rejected: no")
	f(`await expect(Promise.resolve(1)).rejects.toThrow()`, "expected the promise to be rejected, it gave 1")
	f(`await expect(Promise.resolve(1)).resolves.toBe(2)`, "expected 1 to be 2")
	f(`await expect(Promise.reject(new Error("no"))).rejects.toThrow("yes")`, "expected [no] to throw yes")
	f(`await expect(Promise.reject(new Error("no"))).rejects.toThrow("no")`, "")
	f(`await expect(Promise.reject(3)).rejects.toBe(3)`, "")
	f(`await expect(async () => { throw new Error("no") }).rejects.toThrow("no")`, "")
	f(`expect.assertions(1)`, "expected 1 expectations to be checked, there were 0")
	f(`expect.assertions(-1)`, "expected -1 expectations to be checked, there were 0")
	f(`expect.hasAssertions(); expect(1).toBe(1)`, "")
	f(`expect.unreachable()`, "this line must not be reached")
	e.run(t, "")
}

// TestEachTitles names the tests of it.each by their cases.
func TestEachTitles(t *testing.T) {
	f := func(cases, title string, want ...string) {
		t.Helper()
		file := runTest(t, "import { it } from \"weir/test\";\nit.each("+cases+")("+title+", () => {});\n")
		var got []string
		for _, test := range file.Tests {
			got = append(got, test.Name)
		}
		if file.Problem != nil {
			got = append(got, file.Problem.Msg)
		}
		if strings.Join(got, "|") != strings.Join(want, "|") {
			t.Errorf("%s %s: got %q, want %q", cases, title, got, want)
		}
	}
	f(`[[1, 2], [3, 4]]`, `"%d and %d"`, "1 and 2", "3 and 4")
	f(`[1.5, "2"]`, `"%d %i"`, "1.5 ", "2 ")
	f(`[[1.5, 1.5]]`, `"%d %i %%"`, "1.5 1 %")
	f(`[["a", { b: 1 }]]`, `"%s %j"`, `a { b: 1 }`)
	f(`["x", 1e30, -1.5, -0.5, 7n]`, `"%i"`, "NaN", "1e+30", "-1", "0", "7n")
	f(`[7n, Symbol("s")]`, `"%d"`, "7n", "Symbol(s)")
	f(`["a", "b"]`, `"%# of %$"`, "0 of 1", "1 of 2")
	f(`["a"]`, `"100% of %s, %x"`, "100% of a, %x")
	f(`["a"]`, `"%"`, "%")
	f(`[{ a: { b: "x" } }]`, `"$a.b, $a, $c, $$"`, `x, { b: "x" }, $c, $$`)
	f(`[undefined, null]`, `"%s"`, "undefined", "null")
	f(`1`, `"x"`, "cannot use it.each on this: write it.each([[1, 2], [3, 4]])(\"name %d\", (a, b) => …)")
	f(`[1], [2]`, `"x"`, "cannot use it.each on this: write it.each([[1, 2], [3, 4]])(\"name %d\", (a, b) => …)")
	file := runTest(t, "import { it } from \"weir/test\";\nit.each([1])(\"x\");\n")
	if p := file.Problem; p == nil || p.Line != 2 || p.Msg != "cannot declare tests without a function: write it.each(cases)(name, fn)" {
		t.Errorf("got %+v", p)
	}
}
