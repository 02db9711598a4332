package js_test

import "testing"

// TestSpies is what spies note, do and put back, and the messages of matchers of
// calls.
func TestSpies(t *testing.T) {
	var e expectations
	f := e.add
	const s = `const s = vi.fn((x: any) => x); s(1); s(2); `
	// matchers of calls: each holds, fails, and fails with not
	f(s+`expect(s).toHaveBeenCalled()`, "")
	f(`expect(vi.fn()).toHaveBeenCalled()`, "expected [Function spy] to have been called; it was not called")
	f(s+`expect(s).not.toHaveBeenCalled()`, "expected [Function spy] not to have been called\n  call 1: (1) returned 1\n  call 2: (2) returned 2")
	f(s+`expect(s).toHaveBeenCalledOnce()`, "expected [Function spy] to have been called once\n  call 1: (1) returned 1\n  call 2: (2) returned 2")
	f(s+`expect(s).toHaveBeenCalledTimes(2)`, "")
	f(s+`expect(s).toHaveBeenCalledTimes(3)`, "expected [Function spy] to have been called this often: (3)\n  call 1: (1) returned 1\n  call 2: (2) returned 2")
	f(s+`expect(s).toHaveBeenCalledWith(2)`, "")
	f(s+`expect(s).toHaveBeenCalledWith(3)`, "expected [Function spy] to have been called with (3)\n  call 1: (1) returned 1\n  call 2: (2) returned 2")
	f(s+`expect(s).toHaveBeenCalledWith(1, undefined)`, "expected [Function spy] to have been called with (1, undefined)\n  call 1: (1) returned 1\n  call 2: (2) returned 2")
	f(s+`expect(s).toHaveBeenCalledExactlyOnceWith(1)`, "expected [Function spy] to have been called once, and with (1)\n  call 1: (1) returned 1\n  call 2: (2) returned 2")
	f(s+`expect(s).toHaveBeenLastCalledWith(1)`, "expected [Function spy] to have been called last with (1)\n  call 1: (1) returned 1\n  call 2: (2) returned 2")
	f(s+`expect(s).toHaveBeenNthCalledWith(2, 2)`, "")
	f(s+`expect(s).toHaveBeenNthCalledWith(3, 2)`, "expected [Function spy] to have been called, in this call, with (3, 2)\n  call 1: (1) returned 1\n  call 2: (2) returned 2")
	f(s+`expect(s).toHaveBeenNthCalledWith(0, 2)`, "expected [Function spy] to have been called, in this call, with (0, 2)\n  call 1: (1) returned 1\n  call 2: (2) returned 2")
	f(s+`expect(s).toHaveReturnedTimes(1)`, "expected [Function spy] to have returned this often: (1)\n  call 1: (1) returned 1\n  call 2: (2) returned 2")
	f(s+`expect(s).toHaveReturnedWith(3)`, "expected [Function spy] to have returned (3)\n  call 1: (1) returned 1\n  call 2: (2) returned 2")
	f(s+`expect(s).toHaveLastReturnedWith(1)`, "expected [Function spy] to have returned last (1)\n  call 1: (1) returned 1\n  call 2: (2) returned 2")
	f(s+`expect(s).toHaveNthReturnedWith(1, 2)`, "expected [Function spy] to have returned, from this call, (1, 2)\n  call 1: (1) returned 1\n  call 2: (2) returned 2")
	f(`expect(vi.fn()).toHaveReturned()`, "expected [Function spy] to have returned; it was not called")
	f(`const s = vi.fn().mockName("clock"); expect(s).toHaveBeenCalled()`, "expected [Function clock] to have been called; it was not called")
	f(`const s = vi.fn(); for (let i = 0; i < 100; i++) s(i); expect(s).toHaveBeenCalledWith("x")`, "expected [Function spy] to have been called with (\"x\")\n  call 1: (0)\n  call 2: (1)\n  call 3: (2)\n  call 4: (3)\n  call 5: (4)\n  call 6: (5)\n  call 7: (6)\n  call 8: (7)\n  call 9: (8)\n  call 10: (9)\n  … and 90 more")
	// what a spy is
	f(`new (vi.fn() as any)()`, "TypeError: Value is not a constructor")
	f(`const s = vi.fn((a: any, b: any) => 1); expect(typeof s).toBe("function"); expect(s.call(null, 1, 2)).toBe(1); expect(s.apply(null, [3, 4])).toBe(1); expect(s.mock.calls).toEqual([[1, 2], [3, 4]])`, "")
	f(`const s = vi.fn(); s(); s.mock.calls.push([1]); expect(s).toHaveBeenCalledTimes(1)`, "")
	f(`const o = { a: 1 }; const s = vi.fn(); s(o); o.a = 2; expect(s).toHaveBeenCalledWith({ a: 2 })`, "")
	f(`const s = vi.fn(() => { throw new Error("x") }); expect(() => s()).toThrow("x"); expect(s.mock.results).toEqual([{ type: "throw", value: new Error("x") }])`, "")
	f(`const s: any = vi.fn((n: number) => n > 0 ? s(n - 1) : s.mock.results.map((r: any) => r.type).join()); expect(s(2)).toBe("incomplete,incomplete,incomplete")`, "")
	f(`const s = vi.fn(async () => 5); await s(); expect(s.mock.results[0].value).toBeInstanceOf(Promise)`, "")
	f(`(vi.fn() as any).mockReturnThis()`, "TypeError: vi.fn().mockReturnThis is not a function")
	f(`const s = vi.fn(() => 1).mockReturnValueOnce(2); s.mockReset(); expect(s()).toBe(1)`, "")
	f(`const s = vi.fn(() => 1).mockReturnValue(2); s.mockClear(); expect(s()).toBe(2)`, "")
	// objects
	f(`const o = { f() { return 1 } }; vi.spyOn(o, "f"); expect(o.f()).toBe(1); expect(o.f).toHaveBeenCalledOnce(); vi.restoreAllMocks(); expect(vi.isMockFunction(o.f)).toBe(false)`, "")
	f(`class A { f() { return 1 } }; const a = new A(); const s = vi.spyOn(a, "f").mockReturnValue(2); expect([a.f(), new A().f()]).toEqual([2, 1]); s.mockRestore(); expect(a.f()).toBe(1); expect(Object.keys(a)).toEqual([])`, "")
	f(`class A { f() { return 1 } }; vi.spyOn(A.prototype, "f").mockReturnValue(2); expect(new A().f()).toBe(2); vi.restoreAllMocks(); expect(new A().f()).toBe(1)`, "")
	// misuse
	f(`vi.fn(1 as any)`, "cannot make a spy of a number: write vi.fn() or vi.fn((x) => …)")
	f(`vi.spyOn({ a: 1 } as any, "a")`, "cannot put a spy in place of a: it is a number and no function")
	f(`vi.spyOn({} as any, "gone")`, "cannot put a spy in place of gone: it is undefined and no function")
	f(`vi.spyOn(undefined as any, "x")`, "cannot put a spy into this: write vi.spyOn(object, \"name\")")
	f(`vi.spyOn(Object.freeze({ f() {} }), "f")`, "cannot put a spy in place of f: the object is read-only, as what a module exports by name is; export an object that has the function")
	f(`vi.spyOn(Math, "abs")`, "cannot put a spy in place of abs: the object is read-only, as what a module exports by name is; export an object that has the function")
	f(`vi.fn().mockImplementation(1 as any)`, "cannot call a number in place of a function")
	f(`const { mockName } = vi.fn(); mockName("x")`, "cannot use mockName on undefined: it is no spy; make one with vi.fn() or vi.spyOn(object, \"name\")")
	f(`(vi as any).nope()`, "there is no vi.nope here: there is fn, spyOn, mocked, isMockFunction, clearAllMocks, resetAllMocks, restoreAllMocks")
	f(`(vi.fn() as any).mockNope()`, "TypeError: vi.fn().mockNope is not a function")
	f(`const s = vi.fn(); for (let i = 0; i < 20000; i++) s()`, "cannot note more than 10000 calls of a spy")
	e.run(t, "")
}

// TestSpiesBetweenTests: a test finds objects as they were; a spy of the file keeps
// its calls.
func TestSpiesBetweenTests(t *testing.T) {
	var e expectations
	f := e.add
	f(`vi.spyOn(o, "f").mockReturnValue(2); expect(o.f()).toBe(2); kept("a")`, "")
	f(`expect(o.f()).toBe(1); expect(vi.isMockFunction(o.f)).toBe(false)`, "")
	f(`expect(kept).not.toHaveBeenCalledWith("a")`, "expected [Function spy] not to have been called with (\"a\")\n  call 1: (\"a\")")
	e.run(t, "const o = { f: () => 1 };\nconst kept = vi.fn();\n")
}
