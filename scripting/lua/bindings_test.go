package lua_test

import (
	"fmt"
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

// TestBindings holds that what the table of the API has is bound, and nothing
// else: all names that occur in the source of this package are tried.
func TestBindings(t *testing.T) {
	table := api.Get()
	names := literals(t)
	for _, typ := range table.Types() {
		for _, m := range api.Members(typ) {
			names[m] = true
		}
	}
	for _, m := range append(table.Modules(), stdlib.Modules()...) {
		for _, n := range api.Members(asType(m)) {
			names[n] = true
		}
	}
	try := slices.Sorted(maps.Keys(names))
	in := func(hook, expr string, typ *scripting.ObjectType) {
		t.Helper()
		read := found(t, hook, expr, try, `local ok, x = pcall(function() return X[n] end)
			if ok and x ~= nil then found = found .. " " .. n .. (type(x) == "function" and "()" or "") end`)
		var want []string
		for _, f := range typ.Fields {
			if f.Name != "histogram" { // a record with one has no value
				want = append(want, f.Name)
			}
		}
		for _, m := range typ.Methods {
			want = append(want, m.Name+"()")
		}
		slices.Sort(want)
		if diff := cmp.Diff(want, read); diff != "" {
			t.Errorf("%s (-table +bound):\n%s", typ.Name, diff)
		}
		set := found(t, hook, expr, try, `for _, x in ipairs { "a", "1", 1, true, {} } do
				if pcall(function() X[n] = x end) then found = found .. " " .. n break end
			end`)
		settable := api.Settable(typ)
		slices.Sort(settable)
		if diff := cmp.Diff(settable, set); diff != "" {
			t.Errorf("what can be set of %s (-table +bound):\n%s", typ.Name, diff)
		}
		var needy []string // methods that cannot be called without arguments
		for _, m := range typ.Methods {
			if len(m.Params) > 0 && !m.Params[0].Optional && m.Params[0].Kind != scripting.KindAny {
				needy = append(needy, m.Name)
			}
		}
		refused := found(t, hook, expr, needy, `if not pcall(X[n], X) then found = found .. " " .. n end`)
		slices.Sort(needy)
		if diff := cmp.Diff(needy, refused); diff != "" {
			t.Errorf("what of %s needs arguments (-table +bound):\n%s", typ.Name, diff)
		}
	}
	in("metrics", "batch", table.Batch)
	in("metrics", "batch[1]", table.Record)
	in("metrics", "batch[1]:copy()", table.Copy)
	in("metrics", `batch:group_by { "job" }()`, table.Group)
	in("logs", "batch", table.Logs)
	in("logs", "batch[1]", table.Line)
	in("logs", "batch[1]:copy()", table.LineCopy)
	in("logs", `batch:group_by { "app" }()`, table.LineGroup)
	in("stream", "s", table.Stream)
	in("stream", "ctx", table.Remembered)
	in("metrics", "ctx", ofTransforms(table.Context))
	in("metrics", "ctx.log", table.Log)
	in("series", "s", table.Series)
	in("series", "ctx", table.Remembered)
	for _, part := range table.Parts() {
		in("metrics", part.Name, part)
	}
	for _, m := range append(table.Modules(), stdlib.Modules()...) {
		expr := m.Name
		if !strings.HasPrefix(expr, "weir") {
			expr = fmt.Sprintf("require %q", m.Name)
		}
		in("metrics", expr, asType(m))
	}
}

// ofTransforms is ctx without what other kinds have: their examples run that.
func ofTransforms(ctx *scripting.ObjectType) *scripting.ObjectType {
	out := *ctx
	out.Methods = slices.DeleteFunc(slices.Clone(ctx.Methods), func(f scripting.Function) bool {
		return slices.Contains([]string{"export", "flush"}, f.Name)
	})
	return &out
}

// asType is a module as a type.
func asType(m *scripting.Module) *scripting.ObjectType {
	t := &scripting.ObjectType{Name: m.Name}
	for _, c := range m.Consts {
		t.Fields = append(t.Fields, scripting.Param{Name: c.Name})
	}
	for _, part := range m.Tables {
		t.Fields = append(t.Fields, scripting.Param{Name: part.Name})
	}
	for _, f := range m.Funcs {
		t.Methods = append(t.Methods, scripting.Function{Name: f.Name})
	}
	return t
}

// found runs body for each name n on X, which is expr in a hook, and returns
// the words it appended to found, sorted.
func found(t *testing.T, hook, expr string, names []string, body string) []string {
	t.Helper()
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = strconv.Quote(n)
	}
	code := "local names = { " + strings.Join(quoted, ", ") + " }\n" +
		"local X, found = " + expr + ", \"\"\nfor _, n in ipairs(names) do\n" + body + "\nend\n"
	needs := "needs = { http = true, env = { \"REGION\" }, read = true, exec = { \"df\" } }, "
	src := "local weir = require \"weir\"\nreturn weir.transform { " + needs + "metrics = function(batch, ctx)\n" + code + "ctx.emit { name = \"found\", labels = { names = found }, value = 1 }\nend }"
	if hook == "series" {
		src = "local weir = require \"weir\"\nreturn weir.transform { " + needs + "series = function(s, ctx)\n" + code + "s.name = \"found\"\ns.labels = { names = found }\nend }"
	}
	in, mark := "a{job=\"x\"} 1 # {trace=\"t\"} 1\n", "found 1"
	m := regexp.MustCompile(`found\{.*names="([^"]*)".*\}`)
	if hook == "logs" || hook == "stream" {
		in, mark, m = "{app=\"x\"} hi\n", "{} ", regexp.MustCompile(`\{names="([^"]*)"\}`)
		src = "local weir = require \"weir\"\nreturn weir.transform { " + needs + "logs = function(batch, ctx)\n" + code + "ctx.emit { line = \"found\", labels = { names = found } }\nend }"
	}
	if hook == "stream" {
		src = "local weir = require \"weir\"\nreturn weir.transform { " + needs + "stream = function(s, ctx)\n" + code + "s.labels = { names = found }\nend }"
	}
	f := build(t, src, "script {\nlimits { time = \"1m\" }\nallow {\nhttp = [\"https://h/*\"]\nenv = [\"REGION\"]\nread = [\"/etc/weir/*\"]\nexec = [\"/bin/df\"]\n}\n}")
	var out string
	if hook == "logs" || hook == "stream" {
		out = f.sendLogs(t, in)
	} else {
		out = f.send(t, in)
	}
	if h := f.Health(); h.State != component.Healthy {
		t.Fatalf("%s: %s", expr, h.Message)
	}
	names = m.FindStringSubmatch(out)
	if names == nil {
		if strings.Contains(out, mark) {
			return nil
		}
		t.Fatalf("%s: nothing was found in %s", expr, out)
	}
	words := strings.Fields(names[1])
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
	name := regexp.MustCompile(`^[a-z_]+$`)
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
		t.Fatal(fmt.Errorf("only %d names in the source", len(out)))
	}
	return out
}
