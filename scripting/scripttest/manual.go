package scripttest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-run/weir/scripting"
)

// API is what a test file in these words may call, for docs and types: it
// cannot be called.
func API(words scripting.TestWords) *scripting.TestAPI {
	s := &session{ctx: context.Background(), top: &group{}, words: words}
	api := s.api()
	if words != scripting.Busted {
		return api
	}
	for _, a := range assertions {
		params := append(slices.Clone(a.params), scripting.Param{
			Name: "message", Kind: scripting.KindAny, Optional: true, Doc: "What to say when it does not hold.",
		})
		api.Assertions = append(api.Assertions, scripting.Function{Name: a.name, Doc: a.doc, Params: params})
	}
	return api
}

// spyManual is about what a language makes itself.
const spyManual = `
Spies note the calls of functions of the test, and of the modules it requires;
a component has a VM of its own, in which they are not seen. What stands in a
table is put back when the test ends.
  spy.new(fn)              a function that calls fn
  spy.on(table, name)      puts a spy in place of a function
  stub(table, name, …)     puts in its place what only returns the rest
  mock(table, stubs?)      does so for all functions of a table
  s.returns(…)  s.invokes(fn)  s:clear()  s:revert()
`

// Manual is what a test file may call, from the tables that are bound.
func Manual() string {
	api := API(scripting.Busted)
	var b strings.Builder
	line := func(prefix string, f *scripting.Function) {
		scripting.WriteManual(&b, prefix+f.Name+f.Signature(), f.Doc)
	}
	b.WriteString("In a test file in Lua there are\n")
	for i := range api.Globals {
		line("", &api.Globals[i])
	}
	for i := range api.Weir.Funcs {
		line(api.Weir.Name+".", &api.Weir.Funcs[i])
	}
	for _, t := range api.Weir.Types {
		a := "A"
		if strings.ContainsRune("aeiou", rune(t.Name[0])) {
			a = "An"
		}
		fmt.Fprintf(&b, "\n%s %s. %s\n", a, t.Name, scripting.WrapManual(t.Doc, 0, 2+len(t.Name)+2))
		for _, f := range t.Fields {
			scripting.WriteManual(&b, "."+f.Name, f.Doc)
		}
		for i := range t.Methods {
			line(":", &t.Methods[i])
		}
	}
	b.WriteString("\nAssertions, assert.same and so on, also with is_, is_not_, has_, has_no_ before\ntheir name; a last argument is the message:\n")
	for _, a := range assertions {
		scripting.WriteManual(&b, a.name+(&scripting.Function{Params: a.params}).Signature(), a.doc)
	}
	b.WriteString(spyManual)
	for _, c := range spyChecks {
		scripting.WriteManual(&b, "assert.spy(s).was."+c.name+"("+c.args+")", c.doc)
	}
	writeVitest(&b)
	for _, m := range api.Tables {
		fmt.Fprintf(&b, "\n%s. %s\n", strings.ToUpper(m.Name[:1])+m.Name[1:], m.Doc)
		for _, c := range m.Consts {
			scripting.WriteManual(&b, m.Name+"."+c.Name, c.Doc)
		}
	}
	return b.String()
}

// writeVitest writes what test files in JavaScript and TypeScript have.
func writeVitest(b *strings.Builder) {
	api := API(scripting.Vitest)
	list := func(prefix string, fs []scripting.Function) {
		for i := range fs {
			f := fs[i].Camel()
			scripting.WriteManual(b, prefix+f.Name+f.Signature(), f.Doc)
		}
	}
	b.WriteString("\nIn a test file in JavaScript or TypeScript there is, as in vitest and global\nor imported from \"weir/test\",\n")
	list("", slices.DeleteFunc(slices.Clone(api.Globals), func(f scripting.Function) bool {
		return strings.HasPrefix(f.Name, "suite") || strings.HasPrefix(f.Name, "it")
	}))
	b.WriteString("suite is describe, and it is test. \"weir/test\" also has what is below\nweir.test in Lua, component, http, env, files and exec, and fixtures, all in\ncamelCase: out.labelValues(\"path\").\n\nexpect(x), expect(x).not, and for a promise await expect(p).resolves\nand .rejects, have\n")
	list("", api.Matchers)
	b.WriteString("\nand expect itself\n")
	list("expect.", api.Expect)
	fmt.Fprintf(b, "\n%s\n", scripting.WrapManual(api.Spies.Doc, 0, 0))
	list("vi.", api.Spies.Funcs)
	b.WriteString("A spy has mock.calls, mock.results, mock.contexts, mock.lastCall, and\n")
	list("", api.Spy)
}
