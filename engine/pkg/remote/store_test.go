package remote_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/pkg"
	"github.com/weir-run/weir/engine/pkg/remote"
)

var texts = map[string]string{
	"weir-package.toml":      "name = \"acme\"\n",
	"scripts/http/paths.lua": "return 1\n",
	"modules/m.alloy":        "declare \"m\" { }\n",
	".git/config":            "does not belong to it",
}

func tarball(t *testing.T, files map[string]string, more ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		more = append(more, tar.Header{Name: name, Mode: 0o644, Size: int64(len(files[name])), Typeflag: tar.TypeReg})
	}
	for _, h := range more {
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, files[h.Name]); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zipfile(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for name, text := range files {
		f, err := w.Create(name)
		if err == nil {
			_, err = io.WriteString(f, text)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// serve returns the source of a server that responds with f.
func serve(t *testing.T, f http.HandlerFunc) remote.Source {
	t.Helper()
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	return remote.Source{Kind: remote.HTTP, URL: s.URL + "/x"}
}

func serveBytes(t *testing.T, b []byte) remote.Source {
	t.Helper()
	return serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(b) })
}

func newStore(t *testing.T) (s *remote.Store, dir string) {
	dir = filepath.Join(t.TempDir(), "packages")
	return remote.New(remote.Options{Dir: dir, Fetchers: map[string]remote.Fetcher{remote.HTTP: remote.Web{}}}), dir
}

// fetch fetches a source, opens it again, and returns its digest.
func fetch(t *testing.T, s *remote.Store, src remote.Source) remote.Content {
	t.Helper()
	c, err := s.Fetch(t.Context(), src, remote.Access{})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.Open(c.Digest); err != nil || got.Dir != c.Dir {
		t.Fatalf("got %v and %v", got, err)
	}
	return c
}

func wantFiles(t *testing.T, c remote.Content, want ...string) {
	t.Helper()
	var got []string
	for _, s := range c.Sums {
		got = append(got, s.Path)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got the files %q, want %q", got, want)
	}
}

func TestFetchArchives(t *testing.T) {
	s, _ := newStore(t)
	c := fetch(t, s, serveBytes(t, tarball(t, texts)))
	wantFiles(t, c, "modules/m.alloy", "scripts/http/paths.lua", "weir-package.toml")
	if sums, err := pkg.ReadSums(c.Dir); err != nil || sums.Digest() != c.Digest {
		t.Errorf("got the checksums %v and %v", sums, err)
	}
	if z := fetch(t, s, serveBytes(t, zipfile(t, texts))); z.Digest != c.Digest {
		t.Errorf("a zip file with the same files has the digest %s, want %s", z.Digest, c.Digest)
	}
	part := serveBytes(t, tarball(t, texts))
	part.Path = "scripts"
	wantFiles(t, fetch(t, s, part), "http/paths.lua")
	part.Path = "modules/m.alloy"
	wantFiles(t, fetch(t, s, part), "m.alloy")
}

func TestFetchModule(t *testing.T) {
	s, _ := newStore(t)
	c := fetch(t, s, serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err == nil && r.Method == http.MethodGet && len(b) == 0 && r.UserAgent() == "weir" {
			fmt.Fprint(w, texts["modules/m.alloy"])
		}
	}))
	wantFiles(t, c, remote.ModuleFile)
}

func TestRequest(t *testing.T) {
	s, _ := newStore(t)
	src := serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		fmt.Fprintln(w, r.Method, r.Host, r.Header.Get("X-Token"), string(b))
	})
	src.Request = remote.RequestHash("POST", "question")
	c, err := s.Fetch(t.Context(), src, remote.Access{Method: "POST", Body: "question", Headers: map[string]string{"X-Token": "t", "host": "elsewhere"}})
	if err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(c.Dir, remote.ModuleFile)); err != nil || string(b) != "POST elsewhere t question\n" {
		t.Errorf("got %q and %v", b, err)
	}
}

func TestFetchErrors(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "declare") }))
	t.Cleanup(elsewhere.Close)
	f := func(what string, src remote.Source, want ...string) {
		t.Helper()
		s, dir := newStore(t)
		c, err := s.Fetch(t.Context(), src, remote.Access{Timeout: time.Minute})
		if err == nil {
			t.Errorf("%s: got %v, want an error", what, c)
			return
		}
		for _, w := range append(want, "cannot fetch "+src.String()) {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: got %v, want %q in it", what, err, w)
			}
		}
		if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
			t.Errorf("%s: left %v in the cache", what, entries)
		}
	}
	good := tarball(t, texts)
	f("status", serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }), "the server answered 403 Forbidden, want 200 OK")
	f("truncated", serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000000")
		_, _ = w.Write(good)
	}), "cannot read the answer: unexpected EOF")
	f("truncated archive", serveBytes(t, good[:len(good)-20]), "unexpected EOF")
	f("missing checksum of gzip", serveBytes(t, good[:len(good)-4]), "cannot read the archive: unexpected EOF")
	f("truncated zip", serveBytes(t, zipfile(t, texts)[:200]), "cannot read the archive")
	flipped := bytes.Clone(good)
	flipped[len(flipped)/2] ^= 1
	f("false bytes", serveBytes(t, flipped), "cannot read")
	f("another host", serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL, http.StatusFound) }),
		"the server redirects to "+elsewhere.URL, "only within")
	f("redirects forever", serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/y", http.StatusFound) }), "redirects more than 10 times")
	f("traversal", serveBytes(t, tarball(t, map[string]string{"../evil": "x"})), `"../evil"`, "leads out of it")
	f("absolute", serveBytes(t, tarball(t, map[string]string{"/etc/passwd": "x"})), "leads out of it")
	f("traversal in a zip", serveBytes(t, zipfile(t, map[string]string{"a/../../evil": "x"})), "leads out of it")
	f("backslash", serveBytes(t, tarball(t, map[string]string{`a\b`: "x"})), "cannot use")
	f("symlink", serveBytes(t, tarball(t, nil, tar.Header{Name: "l", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"})), "l is a link")
	f("hard link", serveBytes(t, tarball(t, nil, tar.Header{Name: "l", Typeflag: tar.TypeLink, Linkname: "x"})), "l is a link")
	f("device", serveBytes(t, tarball(t, nil, tar.Header{Name: "d", Typeflag: tar.TypeChar})), "d is a device")
	f("twice", serveBytes(t, tarball(t, map[string]string{"a": ""}, tar.Header{Name: "a", Typeflag: tar.TypeReg})), "a occurs twice")
	f("file and folder", serveBytes(t, tarball(t, map[string]string{"a": "", "a/b": ""})), "cannot write into the cache")
	f("empty", serveBytes(t, tarball(t, nil)), "it has no files")
	f("large file", serveBytes(t, tarball(t, map[string]string{"a": strings.Repeat("a", pkg.MaxFile+1)})), "cannot read a: it is too large")
	many := map[string]string{}
	for i := range pkg.MaxFiles + 1 {
		many[fmt.Sprintf("f%d", i)] = ""
	}
	f("many files", serveBytes(t, tarball(t, many)), "more than 10000 files")
	f("deep", serveBytes(t, tarball(t, map[string]string{strings.Repeat("a/", 20) + "b": ""})), "nested deeper than 16")
	path := serveBytes(t, []byte("declare"))
	path.Path = "a"
	f("path in a module", path, "only tar, tar.gz and zip files have paths")
	f("missing path", remote.Source{Kind: remote.HTTP, URL: serveBytes(t, good).URL, Path: "nowhere"}, "it has no files")
	sums := maps.Clone(texts)
	sums[pkg.SumsName] = strings.Repeat("0", 64) + "  weir-package.toml\n"
	f("checksums", serveBytes(t, tarball(t, sums)), "do not match its weir-package.sum: expected sha256:", ", got sha256:", "scripts/http/paths.lua is not in the checksums")
	f("git", remote.Source{Kind: remote.Git, URL: "https://host/repo", Revision: "main"}, "cannot fetch from a git source")
}

func TestFetchEnds(t *testing.T) {
	s, _ := newStore(t)
	stop := make(chan struct{})
	src := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "half")
		w.(http.Flusher).Flush()
		<-stop
	})
	defer close(stop)
	_, err := s.Fetch(t.Context(), src, remote.Access{Timeout: time.Millisecond})
	if err == nil || !strings.Contains(err.Error(), "not finished within 1ms") {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("stopped"))
	if _, err := s.Fetch(ctx, src, remote.Access{}); err == nil || !strings.Contains(err.Error(), "stopped") {
		t.Errorf("got %v", err)
	}
}

// TestOpen changes the cache in several ways. Each is refused, and a fetch repairs it.
func TestOpen(t *testing.T) {
	s, dir := newStore(t)
	src := serveBytes(t, tarball(t, texts))
	c := fetch(t, s, src)
	f := func(what string, change func(path string) error, want ...string) {
		t.Helper()
		if err := change(c.Dir); err != nil {
			t.Fatal(err)
		}
		_, err := s.Open(c.Digest)
		if !errors.Is(err, remote.ErrNotCached) {
			t.Errorf("%s: got %v", what, err)
			return
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: got %v, want %q in it", what, err, w)
			}
		}
		if again := fetch(t, s, src); again.Digest != c.Digest {
			t.Errorf("%s: got %s, want %s", what, again.Digest, c.Digest)
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
			t.Errorf("%s: left %v, %v", what, entries, err)
		}
	}
	script := func(dir string) string { return filepath.Join(dir, "scripts", "http", "paths.lua") }
	f("changed", func(dir string) error { return os.WriteFile(script(dir), []byte("evil"), 0o644) },
		"has changed: expected "+c.Digest+", got sha256:", "scripts/http/paths.lua was changed: expected sha256:")
	f("truncated", func(dir string) error { return os.Truncate(script(dir), 3) }, "expected "+c.Digest+", got sha256:")
	f("removed", func(dir string) error { return os.Remove(script(dir)) }, "expected "+c.Digest+", got sha256:", "is missing")
	f("added", func(dir string) error { return os.WriteFile(filepath.Join(dir, "x.lua"), nil, 0o644) },
		"expected "+c.Digest+", got sha256:", "x.lua is not in the checksums")
	f("linked", func(dir string) error { return os.Symlink("/etc/passwd", filepath.Join(dir, "l")) }, "l in a package: it is a link")
	f("all gone", os.RemoveAll)
	f("a file", func(dir string) error { return errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o644)) })
	if _, err := s.Open("sha256:../../etc"); err == nil || errors.Is(err, remote.ErrNotCached) {
		t.Errorf("got %v for a bad digest", err)
	}
}

func TestCopy(t *testing.T) {
	s, dir := newStore(t)
	c := fetch(t, s, serveBytes(t, tarball(t, texts)))
	vendor := filepath.Join(t.TempDir(), "vendor")
	for range 2 {
		if err := s.Copy(c, vendor); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Open(c.Digest); !errors.Is(err, remote.ErrNotCached) {
		t.Errorf("got %v", err)
	}
	got, err := s.Open(c.Digest, vendor)
	if err != nil || !strings.HasPrefix(got.Dir, vendor) {
		t.Errorf("got %v and %v", got, err)
	}
}

// TestSignature: the signature of a package stays with it in the cache and in copies, and
// a later signature of the same content replaces it.
func TestSignature(t *testing.T) {
	s, _ := newStore(t)
	files := map[string]string{pkg.ManifestName: "name = 'acme'\n", "scripts/a.lua": "return 1\n"}
	plain := fetch(t, s, serveBytes(t, tarball(t, files)))
	vendor := filepath.Join(t.TempDir(), "vendor")
	for range 2 {
		k, err := pkg.NewPrivateKey()
		if err != nil {
			t.Fatal(err)
		}
		files[pkg.SignatureName] = k.Sign(&pkg.Manifest{Name: "acme", Version: "1.0.0"}, plain.Sums)
		c := fetch(t, s, serveBytes(t, tarball(t, files)))
		if c.Digest != plain.Digest {
			t.Errorf("a signature changes the digest to %s", c.Digest)
		}
		if err := s.Copy(c, vendor); err != nil {
			t.Fatal(err)
		}
		for _, dir := range []string{c.Dir, filepath.Join(vendor, strings.Replace(c.Digest, ":", "/", 1))} {
			if _, err := pkg.VerifySignature(dir, c.Sums, []pkg.PublicKey{k.Public()}); err != nil {
				t.Error(err)
			}
		}
		delete(files, pkg.SignatureName)
		if c := fetch(t, s, serveBytes(t, tarball(t, files))); c.Digest != plain.Digest {
			t.Errorf("got the digest %s", c.Digest)
		}
		if _, err := pkg.ReadSignature(c.Dir); err != nil {
			t.Errorf("the signature is gone: %v", err)
		}
	}
}

// TestConcurrentFetches fetches the same content with several stores, as several
// processes do, while another one changes the cache.
func TestConcurrentFetches(t *testing.T) {
	s, dir := newStore(t)
	src := serveBytes(t, tarball(t, texts))
	c := fetch(t, s, src)
	var wg sync.WaitGroup
	for range 8 {
		other := remote.New(remote.Options{Dir: dir, Fetchers: map[string]remote.Fetcher{remote.HTTP: remote.Web{}}})
		wg.Go(func() {
			for i := range 10 {
				if i%3 == 0 {
					_ = os.Remove(filepath.Join(c.Dir, "modules", "m.alloy"))
				}
				_, _ = other.Fetch(t.Context(), src, remote.Access{}) // may find it changed again
			}
		})
	}
	wg.Wait()
	fetch(t, s, src)
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left %v, %v", entries, err)
	}
}

func TestVersions(t *testing.T) {
	s, _ := newStore(t)
	if _, err := s.Versions(t.Context(), serveBytes(t, nil), remote.Access{}); !errors.Is(err, remote.ErrNoVersions) {
		t.Errorf("got %v", err)
	}
}
