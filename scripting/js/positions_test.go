package js_test

import (
	"strings"
	"testing"

	"github.com/weir-run/weir/scripting"
)

// plainFailure runs a plain file that fails, and returns its error.
func plainFailure(t *testing.T, src string) *scripting.Error {
	t.Helper()
	_, err := runPlain(t.Context(), src, scripting.PlainOptions{})
	return scriptErr(t, err)
}

// TestPositions holds that an error has the line and the column of the source that
// the author wrote. The mark ‸ shows the place and is removed before the file is
// compiled. A body that uses batch or ctx runs in a hook, any other is a plain file.
func TestPositions(t *testing.T) {
	f := func(body string) {
		t.Helper()
		before, after, ok := strings.Cut(body, "‸")
		if !ok {
			t.Fatalf("%s: there is no mark", body)
		}
		line, fail := 1, plainFailure
		if strings.Contains(body, "batch") || strings.Contains(body, "ctx") {
			line, fail = 3, func(t *testing.T, body string) *scripting.Error { return failure(t, body) } // metrics puts two lines before it
		}
		line += strings.Count(before, "\n")
		col := len(before) - strings.LastIndexByte(before, '\n')
		if e := fail(t, before+after); e.Line != line || e.Col != col {
			t.Errorf("%s: got %d:%d, want %d:%d: %v", body, e.Line, e.Col, line, col, e.Err)
		}
	}
	f(`throw ‸new Error("x")`)
	f("\n\n    throw ‸new Error(\"x\")")
	f("\t\tthrow ‸new Error(\"x\")")
	f("/* a\n * comment */ throw ‸new Error(\"x\")")
	f("const s = `\n${1}\n`; throw ‸new Error(s)")
	f("type A = {\n  b: string\n}\nconst a = undefined as unknown as A;\na.‸b")
	f("interface A { b: string }\nenum E {\n  A = 1,\n}\nlet a: any, n: E = E.A;\na.‸b")
	f("const o: any = {}; o.a?.b; o.a.‸b")
	f("const o: any = {}\no\n  .a\n  .‸b")
	f("const o: any = { x: 1 };\n({ ...o }).y.‸z")
	f("class A {\n  #p: any\n  get p() { return this.#p }\n}\nnew A().p.‸q")
	f("const f = <T,>(x: T): T => x;\n(f<any>(undefined)).‸x")
	f("batch.each((m: any) => {\n  m.‸nope\n})")
	f("ctx.args.‸nope")
	f("batch[0].labels.‸l = Symbol()")
	f("for (const m of batch) {\n  if (m.value) {\n    m.‸value = \"x\"\n  }\n}")
	f("function f(this: void, a: any = (undefined as any).‸x) {}\nf()")
	f("const [a, { b }]: any = [1, {}];\nb.‸c")
	f("label: for (;;) { switch (1 as number) { default: break label } }\nnull!.‸x")
}

// TestStacks holds that a stack names the functions and lines of the source, the
// innermost first, through files and callbacks.
func TestStacks(t *testing.T) {
	e := failureOf(t, `import { defineTransform } from "weir"
import { walk } from "./walk"

class Checker {
  constructor(private readonly limit: number) {}
  check = (n: number) => {
    if (n > this.limit) throw new RangeError("too deep: " + n)
  }
}

export default defineTransform({
  metrics(batch: any) {
    const c = new Checker(1)
    walk([[[]]], c.check)
  },
})
`, "", "test/walk.ts", `type Tree = Tree[]

export function walk(t: Tree, visit: (depth: number) => void, depth = 0): void {
  visit(depth)
  t.forEach((child) =>
    walk(child, visit, depth + 1))
}
`)
	const script, walk = "embedded/test/script.ts", "embedded/test/walk.ts"
	want := []scripting.Frame{
		{File: script, Line: 7, Func: "check"}, {File: walk, Line: 4, Func: "walk"}, {File: walk, Line: 6, Func: "function"}, {File: walk, Line: 5, Func: "walk"},
		{File: walk, Line: 6, Func: "function"}, {File: walk, Line: 5, Func: "walk"}, {File: script, Line: 14, Func: "metrics"},
	}
	if e.Err.Error() != "RangeError: too deep: 2" || e.File != script || e.Line != 7 || e.Hook != "metrics" {
		t.Errorf("got %+v", e)
	}
	if len(e.Trace) != len(want) {
		t.Fatalf("got %+v", e.Trace)
	}
	for i := range want {
		if e.Trace[i] != want[i] {
			t.Errorf("%d: got %+v, want %+v", i, e.Trace[i], want[i])
		}
	}

	// An error that is thrown again has the place where it was made; one that is
	// made of another its own.
	f := func(body string, line int) {
		t.Helper()
		if e := plainFailure(t, "function fails() {\nthrow new Error(\"inner\")\n}\n"+body); e.Line != line {
			t.Errorf("%s: got line %d, want %d: %v", body, e.Line, line, e)
		}
	}
	f("try { fails() } catch (e) {\nthrow e\n}", 2)
	f("try { fails() } catch (e) {\nthrow new Error(\"outer\", { cause: e })\n}", 5)
	f("try { fails() } finally {\n1\n}", 2)
	f("const e = new Error(\"early\")\n\nthrow e", 4)
	f("[3, 1].sort(() => {\nfails()\n})", 2)
	f("JSON.parse(\"[1]\",\n() => fails())", 2)
	f("const o = { get x() {\nreturn fails() } };\n`${o.x}`", 2)
	f("new Proxy({}, { get() {\nfails() } } as any).x", 2)
	f("[...(function* () {\nyield 1\nfails() })()]", 2)
}

// TestDeepStacks holds that a stack is cut, and that a recursion without an end names
// the function.
func TestDeepStacks(t *testing.T) {
	e := plainFailure(t, "const f = (n: number): any => {\nif (n === 0) throw new Error(\"deep\")\nreturn [f(n - 1)]\n}\nf(100)")
	if e.Line != 2 || len(e.Trace) != 20 || e.Trace[1].Line != 3 {
		t.Errorf("got line %d, %d frames: %+v", e.Line, len(e.Trace), e.Trace)
	}
	e = plainFailure(t, "const f = (n: number): any => [f(n + 1)]\n\nf(0)")
	if e.Line != 1 || len(e.Trace) != 20 || e.Trace[0].Func != "f" || !strings.Contains(e.Err.Error(), "the calls nest too deep") {
		t.Errorf("got line %d: %+v", e.Line, e)
	}
}
