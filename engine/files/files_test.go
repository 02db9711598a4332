//go:build unix

package files_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-run/weir/engine/files"
	"github.com/weir-run/weir/engine/files/filestest"
)

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func link(t *testing.T, target, path string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRead(t *testing.T) {
	dir := t.TempDir()
	path := write(t, filepath.Join(dir, "f"), "text")
	f := func(path string, limit int64, want string, reason error) {
		t.Helper()
		b, err := files.Read(path, limit)
		if string(b) != want || !errors.Is(err, reason) || err != nil && !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got %q and error %v, want %q and %v", path, b, err, want, reason)
		}
	}
	f(path, 4, "text", nil)
	f(path, 3, "", files.ErrTooLarge)
	f(link(t, path, filepath.Join(dir, "l")), 4, "text", nil)
	f(filepath.Join(dir, "missing"), 4, "", fs.ErrNotExist)
	f(write(t, filepath.Join(dir, "empty"), ""), 0, "", nil)
	if b, err := files.Read("/proc/self/stat", 1<<20); runtime.GOOS == "linux" && (err != nil || len(b) == 0) {
		t.Errorf("a file without a size: got %q, %v", b, err)
	}
}

func TestReadSpecial(t *testing.T) {
	want := map[string]string{
		"FIFO": "is a FIFO, not a regular file", "socket": "is a socket", "zero": "is a device", "full": "is a device",
		"directory": "is a directory", "loop": "too many levels of symbolic links", "dangling": "no such file", "sparse": "is larger than 1 MiB",
	}
	for kind, path := range filestest.Special(t, "f") {
		for name, read := range map[string]func() error{
			"Read":   func() error { _, err := files.Read(path, 1<<20); return err },
			"ReadIn": func() error { _, err := files.ReadIn(filepath.Dir(path), "f", 1<<20); return err },
		} {
			filestest.Within(t, name+" of "+kind, func() {
				err := read()
				want := want[kind]
				if name == "ReadIn" && (kind == "zero" || kind == "full") {
					want = "outside of"
				}
				if name == "ReadIn" && kind == "loop" {
					want = "too many links"
				}
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%s of %s: got %v, want %q", name, kind, err, want)
				}
			})
		}
	}
}

func TestReadWithoutPermission(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may read everything")
	}
	path := write(t, filepath.Join(t.TempDir(), "f"), "x")
	if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := files.Read(path, 10); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("got %v, want permission denied", err)
	}
}

// TestSwapped has a file become something else after it was looked at.
func TestSwapped(t *testing.T) {
	f := func(what string, read func(dir string) error, become func(dir, path string), reason error) {
		t.Helper()
		dir := filepath.Join(t.TempDir(), "d")
		path := write(t, filepath.Join(dir, "f"), "text")
		filestest.Swap(t, func() {
			if err := os.Remove(path); err != nil {
				t.Error(err)
			}
			become(dir, path)
		})
		filestest.Within(t, what, func() {
			if err := read(dir); err == nil || reason != nil && !errors.Is(err, reason) {
				t.Errorf("%s: got %v, want %v", what, err, reason)
			}
		})
	}
	read := func(dir string) error { _, err := files.Read(filepath.Join(dir, "f"), 10); return err }
	readIn := func(dir string) error { _, err := files.ReadIn(dir, "f", 10); return err }
	fifo := func(_, path string) { filestest.FIFO(t, path) }
	f("a FIFO", read, fifo, files.ErrNotRegular)
	f("a FIFO in a folder", readIn, fifo, files.ErrNotRegular)
	f("a link out of the folder", readIn, func(dir, path string) {
		link(t, write(t, filepath.Join(filepath.Dir(dir), "secret"), "s3cret"), path)
	}, nil)
}

// TestGrows has a file grow after it was looked at.
func TestGrows(t *testing.T) {
	path := write(t, filepath.Join(t.TempDir(), "f"), "")
	filestest.Swap(t, func() { write(t, path, strings.Repeat("x", 100)) })
	if b, err := files.Read(path, 10); !errors.Is(err, files.ErrTooLarge) {
		t.Errorf("got %d bytes and %v, want that it is too large", len(b), err)
	}
}

func TestReadIn(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "scripts")
	secret := write(t, filepath.Join(top, "secret"), "s3cret")
	// As Kubernetes mounts a ConfigMap.
	write(t, filepath.Join(dir, "..2025_01_01", "a.lua"), "text")
	link(t, "..2025_01_01", filepath.Join(dir, "..data"))
	link(t, "..data/a.lua", filepath.Join(dir, "a.lua"))
	link(t, filepath.Join(dir, "a.lua"), filepath.Join(dir, "absolute.lua"))
	link(t, secret, filepath.Join(dir, "out.lua"))
	link(t, "../secret", filepath.Join(dir, "up.lua"))
	link(t, "..", filepath.Join(dir, "above"))
	other := link(t, dir, filepath.Join(top, "other"))
	f := func(dir, rel, want string, reason error) {
		t.Helper()
		b, err := files.ReadIn(dir, rel, 100)
		if string(b) != want || !errors.Is(err, reason) {
			t.Errorf("%s: got %q and error %v, want %q and %v", rel, b, err, want, reason)
		}
		if err == nil {
			return
		}
		if strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: the error %q shows the content", rel, err)
		}
		if err := files.Inside(dir, filepath.Join(dir, rel)); reason == files.ErrOutside && !errors.Is(err, reason) {
			t.Errorf("%s: Inside says %v", rel, err)
		}
	}
	f(dir, "a.lua", "text", nil)
	f(other, "a.lua", "text", nil)
	f(dir, "absolute.lua", "text", nil)
	f(other, "absolute.lua", "text", nil)
	f(dir, "out.lua", "", files.ErrOutside)
	f(dir, "up.lua", "", files.ErrOutside)
	f(dir, "above/secret", "", files.ErrOutside)
	f(dir, "above/scripts/a.lua", "text", nil)
	f(dir, "../secret", "", files.ErrOutside)
	f(dir, "missing", "", fs.ErrNotExist)
}

func TestNames(t *testing.T) {
	f := func(name, want string) {
		t.Helper()
		_, err := files.Read(filepath.Join(t.TempDir(), name), 1)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v, want one with %q", err, want)
		}
	}
	f("a\nb", `a\nb"`)
	f("a\xffb", `a\xffb"`)
	f("a b", "a b: no such file")
}

func TestList(t *testing.T) {
	dir := t.TempDir()
	for _, n := range []string{"b", "a", "c"} {
		write(t, filepath.Join(dir, n), "")
	}
	entries, err := files.List(dir, 3)
	if err != nil || len(entries) != 3 || entries[0].Name() != "a" {
		t.Errorf("got %v, %v", entries, err)
	}
	if _, err := files.List(dir, 2); !errors.Is(err, files.ErrTooLarge) {
		t.Errorf("got %v, want that there are too many", err)
	}
	filestest.FIFO(t, filepath.Join(dir, "fifo"))
	filestest.Within(t, "listing a FIFO", func() {
		if _, err := files.List(filepath.Join(dir, "fifo"), 2); err == nil {
			t.Error("a FIFO was listed")
		}
	})
}

// hangs holds what a file system that does not answer costs its callers.
func hangs(t *testing.T, dir string) {
	t.Helper()
	filestest.Patience(t, 50*time.Millisecond)
	path := filepath.Join(dir, "f")
	filestest.Within(t, "a read", func() {
		_, err := files.Read(path, 1)
		var h *files.HungError
		if !errors.As(err, &h) || h.Path != path || time.Since(h.Since) < 50*time.Millisecond || !strings.Contains(err.Error(), "reading "+path+" has not returned since ") {
			t.Errorf("got %v, want what hangs", err)
		}
		_, again := files.Stat(path)
		if fmt.Sprint(again) != fmt.Sprint(err) {
			t.Errorf("got %v of another call, want %v", again, err)
		}
	})
	if n := len(files.Hung()); n != 1 {
		t.Errorf("%d calls hang, want the first one only", n)
	}
	other := write(t, filepath.Join(t.TempDir(), "other"), "x")
	if _, err := files.Read(other, 1); err != nil {
		t.Errorf("a file elsewhere: %v", err)
	}
	// Threads are bounded, whatever is asked for.
	filestest.Within(t, "500 reads", func() {
		for i := range 500 {
			if _, err := files.Read(fmt.Sprint(path, i), 1); !errors.Is(err, files.ErrHung) {
				t.Errorf("got %v, want that it hangs", err)
			}
		}
	})
	if n := len(files.Hung()); n != 64 {
		t.Errorf("%d calls hang, want 64", n)
	}
	if _, err := files.Read(other, 1); err != nil {
		t.Errorf("a file elsewhere: %v", err)
	}
}

// recovered waits until nothing hangs.
func recovered(t *testing.T) {
	t.Helper()
	filestest.Within(t, "what hangs", func() {
		for len(files.Hung()) > 0 {
			time.Sleep(time.Millisecond)
		}
	})
}

func TestHang(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	write(t, filepath.Join(dir, "f"), "x")
	asked, release := filestest.Hang(t, dir)
	hangs(t, dir)
	if n := len(asked); n != 64 {
		t.Errorf("the file system was asked %d times, want 64", n)
	}
	release()
	recovered(t)
	if b, err := files.Read(filepath.Join(dir, "f"), 1); err != nil || !bytes.Equal(b, []byte("x")) {
		t.Errorf("after it answered: got %q, %v", b, err)
	}
}

// TestHangOpen holds that a file which is opened too late is closed.
func TestHangOpen(t *testing.T) {
	filestest.Patience(t, 50*time.Millisecond)
	path := write(t, filepath.Join(t.TempDir(), "f"), "x")
	_, release := filestest.Hang(t, path)
	if f, err := files.Open(path); !errors.Is(err, files.ErrHung) {
		t.Fatalf("got %v, %v", f, err)
	}
	release()
	recovered(t)
	f, err := files.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
}

// TestManyReaders has many read one file at a time.
func TestManyReaders(t *testing.T) {
	path := write(t, filepath.Join(t.TempDir(), "f"), "x")
	var wg sync.WaitGroup
	for range 200 {
		wg.Go(func() {
			if b, err := files.Read(path, 1); err != nil || string(b) != "x" {
				t.Errorf("got %q, %v", b, err)
			}
		})
	}
	wg.Wait()
}

// TestSoon: Soon does not wait, nor does another call near it, and it tells when it is
// worth asking again.
func TestSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		path := filepath.Join(dir, "d", "f")
		other := write(t, filepath.Join(dir, "d", "f", "g"), "y")
		sibling := write(t, filepath.Join(dir, "d", "h"), "z")
		asked, release := filestest.Hang(t, filepath.Join(dir, "d"))
		var late atomic.Int64
		f := func(path string, wait time.Duration) {
			t.Helper()
			start := time.Now()
			_, err := files.Soon(path, "reading", func() ([]byte, error) { return files.Read(path, 1) }, func() { late.Add(1) })
			if !errors.Is(err, files.ErrHung) {
				t.Errorf("%s: got %v, want that it hangs", path, err)
			}
			if waited := time.Since(start); waited != wait {
				t.Errorf("%s: it waited for %s, want %s", path, waited, wait)
			}
		}
		start := time.Now()
		_, err := files.Soon(path, "listing", func() ([]fs.DirEntry, error) { return files.List(path, 9) }, func() { late.Add(1) })
		if waited := time.Since(start); !errors.Is(err, files.ErrHung) || waited != 250*time.Millisecond {
			t.Errorf("got %v after %s, want that it hangs", err, waited)
		}
		f(path, 0)
		f(other, 0)
		f(sibling, 125*time.Millisecond)
		if files.Answers(other) == nil {
			t.Error("what does not answer has answered")
		}
		if len(asked) != 2 || len(files.Hung()) > 0 {
			t.Errorf("the file system was asked %d times, and %v hangs", len(asked), files.Hung())
		}
		time.Sleep(files.Patience)
		synctest.Wait()
		if n := late.Swap(0); n != 3 || len(files.Hung()) != 2 {
			t.Errorf("late was called %d times, want 3, when the calls became ones that hang: %v", n, files.Hung())
		}
		f(path, 0)
		f(other, 0)
		release()
		synctest.Wait()
		if n := late.Load(); n != 2 {
			t.Errorf("late was called %d times, want 2", n)
		}
		b, err := files.Soon(other, "reading", func() ([]byte, error) { return files.Read(other, 1) }, nil)
		if err != nil || string(b) != "y" || files.Answers(path) != nil {
			t.Errorf("after it answered: got %q, %v", b, err)
		}
	})
}
