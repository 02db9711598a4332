package pkg_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/pkg"
)

// write writes files below a new folder. A path and a text alternate.
func write(t *testing.T, pairs ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i := 0; i < len(pairs); i += 2 {
		path := filepath.Join(dir, filepath.FromSlash(pairs[i]))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(pairs[i+1]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestManifest(t *testing.T) {
	want := &pkg.Manifest{Name: "acme/http", Version: "1.4.0-rc.1", API: 1, License: "Apache-2.0 OR MIT", Description: `Says "hello".`,
		Needs: []string{"http https://geo.internal/*", "env REGION"}}
	dir := write(t, pkg.ManifestName, want.Text())
	got, err := pkg.ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("a manifest that was written and read differs:\n%s", d)
	}
	if _, err := pkg.ReadManifest(t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v for a folder without a manifest", err)
	}
}

func TestManifestMistakes(t *testing.T) {
	f := func(text string, want ...string) {
		t.Helper()
		_, err := pkg.ParseManifest("m.toml", []byte(text))
		if err == nil {
			t.Errorf("no error for\n%s", text)
			return
		}
		got := strings.Split(err.Error(), "\n")
		if len(got) != len(want) {
			t.Errorf("got %d errors, want %d:\n%v", len(got), len(want), err)
			return
		}
		for i := range want {
			if !strings.HasPrefix(got[i], want[i]) {
				t.Errorf("got  %s\nwant %s", got[i], want[i])
			}
		}
	}
	const rest = "version = '1.0.0'\napi = 1\nlicense = 'MIT'\n"

	// All mistakes at once.
	f("", "m.toml: name is missing", "m.toml: version is missing", "m.toml: api is missing", "m.toml: license is missing")
	f("name = 'A'\nversion = 'v1.0.0'\napi = 9\nlicense = ' '\n",
		`m.toml:1: name is "A", must be lower-case`, `m.toml:2: version is "v1.0.0", must be a semantic version`,
		"m.toml:3: the package is written for version 9", "m.toml:4: license is missing")

	// Syntax, types and unknown keys, with line and column.
	f("name = \n", "m.toml:1:")
	f("name = 1\n"+rest, "m.toml:1:")
	f("nam = 'a'\n"+rest+"[depends]\nx = '1'\n", "m.toml:1:1: unknown key nam", "m.toml:5:2: unknown key depends")

	// Names and versions.
	for _, name := range []string{"a//b", "/a", "a/", "-a", "a-", "a b", "../a", "ä", strings.Repeat("a", 101)} {
		f(fmt.Sprintf("name = %q\n", name)+rest, "m.toml:1: name is ")
	}
	f("name = 'a'\nversion = '1.0'\napi = 1\nlicense = 'MIT'\n", "m.toml:2: version is")

	// Needs.
	f("name = 'a'\n"+rest+"needs = ['']\n", `m.toml:5: needs has "": write`)
	f("name = 'a'\n"+rest+"needs = ['env A', 'env A']\n", `m.toml:5: needs has "env A" twice`)
}

func TestSums(t *testing.T) {
	dir := write(t, "b.txt", "two", "a/b.lua", "one", ".git/config", "no", "a/.hidden", "no", pkg.SumsName, "no")
	got, err := pkg.Compute(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := pkg.Sums{
		{Path: "a/b.lua", SHA256: fmt.Sprintf("%x", sha256.Sum256([]byte("one")))},
		{Path: "b.txt", SHA256: fmt.Sprintf("%x", sha256.Sum256([]byte("two")))},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Fatal(d)
	}
	if want := fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(got.Text()))); got.Digest() != want {
		t.Errorf("got digest %s, want %s", got.Digest(), want)
	}
	if err := os.WriteFile(filepath.Join(dir, pkg.SumsName), []byte(got.Text()), 0o600); err != nil {
		t.Fatal(err)
	}
	read, err := pkg.ReadSums(dir)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(got, read); d != "" {
		t.Errorf("checksums that were written and read differ:\n%s", d)
	}
	if tool, err := exec.LookPath("sha256sum"); err == nil {
		cmd := exec.Command(tool, "--check", "--strict", pkg.SumsName)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("sha256sum: %v\n%s", err, out)
		}
	}

	// A changed file, a new one and a missing one.
	for path, text := range map[string]string{"b.txt": "three", "c.txt": "four"} {
		if err := os.WriteFile(filepath.Join(dir, path), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(dir, "a", "b.lua")); err != nil {
		t.Fatal(err)
	}
	now, err := pkg.Compute(dir)
	if err != nil {
		t.Fatal(err)
	}
	var changes []string
	for _, c := range now.Changes(got) {
		changes = append(changes, c.String())
	}
	if d := cmp.Diff([]string{
		"a/b.lua is missing",
		fmt.Sprintf("b.txt was changed: expected sha256:%x, got sha256:%x", sha256.Sum256([]byte("two")), sha256.Sum256([]byte("three"))),
		"c.txt is not in the checksums",
	}, changes); d != "" {
		t.Error(d)
	}
	if now.Digest() == got.Digest() {
		t.Error("the digest is the same for other files")
	}
	if len(got.Changes(got)) > 0 {
		t.Errorf("got changes %v between the same checksums", got.Changes(got))
	}
}

func TestSumsMistakes(t *testing.T) {
	sum := strings.Repeat("0", 64)
	f := func(text, want string) {
		t.Helper()
		if _, err := pkg.ReadSums(write(t, pkg.SumsName, text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	f("hello", pkg.SumsName+":1: not a checksum")
	f(sum+"  a\n"+sum+" b\n", pkg.SumsName+":2: not a checksum")
	f(sum+"  ../a\n", "leads out of the package")
	f(sum+"  /a\n", "leads out of the package")
	f(sum+"  a/../b\n", "leads out of the package")
	f(sum+"  a\n"+sum+"  a\n", pkg.SumsName+`:2: the path "a" occurs twice`)
	if _, err := pkg.ReadSums(t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v for a folder without checksums", err)
	}
}

func TestComputeRefuses(t *testing.T) {
	f := func(want string, prepare func(dir string) error) {
		t.Helper()
		dir := write(t, "a.txt", "one")
		if err := prepare(dir); err != nil {
			t.Fatal(err)
		}
		if s, err := pkg.Compute(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v and error %v, want %s", s, err, want)
		}
	}
	f("folders are nested deeper than 16", func(dir string) error {
		return os.MkdirAll(filepath.Join(dir, strings.Repeat("d/", 17)), 0o700)
	})
	f("a.txt is larger than 16 MiB", func(dir string) error { return os.Truncate(filepath.Join(dir, "a.txt"), 16<<20+1) })
	f("its files have more than 128 MiB", func(dir string) error {
		for i := range 9 {
			path := filepath.Join(dir, fmt.Sprint(i))
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				return err
			}
			if err := os.Truncate(path, 15<<20); err != nil {
				return err
			}
		}
		return nil
	})
	if runtime.GOOS != "windows" {
		f("cannot use l in a package: it is a link", func(dir string) error { return os.Symlink("/etc/passwd", filepath.Join(dir, "l")) })
		f(`cannot use "x\ny" in a package`, func(dir string) error { return os.WriteFile(filepath.Join(dir, "x\ny"), nil, 0o600) })
	}
	if _, err := pkg.Compute(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v for a folder that does not exist", err)
	}
}

func TestRoot(t *testing.T) {
	dir := write(t, "p/"+pkg.ManifestName, "", "p/scripts/a/b.lua", "", "q/c.lua", "")
	f := func(path, want string) {
		t.Helper()
		got, err := pkg.Root(filepath.Join(dir, filepath.FromSlash(path)))
		if want != "" {
			want = filepath.Join(dir, want)
		}
		if err != nil || got != want {
			t.Errorf("%s: got %q and error %v, want %q", path, got, err, want)
		}
	}
	f("p", "p")
	f("p/scripts", "p")
	f("p/scripts/a/b.lua", "p")
	f("p/none", "p")
	f("q", "")
	f("q/c.lua", "")
	if !pkg.IsPackage(filepath.Join(dir, "p")) || pkg.IsPackage(filepath.Join(dir, "q")) {
		t.Error("p is a package, and q is not")
	}
}

func TestLock(t *testing.T) {
	one := pkg.Locked{Path: "packages/b", Name: "acme/b", Version: "1.0.0", Digest: "sha256:" + strings.Repeat("1", 64)}
	two := pkg.Locked{Path: `../it's "a"`, Name: "acme/a", Version: "0.2.0", Digest: "sha256:" + strings.Repeat("2", 64)}
	text, err := (&pkg.Lock{Packages: []pkg.Locked{one, two}}).Text()
	if err != nil {
		t.Fatal(err)
	}
	if same, err := (&pkg.Lock{Packages: []pkg.Locked{two, one}}).Text(); err != nil || same != text {
		t.Errorf("the order of packages changes the file: %v\n%s\n%s", err, text, same)
	}
	if text, err := (&pkg.Lock{Packages: []pkg.Locked{{Path: "a\x7f"}}}).Text(); err == nil {
		t.Errorf("a path with a control character is written:\n%s", text)
	}
	dir := write(t, pkg.LockName, text, "config.alloy", "")
	path := filepath.Join(dir, pkg.LockName)
	if got := pkg.LockPath(filepath.Join(dir, "config.alloy")); got != path {
		t.Errorf("got %s as the lock file of a file, want %s", got, path)
	}
	if got := pkg.LockPath(dir); got != path {
		t.Errorf("got %s as the lock file of a directory, want %s", got, path)
	}
	got, err := pkg.ReadLock(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(&pkg.Lock{Packages: []pkg.Locked{two, one}}, got); d != "" {
		t.Error(d)
	}
	if got.Package("packages/b") == nil || got.Package("packages") != nil {
		t.Error("packages are not found by their paths")
	}
	if _, err := pkg.ReadLock(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v for a lock file that does not exist", err)
	}
}

func TestLockMistakes(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		path := filepath.Join(write(t, pkg.LockName, text), pkg.LockName)
		if _, err := pkg.ReadLock(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	entry := "[[package]]\npath = 'p'\nname = 'a'\nversion = '1.0.0'\ndigest = 'sha256:" + strings.Repeat("1", 64) + "'\n"
	f("", "the lock file has version 0, and this weir reads version 1")
	f("version = 2\n", "has version 2")
	f("version = 1\nx = 1\n", pkg.LockName+":2:1: unknown key x")
	f("version = 1\n[[package]\n", pkg.LockName+":2:")
	f("version = 1\n"+entry+entry, "p occurs twice")
	f("version = 1\n"+strings.Replace(entry, "sha256:1", "sha256:", 1), "must be sha256: and 64 hexadecimal digits")
	f("version = 1\n"+strings.Replace(entry, "'p'", "'./p'", 1), "must be a clean path")
	f("version = 1\n"+strings.Replace(entry, "'1.0.0'", "'one'", 1), `version is "one"`)
	f("version = 1\n"+strings.Replace(entry, "'a'", "'A'", 1), `name is "A"`)
}
