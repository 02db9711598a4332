package js_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
)

// TestExports: only export.go may call what copies a value of a script without a
// bound.
func TestExports(t *testing.T) {
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	unbounded := map[string]bool{"Export": true, "ExportTo": true, "MarshalJSON": true}
	allowed := 0
	for _, file := range files {
		name := file.Name()
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		tree, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			switch {
			case !ok || !unbounded[sel.Sel.Name]:
			case name == "export.go":
				allowed++
			default:
				t.Errorf("%s calls %s, which copies all that a script's value leads to: use primitive, exported or toGo", set.Position(n.Pos()), sel.Sel.Name)
			}
			return true
		})
	}
	if allowed != 2 {
		t.Errorf("export.go calls them %d times: look whether each is bounded", allowed)
	}
}
