//go:build unix

package registry_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/files"
	"github.com/weir-run/weir/engine/files/filestest"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/internal/registrytest"
	"github.com/weir-run/weir/scripting/js"
	"github.com/weir-run/weir/scripting/lua"
	"github.com/weir-run/weir/scripting/registry"
	"github.com/weir-run/weir/stdlib"
)

// tested is a catalog that also reads test files.
func tested(f registrytest.Folder) component.Catalog {
	f.T.Helper()
	c, err := registry.NewCatalog(registry.Options{
		Languages: []scripting.Language{lua.New(), js.New()}, UserDir: f.Dir, Modules: stdlib.Modules(),
		Test: func(context.Context, registry.Tested) error { return nil },
	})
	if err != nil {
		f.T.Fatal(err)
	}
	return c
}

const noTransform = "local weir = require('weir')\nreturn weir.transform { metrics = function(batch) end }\n"

// TestUnreadableFiles puts what must not be read where a script, a library, a
// data file and a test are.
func TestUnreadableFiles(t *testing.T) {
	want := map[string]string{
		"FIFO": "is a FIFO, not a regular file", "socket": "is a socket", "directory": "", "sparse": "is larger than 256 KiB",
		"zero": "which lies outside of the scripts folder", "full": "which lies outside of the scripts folder", "loop": "", "dangling": "",
	}
	scripts := map[string]string{
		"a/x.lua":      noTransform, // is replaced itself
		"lib/m.lua":    "require('m')\n" + noTransform,
		"lib/d.json":   "require('d.json')\n" + noTransform,
		"a/x_test.lua": noTransform,
	}
	for at, script := range scripts {
		for kind, path := range filestest.Special(t, filepath.Base(at)) {
			f := registrytest.NewFolder(t)
			f.Write("a/x.lua", script)
			f.Write(at, "")
			if err := os.Remove(filepath.Join(f.Dir, at)); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(path, filepath.Join(f.Dir, at)); err != nil {
				t.Fatal(err)
			}
			c := tested(f)
			filestest.Within(t, kind+" at "+at, func() {
				r, ok := c.Lookup("a.x")
				if at == "a/x.lua" && want[kind] == "" {
					if ok {
						t.Errorf("%s at %s is a component", kind, at)
					}
					return
				}
				if want := want[kind]; want != "" && (r.Err == nil || !strings.Contains(r.Err.Error(), want)) {
					t.Errorf("%s at %s: got %v, want %q", kind, at, r.Err, want)
				}
			})
		}
	}
}

// TestScriptOutside links files of the folder to a secret: nothing of it may be
// shown.
func TestScriptOutside(t *testing.T) {
	f := registrytest.NewFolder(t)
	secret := filepath.Join(t.TempDir(), "shadow")
	if err := os.WriteFile(secret, []byte("root:s3cret:19000:0:99999:7:::\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	link := func(at, target string) {
		t.Helper()
		f.Write(at, "")
		path := filepath.Join(f.Dir, at)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, path); err != nil {
			t.Fatal(err)
		}
	}
	refused := func(name string) {
		t.Helper()
		r := registrytest.Lookup(t, tested(f), name)
		if text := fmt.Sprint(r.Err); r.Err == nil || strings.Contains(text, "s3cret") || !strings.Contains(text, secret) || !strings.Contains(text, "copy it into the folder") {
			t.Errorf("%s: got %v", name, r.Err)
		}
	}
	link("a/lua.lua", secret)
	link("a/js.js", secret)
	link("a/ts.ts", secret)
	for _, name := range []string{"a.lua", "a.js", "a.ts"} {
		refused(name)
	}
	f.Write("b/test.lua", noTransform)
	link("b/test_test.lua", secret)
	refused("b.test")
	f.Write("b/require.lua", "require('m')\n"+noTransform)
	link("lib/m.lua", secret)
	refused("b.require")
	link("linked/x", filepath.Dir(secret)) // a folder
	if err := os.WriteFile(filepath.Join(filepath.Dir(secret), "y.lua"), []byte("root:s3cret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := registrytest.Lookup(t, tested(f), "linked.x.y"); r.Err == nil || strings.Contains(r.Err.Error(), "s3cret") {
		t.Errorf("got %v", r.Err)
	}
	// A link inside the folder leads to a script, as in a ConfigMap. The folder
	// itself may be a link.
	f.Write("..2025/x.lua", noTransform)
	link("c/x.lua", "../..2025/x.lua")
	link("c/y.lua", filepath.Join(f.Dir, "..2025", "x.lua"))
	other := filepath.Join(t.TempDir(), "other")
	if err := os.Symlink(f.Dir, other); err != nil {
		t.Fatal(err)
	}
	for _, f := range []registrytest.Folder{f, {T: t, Dir: other}} {
		for _, name := range []string{"c.x", "c.y"} {
			if r := registrytest.Lookup(t, tested(f), name); r.Err != nil {
				t.Errorf("%s in %s: %v", name, f.Dir, r.Err)
			}
		}
	}
}

func TestManyFiles(t *testing.T) {
	f := registrytest.NewFolder(t)
	f.Write("b/x.lua", noTransform)
	big := t.TempDir()
	for i := range 20_000 {
		if err := os.WriteFile(filepath.Join(big, fmt.Sprint(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(big, filepath.Join(f.Dir, "a")); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	c, err := registry.NewCatalog(registry.Options{Languages: []scripting.Language{lua.New()}, UserDir: f.Dir, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	if r := registrytest.Lookup(t, c, "b.x"); r.Err != nil {
		t.Error(r.Err)
	}
	if !strings.Contains(log.String(), "there are more than 20000 files and folders") {
		t.Errorf("the log has %q", log.String())
	}
}

// TestFoldersInACircle has folders that link to each other: with 9 links in each,
// there are 9^8 paths.
func TestFoldersInACircle(t *testing.T) {
	f := registrytest.NewFolder(t)
	f.Write("a/x.lua", noTransform)
	for _, dir := range []string{"a", "b", "c"} {
		f.Write(dir+"/y.lua", noTransform)
		for i := range 9 {
			to := []string{"../a", "../b", "../c", ".."}[i%4]
			if err := os.Symlink(to, filepath.Join(f.Dir, dir, fmt.Sprint("l", i))); err != nil {
				t.Fatal(err)
			}
		}
	}
	f.Write(strings.Repeat("d/", 200)+"x.lua", noTransform)
	filestest.Within(t, "a walk", func() {
		if r := registrytest.Lookup(t, tested(f), "a.x"); r.Err != nil {
			t.Error(r.Err)
		}
	})
}

// TestScriptsHang: while the file system does not answer, a script is broken, and
// says why; it is known still.
func TestScriptsHang(t *testing.T) {
	filestest.Patience(t, 100*time.Millisecond)
	f := registrytest.NewFolder(t)
	path := f.Write("a/x.lua", noTransform)
	c := tested(f)
	if r := registrytest.Lookup(t, c, "a.x"); r.Err != nil {
		t.Fatal(r.Err)
	}
	_, release := filestest.Hang(t, f.Dir)
	for range 3 {
		filestest.Within(t, "a lookup", func() {
			c.Refresh([]string{path})
			if r, ok := c.Lookup("a.x"); !ok || r.Err == nil || !strings.Contains(r.Err.Error(), "has not returned since") {
				t.Errorf("got %v, %v", ok, r.Err)
			}
		})
	}
	release()
	filestest.Within(t, "what hangs", func() {
		for len(files.Hung()) > 0 {
			time.Sleep(time.Millisecond)
		}
	})
	c.Refresh([]string{path})
	if r := registrytest.Lookup(t, c, "a.x"); r.Err != nil {
		t.Error(r.Err)
	}
}

// TestLookupDoesNotWait: once somebody is told of changes, a lookup does not wait for a
// file system that has begun to hang, and others are answered. When the file system has
// answered, the scripts have changed.
func TestLookupDoesNotWait(t *testing.T) {
	f := func(name string, hangs func(f registrytest.Folder) string, lists bool) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := registrytest.NewFolder(t)
				f.Write("a/slow.lua", noTransform)
				f.Write("a/slow_test.lua", "")
				f.Write("a/fast.lua", noTransform)
				c := tested(f)
				if r := registrytest.Lookup(t, c, "a.slow"); r.Err != nil {
					t.Fatal(r.Err)
				}
				if r := registrytest.Lookup(t, c, "a.fast"); r.Err != nil {
					t.Fatal(r.Err)
				}
				changes := make(chan []string, 10)
				c.(component.Changing).OnChange(func(paths []string) { changes <- paths })
				_, release := filestest.Hang(t, hangs(f))
				start := time.Now()
				for range 3 {
					c.Refresh(c.Roots())
					if r, ok := c.Lookup("a.slow"); !ok || r.Err == nil || !strings.Contains(r.Err.Error(), "has not returned since") {
						t.Errorf("got %v, %v", ok, r.Err)
					}
					if r, ok := c.Lookup("a.fast"); !ok || (r.Err == nil) != lists {
						t.Errorf("the other script: got %v, %v", ok, r.Err)
					}
				}
				if waited := time.Since(start); waited > time.Second {
					t.Errorf("the lookups waited for %s", waited)
				}
				time.Sleep(files.Patience)
				release()
				time.Sleep(time.Second)
				if len(changes) == 0 {
					t.Error("nobody was told that the scripts can be read again")
				}
				for len(changes) > 0 {
					c.Refresh(<-changes)
				}
				if r := registrytest.Lookup(t, c, "a.slow"); r.Err != nil {
					t.Error(r.Err)
				}
			})
		})
	}
	f("a script", func(f registrytest.Folder) string { return filepath.Join(f.Dir, "a", "slow.lua") }, true)
	f("the folder", func(f registrytest.Folder) string { return f.Dir }, false)
}
