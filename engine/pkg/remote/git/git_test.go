package git_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/pkg/remote"
	"github.com/weir-run/weir/engine/pkg/remote/git"
)

// repository is a repository with a work tree.
type repository struct {
	t   *testing.T
	dir string
}

func (r repository) git(args ...string) string {
	r.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "HOME="+r.dir, "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func (r repository) write(name, text string) {
	r.t.Helper()
	path := filepath.Join(r.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		r.t.Fatal(err)
	}
}

// commit commits all files and returns the commit.
func (r repository) commit() string {
	r.t.Helper()
	r.git("add", "-A")
	r.git("commit", "-q", "-m", "x")
	return r.git("rev-parse", "HEAD")
}

// newRepository returns a repository with two commits on main and two tags.
func newRepository(t *testing.T) (r repository, first, second string) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	r = repository{t, t.TempDir()}
	r.git("init", "-q", "-b", "main", ".")
	r.write("scripts/a.lua", "return 1")
	r.write("modules/m.alloy", strings.Repeat("// a line\n", 1000))
	r.write(".hidden/x", "")
	first = r.commit()
	r.git("tag", "v1")
	r.write("scripts/a.lua", "return 2")
	r.write("modules/m.alloy", strings.Repeat("// a line\n", 1001))
	second = r.commit()
	r.git("tag", "-a", "-m", "x", "v2")
	r.git("gc", "-q") // so that there are deltas
	return r, first, second
}

// serveHTTP serves a repository with git http-backend and returns its URL.
func serveHTTP(t *testing.T, r repository, change func(http.Handler) http.Handler) string {
	t.Helper()
	path, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	var h http.Handler = &cgi.Handler{Path: path, Args: []string{"http-backend"}, Stderr: io.Discard,
		Env: []string{"GIT_PROJECT_ROOT=" + r.dir, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_NOSYSTEM=1", "HOME=" + r.dir}}
	if change != nil {
		h = change(h)
	}
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL + "/.git"
}

func newStore(t *testing.T) *remote.Store {
	return remote.New(remote.Options{Dir: t.TempDir(), Fetchers: map[string]remote.Fetcher{remote.Git: git.Fetcher{}}})
}

func source(url, revision string) remote.Source {
	return remote.Source{Kind: remote.Git, URL: url, Revision: revision}
}

func paths(c remote.Content) (names []string) {
	for _, s := range c.Sums {
		names = append(names, s.Path)
	}
	return names
}

// checkRevisions fetches all revisions of newRepository.
func checkRevisions(t *testing.T, url, first, second string, a remote.Access) {
	t.Helper()
	s := newStore(t)
	f := func(revision, want, text string) {
		t.Helper()
		c, err := s.Fetch(t.Context(), source(url, revision), a)
		if err != nil {
			t.Error(err)
			return
		}
		if b, err := os.ReadFile(filepath.Join(c.Dir, "scripts", "a.lua")); err != nil || string(b) != text || c.Revision != want {
			t.Errorf("%s: got %q of %s and %v, want %q of %s", revision, b, c.Revision, err, text, want)
		}
		if got := paths(c); !slices.Equal(got, []string{"modules/m.alloy", "scripts/a.lua"}) {
			t.Errorf("%s: got the files %q", revision, got)
		}
	}
	f("main", second, "return 2")
	f("refs/heads/main", second, "return 2")
	f("v1", first, "return 1")
	f("v2", second, "return 2")
	f(first, first, "return 1") // the server serves only the heads of branches and tags
	f(second, second, "return 2")
	for path, want := range map[string]string{"scripts": "a.lua", "scripts/a.lua": "a.lua", "modules": "m.alloy"} {
		part := source(url, "main")
		part.Path = path
		if c, err := s.Fetch(t.Context(), part, a); err != nil || !slices.Equal(paths(c), []string{want}) {
			t.Errorf("%s: got %v and %v", path, c, err)
		}
	}
	if tags, err := s.Versions(t.Context(), source(url, "main"), a); err != nil || !slices.Equal(tags, []string{"v1", "v2"}) {
		t.Errorf("got the tags %q and %v", tags, err)
	}
}

func TestHTTP(t *testing.T) {
	r, first, second := newRepository(t)
	checkRevisions(t, serveHTTP(t, r, nil), first, second, remote.Access{})
}

func TestHistory(t *testing.T) {
	r, first, _ := newRepository(t)
	r.git("tag", "-d", "v1") // so that the commit is only in the history
	c, err := newStore(t).Fetch(t.Context(), source(serveHTTP(t, r, nil), first), remote.Access{})
	if err != nil || c.Revision != first {
		t.Errorf("got %v and %v", c, err)
	}
}

func wantError(t *testing.T, url, revision, path string, a remote.Access, want ...string) {
	t.Helper()
	s := source(url, revision)
	s.Path = path
	_, err := newStore(t).Fetch(t.Context(), s, a)
	for _, w := range append(want, "cannot fetch git+") {
		if err == nil || !strings.Contains(err.Error(), w) {
			t.Errorf("got %v, want %q in it", err, w)
		}
	}
}

func TestErrors(t *testing.T) {
	r, first, _ := newRepository(t)
	r.git("checkout", "-q", "-b", "links")
	if err := os.Symlink("/etc/passwd", filepath.Join(r.dir, "scripts", "l")); err != nil {
		t.Fatal(err)
	}
	r.commit()
	r.git("checkout", "-q", "-b", "modules", "main")
	r.git("update-index", "--add", "--cacheinfo", "160000,"+first+",scripts/sub")
	r.git("commit", "-q", "-m", "x")
	r.git("reset", "-q", "--hard")
	url := serveHTTP(t, r, nil)
	wantError(t, url, "v3", "", remote.Access{}, `the repository has no branch or tag "v3"`)
	wantError(t, url, strings.Repeat("1", 40), "", remote.Access{}, "the repository lacks the commit 1111")
	wantError(t, url, "main", "nowhere", remote.Access{}, "no file or folder nowhere")
	wantError(t, url, "main", "scripts/a.lua/x", remote.Access{}, "no file or folder scripts/a.lua/x")
	wantError(t, url, "links", "", remote.Access{}, `"scripts/l" is a link`)
	wantError(t, url, "modules", "", remote.Access{}, `"scripts/sub" is a submodule`)
	if _, err := newStore(t).Fetch(t.Context(), source(url, "links"), remote.Access{}); err == nil {
		t.Error("got no error for a link")
	}
	link := source(url, "links")
	link.Path = "modules" // the link is elsewhere
	if _, err := newStore(t).Fetch(t.Context(), link, remote.Access{}); err != nil {
		t.Error(err)
	}
	wantError(t, strings.TrimSuffix(url, "/.git")+"/gone", "main", "", remote.Access{}, "404 Not Found")

	empty := repository{t, t.TempDir()}
	empty.git("init", "-q", ".")
	wantError(t, serveHTTP(t, empty, nil), "main", "", remote.Access{}, "the repository is empty")
}

func TestFaults(t *testing.T) {
	r, _, _ := newRepository(t)
	f := func(change http.HandlerFunc, want ...string) {
		t.Helper()
		url := serveHTTP(t, r, func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				if req.Method == http.MethodGet {
					h.ServeHTTP(w, req)
					return
				}
				rec := httptest.NewRecorder()
				h.ServeHTTP(rec, req)
				w.Header().Set("Content-Type", rec.Header().Get("Content-Type"))
				req.Body = io.NopCloser(rec.Body)
				change(w, req)
			})
		})
		wantError(t, url, "main", "", remote.Access{Timeout: time.Minute}, want...)
	}
	f(func(w http.ResponseWriter, r *http.Request) { _, _ = io.CopyN(w, r.Body, 200) }, "cannot unpack the answer")
	f(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		b[len(b)/2] ^= 1
		_, _ = w.Write(b)
	}, "cannot unpack the answer")
	f(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://elsewhere.invalid/", http.StatusFound)
	}, "http://elsewhere.invalid")
	f(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "0008NAK\n") }, "cannot")
	f(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "hello")
	}, `the answer has the type "text/html"`)

	stop := make(chan struct{})
	hangs := serveHTTP(t, r, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-stop })
	})
	defer close(stop)
	wantError(t, hangs, "main", "", remote.Access{Timeout: time.Millisecond}, "not finished within 1ms")
}

func TestPassword(t *testing.T) {
	r, first, second := newRepository(t)
	url := serveHTTP(t, r, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if user, password, _ := r.BasicAuth(); user != "weir" || password != "secret" {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			h.ServeHTTP(w, r)
		})
	})
	checkRevisions(t, url, first, second, remote.Access{Username: "weir", Password: "secret"})
	wantError(t, url, "main", "", remote.Access{}, "401 Unauthorized", "basic_auth is missing or wrong")
}

// newKey returns a key and its PEM text.
func newKey(t *testing.T, passphrase string) (ssh.Signer, component.Secret) {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(key, "")
	if passphrase != "" {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(key, "", []byte(passphrase))
	}
	if err != nil {
		t.Fatal(err)
	}
	return signer, component.Secret(pem.EncodeToMemory(block))
}

// serveSSH runs the commands of clients with a key, and returns the address.
func serveSSH(t *testing.T, client ssh.PublicKey, host ssh.Signer) string {
	t.Helper()
	config := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if !bytes.Equal(key.Marshal(), client.Marshal()) {
			return nil, errors.New("unknown key")
		}
		return nil, nil
	}}
	config.AddHostKey(host)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer conn.Close()
				_, channels, requests, err := ssh.NewServerConn(conn, config)
				if err != nil {
					return
				}
				wg.Go(func() { ssh.DiscardRequests(requests) })
				for c := range channels {
					ch, requests, err := c.Accept()
					if err != nil {
						return
					}
					wg.Go(func() { execute(ch, requests) })
				}
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		wg.Wait()
	})
	return l.Addr().String()
}

// execute runs git-upload-pack.
func execute(ch ssh.Channel, requests <-chan *ssh.Request) {
	defer ch.Close()
	for r := range requests {
		if r.Type != "exec" {
			_ = r.Reply(false, nil)
			continue
		}
		var payload struct{ Command string }
		if err := ssh.Unmarshal(r.Payload, &payload); err != nil || !strings.HasPrefix(payload.Command, "git-upload-pack '") {
			_ = r.Reply(false, nil)
			continue
		}
		_ = r.Reply(true, nil)
		cmd := exec.Command("sh", "-c", payload.Command)
		cmd.Stdout, cmd.Stderr = ch, ch.Stderr()
		in, err := cmd.StdinPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			return
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = io.Copy(in, ch)
			in.Close()
		}()
		code := uint32(0)
		if cmd.Wait() != nil {
			code = 1
		}
		_, _ = ch.SendRequest("exit-status", false, ssh.Marshal(struct{ Code uint32 }{code}))
		ch.Close()
		<-done
		return
	}
}

func TestSSH(t *testing.T) {
	r, first, second := newRepository(t)
	host, _ := newKey(t, "")
	signer, key := newKey(t, "open")
	addr := serveSSH(t, signer.PublicKey(), host)
	known := filepath.Join(t.TempDir(), "known_hosts")
	write := func(key ssh.PublicKey) {
		t.Helper()
		if err := os.WriteFile(known, []byte(knownhosts.Line([]string{addr}, key)+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(host.PublicKey())
	url := "ssh://git@" + addr + r.dir
	a := remote.Access{Timeout: time.Minute, SSH: &remote.SSH{Key: key, Passphrase: "open", KnownHosts: known}}
	checkRevisions(t, url, first, second, a)
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(key), 0o600); err != nil {
		t.Fatal(err)
	}
	a.SSH = &remote.SSH{KeyFile: file, Passphrase: "open", KnownHosts: known}
	if _, err := newStore(t).Fetch(t.Context(), source(url, "main"), a); err != nil {
		t.Error(err)
	}
	wantError(t, "ssh://git@"+addr+"/gone", "main", "", a, "/gone")
	wantError(t, url, "main", "", remote.Access{}, "needs the block ssh_key")
	wrong := a
	wrong.SSH = &remote.SSH{KeyFile: file, Passphrase: "wrong", KnownHosts: known}
	wantError(t, url, "main", "", wrong, "cannot use the SSH key")
	_, other := newKey(t, "")
	wrong.SSH = &remote.SSH{Key: other, KnownHosts: known}
	wantError(t, url, "main", "", wrong, "cannot log in", "unable to authenticate")
	evil, _ := newKey(t, "")
	write(evil.PublicKey())
	wantError(t, url, "main", "", a, "has another key than expected", ssh.FingerprintSHA256(host.PublicKey()))
	if err := os.WriteFile(known, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	wantError(t, url, "main", "", a, "is not known", ssh.FingerprintSHA256(host.PublicKey()))
}

func TestSSHEnds(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // accepts and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	host, key := newKey(t, "")
	known := filepath.Join(t.TempDir(), "known_hosts")
	if err := os.WriteFile(known, []byte(knownhosts.Line([]string{l.Addr().String()}, host.PublicKey())+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a := remote.Access{Timeout: time.Millisecond, SSH: &remote.SSH{Key: key, KnownHosts: known}}
	wantError(t, "ssh://"+l.Addr().String()+"/x", "main", "", a, "not finished within 1ms")
}
