package engine_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/pkg"
	"github.com/weir-run/weir/engine/pkg/remote"
)

// elsewhere is a server with one module, or with a package.
type elsewhere struct {
	mu      sync.Mutex
	text    string
	pack    map[string]string // files of a package, instead of the module
	err     error
	fetches int
}

func (s *elsewhere) set(text string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text, s.err = text, err
}

func (s *elsewhere) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fetches
}

func (s *elsewhere) Fetch(_ context.Context, src remote.Source, _ remote.Access, files *remote.Files) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fetches++
	if s.err != nil {
		return "", s.err
	}
	for name, text := range s.pack {
		if err := files.Add(name, strings.NewReader(text)); err != nil {
			return "", err
		}
	}
	if s.pack != nil {
		return "revision", nil
	}
	return "revision", files.Add("m.alloy", strings.NewReader(s.text))
}

func (s *elsewhere) Versions(context.Context, remote.Source, remote.Access) ([]string, error) {
	return nil, remote.ErrNoVersions
}

func module(value string) string {
	return "declare \"c\" {\n\ttest.value \"x\" { value = \"" + value + "\" }\n}\n"
}

const importing = `
import.http "m" {
	url            = "https://host/m"
	poll_frequency = "1m"
}
m.c "one" { }
`

const importID = "import.http.m"

// withRemote runs f with a server that has the module first.
func withRemote(t *testing.T, f func(l *harness, s *elsewhere)) {
	t.Helper()
	bubble(t, func(l *harness) {
		s := &elsewhere{text: module("first")}
		l.options.Remote = remote.New(remote.Options{Dir: filepath.Join(l.dir, "packages"), Fetchers: map[string]remote.Fetcher{remote.HTTP: s}})
		f(l, s)
	})
}

// accept fetches the module and locks it, as weir pkg lock does.
func (l *harness) accept() remote.Content {
	l.t.Helper()
	src, err := remote.Parse("https://host/m")
	if err != nil {
		l.t.Fatal(err)
	}
	c, err := l.options.Remote.Fetch(context.Background(), src, remote.Access{})
	if err != nil {
		l.t.Fatal(err)
	}
	l.lock(c.Digest)
	return c
}

func (l *harness) lock(digest string) {
	l.t.Helper()
	lock := &pkg.Lock{Packages: []pkg.Locked{{Source: "https://host/m", Digest: digest}}}
	text, err := lock.Text()
	if err == nil {
		err = os.WriteFile(filepath.Join(l.dir, pkg.LockName), []byte(text), 0o644)
	}
	if err != nil {
		l.t.Fatal(err)
	}
}

// lockChanged says that weir.lock changed.
func (l *harness) lockChanged() {
	l.t.Helper()
	_ = l.e.FilesChanged(context.Background(), []string{filepath.Join(l.dir, pkg.LockName)})
	synctest.Wait()
}

func (l *harness) wantValue(want string) {
	l.t.Helper()
	if args, _ := l.fake("m.c.one/test.value.x").get(); args.Value != want {
		l.t.Errorf("got the value %q, want %q", args.Value, want)
	}
}

// TestRemoteOffline starts with content in the cache and without a network.
func TestRemoteOffline(t *testing.T) {
	withRemote(t, func(l *harness, s *elsewhere) {
		l.accept()
		s.set("", errors.New("no route to host"))
		before := s.count()
		l.start(importing)
		l.wantValue("first")
		l.wantHealth(importID, component.Healthy, "")
		if s.count() != before {
			t.Error("the start fetched content that is in the cache")
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		l.wantHealth(importID, component.Healthy, "cannot look for other content: cannot fetch https://host/m: no route to host")
		l.wantValue("first")
	})
}

func TestRemoteWithoutEntry(t *testing.T) {
	withRemote(t, func(l *harness, s *elsewhere) {
		l.run(importing)
		<-l.done
		if err := l.err; err == nil || !strings.Contains(err.Error(), "cannot import https://host/m: ") || !strings.Contains(err.Error(), "has no entry for it") {
			t.Errorf("got %v", err)
		}
		if s.count() != 0 {
			t.Error("a source without an entry was fetched")
		}
		if _, ds := l.e.Check(l.config); !strings.Contains(ds[0].Hint, "run 'weir pkg lock ") {
			t.Errorf("got the hint %q", ds[0].Hint)
		}
	})
}

// TestRemoteMissing starts without a network and with an empty cache.
func TestRemoteMissing(t *testing.T) {
	withRemote(t, func(l *harness, s *elsewhere) {
		l.accept()
		if err := os.RemoveAll(filepath.Join(l.dir, "packages")); err != nil {
			t.Fatal(err)
		}
		s.set("", errors.New("no route to host"))
		l.start(importing + `test.value "other" { value = "runs" }`)
		l.wantHealth(importID, component.Unhealthy, "no route to host")
		l.fake("test.value.other")
		s.set(module("first"), nil)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		l.wantHealth(importID, component.Healthy, "")
		l.wantValue("first")
	})
}

// TestRemoteChanges polls a server that gets other content, which runs only when
// weir.lock has it.
func TestRemoteChanges(t *testing.T) {
	withRemote(t, func(l *harness, s *elsewhere) {
		first := l.accept()
		l.start(importing)
		s.set(module("second"), nil)
		time.Sleep(time.Minute + time.Second)
		synctest.Wait()
		l.wantValue("first")
		l.wantHealth(importID, component.Healthy, "https://host/m has changed: expected "+first.Digest+", got sha256:")
		want := "# HELP weir_import_update_available 1 if the source of the remote import has other content than weir.lock, 0 if it has the same; missing until it was looked at.\n" +
			"# TYPE weir_import_update_available gauge\nweir_import_update_available{component_id=\"import.http.m\"} 1\n"
		if err := testutil.GatherAndCompare(l.registry, strings.NewReader(want), "weir_import_update_available"); err != nil {
			t.Error(err)
		}
		l.accept()
		l.lockChanged()
		l.wantValue("second")
		l.wantHealth(importID, component.Healthy, "")
	})
}

// TestRemoteLockFirst changes weir.lock before the content is in the cache. The
// running content stays until the new one is there.
func TestRemoteLockFirst(t *testing.T) {
	withRemote(t, func(l *harness, s *elsewhere) {
		l.accept()
		l.start(importing)
		s.set(module("second"), nil)
		second := l.accept()
		if err := os.RemoveAll(second.Dir); err != nil {
			t.Fatal(err)
		}
		s.set("", errors.New("no route to host"))
		l.lockChanged()
		l.wantValue("first")
		l.wantHealth(importID, component.Unhealthy, "weir fetches https://host/m with "+second.Digest)
		s.set(module("third"), nil)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		l.wantValue("first")
		if h := l.info(importID); h.Health.State != component.Unhealthy {
			t.Errorf("got the health %v for content with another digest", h.Health)
		}
		s.set(module("second"), nil)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		l.wantValue("second")
		l.wantHealth(importID, component.Healthy, "")
	})
}

// TestRemoteTampered changes the cache while its content runs.
func TestRemoteTampered(t *testing.T) {
	withRemote(t, func(l *harness, s *elsewhere) {
		c := l.accept()
		l.start(importing)
		file := filepath.Join(c.Dir, "m.alloy")
		if err := os.WriteFile(file, []byte(module("evil")), 0o644); err != nil {
			t.Fatal(err)
		}
		s.set("", errors.New("no route to host"))
		l.lockChanged() // any change looks at the cache again
		l.wantValue("first")
		l.wantHealth(importID, component.Unhealthy, "has changed: expected "+c.Digest+", got sha256:")
		s.set(module("first"), nil)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		l.wantHealth(importID, component.Healthy, "")
		if b, err := os.ReadFile(file); err != nil || string(b) != module("first") {
			t.Errorf("the cache has %q, %v", b, err)
		}
	})
}

// TestRemoteBadContent accepts content with a mistake, which does not run.
func TestRemoteBadContent(t *testing.T) {
	withRemote(t, func(l *harness, s *elsewhere) {
		l.accept()
		l.start(importing)
		s.set("declare \"c\" {\n\ttest.nothing \"x\" { }\n}\n", nil)
		l.accept()
		l.lockChanged()
		l.wantValue("first")
		l.wantHealth(importID, component.Unhealthy, "test.nothing")
		s.set(module("second"), nil)
		l.accept()
		l.lockChanged()
		l.wantValue("second")
		l.wantHealth(importID, component.Healthy, "")
	})
}

// TestRemoteNewSource adds an import to a config that runs. The content is not in the
// cache.
func TestRemoteNewSource(t *testing.T) {
	withRemote(t, func(l *harness, s *elsewhere) {
		c := l.accept()
		if err := os.RemoveAll(c.Dir); err != nil {
			t.Fatal(err)
		}
		l.start(`test.value "other" { value = "runs" }`)
		if err := l.reload(importing); err == nil || !strings.Contains(err.Error(), "the content of https://host/m is not in the cache yet") {
			t.Errorf("got %v", err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		l.wantValue("first")
	})
}

// TestRemoteUpdate runs with --lock=update.
func TestRemoteUpdate(t *testing.T) {
	withRemote(t, func(l *harness, s *elsewhere) {
		l.options.UpdateLock = true
		l.start(importing)
		l.wantValue("first")
		s.set(module("second"), nil)
		time.Sleep(time.Minute + time.Second)
		synctest.Wait()
		l.wantValue("second")
		l.wantHealth(importID, component.Healthy, "")
		lock, err := pkg.ReadLock(filepath.Join(l.dir, pkg.LockName))
		if err != nil || lock.Source("https://host/m").Digest != l.info(importID).Arguments.(map[string]any)["digest"] {
			t.Errorf("got %v and %v", lock, err)
		}
	})
}

func TestRemoteVendor(t *testing.T) {
	withRemote(t, func(l *harness, s *elsewhere) {
		c := l.accept()
		if err := errors.Join(l.options.Remote.Copy(c, filepath.Join(l.dir, pkg.VendorDir)), os.RemoveAll(c.Dir)); err != nil {
			t.Fatal(err)
		}
		s.set("", errors.New("no route to host"))
		l.start(importing)
		l.wantValue("first")
	})
}

func TestRemoteArguments(t *testing.T) {
	f := func(block, want string) {
		t.Helper()
		l := newHarness(t)
		l.options.Remote = remote.New(remote.Options{Dir: l.dir})
		l.write(block)
		_, ds := l.newEngine().Check(l.config)
		if err := ds.Err(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", block, err, want)
		}
	}
	f(`import.http "m" { url = "ftp://host/x" }`, "must begin with http:// or https://")
	f(`import.http "m" { url = "https://me:secret@host/x" }`, "use the block basic_auth")
	f(`import.http "m" {
		url = "https://host/x"
		poll_frequency = "-1s"
	}`, "poll_frequency is -1s, must be greater than 0")
	f(`import.http "m" {
		url = "https://host/x"
		poll_timeout = "0s"
	}`, "poll_timeout is 0s, must be greater than 0")
	f(`import.http "m" {
		url = "https://host/x"
		method = "A B"
	}`, `method "A B" is no HTTP method`)
	f(`import.http "m" {
		url = "https://host/x"
		headers = { "a b" = "c" }
	}`, `headers: "a b" is no header`)
	f(`import.git "m" { repository = "https://host" }`, "must have a path")
	f(`import.git "m" {
		repository = "https://host/x"
		revision = "HEAD~1"
	}`, "must be a branch, a tag or a commit")
	f(`import.git "m" {
		repository = "https://host/x"
		ssh_key {
			username = "git"
		}
	}`, "ssh_key is for repositories over SSH")
	f(`import.git "m" {
		repository = "git@host:x.git"
		basic_auth {
			username = "a"
			password = "b"
		}
	}`, "basic_auth is for repositories over https")
	f(`import.git "m" { repository = "ssh://git@host/x" }`, "needs the block ssh_key")
	f(`import.git "m" {
		repository = "ssh://git@host/x"
		ssh_key {
			username = "git"
			key = "a"
			key_file = "b"
		}
	}`, "at most one of key and key_file")
	f(`import.oci "m" { repository = "host/x" }`, "one of tag and digest must be set")
	f(`import.oci "m" {
		repository = "host/x"
		digest = "1.0"
	}`, "digest must be sha256:")
	f(`import.oci "m" {
		repository = "x"
		tag = "1"
	}`, "must be a registry and a name")
}

func TestRemotes(t *testing.T) {
	l := newHarness(t)
	l.options.Remote = remote.New(remote.Options{Dir: l.dir})
	l.write(importing + `
import.git "g" {
	repository = "git@host:acme/x.git"
	revision   = "v1"
	path       = "modules"
	ssh_key {
		username = "git"
		key_file = "key"
	}
}
import.oci "o" {
	repository = "host/acme/http"
	tag        = "1.0"
}`)
	got, _, ds := l.newEngine().Remotes(l.config)
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	var sources []string
	for _, r := range got {
		sources = append(sources, r.ID+" "+r.Source.String())
	}
	want := "import.http.m https://host/m, import.git.g git+ssh://git@host/acme/x.git//modules?ref=v1, import.oci.o oci://host/acme/http:1.0"
	if s := strings.Join(sources, ", "); s != want {
		t.Errorf("got %s, want %s", s, want)
	}
}
