package registry_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/internal/registrytest"
	"github.com/weir-run/weir/scripting/js"
	"github.com/weir-run/weir/scripting/lua"
	"github.com/weir-run/weir/scripting/registry"
	"github.com/weir-run/weir/stdlib"
)

const importing = `import { defineTransform } from "weir"
import data from "./data.json"
import { one } from "../lib/one"
import two from "two"
export default defineTransform({ metrics(batch, ctx) { ctx.log.info(data.x + one + two) } })
`

func imports(f registrytest.Folder) component.Catalog {
	f.T.Helper()
	c, err := registry.NewCatalog(registry.Options{Languages: []scripting.Language{lua.New(), js.New()}, UserDir: f.Dir, Modules: stdlib.Modules()})
	if err != nil {
		f.T.Fatal(err)
	}
	return c
}

func TestWhatAScriptImportsIsASource(t *testing.T) {
	f := registrytest.NewFolder(t)
	own := f.Write("a/x.ts", importing)
	files := []string{f.Write("a/data.json", `{"x": 1}`), f.Write("lib/one.js", "export const one = 1\n"), f.Write("lib/two.ts", "export default 2\n")}
	c := imports(f)
	r := registrytest.Lookup(t, c, "a.x")
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	if r.Sources[0] != own {
		t.Errorf("got %v, want the script first", r.Sources)
	}
	last := r.Version
	for i, file := range files {
		if !slices.Contains(r.Sources, file) {
			t.Errorf("%s is no source: %v", file, r.Sources)
		}
		if err := os.WriteFile(file, []byte([]string{`{"x": 2}`, "export const one = 2\n", "export default 3\n"}[i]), 0o644); err != nil {
			t.Fatal(err)
		}
		c.Refresh([]string{file})
		next := registrytest.Lookup(t, c, "a.x")
		if next.Err != nil || next.Version == last {
			t.Errorf("a change of %s is no change of the version: %v", file, next.Err)
		}
		last = next.Version
	}
	// One that is not there yet is waited for.
	f.Write("a/x.ts", importing+`import "./late"`+"\n")
	c.Refresh([]string{own})
	if r = registrytest.Lookup(t, c, "a.x"); r.Err == nil || !strings.Contains(r.Err.Error(), "there is no scripts/a/late.ts") {
		t.Fatalf("got %v", r.Err)
	}
	late := f.Write("a/late.ts", "export {}\n")
	if !slices.Contains(r.Sources, late) {
		t.Errorf("%s is no source: %v", late, r.Sources)
	}
	c.Refresh([]string{late})
	if r = registrytest.Lookup(t, c, "a.x"); r.Err != nil {
		t.Error(r.Err)
	}
}

func TestAnImportStaysInTheFolder(t *testing.T) {
	f := registrytest.NewFolder(t)
	f.Write("a/x.ts", `import { defineTransform } from "weir"
import secret from "./link.json"
export default defineTransform({ metrics(batch, ctx) { ctx.log.info(secret) } })
`)
	outside := filepath.Join(t.TempDir(), "secret.json")
	if err := os.WriteFile(outside, []byte(`"secret"`), 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(f.Dir, "a", "link.json")
	if err := os.Symlink(outside, link); err != nil {
		t.Skipf("cannot make a link: %v", err)
	}
	c := imports(f)
	if r := registrytest.Lookup(t, c, "a.x"); r.Err == nil || !strings.Contains(r.Err.Error(), "which lies outside of the scripts folder") {
		t.Errorf("got %v", r.Err)
	}
	// A link within is followed: a mounted ConfigMap consists of them.
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	f.Write(".data/link.json", `"within"`)
	if err := os.Symlink(filepath.Join("..", ".data", "link.json"), link); err != nil {
		t.Fatal(err)
	}
	c.Refresh([]string{link})
	if r := registrytest.Lookup(t, c, "a.x"); r.Err != nil {
		t.Error(r.Err)
	}
	// So is the folder itself a link.
	linked := filepath.Join(t.TempDir(), "scripts")
	if err := os.Symlink(f.Dir, linked); err != nil {
		t.Fatal(err)
	}
	f.Dir = linked
	if r := registrytest.Lookup(t, imports(f), "a.x"); r.Err != nil {
		t.Error(r.Err)
	}
}
