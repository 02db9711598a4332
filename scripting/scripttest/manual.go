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
			Name: "message", Kind: scripting.KindAny, Optional: true, Doc: "Message to print if the assertion fails.",
		})
		api.Assertions = append(api.Assertions, scripting.Function{Name: a.name, Doc: a.doc, Params: params})
	}
	return api
}

// spyManual is about what a language makes itself.
const spyManual = `
Spies record the calls of functions of the test, and of the modules that it
requires. A component has its own VM, whose calls are not recorded. Functions
that were replaced in a table are restored when the test ends.
  spy.new(fn)              a function that calls fn
  spy.on(table, name)      puts a spy in place of a function
  stub(table, name, …)     puts in its place what only returns the rest
  mock(table, stubs?)      does so for all functions of a table
  s.returns(…)  s.invokes(fn)  s:clear()  s:revert()
`

// Manual is what a test file may call, from the tables that are bound. inJS
// translates the names of Lua in a doc into those of JavaScript.
func Manual(inJS func(doc string) string) string {
	api := API(scripting.Busted)
	var b strings.Builder
	lua := manual{b: &b, doc: func(s string) string { return s }, method: ":"}
	b.WriteString("A test file in Lua has\n")
	lua.list("", api.Globals)
	lua.list(api.Weir.Name+".", api.Weir.Funcs)
	lua.types(api.Weir.Types)
	b.WriteString("\nAssertions, assert.same and so on, also with is_, is_not_, has_, has_no_ before\ntheir name; a last argument is the message:\n")
	for _, a := range assertions {
		scripting.WriteManual(&b, a.name+(&scripting.Function{Params: a.params}).Signature(), a.doc)
	}
	b.WriteString(spyManual)
	for _, c := range spyChecks {
		scripting.WriteManual(&b, "assert.spy(s).was."+c.name+"("+c.args+")", c.doc)
	}
	writeVitest(&b, inJS)
	for _, m := range api.Tables {
		fmt.Fprintf(&b, "\n%s. %s\n", strings.ToUpper(m.Name[:1])+m.Name[1:], m.Doc)
		for _, c := range m.Consts {
			scripting.WriteManual(&b, m.Name+"."+c.Name, c.Doc)
		}
		lua.list(m.Name+".", m.Funcs)
	}
	return b.String()
}

// manual writes functions and types in the names of a language.
type manual struct {
	b      *strings.Builder
	camel  bool
	doc    func(string) string
	method string // what stands before a method's name
}

func (m manual) list(prefix string, fs []scripting.Function) {
	for i := range fs {
		f := &fs[i]
		if m.camel {
			f = f.Camel()
		}
		scripting.WriteManual(m.b, prefix+f.Name+f.Signature(), m.doc(f.Doc))
	}
}

func (m manual) types(types []*scripting.ObjectType) {
	for _, t := range types {
		a := "A"
		if strings.ContainsRune("aeiou", rune(t.Name[0])) {
			a = "An"
		}
		fmt.Fprintf(m.b, "\n%s %s. %s\n", a, t.Name, scripting.WrapManual(m.doc(t.Doc), 0, 2+len(t.Name)+2))
		for _, f := range t.Fields {
			name := f.Name
			if m.camel {
				name = scripting.CamelCase(name)
			}
			scripting.WriteManual(m.b, "."+name, m.doc(f.Doc))
		}
		m.list(m.method, t.Methods)
	}
}

// writeVitest writes what test files in JavaScript and TypeScript have.
func writeVitest(b *strings.Builder, inJS func(doc string) string) {
	api := API(scripting.Vitest)
	js := manual{b: b, camel: true, doc: camelNames(api, inJS), method: "."}
	b.WriteString("\nA test file in JavaScript or TypeScript has, as in vitest, global or imported\nfrom \"weir/test\",\n")
	js.list("", slices.DeleteFunc(slices.Clone(api.Globals), func(f scripting.Function) bool {
		return strings.HasPrefix(f.Name, "suite") || strings.HasPrefix(f.Name, "it")
	}))
	b.WriteString("suite is describe, and it is test. Only imported from \"weir/test\" are\n")
	js.list("", api.Weir.Funcs)
	js.types(api.Weir.Types)
	b.WriteString("\nexpect(x), expect(x).not, and for a promise await expect(p).resolves\nand .rejects, have\n")
	js.list("", api.Matchers)
	b.WriteString("\nand expect itself\n")
	js.list("expect.", api.Expect)
	fmt.Fprintf(b, "\n%s\n", scripting.WrapManual(js.doc(api.Spies.Doc), 0, 0))
	js.list("vi.", api.Spies.Funcs)
	b.WriteString("A spy has mock.calls, mock.results, mock.contexts, mock.lastCall, and\n")
	js.list("", api.Spy)
	b.WriteString("\nIn JavaScript the names of fixtures are in camelCase: fixtures.everyMetricKind.\n")
}

// camelNames returns inJS, which also knows the names of test files.
func camelNames(api *scripting.TestAPI, inJS func(string) string) func(string) string {
	var names []string
	add := func(fs []scripting.Function) {
		for _, f := range fs {
			if camel := scripting.CamelCase(f.Name); camel != f.Name {
				names = append(names, f.Name, camel)
			}
		}
	}
	for _, fs := range [][]scripting.Function{api.Globals, api.Matchers, api.Expect, api.Spies.Funcs, api.Spy} {
		add(fs)
	}
	for _, t := range api.Weir.Types {
		add(t.Methods)
	}
	replace := strings.NewReplacer(names...)
	return func(doc string) string { return replace.Replace(inJS(doc)) }
}
