package host_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/block"
	"github.com/weir-run/weir/scripting/egress"
	"github.com/weir-run/weir/scripting/grant"
	"github.com/weir-run/weir/scripting/host"
)

// server answers instead of the network: 200, or the status that the path is.
type server struct{ asked []string }

func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	body := ""
	if r.Body != nil {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		body = " " + string(text)
	}
	s.asked = append(s.asked, r.Method+" "+r.URL.String()+body)
	for _, name := range []string{"Authorization", "Content-Type", "X-Key"} {
		if v := r.Header.Get(name); v != "" {
			s.asked[len(s.asked)-1] += " " + name + "=" + v
		}
	}
	status := http.StatusOK
	for _, n := range []int{302, 400, 401, 404, 422, 429, 503} {
		if strings.HasSuffix(r.URL.Path, http.StatusText(n)) {
			status = n
		}
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("[1]")), Request: r}, nil
}

// asking is a script that may ask anything of the server.
func asking(t *testing.T, kind scripting.ComponentKind, o host.AccessOptions) (*script, *server) {
	t.Helper()
	srv := &server{}
	o.Outside = host.Outside{HTTP: srv, GrantAll: true}
	return open(t, &scripting.Definition{Kind: kind, Needs: scripting.Needs{HTTP: true}}, o), srv
}

// TestRequestsOfScripts holds what becomes of the options of a request.
func TestRequestsOfScripts(t *testing.T) {
	s, srv := asking(t, scripting.Transform, host.AccessOptions{})
	f := func(opts *scripting.Map, want string) {
		t.Helper()
		if _, err := s.do(t, "http.get", "http://a/x?y=1#part", opts); err != nil {
			t.Errorf("%s: %v", want, err)
		} else if got := srv.asked[len(srv.asked)-1]; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	f(table(), "GET http://a/x?y=1")
	f(table("query", table("n", int64(-5), "f", 0.5, "e", 1e21, "s", scripting.NewSecret("a b"))), "GET http://a/x?y=1&e=1e%2B21&f=0.5&n=-5&s=a+b")
	f(table("query", table()), "GET http://a/x?y=1")
	f(table("headers", table("X-Key", "one", "x-key", list("two", scripting.NewSecret("+three")))), "GET http://a/x?y=1 X-Key=two+three")
	f(table("json", list(true), "headers", table("Content-Type", "text/x")), "GET http://a/x?y=1 [true] Content-Type=text/x")
	f(table("basic", table("username", scripting.NewSecret("u"), "password", "")), "GET http://a/x?y=1 Authorization=Basic dTo=")
	// HEAD and others have no body of their own.
	if _, err := s.do(t, "http.request", table("method", "DELETE", "url", "http://a/x")); err != nil || srv.asked[len(srv.asked)-1] != "DELETE http://a/x" {
		t.Errorf("got %s, %v", srv.asked[len(srv.asked)-1], err)
	}
}

// TestRequestsRefused checks options that are refused before anything is sent.
func TestRequestsRefused(t *testing.T) {
	s, srv := asking(t, scripting.Transform, host.AccessOptions{})
	f := func(opts *scripting.Map, want string) {
		t.Helper()
		_, err := s.do(t, "http.post", "http://a/x", nil, opts)
		fails(t, want, err, want)
	}
	long := strings.Repeat("x", 40<<10)
	f(table("max_bytes", int64(-1)), "cannot use max_bytes = -1: it must be between 0 and ")
	f(table("max_bytes", int64(1<<40)), "cannot use max_bytes = 1099511627776: it must be between 0 and ")
	f(table("redirects", int64(11)), "cannot use redirects = 11: it must be between 0 and 10")
	f(table("timeout", 0.0), "cannot use this timeout: it must be more than 0")
	f(table("timeout", "-1s"), "cannot use this timeout: it must be more than 0")
	f(table("query", table("a", true)), `cannot use a bool as the query parameter "a": it must be a string, a number or a secret`)
	f(table("query", table("a", long, "b", long)), "cannot use a query of more than 65536 bytes")
	f(table("headers", table("A", long, "B", long)), "cannot use headers of more than 65536 bytes together")
	f(table("headers", table("A", list(long, scripting.NewSecret(long)))), "cannot use headers of more than 65536 bytes together")
	f(table("headers", table("A", list("a", 5.0))), "cannot use a list as the header A: it must be a string or a secret, or a list of them")
	f(table("headers", table("A", true)), "cannot use a bool as the header A")
	f(table("bearer", true), "cannot use a bool as bearer: it must be a string or a secret")
	f(table("basic", table("username", "a:b", "password", "p")), "cannot use this as basic: username and password must be texts or secrets, and the name without a colon")
	f(table("basic", table("username", "a", "password", 5.0)), "cannot use this as basic")
	f(table("bearer", "t", "basic", table("username", "a", "password", "p")), "cannot use more than one of basic, bearer and the header Authorization")
	if len(srv.asked) > 0 {
		t.Errorf("the server was asked %q", srv.asked)
	}

	// Without the module json there is no JSON.
	s, _ = asking(t, scripting.Transform, host.AccessOptions{Modules: []*scripting.Module{{Name: "time"}}})
	_, err := s.do(t, "http.post", "http://a/x", nil, table("json", true))
	fails(t, "json", err, "cannot send json: there is no module json")
	answer, err := s.do(t, "http.get", "http://a/x")
	if err != nil {
		t.Fatal(err)
	}
	_, err = method(t, answer, "json")
	fails(t, "json of an answer", err, "cannot decode JSON: there is no module json")
}

// TestAnswersThatCount holds which answers mean that the outside does not work, and
// how requests are counted.
func TestAnswersThatCount(t *testing.T) {
	outcomes := host.NewOutcomes()
	f := func(kind scripting.ComponentKind, failed ...int) {
		t.Helper()
		s, _ := asking(t, kind, host.AccessOptions{Outcomes: outcomes})
		for _, status := range []int{200, 302, 400, 401, 404, 422, 429, 503} {
			s.call.OutsideFailed = false
			if s.call.Delivery = nil; kind == scripting.Sink {
				s.call.Delivery = &host.Delivery{}
			}
			path := "/" + strings.ReplaceAll(http.StatusText(status), " ", "%20")
			if _, err := s.do(t, "http.get", "http://a"+path, table("redirects", int64(0))); err != nil {
				t.Errorf("%d: %v", status, err)
			}
			if got, want := s.call.OutsideFailed, slices.Contains(failed, status); got != want {
				t.Errorf("%s: %d: the outside failed: %t, want %t", kind, status, got, want)
			}
		}
	}
	f(scripting.Transform, 429, 503)
	f(scripting.Sink, 401, 404, 429, 503) // a record is not to blame for a password

	counted := map[string]float64{}
	r := prometheus.NewRegistry()
	r.MustRegister(outcomes.Collectors(scripting.Needs{HTTP: true})...)
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.Metric {
			if len(m.Label) > 0 {
				counted[m.Label[0].GetValue()] = m.Counter.GetValue()
			}
		}
	}
	if len(counted) != 8 || counted["2xx"] != 2 || counted["3xx"] != 2 || counted["4xx"] != 10 || counted["5xx"] != 2 || counted["denied"] != 0 {
		t.Errorf("got %v", counted)
	}
	if n := len(outcomes.Collectors(scripting.Needs{Exec: true})); n != 1 {
		t.Errorf("a script that runs programs alone has %d metrics of them", n)
	}
	if n := len(outcomes.Collectors(scripting.Needs{})); n != 0 {
		t.Errorf("a script without needs has %d metrics", n)
	}
}

// TestPrograms holds which program ctx.exec means by a name and what it gets.
func TestPrograms(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("paths are those of Unix")
	}
	var ran egress.Command
	code := 0
	o := host.AccessOptions{
		Allow: &block.Allow{Exec: []string{"/usr/bin/df", "/opt/bin/df", "/usr/bin/id -u", "/usr/bin/id ..."}},
		Outside: host.Outside{
			Exec: func(_ context.Context, c egress.Command) (egress.CommandResult, error) {
				ran = c
				return egress.CommandResult{Code: code, Stdout: "out"}, nil
			},
			LookupEnv: func(name string) (string, bool) { return "/own/bin", name == "PATH" },
		},
	}
	s := open(t, &scripting.Definition{Kind: scripting.Sink, Needs: scripting.Needs{Exec: true}}, o)
	refused := func(want string, args ...scripting.Value) {
		t.Helper()
		_, err := s.do(t, "exec", args...)
		fails(t, want, err, want)
	}
	refused(`cannot run "df": the name is ambiguous because script.allow.exec grants /opt/bin/df and /usr/bin/df; use the full path`, "df")
	refused(`cannot run "ls"`, "ls")
	long := strings.Repeat("x", 70<<10)
	refused("cannot use arguments of more than 131072 bytes; pass longer data as stdin", "id", list(long, long))
	refused("cannot use this as stdin: it must be a string or a secret", "id", list("-u"), table("stdin", 5.0))
	refused("cannot use max_bytes = -1", "id", list("-u"), table("max_bytes", int64(-1)))
	refused("cannot use this timeout", "id", list("-u"), table("timeout", 0.0))
	if ran.Path != "" {
		t.Errorf("ran %+v", ran)
	}
	if _, err := s.do(t, "exec", "/opt/bin/df", list("-P", "/"), table("stdin", "in", "max_bytes", int64(10))); err != nil {
		t.Error(err)
	}
	if ran.Path != "/opt/bin/df" || strings.Join(ran.Args, " ") != "-P /" || ran.Stdin != "in" || ran.MaxOutput != 10 || ran.SearchPath != "/own/bin" {
		t.Errorf("ran %+v", ran)
	}

	// A program that ends with another code is an answer; to a sink it means that
	// the outside does not work.
	code = 1
	for _, d := range []*host.Delivery{nil, {}} {
		s.call.Delivery, s.call.OutsideFailed = d, false
		out, err := s.do(t, "exec", "id", list("-u"))
		if err != nil {
			t.Fatal(err)
		}
		if c, _ := out.(*scripting.Map).Get("code"); c != int64(1) || s.call.OutsideFailed != (d != nil) {
			t.Errorf("got code %v, failed %t", c, s.call.OutsideFailed)
		}
	}

	// Where all is granted, as in tests, a name is that of a program of the system.
	o.Allow, o.Outside.GrantAll = nil, true
	s = open(t, &scripting.Definition{Kind: scripting.Transform, Needs: scripting.Needs{Exec: true}}, o)
	for name, want := range map[string]string{"anything": "/usr/bin/anything", "/opt/x": "/opt/x"} {
		if _, err := s.do(t, "exec", name); err != nil || ran.Path != want {
			t.Errorf("%s: ran %s, want %s: %v", name, ran.Path, want, err)
		}
	}
}

// TestFilesOfSetup holds which files are watched, and that those that setup has read
// tell when they change, also one that was not there.
func TestFilesOfSetup(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("paths are those of Unix")
	}
	dir := t.TempDir()
	abs := func(name string) string { return filepath.ToSlash(filepath.Join(dir, name)) }
	o := host.AccessOptions{Allow: &block.Allow{Read: []string{abs("a.txt"), abs("b.txt"), "/proc/loadavg", "/sys/x", "/dev/null"}}}
	def := &scripting.Definition{Kind: scripting.Transform, Needs: scripting.Needs{Read: true}}
	s := open(t, def, o)
	if got, want := s.access.Sourced(), []string{abs("a.txt"), abs("b.txt")}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	changed := func(want bool) {
		t.Helper()
		if got := s.access.Changed(); got != want {
			t.Errorf("changed: got %t, want %t", got, want)
		}
	}
	write("a.txt", "one")
	if text, err := s.do(t, "read", abs("a.txt")); text != "one" || err != nil {
		t.Errorf("got %v, %v", text, err)
	}
	write("a.txt", "two")
	changed(false) // setup has read nothing
	s.call.Setup = true
	if text, err := s.do(t, "read", abs("a.txt")); text != "two" || err != nil {
		t.Errorf("got %v, %v", text, err)
	}
	if _, err := s.do(t, "read", abs("b.txt")); err == nil || !s.call.OutsideFailed {
		t.Errorf("got %v for a file that is missing, failed %t", err, s.call.OutsideFailed)
	}
	changed(false)
	write("a.txt", "three")
	changed(true)
	write("a.txt", "two")
	changed(false)
	write("b.txt", "here")
	changed(true)
	_, err := s.do(t, "read", abs("a.txt"), table("max_bytes", int64(-1)))
	fails(t, "max_bytes", err, "cannot use max_bytes = -1")

	// Files that a test gives are not watched.
	o.Allow, o.Outside = nil, host.Outside{GrantAll: true, ReadFile: func(path string, limit int64) ([]byte, error) { return []byte(path), nil }}
	s = open(t, def, o)
	if text, err := s.do(t, "read", "/any/file"); text != "/any/file" || err != nil || s.access.Sourced() != nil {
		t.Errorf("got %v, %v, %q", text, err, s.access.Sourced())
	}
}

// TestAccessRefused holds that a node whose block does not grant what its script needs
// is not built.
func TestAccessRefused(t *testing.T) {
	_, err := host.NewAccess(host.AccessOptions{Name: "a.b", Allow: &block.Allow{HTTP: []string{"ftp://a/"}, Read: []string{"relative"}}})
	fails(t, "patterns", err, "http: ")
	fails(t, "patterns", err, "\nread: ")
	_, err = host.NewAccess(host.AccessOptions{Name: "a.b", Allow: &block.Allow{Env: []string{"HOME"}}, Needs: scripting.Needs{HTTP: true, Env: []string{"HOME", "ZONE"}, Read: true, Exec: true}})
	fails(t, "needs", err, "a.b needs what its block does not grant: http, env ZONE, read, exec; add to the block:\nscript {\n  allow {\n"+
		"    http = [\"https://HOST/*\"]\n    env = [\"HOME\", \"ZONE\"]\n    read = [\"/FOLDER/*\"]\n    exec = [\"/usr/bin/NAME\"]\n  }\n}")

	// A denied request is an error of its own.
	u, err := grant.ParseURL("http://b/*")
	if err != nil {
		t.Fatal(err)
	}
	srv := &server{}
	s := open(t, &scripting.Definition{Kind: scripting.Transform, Needs: scripting.Needs{HTTP: true, URLs: []grant.URL{u}}},
		host.AccessOptions{Outside: host.Outside{HTTP: srv, GrantAll: true}})
	_, err = s.do(t, "http.get", "http://a/x")
	if _, denied := errors.AsType[*egress.DeniedError](err); !denied || len(srv.asked) > 0 {
		t.Errorf("got %v, asked %q", err, srv.asked)
	}
}
