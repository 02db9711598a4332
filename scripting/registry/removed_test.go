package registry_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/internal/registrytest"
	"github.com/weir-run/weir/scripting/lua"
	"github.com/weir-run/weir/scripting/registry"
	"github.com/weir-run/weir/scripting/versions"
	"github.com/weir-run/weir/stdlib"
)

// TestRemoved deletes a script between two starts.
func TestRemoved(t *testing.T) {
	f := registrytest.NewFolder(t)
	storage := t.TempDir()
	open := func(store *versions.Store, lastGood bool) component.Catalog {
		t.Helper()
		c, err := registry.NewCatalog(registry.Options{
			Languages: []scripting.Language{lua.New()}, UserDir: f.Dir, Modules: stdlib.Modules(), Versions: store, LastGood: lastGood,
		})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	start := func() component.Catalog {
		return open(versions.Open(storage, versions.DefaultLimits, slog.New(slog.DiscardHandler)), true)
	}
	file := f.Write("a/b.lua", noTransform)
	before := registrytest.Lookup(t, start(), "a.b")
	before.Activated("a.b.n", time.Now())
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}

	c := start()
	if _, ok := c.Lookup("a.b"); ok {
		t.Error("a file that is gone is a component")
	}
	r, ok := c.(component.Historic).Removed("a.b")
	if want := "component a.b is no longer there: scripts/a/b.lua is gone"; !ok || r.Err == nil || r.Err.Error() != want {
		t.Fatalf("got %v %v, want %q", ok, r.Err, want)
	}
	if len(r.Sources) != 1 || r.Sources[0] != filepath.Join(f.Dir, "a", "b.lua") {
		t.Errorf("got sources %v", r.Sources)
	}
	good := r.Instead("a.b.n")
	if good == nil || good.Version != before.Version || good.Build == nil {
		t.Errorf("got %+v, want version %s", good, before.Version)
	}
	unknown := func(what string, c component.Catalog, name string) {
		t.Helper()
		if r, ok := c.(component.Historic).Removed(name); ok {
			t.Errorf("%s: got %+v", what, r)
		}
	}
	unknown("never was", c, "a.c")
	unknown("off", open(versions.Open(storage, versions.DefaultLimits, slog.New(slog.DiscardHandler)), false), "a.b")
	unknown("weir check", open(versions.Look(storage), true), "a.b")
	unknown("without a history", open(nil, true), "a.b")

	f.Write("a/b.lua", noTransform+"-- is back\n")
	c.Refresh(c.Roots())
	if now := registrytest.Lookup(t, c, "a.b"); now.Err != nil || now.Version == before.Version {
		t.Errorf("got version %s and error %v", now.Version, now.Err)
	}
}
