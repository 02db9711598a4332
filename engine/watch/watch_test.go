package watch_test

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/watch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long an event may take on a machine that is busy.
const patience = 2 * time.Minute

// dirHarness is a directory with a running watcher.
type dirHarness struct {
	t       *testing.T
	dir     string
	batches chan []string
	set     func(names ...string)
	hold    func() (release func())
	release func() // what hold returned, while it is held
	n       int
}

// save performs one save. The watcher compares before and after it, not during
// it, because on a busy machine f may take longer than a burst. Incomplete
// saves are tested with a clock that stands still.
func (h *dirHarness) save(f func()) {
	h.t.Helper()
	if h.release == nil {
		h.release = h.hold()
		defer func() {
			h.release()
			h.release = nil
		}()
	}
	f()
}

// newDirHarness builds a directory with setup, and watches names in it and the file
// sentinel.
func newDirHarness(t *testing.T, setup func(h *dirHarness), names ...string) *dirHarness {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	h := &dirHarness{t: t, dir: dir, batches: make(chan []string, 100), hold: func() func() { return func() {} }}
	h.write("sentinel", "0")
	setup(h)
	w := watch.New(watch.Options{
		Clock:    clock.System{},
		Logger:   slog.New(slog.NewTextHandler(io.Discard, nil)),
		OnChange: func(_ context.Context, paths []string, _ time.Time) { h.batches <- paths },
	})
	h.set = func(names ...string) {
		t.Helper()
		paths := []string{h.path("sentinel")}
		for _, n := range names {
			paths = append(paths, h.path(n))
		}
		if err := w.Set(paths); err != nil {
			t.Fatal(err)
		}
	}
	h.set(names...)
	h.hold = w.Hold
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return h
}

func (h *dirHarness) path(name string) string { return filepath.Join(h.dir, filepath.FromSlash(name)) }

func (h *dirHarness) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *dirHarness) write(name, text string) {
	h.t.Helper()
	h.save(func() {
		h.must(os.MkdirAll(filepath.Dir(h.path(name)), 0o755))
		h.must(os.WriteFile(h.path(name), []byte(text), 0o644))
	})
}

func (h *dirHarness) rename(from, to string) {
	h.t.Helper()
	h.must(os.Rename(h.path(from), h.path(to)))
}

func (h *dirHarness) link(target, name string) {
	h.t.Helper()
	if runtime.GOOS == "windows" {
		h.t.Skip("symbolic links need privileges")
	}
	h.must(os.MkdirAll(filepath.Dir(h.path(name)), 0o755))
	h.must(os.Symlink(filepath.FromSlash(target), h.path(name)))
}

func (h *dirHarness) next() []string {
	h.t.Helper()
	select {
	case paths := <-h.batches:
		var names []string
		for _, p := range paths {
			rel, err := filepath.Rel(h.dir, p)
			h.must(err)
			names = append(names, filepath.ToSlash(rel))
		}
		return names
	case <-time.After(patience):
		h.t.Fatal("no change was reported")
		return nil
	}
}

// want is that exactly one change has been reported, of names; of none, that
// no change has been.
func (h *dirHarness) want(names ...string) {
	h.t.Helper()
	if h.release != nil { // in the midst of a save
		h.release()
		h.release = nil
		defer func() { h.release = h.hold() }()
	}
	if len(names) > 0 {
		if diff := cmp.Diff(names, h.next()); diff != "" {
			h.t.Errorf("changed (-want +got):\n%s", diff)
		}
	}
	h.n++
	h.write("sentinel", strconv.Itoa(h.n))
	if diff := cmp.Diff([]string{"sentinel"}, h.next()); diff != "" {
		h.t.Errorf("a change too many (-want +got):\n%s", diff)
	}
}

func TestSaves(t *testing.T) {
	f := func(name, watch string, setup, save func(h *dirHarness), want ...string) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newDirHarness(t, setup, watch)
			h.want() // it runs
			h.save(func() { save(h) })
			h.want(want...)
			// And it still sees the next one.
			for _, n := range want {
				if fi, err := os.Stat(h.path(n)); err == nil && fi.Mode().IsRegular() {
					h.write(n, "again")
					h.want(n)
					return
				}
			}
		})
	}
	one := func(h *dirHarness) { h.write("d/f", "1") }
	for _, w := range []string{"d", "d/f"} { // a directory, and a file in it
		f("write/"+w, w, one, func(h *dirHarness) { h.write("d/f", "2") }, "d/f")
		f("write the same/"+w, w, one, func(h *dirHarness) { h.write("d/f", "1") })
		f("touch/"+w, w, one, func(h *dirHarness) { h.must(os.Chtimes(h.path("d/f"), time.Now(), time.Now())) })
		f("write with the old time/"+w, w, func(h *dirHarness) {
			one(h)
			h.must(os.Chtimes(h.path("d/f"), time.Unix(1e9, 0), time.Unix(1e9, 0)))
		}, func(h *dirHarness) {
			h.write("d/f", "2")
			h.must(os.Chtimes(h.path("d/f"), time.Unix(1e9, 0), time.Unix(1e9, 0)))
		}, "d/f")
		f("rename over/"+w, w, one, func(h *dirHarness) {
			h.write("d/.f.tmp", "2")
			h.rename("d/.f.tmp", "d/f")
		}, "d/f")
		f("rename over from elsewhere/"+w, w, one, func(h *dirHarness) {
			h.write("x/f", "2")
			h.rename("x/f", "d/f")
		}, "d/f")
		f("vim with backup/"+w, w, one, func(h *dirHarness) {
			h.write("d/.f.swp", "x")
			h.write("d/4913", "")
			h.must(os.Remove(h.path("d/4913")))
			h.rename("d/f", "d/f~")
			h.write("d/f", "2")
			h.must(os.Remove(h.path("d/f~")))
		}, "d/f")
		f("delete and create/"+w, w, one, func(h *dirHarness) {
			h.must(os.Remove(h.path("d/f")))
			h.write("d/f", "2")
		}, "d/f")
		f("delete and create the same/"+w, w, one, func(h *dirHarness) {
			h.must(os.Remove(h.path("d/f")))
			h.write("d/f", "1")
		})
		f("truncate and append/"+w, w, one, func(h *dirHarness) {
			h.must(os.Truncate(h.path("d/f"), 0))
			file, err := os.OpenFile(h.path("d/f"), os.O_APPEND|os.O_WRONLY, 0)
			h.must(err)
			_, err = file.WriteString("2")
			h.must(err)
			h.must(file.Close())
		}, "d/f")
		f("delete/"+w, w, one, func(h *dirHarness) { h.must(os.Remove(h.path("d/f"))) }, "d/f")
		f("empty/"+w, w, one, func(h *dirHarness) { h.write("d/f", "") }, "d/f")
		f("create/"+w, w, func(h *dirHarness) { h.must(os.Mkdir(h.path("d"), 0o755)) }, func(h *dirHarness) { h.write("d/f", "1") }, "d/f")
		f("create with directories/"+w, w, func(*dirHarness) {}, func(h *dirHarness) { h.write("d/f", "1") }, "d/f")
		f("replace the directory/"+w, w, one, func(h *dirHarness) {
			h.write("new/f", "2")
			h.rename("d", "old")
			h.rename("new", "d")
		}, "d/f")
		f("remake the directory/"+w, w, one, func(h *dirHarness) {
			h.must(os.RemoveAll(h.path("d")))
			h.write("d/f", "2")
		}, "d/f")
		f("remove the directory/"+w, w, one, func(h *dirHarness) { h.must(os.RemoveAll(h.path("d"))) }, "d/f")
		f("not ours/"+w, w, one, func(h *dirHarness) {
			h.write("e/f", "2")
			h.write("d/.g", "2")
			h.write("d/f~", "2")
		})

		// Kubernetes swaps the link ..data to a new directory.
		configMap := func(h *dirHarness) {
			h.write("d/..1/f", "1")
			h.link("..1", "d/..data")
			h.link("..data/f", "d/f")
		}
		f("ConfigMap/"+w, w, configMap, func(h *dirHarness) {
			h.write("d/..2/f", "2")
			h.link("..2", "d/..data_tmp")
			h.rename("d/..data_tmp", "d/..data")
			h.must(os.RemoveAll(h.path("d/..1")))
		}, "d/f")
		f("ConfigMap twice/"+w, w, configMap, func(h *dirHarness) {
			for _, v := range []string{"2", "3"} {
				h.write("d/.."+v+"/f", v)
				h.link(".."+v, "d/..data_tmp")
				h.rename("d/..data_tmp", "d/..data")
				h.want("d/f")
			}
			h.must(os.Remove(h.path("d/..1/f")))
		})
		f("behind a link/"+w, w, func(h *dirHarness) {
			h.write("real/f", "1")
			h.link("real", "d")
		}, func(h *dirHarness) { h.write("real/f", "2") }, "d/f")
		f("another link/"+w, w, func(h *dirHarness) {
			h.write("real/f", "1")
			h.write("other/f", "2")
			h.link("real", "d")
		}, func(h *dirHarness) {
			h.link("other", "d.tmp")
			h.rename("d.tmp", "d")
		}, "d/f")
		f("a link that dangled/"+w, w, func(h *dirHarness) { h.link("real", "d") }, func(h *dirHarness) { h.write("real/f", "1") }, "d/f")
	}

	// Patterns.
	f("pattern/write", "d/*.f", func(h *dirHarness) { h.write("d/a.f", "1") }, func(h *dirHarness) {
		h.write("d/x/b.f", "1")
		h.write("d/b.g", "1")
		h.write("d/.b.f", "1")
		h.write("d/a.f", "2")
	}, "d/a.f")
	f("pattern/create and remove", "d/*.f", func(h *dirHarness) { h.write("d/a.f", "1") }, func(h *dirHarness) {
		h.write("d/b.f", "1")
		h.must(os.Remove(h.path("d/a.f")))
	}, "d/a.f", "d/b.f")
	f("pattern/not ours", "d/*.f", func(h *dirHarness) { h.write("d/a.f", "1") }, func(h *dirHarness) { h.write("d/data/huge.f", "1") })
	f("pattern/later directory", "d/*.f", func(*dirHarness) {}, func(h *dirHarness) { h.write("d/a.f", "1") }, "d/a.f")
	f("pattern/ConfigMap", "d/*.f", func(h *dirHarness) {
		h.write("d/..1/a.f", "1")
		h.link("..1", "d/..data")
		h.link("..data/a.f", "d/a.f")
	}, func(h *dirHarness) {
		h.write("d/..2/a.f", "2")
		h.link("..2", "d/..data_tmp")
		h.rename("d/..data_tmp", "d/..data")
		h.must(os.RemoveAll(h.path("d/..1")))
	}, "d/a.f")

	// Directories.
	f("new directories", "d", one, func(h *dirHarness) { h.write("d/a/b/c", "1") }, "d/a/b/c")
	f("directory moved in", "d", one, func(h *dirHarness) {
		h.write("x/a/b", "1")
		h.rename("x", "d/x")
	}, "d/x/a/b")
	f("directory moved out", "d", func(h *dirHarness) { h.write("d/x/a", "1") }, func(h *dirHarness) { h.rename("d/x", "y") }, "d/x/a")
	f("rename", "d", one, func(h *dirHarness) { h.rename("d/f", "d/g") }, "d/f", "d/g")
	f("two files", "d", one, func(h *dirHarness) {
		h.write("d/f", "2")
		h.write("d/g", "2")
	}, "d/f", "d/g")
	f("link in a directory", "d", func(h *dirHarness) {
		h.write("real/f", "1")
		h.link("../real", "d/x")
	}, func(h *dirHarness) { h.write("real/f", "2") }, "d/x/f")
	f("links in a circle", "d", func(h *dirHarness) {
		h.write("d/a/f", "1")
		h.link("../../d", "d/a/up")
		h.link("loop", "d/loop")
	}, func(h *dirHarness) { h.write("d/a/f", "2") }, "d/a/f")
	f("file becomes directory", "d", one, func(h *dirHarness) {
		h.must(os.Remove(h.path("d/f")))
		h.write("d/f/g", "1")
	}, "d/f", "d/f/g")
	if runtime.GOOS != "windows" && os.Getuid() != 0 {
		f("not readable", "d", one, func(h *dirHarness) { h.must(os.Chmod(h.path("d/f"), 0)) }, "d/f")
	}
}

func TestSet(t *testing.T) {
	h := newDirHarness(t, func(h *dirHarness) {
		h.write("a/f", "1")
		h.write("b/f", "1")
	}, "a")
	h.want()
	h.write("b/f", "2") // not watched yet
	h.set("a", "b")
	h.want()
	h.write("b/f", "3")
	h.want("b/f")
	h.set("b")
	h.write("a/f", "2") // not any more
	h.want()
	// A change just before Set, of what was and stays watched, is not swallowed.
	h.write("b/g", "1")
	h.set("a", "b")
	h.want("b/g")
}

func TestChangeBeforeRun(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "f")
	if err := os.WriteFile(name, []byte("1"), 0o644); err != nil {
		t.Fatal(err)
	}
	batches := make(chan []string, 10)
	w := watch.New(watch.Options{
		Clock: clock.System{}, Logger: slog.New(slog.DiscardHandler),
		OnChange: func(_ context.Context, paths []string, _ time.Time) { batches <- paths },
	})
	if err := w.Set([]string{name}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte("2"), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	select {
	case got := <-batches:
		if diff := cmp.Diff([]string{name}, got); diff != "" {
			t.Errorf("changed (-want +got):\n%s", diff)
		}
	case <-time.After(patience):
		t.Error("no change was reported")
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
