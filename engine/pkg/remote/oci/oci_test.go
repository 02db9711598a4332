package oci_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/distribution/distribution/v3/configuration"
	_ "github.com/distribution/distribution/v3/registry/auth/htpasswd"
	"github.com/distribution/distribution/v3/registry/handlers"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/inmemory"
	"github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/crypto/bcrypt"
	"oras.land/oras-go/v2"

	"github.com/weir-run/weir/engine/pkg/remote"
	"github.com/weir-run/weir/engine/pkg/remote/oci"
)

// newRegistry starts a registry and returns its host. handler may change what it
// answers. With a password, it asks for the user weir.
func newRegistry(t *testing.T, password string, change func(http.Handler) http.Handler) (host string) {
	t.Helper()
	c := &configuration.Configuration{Storage: configuration.Storage{
		"inmemory":    configuration.Parameters{},
		"maintenance": configuration.Parameters{"uploadpurging": map[any]any{"enabled": false}},
	}}
	c.Log.AccessLog.Disabled = true
	c.HTTP.Secret = "secret"
	if password != "" {
		hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "htpasswd")
		if err := os.WriteFile(file, []byte("weir:"+string(hash)+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		c.Auth = configuration.Auth{"htpasswd": configuration.Parameters{"realm": "weir", "path": file}}
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	var h http.Handler = handlers.NewApp(ctx, c)
	if change != nil {
		h = change(h)
	}
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

func tarball(t *testing.T, files ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for i := 0; i < len(files); i += 2 {
		if err := w.WriteHeader(&tar.Header{Name: files[i], Mode: 0o644, Size: int64(len(files[i+1]))}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, files[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// layer is a layer to push.
type layer struct {
	content []byte
	title   string
}

// push pushes an artifact with a tag and returns the digest of its manifest.
func push(t *testing.T, s remote.Source, a remote.Access, layers ...layer) string {
	t.Helper()
	r, done, err := oci.Repository(s, a)
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	var descs []v1.Descriptor
	for _, l := range layers {
		d, err := oras.PushBytes(t.Context(), r, "application/vnd.weir.test", l.content)
		if err != nil {
			t.Fatal(err)
		}
		if l.title != "" {
			d.Annotations = map[string]string{v1.AnnotationTitle: l.title}
		}
		descs = append(descs, d)
	}
	m, err := oras.PackManifest(t.Context(), r, oras.PackManifestVersion1_1, "application/vnd.weir.test", oras.PackManifestOptions{Layers: descs})
	if err == nil {
		err = r.Tag(t.Context(), m, s.Revision)
	}
	if err != nil {
		t.Fatal(err)
	}
	return m.Digest.String()
}

func newStore(t *testing.T) *remote.Store {
	return remote.New(remote.Options{Dir: t.TempDir(), Fetchers: map[string]remote.Fetcher{remote.OCI: oci.Fetcher{}}})
}

func source(host, tag string) remote.Source {
	return remote.Source{Kind: remote.OCI, URL: host + "/acme/http", Revision: tag}
}

var plain = remote.Access{PlainHTTP: true, Timeout: time.Minute}

func paths(c remote.Content) (names []string) {
	for _, s := range c.Sums {
		names = append(names, s.Path)
	}
	return names
}

func TestFetch(t *testing.T) {
	s := source(newRegistry(t, "", nil), "1.2.0")
	manifest := push(t, s, plain, layer{tarball(t, "scripts/a.lua", "return 1", "modules/m.alloy", ""), ""}, layer{[]byte("text"), "README.md"})
	store := newStore(t)
	c, err := store.Fetch(t.Context(), s, plain)
	if err != nil {
		t.Fatal(err)
	}
	if c.Revision != manifest || !slices.Equal(paths(c), []string{"README.md", "modules/m.alloy", "scripts/a.lua"}) {
		t.Errorf("got %v", c)
	}
	byDigest := s
	byDigest.Revision = manifest
	if again, err := store.Fetch(t.Context(), byDigest, plain); err != nil || again.Digest != c.Digest {
		t.Errorf("got %v and %v", again, err)
	}
	part := s
	part.Path = "scripts"
	if c, err := store.Fetch(t.Context(), part, plain); err != nil || !slices.Equal(paths(c), []string{"a.lua"}) {
		t.Errorf("got %v and %v", c, err)
	}
	s.Revision = "1.3.0"
	push(t, s, plain, layer{tarball(t, "scripts/a.lua", "return 2"), ""})
	if tags, err := store.Versions(t.Context(), s, plain); err != nil || !slices.Equal(tags, []string{"1.2.0", "1.3.0"}) {
		t.Errorf("got the tags %q and %v", tags, err)
	}
}

func TestPassword(t *testing.T) {
	s := source(newRegistry(t, "secret", nil), "1")
	a := plain
	a.Username, a.Password = "weir", "secret"
	push(t, s, a, layer{tarball(t, "a.lua", ""), ""})
	store := newStore(t)
	if _, err := store.Fetch(t.Context(), s, a); err != nil {
		t.Error(err)
	}
	a.Password = "wrong"
	if _, err := store.Fetch(t.Context(), s, a); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("got %v for a wrong password", err)
	}
	if _, err := store.Fetch(t.Context(), s, plain); err == nil || !strings.Contains(err.Error(), "basic_auth is missing") {
		t.Errorf("got %v without a password", err)
	}
}

func TestErrors(t *testing.T) {
	f := func(what string, change func(http.Handler) http.Handler, want ...string) {
		t.Helper()
		broken := false
		s := source(newRegistry(t, "", func(h http.Handler) http.Handler {
			changed := change(h)
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if broken {
					changed.ServeHTTP(w, r)
				} else {
					h.ServeHTTP(w, r)
				}
			})
		}), "1")
		push(t, s, plain, layer{tarball(t, "a.lua", "return 1"), ""})
		broken = true
		_, err := newStore(t).Fetch(t.Context(), s, plain)
		for _, w := range append(want, "cannot fetch "+s.String()) {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("%s: got %v, want %q in it", what, err, w)
			}
		}
	}
	blob := func(r *http.Request) bool { return strings.Contains(r.URL.Path, "/blobs/") }
	// rewrite changes the bodies of some responses.
	rewrite := func(match func(*http.Request) bool, change func([]byte) []byte) func(http.Handler) http.Handler {
		return func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if !match(r) || r.Method != http.MethodGet {
					h.ServeHTTP(w, r)
					return
				}
				rec := httptest.NewRecorder()
				h.ServeHTTP(rec, r)
				for name, v := range rec.Header() {
					w.Header()[name] = v
				}
				w.WriteHeader(rec.Code)
				_, _ = w.Write(change(rec.Body.Bytes()))
			})
		}
	}
	manifest := func(r *http.Request) bool { return strings.Contains(r.URL.Path, "/manifests/") }
	flip := func(b []byte) []byte { b[len(b)/2] ^= 1; return b }
	f("another layer", rewrite(blob, flip), "the registry sends another layer: expected sha256:")
	f("truncated layer", rewrite(blob, func(b []byte) []byte { return b[:len(b)/2] }), "unexpected EOF")
	f("another manifest", rewrite(manifest, flip), "the registry sends another manifest: expected sha256:")
	f("a manifest on another host", func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://elsewhere.invalid"+r.URL.Path, http.StatusTemporaryRedirect)
		})
	}, "redirects to http://elsewhere.invalid")
	f("not found", func(http.Handler) http.Handler { return http.NotFoundHandler() }, "not found")

	s := source(newRegistry(t, "", nil), "1")
	push(t, s, plain, layer{[]byte("text"), ""})
	if _, err := newStore(t).Fetch(t.Context(), s, plain); err == nil || !strings.Contains(err.Error(), "is no archive and has no name") {
		t.Errorf("got %v", err)
	}
}

// TestLayersElsewhere fetches from a registry that keeps layers on another host, which
// must not get the password.
func TestLayersElsewhere(t *testing.T) {
	var backend *url.URL
	var leaked string
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		leaked += r.Header.Get("Authorization")
		r.Header.Set("Authorization", "Basic d2VpcjpzZWNyZXQ=") // weir:secret
		httputil.NewSingleHostReverseProxy(backend).ServeHTTP(w, r)
	}))
	t.Cleanup(elsewhere.Close)
	s := source(newRegistry(t, "secret", func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/sha256:") && r.Header.Get("X-Forwarded-For") == "" {
				http.Redirect(w, r, elsewhere.URL+r.URL.Path, http.StatusTemporaryRedirect)
				return
			}
			h.ServeHTTP(w, r)
		})
	}), "1")
	backend = &url.URL{Scheme: "http", Host: s.Host()}
	a := plain
	a.Username, a.Password = "weir", "secret"
	push(t, s, a, layer{tarball(t, "a.lua", ""), ""})
	if _, err := newStore(t).Fetch(t.Context(), s, a); err != nil {
		t.Error(err)
	}
	if leaked != "" {
		t.Errorf("the other host got %q", leaked)
	}
}

func TestFetchEnds(t *testing.T) {
	stop := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-stop }))
	defer s.Close()
	defer close(stop)
	a := plain
	a.Timeout = time.Millisecond
	_, err := newStore(t).Fetch(t.Context(), source(strings.TrimPrefix(s.URL, "http://"), "1"), a)
	if err == nil || !strings.Contains(err.Error(), "not finished within 1ms") {
		t.Errorf("got %v", err)
	}
}
