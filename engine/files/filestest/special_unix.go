//go:build unix

package filestest

import (
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Special makes one file of each kind that must not be read, in a directory of
// its own, and returns their paths by what they are. Each is called name.
func Special(t testing.TB, name string) map[string]string {
	t.Helper()
	at := func(kind string) string {
		dir := filepath.Join(t.TempDir(), kind)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(dir, name)
	}
	all := map[string]string{}
	add := func(kind string, create func(path string) error) {
		t.Helper()
		path := at(kind)
		if err := create(path); err != nil {
			t.Fatal(err)
		}
		all[kind] = path
	}
	add("FIFO", func(path string) error { return syscall.Mkfifo(path, 0o600) })
	add("zero", func(path string) error { return os.Symlink("/dev/zero", path) })
	add("full", func(path string) error { return os.Symlink("/dev/full", path) })
	add("directory", func(path string) error { return os.Mkdir(path, 0o700) })
	add("loop", func(path string) error { return os.Symlink(name, path) })
	add("dangling", func(path string) error { return os.Symlink("missing", path) })
	add("socket", func(path string) error { return socket(t, path) })
	add("sparse", func(path string) error { return Sparse(path) })
	return all
}

// FIFO makes a FIFO.
func FIFO(t testing.TB, path string) {
	t.Helper()
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Sparse makes a file of 10 GiB that takes no space.
func Sparse(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Truncate(10 << 30)
}

// socket binds a socket below a short path, as the addresses of sockets are, and
// moves it.
func socket(t testing.TB, path string) error {
	short, err := os.MkdirTemp("", "s")
	if err != nil {
		return err
	}
	t.Cleanup(func() { os.RemoveAll(short) })
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(short, "s"), Net: "unix"})
	if err != nil {
		return err
	}
	l.SetUnlinkOnClose(false)
	t.Cleanup(func() { l.Close() })
	return os.Rename(filepath.Join(short, "s"), path)
}
