package scripts_test

import (
	"context"
	"strings"
	"testing"

	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/js"
	"github.com/weir-run/weir/scripting/lua"
	"github.com/weir-run/weir/scripting/registry"
	"github.com/weir-run/weir/scripting/scripttest"
	"github.com/weir-run/weir/scripts"
	"github.com/weir-run/weir/stdlib"
)

// without are transforms whose examples would need the world outside, or time
// that goes by.
var without = map[string]bool{"enrich.http_lookup": true, "logs.to_metrics": true}

// The tests of each script, and of each module, run at least these percentages.
const leastLines, leastBranches = 95, 85

// TestScripts runs the tests of every script that ships, each of which must
// have a summary and tests that cover it, and each that makes a batch of another an
// example.
func TestScripts(t *testing.T) {
	langs := []scripting.Language{lua.New(), js.New()}
	o := scripttest.Options{Languages: langs, Modules: stdlib.Modules(), Dir: ".", Paths: []string{"."}, Coverage: true}
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
	for _, f := range r.Coverage.Files {
		if lines, branches := f.LineShare().Percent(), f.BranchShare().Percent(); lines < leastLines || branches < leastBranches {
			t.Errorf("the tests of %s cover %.1f%% of its lines and %.1f%% of its branches; write tests until they cover %d%% and %d%%", f.Name, lines, branches, leastLines, leastBranches)
		}
	}
	c, err := registry.NewCatalog(registry.Options{Languages: o.Languages, Embedded: scripts.FS, Modules: o.Modules})
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
		in := func(base string) bool { return tested[base+".lua"] || tested[base+".ts"] || tested[base+".js"] }
		if strings.Contains(reg.Doc.Summary, "without a comment") {
			t.Errorf("%s needs a header with a summary", name)
		}
		if reg.Accepts != 0 && reg.Sends != 0 && !without[name] && !in(path) {
			t.Errorf("%s needs an example in its header", name)
		}
		if !in(path+"_test") && !in(path+".test") {
			t.Errorf("%s needs a test file in its directory", name)
		}
	}
}
