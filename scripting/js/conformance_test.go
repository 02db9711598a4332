package js

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dop251/goja"
	jsparser "github.com/dop251/goja/parser"
)

// TestConformance runs the scripts that goja tests itself by, in a runtime as
// goja makes it and in a VM's: what comes out must be the same, but for what
// testdata/removed.txt says and why.
func TestConformance(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs hundreds of scripts")
	}
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/dop251/goja").Output()
	if err != nil {
		t.Skipf("cannot find goja's own tests: %v", err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Skipf("goja's own tests are not there: %v", err)
	}
	removed := readRemoved(t)
	lib, n := "", 0
	type script struct{ name, text string }
	var scripts []script
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			name := "TESTLIB"
			if fn, ok := d.(*ast.FuncDecl); ok {
				name = fn.Name.Name
			}
			if endless[name] || strings.HasPrefix(name, "Benchmark") {
				continue
			}
			i := 0
			ast.Inspect(d, func(node ast.Node) bool {
				lit, ok := node.(*ast.BasicLit)
				if !ok || lit.Kind != token.STRING || lit.Value[0] != '`' || !strings.Contains(lit.Value, "\n") {
					return true
				}
				text, _ := strconv.Unquote(lit.Value)
				if name == "TESTLIB" {
					if strings.Contains(text, "function assert") {
						lib += text + "\n"
					}
					return true
				}
				i++
				scripts = append(scripts, script{fmt.Sprintf("%s/%d", name, i), text})
				return true
			})
		}
	}
	for _, s := range scripts {
		prelude := ""
		if strings.Contains(s.text, "assert") || strings.Contains(s.text, "compareArray") {
			prelude = lib
		}
		want := outcome(goja.New(), nil, prelude, s.text)
		rt := goja.New()
		b := &budget{rt: rt}
		sb := newSandbox(rt, b)
		b.held = sb.held
		// A file of ours is a function; these define globals.
		(*base)(sb.layout.data(rt.GlobalObject())).extensible = true
		b.memory(256<<20, "")
		b.start(time.Minute, 0)
		got := outcome(rt, b, prelude, s.text)
		reason, known := removed[s.name]
		if got != want && !known {
			t.Errorf("%s: got %.300q, want %.300q\n%.600s", s.name, got, want, s.text)
		}
		if got == want && known {
			t.Errorf("%s is the same: it need not be in the list (%s)", s.name, reason)
		}
		delete(removed, s.name)
		if !strings.HasPrefix(want, "cannot compile") {
			n++
		}
	}
	for name := range removed {
		t.Errorf("there is no test %s any more", name)
	}
	t.Logf("%d scripts", n)
	if n < 400 {
		t.Errorf("only %d scripts were run", n)
	}
}

// endless are the tests whose scripts do not end by themselves.
var endless = map[string]bool{
	"TestProfiler": true, "TestInterrupt": true, "TestInterruptInWrappedFunctionExpectStackOverflowError": true, "TestStackOverflowError": true,
}

// outcome is what a script comes to, as text.
func outcome(rt *goja.Runtime, b *budget, scripts ...string) string {
	if b != nil {
		b.enter()
		defer b.leave()
	}
	timer := time.AfterFunc(time.Minute, func() { rt.Interrupt("too slow") })
	defer timer.Stop()
	var v goja.Value
	for _, src := range scripts {
		tree, err := goja.Parse("x", src, jsparser.WithDisableSourceMaps)
		if err != nil {
			return "cannot compile"
		}
		if b != nil {
			restrict(tree)
		}
		prog, err := goja.CompileAST(tree, false)
		if err != nil {
			return "cannot compile"
		}
		v, err = rt.RunProgram(prog)
		if err != nil {
			out := "an error without a text"
			if ex, ok := err.(*goja.Exception); ok {
				rt.Try(func() { out = "throws " + ex.Value().String() })
			}
			return out
		}
	}
	out := "a value without a text"
	rt.Try(func() { out = fmt.Sprintf("%s %v", v.ExportType(), v) })
	return out
}

// readRemoved reads what is not the same, by the goja test that shows it.
func readRemoved(t *testing.T) map[string]string {
	text, err := os.ReadFile("testdata/removed.txt")
	if err != nil {
		t.Fatal(err)
	}
	m := map[string]string{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if name, reason, ok := strings.Cut(line, " "); ok && name != "#" {
			m[name] = strings.TrimSpace(reason)
		}
	}
	return m
}
