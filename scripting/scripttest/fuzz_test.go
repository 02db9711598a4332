package scripttest_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/lua"
	"github.com/weir-run/weir/scripting/registry"
	"github.com/weir-run/weir/scripting/scripttest"
	"github.com/weir-run/weir/stdlib"
)

// gate returns what tests a saved script, and a function that makes one of a
// test file's text.
func gate(t testing.TB) (func(context.Context, registry.Tested) error, func(test string) registry.Tested) {
	t.Helper()
	langs := []scripting.Language{lua.New()}
	dir := t.TempDir()
	path := filepath.Join(dir, "a", "work.lua")
	text := mark("a", "a")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	c, err := registry.NewCatalog(registry.Options{Languages: langs, UserDir: dir, Modules: stdlib.Modules()})
	if err != nil {
		t.Fatal(err)
	}
	folder, _ := registry.FolderOf(c)
	return scripttest.OnReload(langs, stdlib.Modules(), nil, scripttest.DefaultReloadLimit), func(test string) registry.Tested {
		return registry.Tested{
			Script: scripting.File{Name: "a/work.lua", Path: path, Text: text},
			Test:   scripting.File{Name: "a/work_test.lua", Path: filepath.Join(dir, "a", "work_test.lua"), Text: test},
			Folder: folder,
		}
	}
}

// FuzzTestFile holds that no test file stops the process or is our bug.
func FuzzTestFile(f *testing.F) {
	archives, err := filepath.Glob(filepath.Join("testdata", "*.txtar"))
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range archives {
		a, err := txtar.ParseFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range a.Files {
			if strings.HasSuffix(file.Name, "_test.lua") {
				f.Add(string(file.Data))
			}
		}
	}
	f.Add(`local function again() describe("deeper", again) end again()`)
	f.Add(`local t = {} t.t = t it("a cycle", function() assert.same(t, {}) end)`)
	f.Add(`it("keys", function() assert.same({ [1.5] = 2 }, { [true] = 3 }) end)`)
	f.Add(`local t = weir.test.component("work.lua") it("many", function() for i = 1, 1e9 do t:metrics "up 1" end end)`)
	test, of := gate(f)
	f.Fuzz(func(t *testing.T, text string) {
		started := time.Now()
		if err := test(t.Context(), of(text)); err != nil && strings.Contains(err.Error(), "BUG") {
			t.Error(err)
		}
		if d := time.Since(started); d > 2*time.Minute { // 2 s of script time, on any machine
			t.Errorf("the tests took %s", d)
		}
	})
}

// TestNothingIsKept checks that tests release all memory: scripts are saved for months
// while a weir runs.
func TestNothingIsKept(t *testing.T) {
	test, of := gate(t)
	file := of(`
local t = weir.test.component("work.lua")
it("makes series", function()
  for i = 1, 100 do t:metrics('up{i="' .. i .. '"} 1') end
end)
it("has a component of its own", function()
  weir.test.component("work.lua"):unchanged(fixtures.every_metric_kind)
end)
`)
	// IDs that were given back come in any order: so many that some are new.
	highest := func() (id uint32) {
		for range 1 << 16 {
			s := batch.NewSeries(nil)
			defer s.Release()
			id = max(id, s.ID())
		}
		return id
	}
	if err := test(t.Context(), file); err != nil {
		t.Fatal(err)
	}
	before := highest()
	for range 20 {
		if err := test(t.Context(), file); err != nil {
			t.Fatal(err)
		}
	}
	if after := highest(); after > before+500 {
		t.Errorf("the highest ID of many series was %d, after 20 runs it is %d", before, after)
	}
}

func BenchmarkTestFile(b *testing.B) {
	test, of := gate(b)
	file := of(`
local t = weir.test.component("work.lua")
describe("work", function()
  it("marks", function() assert.same({ "a" }, t:metrics("up 1"):label_values("mark")) end)
  it("keeps the rest", function() t:unchanged(fixtures.every_metric_kind) end)
end)
`)
	b.ReportAllocs()
	for b.Loop() {
		if err := test(b.Context(), file); err != nil {
			b.Fatal(err)
		}
	}
}
