package js_test

import (
	"strings"
	"testing"
)

// TestLintGlobalWrite: globals cannot be changed, and names must be declared.
func TestLintGlobalWrite(t *testing.T) {
	f := func(body string, want ...string) {
		t.Helper()
		findingsIn(t, "defineTransform({ metrics(batch, ctx) {", body, "} })", want...)
	}
	undeclared := func(at, name string) string {
		return at + ": cannot assign to " + name + ": it is not declared | write let " + name
	}
	f("n = 1; return n", undeclared("3:1", "n"))
	f("n += 1", undeclared("3:1", "n"))
	f("n++", undeclared("3:1", "n"))
	f("--n", undeclared("3:3", "n"))
	f("if (typeof n === 'undefined') n = 1", undeclared("3:31", "n"))
	f("[n] = [1]", undeclared("3:2", "n"))
	f("({ a: n } = { a: 1 })", undeclared("3:7", "n"))
	f("for (n of batch) n.drop()", undeclared("3:6", "n"))
	const other = " | use another name, and declare it with let"
	f("Math = 1", `3:1: cannot assign to global "Math": globals are read-only`+other)
	const member = ": globals are read-only | declare a variable or a function in the script, or a state"
	f("Math.n = 1", `3:6: cannot set "n" of Math`+member)
	f("globalThis.n = 1", `3:12: cannot set "n" of globalThis`+member)
	f("globalThis['n-1'] = 1", `3:12: cannot set "n-1" of globalThis`+member)
	f("String.prototype.n = 1", `3:18: cannot set "n" of String.prototype`+member)
	f("delete Math.abs", `3:13: cannot set "abs" of Math`+member)

	// Declared names.
	f("let n; n = 1; n++; [n] = [2]; ({ a: n } = { a: 1 }); for (n of [1]) ;")
	f("var n; { n = 1 } function g() { n = 2 } g()")
	f("g = 1; function g() {}")
	f("for (let i = 0; i < 3; i++) ;")
	f("for (var i = 0; i < 3; i++) ; i = 1")
	f("try { throw 1 } catch (e) { e = 2 }")
	f("const g = (a, { b } = {}, ...c) => { a = 1; b = 2; c = 3 }; g()")
	f("const Math = {}; Math.n = 1")
	f("n = 1; var n")
	f("class A { static n = 1 } A.n = 2")
	f("enum A { X } ; let a = A.X; a = A.X")
}

// TestLintUnboundedCache: an object outside of the hooks to which they only add.
func TestLintUnboundedCache(t *testing.T) {
	f := func(declared, body string, want ...string) {
		t.Helper()
		src := "import { defineTransform } from \"weir\"\n" + declared + "\nexport default defineTransform({ metrics(batch, ctx) {\n" + body + "\n} })"
		if got := strings.TrimSuffix(lint(t, src), "\n"); got != strings.Join(want, "\n") {
			t.Errorf("%s %s: got %q, want %q", declared, body, got, want)
		}
	}
	const cache = `warning: 4:1: seen lives as long as its VM: each VM has its own, and a reload empties it | declare it as state: { seen: state.lru({ max: 10000 }) }, which is shared, bounded and kept over a reload`
	f("const seen = {}", "seen[batch[0].name] = true", cache)
	f("const seen: Record<string, number> = {}", "seen[batch[0].name] ??= 1", cache)
	f("const seen: Record<string, number> = {}", "seen[batch[0].name]++", cache)
	f("const seen = new Map<string, number>()", "seen.set(batch[0].name, 1)", cache)
	f("const seen = new Set()", "seen.add(batch[0].name)", cache)
	// These are bounded, or live no longer than a call.
	f("const seen = new Map()", "seen.set(batch[0].name, 1); if (seen.size > 100) seen.clear()")
	f("const seen = new Map()", "seen.set(batch[0].name, 1); seen.delete('a')")
	f("const seen = {}", "seen[batch[0].name] = 1; delete seen[batch[1].name]")
	f("let seen = {}", "seen = {}; seen[batch[0].name] = 1")
	f("const seen = new Set()", "seen.add('a'); seen.has(batch[0].name)")
	f("const seen = { a: 1 }", "seen.a = 2; seen['b'] = 3; seen[0] = 1")
	f("const seen = { debug: 0, info: 0 }", "seen[batch[0].labels.level]++")
	f("const seen = []", "seen.push(batch[0].name)")
	f("", "const seen = new Set(); seen.add(batch[0].name)")
	f("const seen = {}; seen['a' + 1] = 1", "return seen[batch[0].name]")
}
