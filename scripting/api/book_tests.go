package api

import (
	"slices"
	"strings"

	"github.com/weir-run/weir/scripting"
)

// tests adds the test API: in Lua busted's vocabulary, in JavaScript vitest's.
// Functions that both have share an entry.
func (b *Book) tests(lua, js *scripting.TestAPI) {
	area := Entry{Name: "test", Head: "test", JS: "test", Doc: "The additional functions of a test file.", Area: true}
	at := len(b.entries)
	b.add(area)
	inLua := map[string]bool{}
	for i := range lua.Globals {
		f := &lua.Globals[i]
		name := scripting.CamelCase(f.Name)
		inLua[name] = true
		if !slices.ContainsFunc(js.Globals, func(g scripting.Function) bool { return scripting.CamelCase(g.Name) == name }) {
			name = ""
		}
		area.Members = append(area.Members, "test."+f.Name)
		b.add(function("test."+f.Name, f.Name, name, f))
	}
	for i := range js.Globals {
		if f := &js.Globals[i]; !inLua[scripting.CamelCase(f.Name)] {
			area.Members = append(area.Members, "test."+scripting.CamelCase(f.Name))
			b.InJS("test.", "", f)
		}
	}
	b.entries[at] = area
	b.module(lua.Weir)
	for _, typ := range lua.Weir.Types {
		b.object("test."+typ.Name, typ.Name+":", typ, nil)
	}
	b.module(&scripting.Module{
		Name: "assert", Funcs: lua.Assertions,
		Doc: "Assertions. Each also with is_, is_not_, has_ or has_no_ before its name; a last argument is the message.",
	})
	for i := range b.entries {
		if e := &b.entries[i]; e.Name == "assert" || strings.HasPrefix(e.Name, "assert.") {
			e.JS = ""
		}
	}
	for _, m := range lua.Tables {
		b.module(m)
	}
	b.area("expect", "Matchers for values in JavaScript tests: expect(x).toEqual(y), expect(x).not.toBe(y), await expect(promise).resolves.toBe(y).", "expect(x).", js.Matchers, "expect.", js.Expect)
	if js.Spies != nil {
		b.area("vi", js.Spies.Doc, "vi.", js.Spies.Funcs, "spy.", js.Spy)
	}
}

// area adds an area that only JavaScript has: functions, and further functions
// with another prefix.
func (b *Book) area(name, doc, prefix string, fs []scripting.Function, otherPrefix string, others []scripting.Function) {
	at := len(b.entries)
	area := Entry{Name: name, JS: name, Doc: camelAll(doc), Area: true}
	b.add(area)
	add := func(prefix string, fs []scripting.Function) {
		for i := range fs {
			f := &fs[i]
			full := name + "."
			if strings.HasPrefix(prefix, "spy.") {
				full = prefix
			}
			area.Members = append(area.Members, full+scripting.CamelCase(f.Name))
			b.InJS(full, prefix, f)
		}
	}
	add(prefix, fs)
	add(otherPrefix, others)
	b.entries[at] = area
}

// inJS adds the entry of a function that only JavaScript has.
func (b *Book) InJS(area, prefix string, f *scripting.Function) {
	e := function(area+scripting.CamelCase(f.Name), "", prefix+scripting.CamelCase(f.Name), f)
	e.Head, e.Doc = "", camelAll(f.Doc)
	b.add(e)
}
