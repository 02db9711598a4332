package js_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/js"
)

// TestMutations: each change has its position. Types are no code, and strings for people
// stay.
func TestMutations(t *testing.T) {
	f := func(text string, want ...string) {
		t.Helper()
		var got []string
		for _, m := range js.New().Mutations(scripting.File{Name: "x.ts", Text: text}) {
			got = append(got, fmt.Sprintf("%d:%d %s", m.Line, m.Col, m.Change))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
	f("export const x = a === b;", "1:20 === → !==")
	f("export const x = a < -1;", "1:20 < → <=", "1:23 1 → 2")
	f("export const x = a ?? 2000;", "1:20 ?? → &&", "1:23 2000 → 1")
	f("export const x = !a && b;", "1:18 drop !a → a", "1:21 && → ||")
	f("export const x = a?.b ? c : d;", "1:23 ? → || true ?", "1:23 ? → && false ?")
	f("export const x = 5n + a;", "1:21 + → -")

	// Types
	f("export const x: Array<1 | \"a\"> = y as 3;")
	f("export function x(a?: number, b: 1 = 4) {}", "1:38 4 → 5")
	f("interface A { a: 1; b?: true }\ntype B = A | false;")

	// Comments, patterns and templates
	f("// a + 1\n/* 2 */ export const x = /[/1]+/g.test(y) / 3;", "2:43 / → *", "2:45 3 → 4")
	f("export const x = `1 ${a + `2 ${ { b: 3 }.b } 4`} 5` + 6;", "1:25 + → -", "1:38 3 → 4", "1:53 + → -", "1:55 6 → 7")

	// Strings
	f(`export const x = { doc: "text" };`)
	f(`import y from "x";`)
	f(`export const x = y === "a";`, `1:20 === → !==`, `1:24 "a" → ""`)
	f(`export const x = y.get("a", ["b"]);`, `1:24 "a" → ""`)
	f(`throw new Error("no" + 1);`, `1:1 drop throw new Error("no" + 1);`, "1:22 + → -", "1:24 1 → 2")

	// Conditions and statements
	f("if (a) b();", "1:5 a → !(a)", "1:8 drop b();")
	f("if (a === b) { c(); }", "1:7 === → !==", "1:16 drop c();")
	f("while (a || b) c();", "1:8 a || b → !(a || b)", "1:10 || → &&", "1:16 drop c();")
	f("a.forEach((b) => {\n  c(b);\n  return;\n});", "1:1 drop a.forEach((b) => { c(b); return; });", "2:3 drop c(b);", "3:3 drop return;")
	f("for (let i = 0; i < n; i++) {}", "1:14 0 → 1", "1:19 < → <=", "1:25 ++ → --")
	f("const a = b;\nfunction c() { let d; }")
}
