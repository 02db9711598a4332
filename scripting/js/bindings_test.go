package js_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/api"
	"github.com/weir-run/weir/stdlib"
)

// TestBindings holds that what the table of the API has is bound, by its name in
// camelCase, and nothing else: all names that occur in the source of this
// package are tried.
func TestBindings(t *testing.T) {
	table := api.Get()
	names := literals(t)
	for _, typ := range table.Types() {
		for _, m := range api.Members(typ) {
			names[m], names[scripting.CamelCase(m)] = true, true
		}
	}
	for _, m := range stdlib.Modules() {
		for _, f := range m.Funcs {
			names[f.Name], names[scripting.CamelCase(f.Name)] = true, true
		}
	}
	try := slices.Sorted(maps.Keys(names))
	in := func(hook, expr string, typ *scripting.ObjectType) {
		t.Helper()
		var want, settable, needy []string
		for _, f := range typ.Fields {
			if f.Name != "histogram" { // a record with one has no value
				want = append(want, scripting.CamelCase(f.Name))
			}
			if f.Set {
				settable = append(settable, scripting.CamelCase(f.Name))
			}
		}
		for _, m := range typ.Methods {
			want = append(want, scripting.CamelCase(m.Name)+"()")
			// Methods that cannot be called without arguments.
			if len(m.Params) > 0 && !m.Params[0].Optional && m.Params[0].Kind != scripting.KindAny {
				needy = append(needy, scripting.CamelCase(m.Name))
			}
		}
		if typ.Len != nil {
			want = append(want, "length")
		}
		compare := func(what string, want, got []string) {
			t.Helper()
			slices.Sort(want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s of %s (-table +bound):\n%s", what, typ.Name, diff)
			}
		}
		compare("members", want, found(t, hook, expr, try, `const x = X[n]; if (x !== undefined) found.push(n + (typeof x === "function" ? "()" : ""))`))
		compare("what can be set", settable, found(t, hook, expr, try, `for (const x of ["a", "1", 1, true, {}]) { try { X[n] = x } catch { continue } found.push(n); break }`))
		compare("what needs arguments", needy, found(t, hook, expr, needy, `try { X[n]() } catch { found.push(n) }`))
	}
	in("metrics", "batch", table.Batch)
	in("metrics", "batch[0]", table.Record)
	in("metrics", "batch[0].copy()", table.Copy)
	in("metrics", `[...batch.groupBy(["job"])][0][0]`, table.Group)
	in("logs", "batch", table.Logs)
	in("logs", "batch[0]", table.Line)
	in("logs", "batch[0].copy()", table.LineCopy)
	in("logs", `[...batch.groupBy(["app"])][0][0]`, table.LineGroup)
	in("stream", "s", table.Stream)
	in("series", "s", table.Series)
}

// found runs body for each name n on X, which is expr in a hook, and returns
// what it put into found, sorted.
func found(t *testing.T, hook, expr string, names []string, body string) []string {
	t.Helper()
	quoted, _ := json.Marshal(append([]string{}, names...))
	code := "const X = " + expr + ", found = []\nfor (const n of " + string(quoted) + ") { if (n in Object.prototype) continue; try {\n" + body + "\n} catch {} }\n"
	head := "import { defineTransform } from \"weir\"\nexport default defineTransform({ "
	in, out := "a{job=\"x\"} 1 # {trace=\"t\"} 1\n", ""
	if hook == "logs" || hook == "stream" {
		in = "{app=\"x\"} hi\n"
	}
	var src string
	switch hook {
	case "metrics":
		src = head + "metrics(batch, ctx) {\n" + code + "ctx.emit({ name: \"found\", labels: { names: found.join(\" \") }, value: 1 })\n} })"
	case "logs":
		src = head + "logs(batch, ctx) {\n" + code + "ctx.emit({ line: \"found\", labels: { names: found.join(\" \") } })\n} })"
	default:
		src = head + hook + "(s, ctx) {\n" + code + "s.labels = { names: found.join(\" \") }\n} })"
	}
	f := build(t, src, "script {\nlimits { time = \"1m\" }\n}")
	if hook == "logs" || hook == "stream" {
		out = f.sendLogs(t, in)
	} else {
		out = f.send(t, in)
	}
	if h := f.Health(); h.State != component.Healthy {
		t.Fatalf("%s: %s", expr, h.Message)
	}
	m := regexp.MustCompile(`\{names="([^"]*)"\}`).FindStringSubmatch(out)
	if m == nil {
		return nil
	}
	words := strings.Fields(m[1])
	slices.Sort(words)
	return words
}

// literals are the strings in this package's source that could be names.
func literals(t *testing.T) map[string]bool {
	t.Helper()
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile(`^[a-zA-Z_]+$`)
	out := map[string]bool{}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), e.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
				if s, err := strconv.Unquote(l.Value); err == nil && name.MatchString(s) {
					out[s] = true
				}
			}
			return true
		})
	}
	if len(out) < 100 {
		t.Fatalf("only %d names in the source", len(out))
	}
	return out
}
