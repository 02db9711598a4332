package registry_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/internal/registrytest"
	"github.com/weir-run/weir/scripting/lua"
	"github.com/weir-run/weir/scripting/registry"
)

func TestNames(t *testing.T) {
	f := registrytest.NewFolder(t)
	for _, path := range []string{
		"http/paths.lua", "a/b/c.lua", "x/y.other",
		"http/_private.lua", "_hidden/x.lua", "http/paths_test.lua", "http/paths.test.lua", "lib/x.lua",
		"http/readme.md", "..data/x.lua", "http/.#paths.lua", "my-lib/lib/_x.lua",
	} {
		f.Write(path, registrytest.Script)
	}
	c := f.Catalog(map[string]string{"demo/x.lua": registrytest.Script, "http/paths.lua": registrytest.Script, "lib/y.lua": "return 1"})
	want := []string{"a.b.c", "demo.x", "http.paths", "x.y"}
	if diff := cmp.Diff(want, c.Names()); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	for _, name := range want {
		if r := registrytest.Lookup(t, c, name); r.Err != nil || r.Version == "" || r.Build == nil {
			t.Errorf("%s: got version %q, error %v", name, r.Version, r.Err)
		}
	}
	for _, name := range []string{"http.nope", "lib.x", "http._private", "http", "", "demo", "..data.x"} {
		if _, ok := c.Lookup(name); ok {
			t.Errorf("%q is known", name)
		}
	}
	if diff := cmp.Diff([]string{f.Dir}, c.Roots()); diff != "" {
		t.Errorf("roots (-want +got):\n%s", diff)
	}
	if doc := registrytest.Lookup(t, c, "http.paths").Doc.Summary; !strings.Contains(doc, "Defined in scripts/http/paths.lua, which replaces the component of this name that ships with weir.") {
		t.Errorf("got summary %q", doc)
	}
	if doc := registrytest.Lookup(t, c, "demo.x").Doc.Summary; !strings.Contains(doc, "Ships with weir.") {
		t.Errorf("got summary %q", doc)
	}
}

func TestTwoFilesOfOneName(t *testing.T) {
	f := registrytest.NewFolder(t)
	lu := f.Write("a/b.lua", registrytest.Script)
	ot := f.Write("a/b.other", registrytest.Script)
	c := f.Catalog(nil)
	r := registrytest.Lookup(t, c, "a.b")
	if r.Err == nil || r.Err.Error() != "cannot tell which file is a.b: there are scripts/a/b.lua and scripts/a/b.other" {
		t.Errorf("got %v", r.Err)
	}
	if diff := cmp.Diff([]string{lu, ot}, r.Sources); diff != "" {
		t.Errorf("sources (-want +got):\n%s", diff)
	}
	if err := os.Remove(ot); err != nil {
		t.Fatal(err)
	}
	c.Refresh([]string{ot})
	if r := registrytest.Lookup(t, c, "a.b"); r.Err != nil {
		t.Errorf("after one is gone: %v", r.Err)
	}
}

// Positions are paths that a terminal can open, and the version does not depend
// on where weir was started.
func TestPaths(t *testing.T) {
	f := registrytest.NewFolder(t)
	f.Write("a/b.lua", "local x = = 1")
	f.Write("a/c.lua", "local y = require \"y\"\n"+registrytest.Script)
	f.Write("lib/y.lua", "return 1")
	var versions []string
	g := func(work, want string) {
		t.Helper()
		t.Chdir(work)
		c := f.Catalog(nil)
		if r := registrytest.Lookup(t, c, "a.b"); r.Err == nil || !strings.HasPrefix(r.Err.Error(), want+":1:11: syntax error") {
			t.Errorf("in %s: got %v, want %s", work, r.Err, want)
		}
		versions = append(versions, registrytest.Lookup(t, c, "a.c").Version)
	}
	g(filepath.Dir(f.Dir), "scripts/a/b.lua")
	g(f.Dir, "a/b.lua")
	g(filepath.Join(f.Dir, "lib"), filepath.ToSlash(f.Dir)+"/a/b.lua")
	g(t.TempDir(), filepath.ToSlash(f.Dir)+"/a/b.lua")
	if len(slices.Compact(versions)) != 1 {
		t.Errorf("got versions %v, want one", versions)
	}
}

func TestFileWithoutFolder(t *testing.T) {
	f := registrytest.NewFolder(t)
	f.Write("paths.lua", registrytest.Script)
	r := registrytest.Lookup(t, f.Catalog(nil), "paths")
	want := "cannot make a component of scripts/paths.lua: put it into a folder, scripts/<namespace>/paths.lua is <namespace>.paths"
	if r.Err == nil || r.Err.Error() != want {
		t.Errorf("got %v, want %s", r.Err, want)
	}
}

// A file that no block can mean is listed, with the reason, and logged once.
func TestMisnamedFiles(t *testing.T) {
	f := registrytest.NewFolder(t)
	dash := f.Write("demo/my-tidy.lua", registrytest.Script)
	f.Write("demo/a b.lua", registrytest.Script)
	f.Write("9a/x.lua", registrytest.Script)
	f.Write("my.ns/x.lua", registrytest.Script)
	f.Write("demo/fine.lua", registrytest.Script)
	var log bytes.Buffer
	c, err := registry.NewCatalog(registry.Options{
		Languages: []scripting.Language{lua.New()}, UserDir: f.Dir, Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"9a/x.lua", "demo.fine", "demo/a b.lua", "demo/my-tidy.lua", "my.ns/x.lua"}, c.Names()); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	g := func(name, want string) {
		t.Helper()
		if r := registrytest.Lookup(t, c, name); r.Err == nil || !strings.HasPrefix(r.Err.Error(), want) {
			t.Errorf("%s: got %v, want %s", name, r.Err, want)
		}
	}
	g("demo/my-tidy.lua", "cannot make a component of scripts/demo/my-tidy.lua: my-tidy is not an identifier: rename the file, letters, digits and _")
	g("demo/a b.lua", "cannot make a component of scripts/demo/a b.lua: a b is not an identifier: rename the file,")
	g("9a/x.lua", "cannot make a component of scripts/9a/x.lua: 9a is not an identifier: rename the folder,")
	g("my.ns/x.lua", "cannot make a component of scripts/my.ns/x.lua: my.ns is not an identifier: rename the folder,")
	warnings := func(want int) {
		t.Helper()
		c.Names()
		if got := strings.Count(log.String(), "level=WARN msg=\"script cannot be a component\""); got != want {
			t.Errorf("got %d warnings, want %d:\n%s", got, want, log.String())
		}
	}
	warnings(4)
	c.Refresh([]string{f.Dir})
	warnings(4)
	f.Write("demo/new-one.lua", registrytest.Script)
	c.Refresh([]string{f.Dir})
	warnings(5)
	if err := os.Rename(dash, filepath.Join(f.Dir, "demo", "my_tidy.lua")); err != nil {
		t.Fatal(err)
	}
	c.Refresh([]string{dash})
	warnings(5)
	if r := registrytest.Lookup(t, c, "demo.my_tidy"); r.Err != nil {
		t.Error(r.Err)
	}
	if _, ok := c.Lookup("demo/my-tidy.lua"); ok {
		t.Error("the old name is known")
	}
}

// The version follows the content of the file and of all it requires, and
// Sources are all files whose change may change it.
func TestVersionAndSources(t *testing.T) {
	f := registrytest.NewFolder(t)
	main := f.Write("a/b.lua", "local one = require \"one\"\n"+registrytest.Script)
	one := f.Write("lib/one.lua", "return require \"deep.two\"")
	two := f.Write("lib/deep/two.lua", "return 1")
	f.Write("lib/unused.lua", "return 1")
	f.Write("c/d.lua", registrytest.Script)
	c := f.Catalog(nil)
	candidate := func(path string) string { return strings.TrimSuffix(path, ".lua") + ".other" }

	r := registrytest.Lookup(t, c, "a.b")
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	if diff := cmp.Diff([]string{main, candidate(main), two, one}, r.Sources); diff != "" {
		t.Errorf("sources (-want +got):\n%s", diff)
	}
	change := func(path, text string, changes bool) {
		t.Helper()
		before := registrytest.Lookup(t, c, "a.b").Version
		f.Write(path, text)
		c.Refresh([]string{filepath.Join(f.Dir, path)})
		if got := registrytest.Lookup(t, c, "a.b"); (got.Version != before) != changes || got.Err != nil {
			t.Errorf("%s: version changed: %v, want %v; error %v", path, got.Version != before, changes, got.Err)
		}
	}
	change("a/b.lua", "local one = require \"one\"\n"+registrytest.Script, false) // the same content
	change("a/b.lua", "local one = require \"one\"\n"+registrytest.Script+"-- x", true)
	change("lib/one.lua", "return require \"deep.two\" -- x", true)
	change("lib/deep/two.lua", "return 2", true)
	change("lib/unused.lua", "return 2", false)
	change("c/d.lua", registrytest.Script+"-- x", false)
	change("lib/one.lua", "return 3", true) // two is not required any more
	change("lib/deep/two.lua", "return )", false)
}

// A broken registration lists the files that can repair it.
func TestRepair(t *testing.T) {
	f := registrytest.NewFolder(t)
	f.Write("a/b.lua", "local x = require \"x\"\n"+registrytest.Script)
	c := f.Catalog(nil)
	r := registrytest.Lookup(t, c, "a.b")
	if r.Err == nil || !strings.HasPrefix(r.Err.Error(), `scripts/a/b.lua:1: cannot require "x": module not found`) {
		t.Fatalf("got %v", r.Err)
	}
	missing := filepath.Join(f.Dir, "lib", "x.lua")
	if !strings.Contains(strings.Join(r.Sources, "\n"), missing) {
		t.Errorf("%s is not among the sources %v", missing, r.Sources)
	}
	f.Write("lib/x.lua", "return (")
	c.Refresh([]string{missing})
	if r = registrytest.Lookup(t, c, "a.b"); r.Err == nil || !strings.HasPrefix(r.Err.Error(), "scripts/lib/x.lua:1: syntax error at the end of the file") {
		t.Errorf("got %v", r.Err)
	}
	f.Write("lib/x.lua", "return 1")
	c.Refresh([]string{missing})
	if r = registrytest.Lookup(t, c, "a.b"); r.Err != nil {
		t.Errorf("got %v", r.Err)
	}
	// Without Refresh the catalog answers as before; a folder drops all below.
	f.Write("a/b.lua", "broken")
	if r = registrytest.Lookup(t, c, "a.b"); r.Err != nil {
		t.Errorf("without Refresh: %v", r.Err)
	}
	c.Refresh([]string{filepath.Join(f.Dir, "a")})
	if r = registrytest.Lookup(t, c, "a.b"); r.Err == nil {
		t.Error("after Refresh of the folder the old version is known")
	}
}

func TestUserFileReplacesEmbedded(t *testing.T) {
	f := registrytest.NewFolder(t)
	c := f.Catalog(map[string]string{
		"demo/x.lua": "local a = require \"a\"\n" + registrytest.Script, "lib/a.lua": "return 1",
	})
	shipped := registrytest.Lookup(t, c, "demo.x")
	user := filepath.Join(f.Dir, "demo", "x.lua")
	if shipped.Err != nil || !strings.Contains(strings.Join(shipped.Sources, "\n"), user) {
		t.Fatalf("got error %v, sources %v, want %s among them", shipped.Err, shipped.Sources, user)
	}
	// A user's module does not reach into a shipped script.
	f.Write("lib/a.lua", "return )")
	c.Refresh([]string{filepath.Join(f.Dir, "lib", "a.lua")})
	if r := registrytest.Lookup(t, c, "demo.x"); r.Err != nil || r.Version != shipped.Version {
		t.Errorf("a user's module changed a shipped script: %v", r.Err)
	}
	f.Write("demo/x.lua", registrytest.Script)
	c.Refresh([]string{user})
	if r := registrytest.Lookup(t, c, "demo.x"); r.Err != nil || r.Version == shipped.Version {
		t.Errorf("the user's file does not replace the shipped one: %v", r.Err)
	}
	if err := os.Remove(user); err != nil {
		t.Fatal(err)
	}
	c.Refresh([]string{user})
	if r := registrytest.Lookup(t, c, "demo.x"); r.Version != shipped.Version {
		t.Error("the shipped one does not come back")
	}
}

// A mounted ConfigMap is links through ..data.
func TestSymlinks(t *testing.T) {
	f := registrytest.NewFolder(t)
	f.Write("http/..2024/paths.lua", registrytest.Script)
	for link, to := range map[string]string{"..data": "..2024", "paths.lua": "..data/paths.lua"} {
		if err := os.Symlink(to, filepath.Join(f.Dir, "http", link)); err != nil {
			t.Skip(err)
		}
	}
	if err := os.Symlink("..", filepath.Join(f.Dir, "http", "loop")); err != nil {
		t.Fatal(err)
	}
	c := f.Catalog(nil)
	if r := registrytest.Lookup(t, c, "http.paths"); r.Err != nil {
		t.Error(r.Err)
	}
	if n := len(c.Names()); n > 100 {
		t.Errorf("a loop of links gives %d names", n)
	}
}

func TestNoFolder(t *testing.T) {
	f := registrytest.NewFolder(t)
	c := f.Catalog(nil)
	if got := c.Names(); len(got) != 0 {
		t.Errorf("got %v", got)
	}
	path := f.Write("a/b.lua", registrytest.Script)
	c.Refresh([]string{path})
	if r := registrytest.Lookup(t, c, "a.b"); r.Err != nil {
		t.Error(r.Err)
	}
}

func TestUnreadable(t *testing.T) {
	f := registrytest.NewFolder(t)
	f.Write("a/big.lua", strings.Repeat("-", scripting.MaxFileSize+1))
	r := registrytest.Lookup(t, f.Catalog(nil), "a.big")
	if r.Err == nil || r.Err.Error() != "cannot use script scripts/a/big.lua: it is larger than 256 KiB" {
		t.Errorf("got %v", r.Err)
	}
}

func TestDoc(t *testing.T) {
	f := registrytest.NewFolder(t)
	f.Write("http/paths.lua", `-- scripts/http/paths.lua
-- Folds ids.
--
-- More of it.
--
-- Example Args:
--   keep = ["api"]
-- Example Input:
--   a 1
-- Example Output:
--   b 1
local weir = require "weir"
return weir.transform {
	args = {
		region = weir.arg.string { default = "eu", doc = "Where it runs." },
		keep = weir.arg.list { of = weir.arg.string {} },
		mode = weir.arg.enum { values = { "x", "y" } },
	},
	metrics = function() end,
}`)
	f.Write("http/plain.lua", strings.Replace(registrytest.Script, "metrics =", "args = { keep = weir.arg.list { of = weir.arg.int {} }, m = weir.arg.enum { values = { \"x\" } } }, metrics =", 1))
	c := f.Catalog(nil)
	doc := registrytest.Lookup(t, c, "http.paths").Doc
	if want := "Folds ids.\n\nMore of it.\n\nDefined in scripts/http/paths.lua."; doc.Summary != want {
		t.Errorf("got summary %q, want %q", doc.Summary, want)
	}
	if want := "http.paths \"default\" {\n  keep = [\"api\"]\n  forward_to = [prometheus.remote_write.default.receiver]\n}\n"; doc.Example != want {
		t.Errorf("got example %q, want %q", doc.Example, want)
	}
	if doc.Args["region"] != "Where it runs." || doc.Args["mode"] != `One of "x" or "y".` || doc.Args["script.limits.time"] == "" {
		t.Errorf("got args %v", doc.Args)
	}
	if want := "http.plain \"default\" {\n  keep = [1]\n  m = \"x\"\n  forward_to = [prometheus.remote_write.default.receiver]\n}\n"; registrytest.Lookup(t, c, "http.plain").Doc.Example != want {
		t.Errorf("got example %q, want %q", registrytest.Lookup(t, c, "http.plain").Doc.Example, want)
	}
}

func TestNamespace(t *testing.T) {
	f := registrytest.NewFolder(t)
	paths := f.Write("http/paths.lua", registrytest.Script)
	f.Write("top.lua", registrytest.Script)
	f.Write("my-top.lua", registrytest.Script)
	c, err := registry.NewCatalog(registry.Options{Languages: []scripting.Language{lua.New()}, UserDir: f.Dir, Namespace: "acme"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"acme.http.paths", "acme.top", "my-top.lua"}, c.Names()); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	r := registrytest.Lookup(t, c, "acme.http.paths")
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	if diff := cmp.Diff([]string{paths}, r.Sources); diff != "" {
		t.Errorf("sources (-want +got):\n%s", diff)
	}
	if _, ok := c.Lookup("http.paths"); ok {
		t.Error("http.paths is known without its namespace")
	}
	if r := registrytest.Lookup(t, c, "acme.top"); r.Err != nil {
		t.Errorf("got %v for a file whose folder is the namespace", r.Err)
	}

	for _, bad := range []string{"my-acme", "acme.", "1"} {
		if _, err := registry.NewCatalog(registry.Options{UserDir: f.Dir, Namespace: bad}); err == nil || !strings.Contains(err.Error(), bad) {
			t.Errorf("namespace %q: got %v, want an error that names it", bad, err)
		}
	}
}

// A script that does not compile has the version of its content, which a refusal
// names.
func TestVersionOfBrokenScript(t *testing.T) {
	f := registrytest.NewFolder(t)
	f.Write("a/b.lua", "local x = = 1")
	c := f.Catalog(nil)
	first := registrytest.Lookup(t, c, "a.b")
	if first.Err == nil || first.Version == "" {
		t.Errorf("got version %q and error %v", first.Version, first.Err)
	}
	c.Refresh([]string{f.Write("a/b.lua", "local x = = 2")})
	if second := registrytest.Lookup(t, c, "a.b"); second.Version == first.Version {
		t.Errorf("another content has the same version %s", second.Version)
	}
}
