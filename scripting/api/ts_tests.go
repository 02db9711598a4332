package api

import (
	"slices"
	"strings"

	"github.com/weir-run/weir/scripting"
)

// tests writes the module weir/test and the globals of test files.
func (w *tsTypes) tests(tests *scripting.TestAPI) {
	w.inModule("weir/test", func() {
		w.line(strings.TrimSpace(tsReplies))
		w.objects(tests.Weir.Types)
		w.exports(tests.Weir)
		w.line("\n// The globals may be imported as well.")
		names := []string{"expect", "vi"}
		for _, f := range tests.Globals {
			names = append(names, scripting.CamelCase(f.Name))
		}
		for _, m := range tests.Tables {
			names = append(names, scripting.CamelCase(m.Name))
		}
		for _, name := range names {
			if !strings.Contains(name, ".") {
				w.line("export const %s: typeof globalThis.%s;", name, name)
			}
		}
	})
	w.here = ""
	w.globals(tests.Globals)
	for _, m := range tests.Tables {
		w.line("")
		w.doc(m.Doc)
		w.line("declare var %s: {", scripting.CamelCase(m.Name))
		w.indented(func() {
			for _, c := range m.Consts {
				w.doc(c.Doc)
				w.line("readonly %s: %s;", scripting.CamelCase(c.Name), tsConst(c.Value))
			}
			for i := range m.Funcs {
				w.function(m.Name, "", &m.Funcs[i])
			}
		})
		w.line("};")
	}
	w.expect(tests)
	if tests.Spies != nil {
		w.spies(tests)
	}
}

// globals writes functions, each with its sub-functions, such as it.skip.
func (w *tsTypes) globals(fs []scripting.Function) {
	for i := range fs {
		f := &fs[i]
		if strings.Contains(f.Name, ".") {
			continue
		}
		w.line("")
		w.doc(f.Doc, w.tags(f)...)
		w.line("declare var %s: {", scripting.CamelCase(f.Name))
		w.indented(func() {
			w.line("%s: %s;", w.params(f), w.result(f))
			for j := range fs {
				if name, ok := strings.CutPrefix(fs[j].Name, f.Name+"."); ok {
					part := fs[j]
					part.Name = name
					w.function("test", "", &part)
				}
			}
		})
		w.line("};")
	}
}

// expect writes expect and its result.
func (w *tsTypes) expect(tests *scripting.TestAPI) {
	w.line("\ninterface WeirMatchers<R> {")
	w.indented(func() {
		w.line("/** The contrary. */\nreadonly not: WeirMatchers<R>;")
		for _, f := range tests.Matchers {
			w.doc(f.Doc)
			w.line("%s%s: R;", scripting.CamelCase(f.Name), w.params(&f))
		}
	})
	w.line("}\n\ninterface WeirExpect {")
	w.indented(func() {
		w.line("/** What is checked, and what failures call it. */\n(actual: any, message?: string): WeirMatchers<void> & { readonly resolves: WeirMatchers<Promise<void>>; readonly rejects: WeirMatchers<Promise<void>> };")
		w.line("readonly not: WeirExpect;")
		for _, f := range tests.Expect {
			f.Result = scripting.Result{Kind: scripting.KindAny, Doc: "A value to compare with."}
			w.function("expect", "", &f)
		}
	})
	w.line("}\n\ndeclare var expect: WeirExpect;")
}

// spies writes vi.
func (w *tsTypes) spies(tests *scripting.TestAPI) {
	w.line("\ninterface WeirSpy {")
	w.indented(func() {
		w.line("(...args: any[]): any;")
		w.line("/** What was seen of the calls. */\nreadonly mock: { readonly calls: any[][]; readonly results: { type: string; value: any }[]; readonly lastCall: any[] | undefined };")
		for _, f := range tests.Spy {
			w.doc(f.Doc)
			result := "WeirSpy"
			if strings.HasPrefix(f.Name, "get_") {
				result = "any"
			}
			w.line("%s%s: %s;", scripting.CamelCase(f.Name), w.params(&f), result)
		}
	})
	w.line("}\n")
	w.doc(tests.Spies.Doc)
	w.line("declare var vi: {")
	w.indented(func() {
		for i := range tests.Spies.Funcs {
			f := &tests.Spies.Funcs[i]
			w.doc(f.Doc)
			result := "void"
			switch {
			case slices.Contains([]string{"fn", "spy_on", "mocked"}, f.Name):
				result = "WeirSpy"
			case strings.HasPrefix(f.Name, "is_"):
				result = "boolean"
			}
			w.line("%s%s: %s;", scripting.CamelCase(f.Name), w.params(f), result)
		}
	})
	w.line("};")
}
