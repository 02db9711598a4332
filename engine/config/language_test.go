package config

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/grafana/alloy/syntax/alloytypes"
	alloytoken "github.com/grafana/alloy/syntax/token"
)

// languageScope is the scope for the examples of Language.
func languageScope(t *testing.T, c *Config) *Scope {
	t.Setenv("REGION", "eu")
	t.Setenv("NO_SUCH_VARIABLE", "")
	s := c.NewScope("v1.2.3")
	s.base["constants"] = map[string]string{"hostname": "host-1", "os": "linux", "arch": "amd64", "version": "v1.2.3"}
	s.Set("local.file.sites", struct {
		Content string `alloy:"content,attr"`
	}{`[{"name":"north"},{"name":"south"}]`})
	s.Set("local.file.token", struct {
		Content alloytypes.Secret `alloy:"content,attr"`
	}{"s3cr3t"})
	s.SetVariable("module_path", "", Value{V: "/etc/weir"})
	return s
}

// evaluated returns the value of an expression as JSON, or "error: " with the
// message.
func evaluated(t *testing.T, src string) string {
	t.Helper()
	c, ds := Parse(map[string]string{"reference.alloy": "a \"b\" {\n  v = " + src + "\n}\n"})
	if len(ds) > 0 {
		t.Errorf("%s: %v", src, ds)
		return ""
	}
	s := languageScope(t, c)
	xs, _ := c.Blocks[0].Attributes()
	_, ds = xs["v"].Resolve(s)
	v := xs["v"].Evaluate(s)
	if bad, ok := v.Err.(Diagnostics); ok {
		ds = append(ds, bad...)
	}
	if len(ds) > 0 {
		return "error: " + strings.TrimPrefix(ds[0].Msg, "v: ")
	}
	out, err := json.Marshal(v.V)
	if err != nil {
		t.Errorf("%s: %v", src, err)
	}
	return string(out)
}

// TestLanguageExamples evaluates every example of Language and its result,
// which is in config syntax.
func TestLanguageExamples(t *testing.T) {
	arrow := regexp.MustCompile(`(?m)^ +(\S.*?)\s+→ (.*)$`)
	examples := arrow.FindAllStringSubmatch(Language(), -1)
	if len(examples) < 60 {
		t.Errorf("Language has %d examples, want more than 60", len(examples))
	}
	for _, x := range examples {
		got, want := evaluated(t, x[1]), x[2]
		if !strings.HasPrefix(want, "error: ") {
			want = evaluated(t, want)
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", x[1], got, want)
		}
	}
}

// standard returns the names of alloy/syntax's standard library, and its
// deprecated names.
func standard(t *testing.T) (names, old []string) {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/grafana/alloy/syntax").Output()
	if err != nil {
		t.Fatal(err)
	}
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(strings.TrimSpace(string(dir)), "internal/stdlib/stdlib.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	top := map[string][]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		if lit, ok := spec.Values[0].(*ast.CompositeLit); ok {
			for _, e := range lit.Elts {
				if kv, ok := e.(*ast.KeyValueExpr); ok {
					if key, ok := kv.Key.(*ast.BasicLit); ok {
						name, _ := strconv.Unquote(key.Value)
						top[spec.Names[0].Name] = append(top[spec.Names[0].Name], name)
					}
				}
			}
		}
		return true
	})
	for _, name := range top["Identifiers"] {
		v, ok := stdlib(name)
		if !ok {
			t.Fatalf("%s is not in the standard library", name)
		}
		if m := reflect.ValueOf(v); m.Kind() == reflect.Map {
			for _, key := range m.MapKeys() {
				names = append(names, name+"."+key.String())
			}
			continue
		}
		names = append(names, name)
	}
	return names, top["DeprecatedIdentifiers"]
}

// TestLanguageComplete: Language describes each function of the standard library
// and each operator, with an example that uses it.
func TestLanguageComplete(t *testing.T) {
	names, old := standard(t)
	check := func(f topic, use string) {
		t.Helper()
		if !strings.HasSuffix(f.doc, ".") && !strings.HasSuffix(f.doc, "on.") || f.form == "" {
			t.Errorf("%s: the description is not a sentence: %q", f.name, f.doc)
		}
		if !slices.ContainsFunc(f.examples, func(x example) bool {
			return strings.Contains(x.source, use) && !strings.HasPrefix(x.result, "error")
		}) {
			t.Errorf("%s: no example uses it", f.name)
		}
	}
	for _, f := range functions {
		check(f, f.name)
	}
	slices.Sort(names)
	if have := slices.Sorted(slices.Values(functionNames())); !slices.Equal(have, names) {
		t.Errorf("the table has %v, the standard library %v", have, names)
	}
	slices.Sort(old)
	if have := slices.Sorted(maps.Keys(oldNames)); !slices.Equal(have, old) {
		t.Errorf("the table of old names has %v, the standard library %v", have, old)
	}
	for name, instead := range oldNames {
		if !slices.Contains(names, instead) {
			t.Errorf("%s is said to be %s, which does not exist", name, instead)
		}
	}
	listed := map[string]int{}
	for i, level := range precedence {
		for _, op := range level {
			listed[op] = len(precedence) - i
		}
	}
	for _, o := range operators {
		use := o.name
		if use == "[ ]" {
			use = "]["
			if !strings.Contains(o.examples[0].source, use) {
				t.Errorf("%s: no example uses it", o.name)
			}
			continue
		}
		check(o, use)
	}
	for tok := alloytoken.Token(0); tok < 64; tok++ {
		p := tok.BinaryPrecedence()
		if p == alloytoken.LowestPrecedence {
			continue
		}
		if !slices.ContainsFunc(operators, func(o topic) bool { return o.name == tok.String() }) {
			t.Errorf("operator %s is not described", tok)
		}
		if listed[tok.String()] != p {
			t.Errorf("operator %s has precedence %d, listed is %d", tok, p, listed[tok.String()])
		}
	}
}

// TestLanguageLayout: the lines of Language fit into a terminal.
func TestLanguageLayout(t *testing.T) {
	for line := range strings.Lines(Language()) {
		line = strings.TrimRight(line, "\n")
		if n := len([]rune(line)); n > 88 && !strings.Contains(line, "→") {
			t.Errorf("%d columns: %s", n, line)
		}
		if strings.ContainsRune(line, '\t') {
			t.Errorf("a tab: %q", line)
		}
	}
}
