package control_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/weir-run/weir/engine/control"
)

// TestWriteToken: whatever is there under the name, the token is in a new file
// that only its user can read, and nowhere else.
func TestWriteToken(t *testing.T) {
	f := func(name string, before func(path string) error) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			elsewhere := filepath.Join(dir, "elsewhere")
			if err := os.WriteFile(elsewhere, []byte("mine"), 0o666); err != nil {
				t.Fatal(err)
			}
			for _, suffix := range []string{"", ".tmp"} {
				path := filepath.Join(dir, control.TokenFile+suffix)
				if err := before(path); err != nil {
					t.Fatal(err)
				}
				// Whoever could read the file before has it open.
				old, err := os.Open(path)
				if err == nil {
					defer old.Close()
				}
				if err := control.WriteToken(dir, "secret"); err != nil {
					t.Fatal(err)
				}
				if err == nil {
					b := make([]byte, 10)
					if n, _ := old.Read(b); strings.Contains(string(b[:n]), "secret") {
						t.Error("the token is in the old file")
					}
				}
				token := filepath.Join(dir, control.TokenFile)
				fi, err := os.Lstat(token)
				if err != nil {
					t.Fatal(err)
				}
				if runtime.GOOS != "windows" && fi.Mode() != 0o600 {
					t.Errorf("got mode %s", fi.Mode())
				}
				if b, err := os.ReadFile(token); err != nil || string(b) != "secret\n" {
					t.Errorf("got %q, %v", b, err)
				}
				if b, err := os.ReadFile(elsewhere); err != nil || string(b) != "mine" {
					t.Errorf("another file: got %q, %v", b, err)
				}
			}
		})
	}
	f("nothing", func(string) error { return nil })
	f("readable", func(path string) error {
		if err := os.WriteFile(path, []byte("old\n"), 0o666); err != nil {
			return err
		}
		return os.Chmod(path, 0o666)
	})
	f("link", func(path string) error {
		os.Remove(path)
		return os.Symlink("elsewhere", path)
	})
	f("hard link", func(path string) error {
		os.Remove(path)
		return os.Link(filepath.Join(filepath.Dir(path), "elsewhere"), path)
	})

	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, control.TokenFile, "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := control.WriteToken(dir, "secret"); err == nil || !strings.HasPrefix(err.Error(), "cannot write the token: ") {
		t.Errorf("a directory in its place: got %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
