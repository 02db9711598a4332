package scripting_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/lua"
)

// The tests of a version run once, whoever uses it, and only before a change
// takes over.
func TestTestsRunOnce(t *testing.T) {
	f := newFolder(t)
	var ran []scripting.Tested
	var verdict error
	c, err := scripting.NewCatalog(scripting.Options{
		Languages: []scripting.Language{lua.New()}, UserDir: f.dir,
		Test: func(s scripting.Tested) error { ran = append(ran, s); return verdict },
	})
	if err != nil {
		t.Fatal(err)
	}
	path := f.write("a/x.lua", script)
	test := f.write("a/x_test.lua", "-- 1\n")
	r := lookup(t, c, "a.x")
	if diff := cmp.Diff([]string{filepath.Join(f.dir, "a", "x.lua"), filepath.Join(f.dir, "a", "x.test.lua"), test}, r.Sources); diff != "" {
		t.Errorf("sources (-want +got):\n%s", diff)
	}
	build := func(r component.Registration, previous component.Component) (component.Component, error) {
		node := componenttest.New(t, "a.x.default")
		node.Previous = previous
		built, err := r.Build(node.Options(), r.NewArgs())
		if err == nil {
			node.Run(t, built)
		}
		return built, err
	}
	must := func(r component.Registration, previous component.Component) component.Component {
		t.Helper()
		built, err := build(r, previous)
		if err != nil {
			t.Fatal(err)
		}
		return built
	}
	one, two := must(r, nil), must(r, nil)
	one = must(r, one) // other arguments, the same version
	if len(ran) != 0 {
		t.Fatalf("the tests ran %d times before there was a change", len(ran))
	}

	f.write("a/x_test.lua", "-- 2\n")
	c.Refresh([]string{test})
	next := lookup(t, c, "a.x")
	if next.Version == r.Version {
		t.Error("a change of the test file is no change of the version")
	}
	verdict = errors.New("test says no")
	for _, previous := range []component.Component{one, two, one} {
		if _, err := build(next, previous); !errors.Is(err, verdict) {
			t.Errorf("got %v, want the tests' error", err)
		}
	}
	if len(ran) != 1 {
		t.Fatalf("the tests ran %d times for one version, want once", len(ran))
	}
	if got := ran[0]; got.Script.Path != path || got.Test.Text != "-- 2\n" || got.Folder.Dir != f.dir || got.Folder.Catalog == nil {
		t.Errorf("got %+v", got)
	}
	if file, err := ran[0].Folder.Env(lua.New()).Require("nope"); err == nil || !strings.Contains(err.Error(), "nope") {
		t.Errorf("got %v, %v for a module that is not there", file, err)
	}

	verdict = nil
	f.write("a/x_test.lua", "-- 3\n")
	c.Refresh([]string{test})
	must(lookup(t, c, "a.x"), one)
	if len(ran) != 2 {
		t.Errorf("the tests ran %d times for two versions", len(ran))
	}
}

func TestHeaderLines(t *testing.T) {
	h := scripting.ParseHeader(strings.Split(`scripts/a/x.lua
What it does.

Example Args:
  a = 1

  b = 2

Example Input:
  up 1
Example Output:
Example Input:
  up 2
Example Output:

  up 3`, "\n"))
	want := []scripting.Example{
		{Args: "a = 1\n\nb = 2\n", Input: "up 1\n", Line: 4, ArgsLine: 5, InputLine: 10, OutputLine: 12},
		{Input: "up 2\n", Output: "\nup 3\n", Line: 12, InputLine: 13, OutputLine: 15},
	}
	if diff := cmp.Diff(want, h.Examples); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
