package api_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/api"
	"github.com/weir-run/weir/scripting/js"
	"github.com/weir-run/weir/scripting/lua"
	"github.com/weir-run/weir/scripting/registry"
	"github.com/weir-run/weir/scripting/scripttest"
	"github.com/weir-run/weir/stdlib"
)

// example is one of an entry.
type example struct {
	where string // the entry
	use   scripting.Use
}

// examples are those of all entries.
func examples() (all []example) {
	for where, uses := range api.Get().Uses() {
		for _, u := range uses {
			all = append(all, example{where, u})
		}
	}
	return all
}

// TestExamples runs the examples of all entries in each language, each as a
// separate script with a test next to it.
func TestExamples(t *testing.T) {
	f := func(lang scripting.Language, ext, test string) {
		t.Helper()
		t.Run(lang.Name(), func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "scripts", "example")
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			write := func(name, content string) {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			entries := map[string]string{}
			all := examples()
			for i, e := range all {
				name := fmt.Sprintf("e%d", i)
				entries[name] = e.where
				if (e.use.Lua == "") != (e.use.JS == "") || (e.use.Test == "") != (e.use.TestJS == "") {
					t.Errorf("%s: an example has no twin in the other language", e.where)
				}
				write(name+ext, exampleFile(e.use, ext[1:]))
				if e.use.Test != "" {
					write(name+test, exampleTest(e, name+ext, ext[1:]))
				}
			}
			o := scripttest.Options{Languages: []scripting.Language{lang}, Modules: stdlib.Modules(), Dir: filepath.Dir(dir)}
			r, err := scripttest.Run(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			o.Checks = &registry.Checks{Warn: func(e *scripting.Error) {
				t.Errorf("%s: weir check warns: %v", entries[strings.TrimSuffix(filepath.Base(e.File), ext)], e)
			}}
			if _, err := scripttest.Check(o); err != nil {
				t.Errorf("weir check: %v", err)
			}
			for _, f := range r.Files {
				name := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(f.Name), test), ext)
				if f.Problem != nil {
					t.Errorf("%s: %v", entries[name], f.Problem)
				}
				for _, test := range f.Tests {
					if test.Status != scripttest.Passed {
						t.Errorf("%s: %v", entries[name], test.Problem)
					}
				}
			}
			if passed := r.Count(scripttest.Passed); passed != len(all) {
				t.Errorf("%d of %d examples passed", passed, len(all))
			}
		})
	}
	f(lua.New(), ".lua", "_test.lua")
	f(js.New(), ".js", ".test.js")
}

// exampleFile makes the file of an example.
func exampleFile(u scripting.Use, lang string) string {
	mark, code := "-- ", u.Lua
	if lang == "js" {
		mark, code = "// ", u.JS
	}
	var b strings.Builder
	section := func(name, text string) {
		fmt.Fprintf(&b, "%sExample %s:\n", mark, name)
		for line := range strings.Lines(text) {
			b.WriteString(mark + "  " + strings.TrimRight(line, "\n") + "\n")
		}
	}
	if u.Test == "" {
		if u.Args != "" {
			section("Args", u.Args)
		}
		section("Input", u.Input)
		section("Output", u.Output)
	}
	hook, data := u.Hook, "s"
	switch hook {
	case "":
		hook, data = "metrics", "batch"
	case "metrics", "logs":
		data = "batch"
	}
	switch {
	case lang == "js" && strings.Contains(code, "export default"), lang != "js" && strings.Contains(code, "return weir."):
		b.WriteString(code + "\n")
	case lang == "js":
		if strings.Contains(code, "await ") {
			hook = "async " + hook
		}
		fmt.Fprintf(&b, "import { defineTransform } from \"weir\";\nexport default defineTransform({ %s(%s, ctx) {\n%s\n} });\n", hook, data, code)
	default:
		fmt.Fprintf(&b, "return (require \"weir\").transform { %s = function(%s, ctx)\n%s\nend }\n", hook, data, code)
	}
	return b.String()
}

// exampleTest makes the test file of an example.
func exampleTest(e example, file, lang string) string {
	if lang == "js" {
		return fmt.Sprintf("import { component, http, env, files, exec } from \"weir/test\";\nit(%q, () => {\nconst t = component(%q);\n%s\n});\n", e.where, file, e.use.TestJS)
	}
	return fmt.Sprintf("it(%q, function()\n  local t = weir.test.component(%q, %s)\n%s\nend)\n", e.where, file, "{"+e.use.Args+"}", e.use.Test)
}
