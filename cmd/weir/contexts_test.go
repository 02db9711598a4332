package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

// storedContexts are the struct fields that contain a context, each with the
// reason why it is not a parameter.
var storedContexts = map[string]string{
	"engine.Engine.hard":               "jobs of the worker have no caller; it ends them all",
	"engine.instance.ctx":              "an instance may be ended before its Run is called, and its end is waited for elsewhere",
	"engine/flow.Meter.labels":         "a goroutine takes labels only from a context",
	"engine/httpclient.answerBody.ctx": "io.Reader has no context, and Read returns the cause of the request's end",
	"plugin.node.run":                  "batches that a receiver refused are sent again without a caller",
	"plugin/host.session.ctx":          "messages of the plugin arrive without a caller",
	"scripting/node.call.ctx":          "VMs call host functions without a context",
	"scripting/scripttest.session.ctx": "VMs call the test API without a context",
}

// TestStoredContexts: no struct contains a context except those in the list,
// whose comments give the reason.
func TestStoredContexts(t *testing.T) {
	found := map[string]bool{}
	eachFile(t, func(pkg, file string, f *ast.File) {
		if strings.HasSuffix(file, "_test.go") {
			return
		}
		for name, field := range findStoredContexts(f) {
			name = pkg + "." + name
			found[name] = true
			switch {
			case storedContexts[name] == "":
				t.Errorf("%s stores a context in %s: pass it as a parameter, or list it in storedContexts with a reason", file, name)
			case !strings.Contains(strings.Join(strings.Fields(field.Doc.Text()), " "), "It is stored because "):
				t.Errorf("%s: the comment of %s does not have \"It is stored because …\"", file, name)
			}
		}
	})
	for name := range storedContexts {
		if !found[name] {
			t.Errorf("%s is listed in storedContexts but is gone: delete the entry", name)
		}
	}
}

// findStoredContexts returns the struct fields of a file whose type contains a
// context, by type.field. A struct without a name is called struct, and an
// embedded context Context.
func findStoredContexts(f *ast.File) map[string]*ast.Field {
	found := map[string]*ast.Field{}
	names := map[*ast.StructType]string{}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.TypeSpec:
			if s, ok := n.Type.(*ast.StructType); ok {
				names[s] = n.Name.Name
			}
		case *ast.StructType:
			name := names[n]
			if name == "" {
				name = "struct"
			}
			for _, field := range n.Fields.List {
				if !hasContext(field.Type) {
					continue
				}
				if len(field.Names) == 0 {
					found[name+".Context"] = field
				}
				for _, id := range field.Names {
					found[name+"."+id.Name] = field
				}
			}
		}
		return true
	})
	return found
}

// hasContext reports whether values of a type contain a context. Functions with a
// context parameter do not.
func hasContext(x ast.Expr) (has bool) {
	ast.Inspect(x, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncType, *ast.InterfaceType, *ast.StructType: // nested types are checked separately
			return false
		case *ast.SelectorExpr:
			if p, ok := n.X.(*ast.Ident); ok && p.Name == "context" && n.Sel.Name == "Context" {
				has = true
			}
		}
		return true
	})
	return has
}

// TestFindStoredContexts: the search finds fields, embedded contexts and
// containers, but not functions.
func TestFindStoredContexts(t *testing.T) {
	found := findStoredContexts(parse(t, `package p
import "context"
type a struct {
	one, two context.Context
	call func(context.Context)
	stop context.CancelFunc
}
type b struct { context.Context }
type c struct { byName map[string][]context.Context }
type d struct { inner struct { ctx context.Context } }
type e interface { f(ctx context.Context) }
`))
	want := []string{"a.one", "a.two", "b.Context", "c.byName", "struct.ctx"}
	for _, name := range want {
		if found[name] == nil {
			t.Errorf("%s was not found", name)
		}
	}
	if len(found) != len(want) {
		t.Errorf("got %d fields, want %d", len(found), len(want))
	}
}

func parse(t *testing.T, text string) *ast.File {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "p.go", text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return f
}
