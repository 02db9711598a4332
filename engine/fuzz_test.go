package engine_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/engine/component"
)

// FuzzCheck looks for configs that end the process, or that it sees otherwise
// the second time.
func FuzzCheck(f *testing.F) {
	for _, dir := range []string{"config", "reload"} {
		names, err := filepath.Glob(filepath.Join("testdata", dir, "*.txtar"))
		if err != nil || len(names) == 0 {
			f.Fatalf("no seeds: %v", err)
		}
		for _, name := range names {
			a, err := txtar.ParseFile(name)
			if err != nil {
				f.Fatal(err)
			}
			for _, file := range a.Files {
				if file.Name == "config" || strings.HasSuffix(file.Name, ".alloy") {
					f.Add(string(file.Data))
				}
			}
		}
	}
	l := &harness{fakes: map[string]*fake{}}
	l.catalog = newCatalog(l)
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(t.TempDir(), "c.alloy")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		check := func() string {
			e, err := engine.New(engine.Options{Catalogs: []component.Catalog{l.catalog}, Scripts: l.folder, NoWatch: true})
			if err != nil {
				t.Fatal(err)
			}
			_, ds := e.Check(path)
			return diagnostics(ds)
		}
		if first, second := check(), check(); first != second {
			t.Errorf("first\n%s\nand then\n%s", first, second)
		}
	})
}
