package filematch_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/component/componenttest"
	filematch "github.com/weir-run/weir/natives/local/file_match"
)

// harness is a directory.
type harness struct {
	t   testing.TB
	dir string
}

func newHarness(t testing.TB, files ...string) *harness {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	h := &harness{t, dir}
	for _, f := range files {
		h.write(f)
	}
	return h
}

func (h *harness) path(name string) string { return filepath.Join(h.dir, filepath.FromSlash(name)) }

func (h *harness) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *harness) write(name string) {
	h.t.Helper()
	h.must(os.MkdirAll(filepath.Dir(h.path(name)), 0o755))
	h.must(os.WriteFile(h.path(name), nil, 0o644))
}

func (h *harness) link(target, name string) {
	h.t.Helper()
	if runtime.GOOS == "windows" {
		h.t.Skip("symbolic links need privileges")
	}
	h.must(os.MkdirAll(filepath.Dir(h.path(name)), 0o755))
	h.must(os.Symlink(filepath.FromSlash(target), h.path(name)))
}

type node interface {
	component.Component
	component.Updater
}

// arguments returns arguments for targets "pattern" or "pattern - exclude".
func (h *harness) arguments(targets ...string) *filematch.Arguments {
	a := filematch.Registration().NewArgs().(*filematch.Arguments)
	for i, t := range targets {
		pattern, exclude, ok := strings.Cut(t, " - ")
		m := map[string]string{"__path__": h.path(pattern), "n": fmt.Sprint(i)}
		if ok {
			m["__path_exclude__"] = h.path(exclude)
		}
		a.PathTargets = append(a.PathTargets, m)
	}
	return a
}

func (h *harness) run(n *componenttest.Node, a *filematch.Arguments) node {
	h.t.Helper()
	c := n.Build(h.t, filematch.Registration(), a).(node)
	n.Run(h.t, c)
	n.Wait(h.t, func() bool { return n.Exports() != nil })
	return c
}

// found returns the exported paths, relative to the harness, each with the number
// of its target if that is not 0.
func (h *harness) found(n *componenttest.Node) (names []string) {
	h.t.Helper()
	for _, t := range n.Exports().(filematch.Exports).Targets {
		rel, err := filepath.Rel(h.dir, t["__path__"])
		h.must(err)
		name := filepath.ToSlash(rel)
		if t["n"] != "0" {
			name += " " + t["n"]
		}
		names = append(names, name)
	}
	return names
}

func TestPatterns(t *testing.T) {
	f := func(targets []string, want ...string) {
		t.Helper()
		h := newHarness(t, "a.log", "b.log", "b.txt", "d/a.log", "d/e/a.log", "d/e/c.log", "f/a.log", "x[1].log", ".hidden.log")
		n := componenttest.New(t, "local.file_match.f")
		h.run(n, h.arguments(targets...))
		if diff := cmp.Diff(want, h.found(n)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", targets, diff)
		}
	}
	one := func(p string) []string { return []string{p} }
	f(one("a.log"), "a.log")
	f(one("nope.log"))
	f(one("nope/*.log"))
	f(one("a.log/*"))
	f(one("*.log"), ".hidden.log", "a.log", "b.log", "x[1].log")
	f(one("[a-z]*.log"), "a.log", "b.log", "x[1].log")
	f(one(`x\[1\].log`), "x[1].log")
	f(one("{a,b}.{log,txt}"), "a.log", "b.log", "b.txt")
	f(one("{d,f}/a.log"), "d/a.log", "f/a.log")
	f(one("{d/e,f}/a.log"), "d/e/a.log", "f/a.log")
	f(one("*/a.log"), "d/a.log", "f/a.log")
	f(one("d/**/a.log"), "d/a.log", "d/e/a.log")
	f(one("**/c.log"), "d/e/c.log")
	f(one("d/**"), "d/a.log", "d/e/a.log", "d/e/c.log")
	f(one("*")[:1], ".hidden.log", "a.log", "b.log", "b.txt", "x[1].log")
	f(one("d/**/*.log - d/e/c*"), "d/a.log", "d/e/a.log")
	f(one("**/*.log - **/{a,b}.log"), ".hidden.log", "d/e/c.log", "x[1].log")
	f([]string{"*/a.log", "d/*"}, "d/a.log", "f/a.log", "d/a.log 1")
}

func TestLabelsAreKept(t *testing.T) {
	h := newHarness(t, "a.log")
	n := componenttest.New(t, "local.file_match.f")
	a := h.arguments("*.log - b*")
	h.run(n, a)
	want := filematch.Exports{Targets: []map[string]string{{"__path__": h.path("a.log"), "__path_exclude__": h.path("b*"), "n": "0"}}}
	if diff := cmp.Diff(any(want), n.Exports()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if a.PathTargets[0]["__path__"] != h.path("*.log") {
		t.Error("the arguments were written to")
	}
}

func TestRelative(t *testing.T) {
	h := newHarness(t, "d/a.log", "d/b.log")
	t.Chdir(h.dir)
	n := componenttest.New(t, "local.file_match.f")
	a := h.arguments()
	a.PathTargets = []map[string]string{{"__path__": "d/*.log", "__path_exclude__": "d/b*", "n": "0"}, {"no": "path"}}
	h.run(n, a)
	if diff := cmp.Diff([]string{"d/a.log"}, h.found(n)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLinks(t *testing.T) {
	h := newHarness(t, "real/a.log", "d/b.log", "e/c.log")
	h.link("../real", "d/link")        // followed, under its own path
	h.link("../../d", "d/sub/up")      // leads back
	h.link("self", "d/self")           // and to itself
	h.link("nowhere", "d/x.log")       // broken link
	h.link("../real/a.log", "d/l.log") // a file
	h.link("../e", "d/other")          // two that lead to each other
	h.link("../d", "e/back")
	h.link("..", "d/out") // above the base
	n := componenttest.New(t, "local.file_match.f")
	h.run(n, h.arguments("d/**/*.log"))
	if diff := cmp.Diff([]string{"d/b.log", "d/l.log", "d/link/a.log", "d/other/c.log"}, h.found(n)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestOwnFiles: the files in weir's storage directory are skipped, even if one of
// the paths contains a symbolic link.
func TestOwnFiles(t *testing.T) {
	f := func(storage, pattern string, want ...string) {
		t.Helper()
		h := newHarness(t, "a.log", "data/node/positions.log", "data/b.log", "database/c.log")
		h.link("data", "link")
		h.link("data/node/positions.log", "file.log")
		n := componenttest.New(t, "local.file_match.f")
		n.StoragePath = h.path(storage)
		h.run(n, h.arguments(pattern))
		if diff := cmp.Diff(want, h.found(n)); diff != "" {
			t.Errorf("%s in %s (-want +got):\n%s", pattern, storage, diff)
		}
		if got := strings.Count(n.Logs(), "matches files in weir's storage directory"); got != 1 {
			t.Errorf("it is logged %d times: %s", got, n.Logs())
		}
	}
	for _, storage := range []string{"data", "link"} {
		f(storage, "**/*.log", "a.log", "database/c.log")
		f(storage, "*.log", "a.log")
		f(storage, "link/**")
		f(storage, "data/node/positions.log")
		f(storage, "{a,file}.log", "a.log")
	}
	f("data/node", "*/**/*.log", "data/b.log", "database/c.log", "link/b.log")
}

// TestTroubles: a directory that cannot be read is logged once, and does not hide
// other files.
func TestTroubles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, "a.log", "d/c.log")
		h.link("loop.log", "loop.log")
		n := componenttest.New(t, "local.file_match.f")
		h.run(n, h.arguments("**/*.log"))
		if diff := cmp.Diff([]string{"a.log", "d/c.log"}, h.found(n)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		pass(n, 10*time.Second)
		if got := strings.Count(n.Logs(), "cannot look at everything"); got != 1 || !strings.Contains(n.Logs(), "loop.log") {
			t.Errorf("got log %s", n.Logs())
		}
	})
}

func TestUnreadable(t *testing.T) {
	if runtime.GOOS == "windows" || os.Getuid() == 0 {
		t.Skip("everything can be read")
	}
	h := newHarness(t, "a.log", "secret/b.log", "d/c.log")
	h.must(os.Chmod(h.path("secret"), 0))
	defer func() { h.must(os.Chmod(h.path("secret"), 0o755)) }()
	n := componenttest.New(t, "local.file_match.f")
	h.run(n, h.arguments("**/*.log"))
	if diff := cmp.Diff([]string{"a.log", "d/c.log"}, h.found(n)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !strings.Contains(n.Logs(), "secret") {
		t.Errorf("got log %s", n.Logs())
	}
}

// pass advances the clock and waits until the component has searched.
func pass(n *componenttest.Node, d time.Duration) {
	synctest.Wait()
	n.Clock.Advance(d)
	synctest.Wait()
}

func TestComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, "d/a.log")
		n := componenttest.New(t, "local.file_match.f")
		c := h.run(n, h.arguments("d/**/*.log"))
		want := func(names ...string) {
			t.Helper()
			if diff := cmp.Diff(names, h.found(n)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		}
		want("d/a.log")
		h.write("d/new/b.log")
		pass(n, 9*time.Second)
		want("d/a.log")
		pass(n, time.Second)
		want("d/a.log", "d/new/b.log")
		h.must(os.RemoveAll(h.path("d")))
		pass(n, 10*time.Second)
		want()
		h.write("d/c.log")
		pass(n, 10*time.Second)
		want("d/c.log")

		// Other arguments take effect immediately, and so does another interval.
		a := h.arguments("*.log")
		a.SyncPeriod = time.Second
		h.write("x.log")
		h.must(c.Update(a))
		synctest.Wait()
		want("x.log")
		h.write("y.log")
		pass(n, time.Second)
		want("x.log", "y.log")
	})
}

func TestIgnoreOlderThan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, "a.log", "b.log")
		n := componenttest.New(t, "local.file_match.f")
		now := n.Clock.Now()
		h.must(os.Chtimes(h.path("a.log"), now, now.Add(-time.Hour)))
		h.must(os.Chtimes(h.path("b.log"), now, now.Add(-50*time.Minute)))
		a := h.arguments("*.log")
		a.IgnoreOlderThan = time.Hour
		h.run(n, a)
		if diff := cmp.Diff([]string{"a.log", "b.log"}, h.found(n)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		pass(n, 10*time.Second)
		if diff := cmp.Diff([]string{"b.log"}, h.found(n)); diff != "" {
			t.Errorf("10 s later (-want +got):\n%s", diff)
		}
	})
}

func TestValidate(t *testing.T) {
	f := func(edit func(*filematch.Arguments), want ...string) {
		t.Helper()
		a := (&harness{t: t, dir: "/"}).arguments("*.log")
		edit(a)
		err := a.Validate()
		if (err != nil) != (len(want) > 0) {
			t.Errorf("got %v, want %q", err, want)
		}
		for _, w := range want {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("got %v, want it to say %q", err, w)
			}
		}
	}
	f(func(*filematch.Arguments) {})
	f(func(a *filematch.Arguments) { a.SyncPeriod, a.IgnoreOlderThan = 0, -1 }, "sync_period is 0s", "ignore_older_than is -1ns")
	f(func(a *filematch.Arguments) { a.PathTargets[0]["__path__"] = "/x[" }, `path_targets[0]: __path__ "/x[" is no pattern`)
	f(func(a *filematch.Arguments) { a.PathTargets[0]["__path_exclude__"] = "{" }, `__path_exclude__ "{" is no pattern`)
	f(func(a *filematch.Arguments) { a.PathTargets = []map[string]string{{}} })
}

// BenchmarkTenThousand searches 10,000 files in 100 directories.
func BenchmarkTenThousand(b *testing.B) {
	h := newHarness(b)
	for i := range 100 {
		for j := range 100 {
			h.write(fmt.Sprintf("%d/%d.log", i, j))
		}
	}
	a := h.arguments("**/*.log")
	for b.Loop() {
		n := componenttest.New(b, "local.file_match.f")
		h.run(n, a)
	}
}
