//go:build unix

package watch_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/files/filestest"
	"github.com/weir-run/weir/engine/watch"
)

// watcher runs a watcher of dirs until the test ends.
func watcher(t *testing.T, dirs ...string) (w *watch.Watcher, changed chan []string) {
	t.Helper()
	changed = make(chan []string, 100)
	w = watch.New(watch.Options{Clock: clock.System{}, Logger: slog.New(slog.DiscardHandler), OnChange: func(_ context.Context, paths []string, _ time.Time) { changed <- paths }})
	filestest.Within(t, "Set", func() {
		if err := w.Set(dirs); err != nil {
			t.Error(err)
		}
	})
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Run(ctx)
	}()
	t.Cleanup(func() {
		stop()
		filestest.Within(t, "the end", func() { <-done })
	})
	return w, changed
}

func wantChange(t *testing.T, changed chan []string, path string) {
	t.Helper()
	timeout := time.After(patience)
	for {
		select {
		case paths := <-changed:
			if slices.ContainsFunc(paths, func(p string) bool { return p == path || strings.HasPrefix(path, p+"/") }) {
				return
			}
		case <-timeout:
			t.Fatalf("that %s changed was not told", path)
		}
	}
}

func save(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestUnreadable watches paths that must not be read, and a file.
func TestUnreadable(t *testing.T) {
	var dirs []string
	for _, path := range filestest.Special(t, "f") {
		dirs = append(dirs, filepath.Dir(path), path)
	}
	dir := t.TempDir()
	_, changed := watcher(t, append(dirs, dir)...)
	save(t, filepath.Join(dir, "x"), "1")
	wantChange(t, changed, filepath.Join(dir, "x"))
}

// TestHangs: while one directory's file system does not answer, changes of
// another one are told, nobody waits for the watcher, and it ends; when it
// answers again, that is a change.
func TestHangs(t *testing.T) {
	filestest.Patience(t, 100*time.Millisecond)
	dead, dir := t.TempDir(), t.TempDir()
	save(t, filepath.Join(dead, "f"), "1")
	w, changed := watcher(t, dead, dir)
	_, release := filestest.Hang(t, dead)
	save(t, filepath.Join(dead, "f"), "2")
	save(t, filepath.Join(dir, "x"), "1")
	wantChange(t, changed, filepath.Join(dir, "x"))
	filestest.Within(t, "Set", func() {
		if err := w.Set([]string{dead, dir, filepath.Join(dead, "sub")}); err != nil {
			t.Error(err)
		}
	})
	release()
	wantChange(t, changed, filepath.Join(dead, "f"))
}
