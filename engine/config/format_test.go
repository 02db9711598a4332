package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/grafana/alloy/syntax/ast"
	"github.com/grafana/alloy/syntax/parser"

	"github.com/weir-run/weir/engine/config"
)

func TestFormat(t *testing.T) {
	f := func(in, want string) {
		t.Helper()
		got, ds := config.Format("c.alloy", in)
		if len(ds) > 0 {
			t.Errorf("%q: %v", in, ds)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", in, diff)
		}
	}
	f("", "")
	f("\n\n", "")
	f("// only a comment", "// only a comment\n")
	f("a \"b\" {\nx=1\nlonger   =   [1,2,\n3]\n}", "a \"b\" {\n\tx      = 1\n\tlonger = [1, 2,\n\t\t3]\n}\n")
	f("a \"b\" { } // end\n\n\n\nc { x = 1 }", "a \"b\" { } // end\n\nc {\n\tx = 1\n}\n")
	f("a {\r\n\tx = 1\r\n}\r\n", "a {\n\tx = 1\n}\n")
	f("a {\n// one\n\n/* two\n   lines */\nx = 1 // three\n}", "a {\n\t// one\n\n\t/* two\n   lines */\n\tx = 1 // three\n}\n")
	f("a {\n\tx = `raw  \n\t\tstring`\n}", "a {\n\tx = `raw  \n\t\tstring`\n}\n")
	f("a {\n\tx = { \"b c\" = 1, d = [ ], }\n}", "a {\n\tx = {\"b c\" = 1, d = []}\n}\n")
}

func TestFormatMistakes(t *testing.T) {
	_, ds := config.Format("c.alloy", "a {\n\tx = \n}\n\nb {\n\ty = 1 2\n}\n")
	want := "c.alloy:3:1: expected expression, got }\nc.alloy:6:8: expected the end of the line, got a number"
	var lines []string
	for _, d := range ds {
		lines = append(lines, d.Error())
	}
	if diff := cmp.Diff(want, strings.Join(lines, "\n")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// checkFormat checks the guarantees of formatting for any text.
func checkFormat(t *testing.T, text string) {
	t.Helper()
	once, ds := config.Format("c.alloy", text)
	file, err := parser.ParseFile("c.alloy", []byte(text))
	if len(ds) > 0 {
		if err == nil && strings.Contains(ds.Error(), "cannot format") {
			t.Logf("%q: %v", text, ds)
		}
		return
	}
	if err != nil {
		t.Fatalf("%q does not parse and is formatted", text)
	}
	twice, ds := config.Format("c.alloy", once)
	if len(ds) > 0 {
		t.Fatalf("%q becomes %q: %v", text, once, ds)
	}
	if diff := cmp.Diff(once, twice); diff != "" {
		t.Fatalf("%q is formatted otherwise the second time (-once +twice):\n%s", text, diff)
	}
	again, err := parser.ParseFile("c.alloy", []byte(once))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(shape(file), shape(again)); diff != "" {
		t.Fatalf("%q means something else (-before +after):\n%s", text, diff)
	}
	if len(file.Comments) != len(again.Comments) {
		t.Fatalf("%q lost comments: %q", text, once)
	}
}

// shape writes a syntax tree without positions.
func shape(n ast.Node) []string {
	var out []string
	ast.Walk(shaper(func(n ast.Node) {
		switch n := n.(type) {
		case *ast.BlockStmt:
			out = append(out, "block "+n.GetBlockName()+" "+n.Label)
		case *ast.AttributeStmt:
			out = append(out, "attribute "+n.Name.Name)
		case *ast.LiteralExpr:
			out = append(out, n.Kind.String()+" "+n.Value)
		case *ast.IdentifierExpr:
			out = append(out, "name "+n.Ident.Name)
		case *ast.AccessExpr:
			out = append(out, "access "+n.Name.Name)
		case *ast.BinaryExpr:
			out = append(out, "binary "+n.Kind.String())
		case *ast.UnaryExpr:
			out = append(out, "unary "+n.Kind.String())
		case *ast.ObjectExpr:
			for _, f := range n.Fields {
				out = append(out, "field "+f.Name.Name)
			}
		case ast.Expr:
			out = append(out, "expression")
		}
	}), n)
	return out
}

type shaper func(ast.Node)

func (f shaper) Visit(n ast.Node) ast.Visitor {
	f(n)
	return f
}

func formatSeeds(t testing.TB) (seeds []string) {
	t.Helper()
	paths, err := filepath.Glob("../../natives/*/*/example.alloy")
	if err != nil || len(paths) == 0 {
		t.Fatal("no examples found")
	}
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		seeds = append(seeds, string(b))
	}
	return append(seeds,
		"a {\n\tx = [\n\t\t1, // one\n\t\t// two\n\t\t2,\n\t]\n}\n",
		"a.b \"c\" {\n\tx = f(1,\n\t\t{ a = 2 })[0].b\n}\n",
		"/* a */ a { /* b */ x /* c */ = /* d */ 1 /* e */ } /* f */",
		"a {\n\tx = `raw\t \n string`\n\ty = -(1 + 2) * !true\n}\n",
		"a {\n\tx = \"\\t\\u00e4\"\n}\n// end",
		"a { }\nb { x = null }\n",
	)
}

func TestFormatSeeds(t *testing.T) {
	for _, s := range formatSeeds(t) {
		checkFormat(t, s)
	}
}

// FuzzFormat: formatting a formatted text does not change it, and formatting
// does not change the meaning.
func FuzzFormat(f *testing.F) {
	for _, s := range formatSeeds(f) {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) { checkFormat(t, text) })
}
