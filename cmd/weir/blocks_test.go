package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/weir-run/weir/engine/config"
)

// TestBlocks: each manual is complete, and its example is a valid config.
func TestBlocks(t *testing.T) {
	c, err := blocks()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	save := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	save("modules/edge.alloy", "declare \"scrape\" {\n  argument \"targets\" { }\n  argument \"forward_to\" { }\n}\n")
	save("scripts-v2/http/paths.lua", "return require(\"weir\").transform { series = function() end }\n")
	for _, name := range c.Names() {
		r, _ := c.Lookup(name)
		for _, f := range config.Describe(r.NewArgs()) {
			if r.Doc.Args[f.Path] == "" {
				t.Errorf("%s: nothing is said of %s", name, f.Path)
			}
		}
		if r.Unique {
			continue // belongs to a service, which has its own test
		}
		path := save(name+".alloy", r.Doc.Example)
		e, err := lookingEngine(path, "", "", scriptsUse{})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, ds := e.Remotes(path); len(ds) > 0 { // Check without weir.lock
			t.Errorf("%s: the example has mistakes: %v", name, ds)
		}
	}
}
