package http_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	upstream "github.com/prometheus/prometheus/discovery/http"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/natives/discovery/discoverytest"
	weirhttp "github.com/weir-run/weir/natives/discovery/http"
)

// server returns its content as JSON to clients with the password.
type server struct {
	*httptest.Server
	body   atomic.Value
	status atomic.Int32
	asked  atomic.Value // http.Header
}

func newServer(t *testing.T, body string) *server {
	s := new(server)
	s.body.Store(body)
	s.status.Store(http.StatusOK)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.asked.Store(r.Header)
		if user, pass, _ := r.BasicAuth(); user != "u" || pass != "p" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.WriteHeader(int(s.status.Load()))
		fmt.Fprint(w, s.body.Load())
	}))
	t.Cleanup(s.Close)
	return s
}

const groups = `[
	{"targets": ["b:1", "a:1"], "labels": {"team": "x", "__meta_rack": "r1"}},
	{"targets": [], "labels": {"team": "nobody"}},
	{"targets": ["c:1"]}
]`

func count(n int) func([]map[string]string) bool {
	return func(ts []map[string]string) bool { return len(ts) == n }
}

func TestSameAsPrometheus(t *testing.T) {
	s := newServer(t, groups)
	pass := filepath.Join(t.TempDir(), "pass")
	if err := os.WriteFile(pass, []byte("p"), 0o600); err != nil {
		t.Fatal(err)
	}
	body := func(interval, passFile string) string {
		return fmt.Sprintf("url = %q\nrefresh_interval = %q\nbasic_auth {\n\tusername = \"u\"\n\tpassword_file = %q\n}", s.URL+"/sd?a=b", interval, passFile)
	}
	n := discoverytest.Same(t, weirhttp.Registration(), body("10ms", pass), new(upstream.SDConfig),
		fmt.Sprintf("url: %q\nbasic_auth: {username: u, password: p}\n", s.URL+"/sd?a=b"), 3)
	if got := n.Targets()[0]["__address__"] + n.Targets()[1]["__address__"]; got != "a:1b:1" {
		t.Errorf("the targets are not sorted: %v", n.Targets())
	}
	if got := s.asked.Load().(http.Header).Get("User-Agent"); got != "weir/test" {
		t.Errorf("asked as %q, want weir/test", got)
	}
	if got := n.Component.Sourced(); len(got) != 1 || got[0] != pass {
		t.Errorf("got sourced %q, want the password's file", got)
	}

	// It fails in every way, and the known targets stay.
	for _, f := range []struct {
		status     int
		body, want string
	}{
		{http.StatusBadGateway, groups, "server returned HTTP status 502"},
		{http.StatusOK, `[{"targets": ["a:1"]`, "unexpected end of JSON input"},
		{http.StatusOK, `[null]`, "nil target group item found"},
		{http.StatusOK, `[{"targets": ["a:1"], "labels": {"x": 1}}]`, "cannot unmarshal number"},
	} {
		s.body.Store(f.body)
		s.status.Store(int32(f.status))
		n.AwaitHealth(t, component.Unhealthy, f.want)
		if got := len(n.Targets()); got != 3 {
			t.Errorf("%s: %d targets are left, want 3", f.want, got)
		}
	}
	s.body.Store(`[{"targets": ["c:1"]}]`)
	n.Await(t, "one target", count(1))
	n.AwaitHealth(t, component.Healthy, "found 1 target")

	// Invalid credentials: the targets stay while requests fail.
	if err := os.WriteFile(pass, []byte("wrong"), 0o600); err != nil {
		t.Fatal(err)
	}
	n.Update(t, body("1h", pass))
	n.AwaitHealth(t, component.Unhealthy, "401")
	if got := len(n.Targets()); got != 1 {
		t.Errorf("%d targets are left, want 1", got)
	}
	if err := os.WriteFile(pass, []byte("p"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.body.Store(`[]`)
	n.Update(t, body("1h", pass)) // as the engine does when the file changes
	n.Await(t, "no targets", count(0))
	n.AwaitHealth(t, component.Healthy, "found 0 targets")
}

func TestServerGone(t *testing.T) {
	s := newServer(t, groups)
	n := discoverytest.Run(t, weirhttp.Registration(), fmt.Sprintf("url = %q\nrefresh_interval = \"10ms\"\nbasic_auth {\n\tusername = \"u\"\n\tpassword = \"p\"\n}", s.URL))
	n.Await(t, "three targets", count(3))
	s.Close()
	n.AwaitHealth(t, component.Unhealthy, "connection refused")
	if got := len(n.Targets()); got != 3 {
		t.Errorf("%d targets are left, want 3", got)
	}
	if logs := n.Logs(); strings.Count(logs, "connection refused") > 3 { // the text contains the port that was used
		t.Errorf("the log is full of it:\n%s", logs)
	}
}

// TestLargeAnswer: a response that never ends is read up to the limit.
func TestLargeAnswer(t *testing.T) {
	var large atomic.Bool
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if !large.Load() {
			fmt.Fprint(w, groups)
			return
		}
		for spaces := bytes.Repeat([]byte{' '}, 1<<20); ; {
			if _, err := w.Write(spaces); err != nil {
				return
			}
		}
	}))
	t.Cleanup(s.Close)
	body := fmt.Sprintf("url = %q\nrefresh_interval = \"1h\"", s.URL) // also the timeout of a request
	n := discoverytest.Run(t, weirhttp.Registration(), body)
	n.Await(t, "three targets", count(3))
	large.Store(true)
	n.Update(t, body)
	n.AwaitHealth(t, component.Unhealthy, "larger than 32 MiB")
	if got := len(n.Targets()); got != 3 {
		t.Errorf("%d targets are left, want 3", got)
	}
	large.Store(false)
	n.Update(t, body)
	n.AwaitHealth(t, component.Healthy, "found 3 targets")
}

func TestMistakes(t *testing.T) {
	f := func(body string, want ...string) {
		t.Helper()
		discoverytest.Mistakes(t, weirhttp.Registration(), body, want...)
	}
	f(`url = "http://a/"`)
	f(``, "missing required attribute url")
	f(`url = "ftp://a/"`, `url "ftp://a/" must begin with http:// or https://`)
	f(`url = "http:///a"`, `url "http:///a" has no host`)
	f(`url = "http://a:b:c/"`, `url: parse`)
	f("url = \"http://a/\"\nrefresh_interval = \"0s\"", "c.alloy:3:1: refresh_interval is 0s, must be greater than 0")
	f("url = \"http://a/\"\nbearer_token = \"a\"\nbearer_token_file = \"b\"", "at most one of")
}
