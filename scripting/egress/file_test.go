package egress_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-run/weir/scripting/egress"
)

func TestReadFile(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "granted")
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	link := func(to, name string) {
		t.Helper()
		if err := os.Symlink(to, filepath.Join(root, name)); err != nil {
			t.Skip("no symbolic links: ", err)
		}
	}
	write("granted/a.txt", "hello")
	write("granted/..2025/map.json", "{}")
	write("secret/key", "s3cret")
	f := func(dir, rel, want string) {
		t.Helper()
		got, err := egress.ReadFile(dir, rel, 10)
		if err != nil {
			got = []byte(err.Error())
		}
		if !strings.Contains(string(got), want) || strings.Contains(string(got), "s3cret") {
			t.Errorf("%s: got %q, want %q", rel, got, want)
		}
	}
	f(dir, "a.txt", "hello")
	f(dir, "missing", "cannot read missing: no such file")
	f(dir, "../secret/key", "cannot read ../secret/key: path escapes from parent")
	f(dir, ".", "it is no regular file")
	f(filepath.Join(root, "nowhere"), "x", "no such file")
	write("granted/long", "12345678901")
	f(dir, "long", "cannot read long: it is too large: it has more than 10 bytes, the limit is max_bytes")
	if _, err := egress.ReadFile(dir, "long", 10); !errors.Is(err, egress.ErrTooLarge) {
		t.Errorf("got %v", err)
	}

	// A mounted ConfigMap is made of links that stay inside; links that lead
	// out are refused, absolute or not, to a file or a folder.
	link("..2025", "granted/..data")
	link("..data/map.json", "granted/map.json")
	link("../secret/key", "granted/out")
	link(filepath.Join(root, "secret", "key"), "granted/absolute")
	link("../secret", "granted/folder")
	link("granted", "mount")
	f(dir, "map.json", "{}")
	f(filepath.Join(root, "mount"), "a.txt", "hello") // the folder itself may be one
	f(dir, "out", "path escapes from parent")
	f(dir, "absolute", "path escapes from parent")
	f(dir, "folder/key", "path escapes from parent")
}
