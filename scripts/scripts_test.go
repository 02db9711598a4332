package scripts_test

import (
	"context"
	"strings"
	"testing"

	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/lua"
	"github.com/weir-run/weir/scripting/scripttest"
	"github.com/weir-run/weir/scripts"
	"github.com/weir-run/weir/stdlib"
)

// TestScripts runs the tests of every script that ships, each of which must
// have a summary, an example and a test file.
func TestScripts(t *testing.T) {
	lang := lua.New()
	o := scripttest.Options{Languages: []scripting.Language{lang}, Modules: stdlib.Modules(), Dir: ".", Paths: []string{"."}}
	r, err := scripttest.Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	tested := map[string]bool{}
	for _, f := range r.Files {
		tested[f.Name] = len(f.Tests) > 0
		t.Run(f.Name, func(t *testing.T) {
			var b strings.Builder
			if (scripttest.Pretty{W: &b}).File(f); strings.HasPrefix(b.String(), "FAIL") {
				t.Error(b.String())
			}
		})
	}
	c, err := scripting.NewCatalog(scripting.Options{Languages: o.Languages, Embedded: scripts.FS, Modules: o.Modules})
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Names()) == 0 {
		t.Fatal("there are no scripts")
	}
	for _, name := range c.Names() {
		reg, _ := c.Lookup(name)
		if reg.Err != nil {
			t.Errorf("%s does not load without a folder: %v", name, reg.Err)
		}
		path := strings.ReplaceAll(name, ".", "/")
		if !tested[path+".lua"] || strings.Contains(reg.Doc.Summary, "without a comment") {
			t.Errorf("%s needs a header with a summary and an example", name)
		}
		if !tested[path+"_test.lua"] {
			t.Errorf("%s needs a test file beside it", name)
		}
	}
}
