package js_test

import (
	"strings"
	"testing"
)

// TestSpiesReset checks the functions of vi that concern all spies, and what a spy
// tells of itself.
func TestSpiesReset(t *testing.T) {
	var e expectations
	f := e.add
	f(`const a = vi.fn(() => 1).mockReturnValue(2), b = vi.fn(); a(); b(); vi.clearAllMocks(); expect(a).not.toHaveBeenCalled(); expect(b).not.toHaveBeenCalled(); expect(a()).toBe(2)`, "")
	f(`const a = vi.fn(() => 1).mockReturnValue(2); a(); vi.resetAllMocks(); expect(a).not.toHaveBeenCalled(); expect(a()).toBe(1)`, "")
	f(`const s = vi.fn((x: any) => x).mockImplementationOnce(() => "one").mockImplementationOnce(() => "two"); expect([s(0), s(0), s(3)]).toEqual(["one", "two", 3])`, "")
	f(`vi.fn().mockImplementationOnce("x" as any)`, "cannot call a string in place of a function")
	f(`const s = vi.fn(); expect(s.getMockName()).toBe("spy"); s.mockName("clock"); expect(s.getMockName()).toBe("clock")`, "")
	f(`const g = () => 1; expect(vi.fn(g).getMockImplementation()).toBe(g); expect(vi.fn().getMockImplementation()).toBe(undefined)`, "")
	f(`const o = { f: () => 1 }; const s = vi.spyOn(o, "f"); expect(vi.spyOn(o, "f")).toBe(s); expect(vi.mocked(o.f)).toBe(s); expect(s.getMockName()).toBe("f")`, "")
	f(`const o = { f: () => 1 }; vi.spyOn(o, "f").mockReturnValue(2); vi.spyOn(o, "f").mockReturnValue(3); expect(o.f()).toBe(3); vi.restoreAllMocks(); expect(o.f()).toBe(1)`, "")
	f(`const calls: any[] = []; const s = vi.fn(function (this: any) { calls.push(this) }); const o = { s }; o.s(); expect(calls[0]).toBe(o)`, "")
	e.run(t, "")
}

// TestThrownExpectations checks toThrow and its like where the first tests of a script
// use them in a wrong way.
func TestThrownExpectations(t *testing.T) {
	var e expectations
	f := e.add
	const boom = `const boom = () => { throw Object.assign(new Error("boom"), { code: 7 }) }; `
	f(boom+`expect(boom).toThrow(expect.objectContaining({ code: 7 }))`, "")
	f(boom+`expect(boom).toThrow(expect.objectContaining({ code: 8 }))`, "expected [Function boom] to throw ObjectContaining<{ code: 8 }>")
	f(boom+`expect(boom).not.toThrow(expect.any(TypeError))`, "")
	f(`expect(async () => { throw new Error("late") }).toThrow()`, "expected [Function] to throw: it returned a promise; write await expect(…).rejects.toThrow()")
	f(`expect(() => { throw "a string" }).toThrow("string")`, "")
	f(`expect(() => { throw { code: 1 } }).toThrow("1")`, "expected [Function] to throw 1")
	f(`expect({ a: 1 }).toBe({ a: 1 })`, "expected { a: 1 } to be the very same value, not one that looks like it")
	f(`expect([1]).not.toBe([1])`, "")
	f(`expect(1, "the sum").toBe(2)`, "the sum: expected 1 to be 2")
	f(`expect.unreachable("not here")`, "this line must not be reached: not here")
	f(`setTimeout(() => {}, 1)`, "ReferenceError: setTimeout is not defined\nhint: there are no timers: advance(\"30s\") of a component moves its clock")
	e.run(t, "")
}

// TestDeclaringTests checks what it, describe and their variants take.
func TestDeclaringTests(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		file := runTest(t, "import { describe, expect, it, test } from \"weir/test\";\n"+text+"\n")
		var got []string
		for _, test := range file.Tests {
			got = append(got, test.Name+" "+string(test.Status))
		}
		if file.Problem != nil {
			got = append(got, file.Problem.Msg)
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
	f(`it("a", () => {}); test("b", async () => {}); it("c", () => { expect(1).toBe(2) })`, "a passed, b passed, c failed")
	f(`describe("outer", () => { describe("inner", () => { it("a", () => {}) }) })`, "outer inner a passed")
	f(`it.skip("a", () => { expect(1).toBe(2) }); it("b", () => {})`, "a pending, b passed")
	f(`it.only("a", () => {}); it("b", () => { expect(1).toBe(2) })`, "a passed, b pending")
	f(`it.todo("later")`, "later pending")
	f(`it("a", { timeout: 5 }, () => {})`, "cannot use options of a test: its limit of script time is that of all tests; leave them out, or write it.skip, it.only")
	f(`it("a", () => {}, { timeout: 5 } as any)`, "cannot use options of a test: its limit of script time is that of all tests; leave them out, or write it.skip, it.only")
	f(`it.concurrent("a", () => {})`, "there is no it.concurrent here: tests of a file run one after the other")
	f(`it("a")`, "a pending")
}
