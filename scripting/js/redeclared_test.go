package js_test

import (
	"strings"
	"testing"

	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/js"
)

// TestRedeclared: what would keep esbuild busy for minutes is refused before.
func TestRedeclared(t *testing.T) {
	f := func(unit string) {
		t.Helper()
		text := strings.Repeat(unit, 3000)
		_, err := js.New().Compile(scripting.File{Name: "x.ts", Text: text}, scripting.Env{})
		if err == nil || !strings.Contains(err.Error(), "declares more than 200 names twice") {
			t.Errorf("%q: got %.200v", unit, err)
		}
	}
	f("let a;")
	f("let a\n")
	f("let a\r")
	f("const a=1;")
	f("let a=1,b=2,a=3;")
	f("class A{}")
	f("class A{}\n")
	f("enum A{a}")
	f("export let a;")
	f("export default class A{}\n")
	f("import a from \"weir\"\n")
	f("let ä;")
	f("{let a;let a}")
	f("f();let a;")
	f("@d class A{}\n")
}

// TestNotRedeclared: the same name in another block is another variable.
func TestNotRedeclared(t *testing.T) {
	f := func(unit string) {
		t.Helper()
		text := strings.Repeat(unit, 1000)
		_, err := js.New().Compile(scripting.File{Name: "x.ts", Text: text}, scripting.Env{})
		if err != nil && strings.Contains(err.Error(), "twice") {
			t.Errorf("%q: got %.200v", unit, err)
		}
	}
	f("for (let i = 0, n = 1; i < n; i++) {}\n")
	f("for (const x of [1]) { const y = x; let z; }\n")
	f("{ let a = 1; let b = [a, a], c = {a: a, b, b}; class A {} }\n")
	f("function f() { const a = 1, b = 2; return () => { const a = 2; return a; }; }\n")
	f("x = class A {};\n")
	f("x.let = y.class;\n")
	f("interface A { a: number }\n")
	f("(() => { let a = 1; })();\n")
}

// TestManyErrors: of a file full of mistakes some are shown.
func TestManyErrors(t *testing.T) {
	_, err := js.New().Compile(scripting.File{Name: "x.ts", Text: strings.Repeat("break;", 2000)}, scripting.Env{})
	if err == nil || !strings.Contains(err.Error(), "1980 more errors are not shown") || len(err.Error()) > 10_000 {
		t.Errorf("got %.300v", err)
	}
}
