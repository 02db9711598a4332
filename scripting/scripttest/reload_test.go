package scripttest_test

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/component/componenttest"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/block"
	"github.com/weir-run/weir/scripting/js"
	"github.com/weir-run/weir/scripting/lua"
	"github.com/weir-run/weir/scripting/registry"
	"github.com/weir-run/weir/scripting/scripttest"
	"github.com/weir-run/weir/stdlib"
)

// saved is a node with a script that is saved again and again.
type saved struct {
	t       *testing.T
	catalog component.Catalog
	dir     string
	running component.Component
	script  block.Script
}

const tested = "acme.http.mark"

func newSaved(t *testing.T) *saved {
	t.Helper()
	return newSavedWithin(t, scripttest.DefaultReloadLimit)
}

func newSavedWithin(t *testing.T, limit time.Duration) *saved {
	t.Helper()
	return newSavedWith(t, limit, scripttest.OnReload(savedLanguages(), stdlib.Modules(), nil, limit))
}

// newSavedWith returns a node whose script is tested by a function, or never.
func newSavedWith(t *testing.T, limit time.Duration, test func(context.Context, registry.Tested) error) *saved {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "scripts")
	c, err := registry.NewCatalog(registry.Options{
		Languages: savedLanguages(), UserDir: dir, Namespace: "acme", Modules: stdlib.Modules(), Test: test,
		Report: scripttest.OnRequest(savedLanguages(), stdlib.Modules(), nil, limit),
	})
	if err != nil {
		t.Fatal(err)
	}
	s := &saved{t: t, catalog: c, dir: dir}
	s.script.SetToDefault()
	return s
}

func savedLanguages() []scripting.Language { return []scripting.Language{lua.New(), js.New()} }

func (s *saved) write(name, text string) {
	s.t.Helper()
	path := filepath.Join(s.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
	s.catalog.Refresh([]string{path})
}

// reload does what the engine does after a save, and checks what comes of it:
// "" is that the new version runs.
func (s *saved) reload(want string) {
	s.t.Helper()
	r, ok := s.catalog.Lookup(tested)
	if !ok || r.Err != nil {
		s.t.Fatalf("%s: known %v, %v", tested, ok, r.Err)
	}
	node := componenttest.New(s.t, tested+".default")
	args := r.NewArgs()
	setScript(args, s.script)
	var c component.Component
	var err error
	if r.Trial != nil {
		if rejected := r.Trial(s.t.Context(), component.Trial{Node: tested + ".default", Args: args, Running: s.running, Begin: func(string) {}}); rejected != nil {
			err = rejected.Err
		}
	}
	if err == nil {
		c, err = r.Build(node.Options(), args, s.running)
	}
	switch {
	case err != nil && want == "":
		s.t.Fatalf("got %v, want the new version to run", err)
	case err == nil && want != "":
		s.t.Fatalf("the new version runs, want %q", want)
	case err != nil && !strings.Contains(err.Error(), want):
		s.t.Fatalf("got %v, want %q", err, want)
	case err == nil:
		s.running = c
		node.Run(s.t, c)
	}
}

func mark(label, example string) string {
	return `-- Marks series.
--
-- Example Input:
--   up 1
-- Example Output:
--   up{mark="` + example + `"} 1
local weir = require "weir"
return weir.transform { series = function(s) s.labels.mark = "` + label + `" end }
`
}

func markTest(label string) string {
	return `local t = weir.test.component("mark.lua")
it("marks", function() assert.same({ "` + label + `" }, t:metrics("up 1"):label_values("mark")) end)
`
}

func TestOnReload(t *testing.T) {
	s := newSaved(t)
	s.write("http/mark.lua", mark("a", "wrong"))
	s.reload("") // there is no test file

	s.write("http/mark_test.lua", markTest("a"))
	s.reload(`mark.lua:6: test "acme.http.mark example in line 3" failed`)
	s.write("http/mark.lua", mark("a", "a"))
	s.reload("")

	s.write("http/mark.lua", mark("b", "b"))
	s.reload(`mark_test.lua:2: test "marks" failed: the two are not the same
- { "a" }
+ { "b" }`)
	s.write("http/mark_test.lua", markTest("b"))
	s.reload("")
	s.write("http/mark_test.lua", markTest("b")+"it(")
	s.reload("mark_test.lua:")
	s.write("http/mark_test.lua", "it(\"loops\", function() while true do end end)\n")
	s.reload(`test "loops" failed: limit exceeded`)
	s.write("http/mark_test.lua", markTest("b"))
	s.reload("")

	if err := os.Remove(filepath.Join(s.dir, "http", "mark_test.lua")); err != nil {
		t.Fatal(err)
	}
	s.write("http/mark.lua", mark("c", "wrong"))
	s.reload("") // without a test file examples are docs
	s.script.OnReload = block.OnReloadTest
	s.write("http/mark.lua", mark("d", "wrong"))
	s.reload(`mark.lua:6: test "acme.http.mark example in line 3" failed`)
	s.script.OnReload = block.OnReloadSwap
	s.write("http/mark_test.lua", "it(")
	s.reload("")
}

// All tests of a script together are bounded, too.
func TestOnReloadTakesTooLong(t *testing.T) {
	s := newSaved(t)
	s.write("http/mark.lua", mark("a", "a"))
	s.reload("")
	s.write("http/mark_test.lua", strings.Repeat("it(\"loops\", function() while true do end end)\n", 20))
	s.reload(`the tests took longer than 2s of script time; make them faster, raise --scripts.test-limit, or write script { on_reload = "swap" }`)
	s = newSavedWithin(t, 200*time.Millisecond)
	s.write("http/mark.lua", mark("a", "a"))
	s.write("http/mark_test.lua", strings.Repeat("it(\"loops\", function() while true do end end)\n", 20))
	s.reload("the tests took longer than 200ms of script time")
}

// setScript sets the block script of a scripted component's arguments.
func setScript(args any, b block.Script) {
	reflect.ValueOf(args).Elem().FieldByName("Script").Set(reflect.ValueOf(b))
}

// A save of a script in TypeScript waits for its tests in either language.
func TestReloadTypeScript(t *testing.T) {
	const script = `import { defineTransform } from "weir";
export default defineTransform({ series(s) { s.labels.mark = "MARK"; } });
`
	mark := func(s string) string { return strings.Replace(script, "MARK", s, 1) }
	for _, test := range []struct{ name, text, failed string }{
		{"http/mark.test.ts", `it("marks", async () => { expect(component("mark.ts").metrics("up 1").labelValues("mark")).toEqual(["x"]); });`, `test "marks" failed: expected`},
		{"http/mark_test.lua", `it("marks", function() assert.same({ "x" }, weir.test.component("mark.ts"):metrics("up 1"):label_values("mark")) end)`, `test "marks" failed: the two`},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newSaved(t)
			text := test.text
			if strings.HasSuffix(test.name, ".ts") {
				text = `import { component, expect, it } from "weir/test";` + "\n" + text
			}
			s.write(test.name, text)
			s.write("http/mark.ts", mark("x"))
			s.reload("")
			s.write("http/mark.ts", mark("y"))
			s.reload(test.failed)
			s.write("http/mark.ts", "// Marks.\n"+mark("x"))
			s.reload("")
		})
	}
}
