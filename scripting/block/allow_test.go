package block_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/block"
	"github.com/weir-run/weir/scripting/grant"
)

func urls(t *testing.T, patterns ...string) (out []grant.URL) {
	t.Helper()
	for _, p := range patterns {
		u, err := grant.ParseURL(p)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, u)
	}
	return out
}

func files(t *testing.T, patterns ...string) (out []grant.File) {
	t.Helper()
	for _, p := range patterns {
		f, err := grant.ParseFile(p)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, f)
	}
	return out
}

// TestGrants compares what scripts need with what their blocks grant, in both
// directions.
func TestGrants(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("paths are those of Unix")
	}
	f := func(n scripting.Needs, a block.Allow, missing string, unneeded map[string][]string) {
		t.Helper()
		g, err := a.Grants()
		if err != nil {
			t.Fatal(err)
		}
		var what []string
		for _, m := range block.MissingGrants(n, g) {
			what = append(what, m.What)
		}
		if got := strings.Join(what, ", "); got != missing {
			t.Errorf("%+v: missing: got %q, want %q", a, got, missing)
		}
		if unneeded == nil {
			unneeded = map[string][]string{}
		}
		if diff := cmp.Diff(unneeded, block.UnneededGrants(n, &a)); diff != "" {
			t.Errorf("%+v: unneeded (-want +got):\n%s", a, diff)
		}
	}
	none := scripting.Needs{}
	f(none, block.Allow{}, "", nil)
	f(none, block.Allow{HTTP: []string{"https://a/*"}, Env: []string{"A*"}, Read: []string{"/etc/*"}, Exec: []string{"/bin/df"}}, "",
		map[string][]string{"http": {"https://a/*"}, "env": {"A*"}, "read": {"/etc/*"}, "exec": {"/bin/df"}})

	// A script that does not name what it needs leaves it to its block.
	all := scripting.Needs{HTTP: true, Read: true, Exec: true}
	f(all, block.Allow{}, "http, read, exec", nil)
	f(all, block.Allow{HTTP: []string{"https://a/*"}, Read: []string{"/etc/*"}, Exec: []string{"/bin/df"}}, "", nil)

	named := scripting.Needs{HTTP: true, URLs: urls(t, "https://a/v1/*"), Env: []string{"REGION"}, Read: true, Files: files(t, "/etc/weir/*.txt", "/var/x"), Exec: true, Programs: []string{"df", "/opt/id"}}
	f(named, block.Allow{}, "http https://a/v1/*, env REGION, read /etc/weir/*.txt, read /var/x, exec df, exec /opt/id", nil)
	f(named, block.Allow{HTTP: []string{"https://a/*"}, Env: []string{"R*"}, Read: []string{"/etc/**", "/var/x"}, Exec: []string{"/usr/bin/df -P", "/opt/id"}}, "", nil)
	// A grant of a part of it is of use, and is not enough.
	f(named, block.Allow{HTTP: []string{"https://a/v1/x"}, Env: []string{"REGION"}, Read: []string{"/etc/weir/a.txt", "/var/*"}, Exec: []string{"/usr/bin/df", "/opt/id"}},
		"http https://a/v1/*, read /etc/weir/*.txt", nil)
	f(named, block.Allow{HTTP: []string{"https://a/*", "https://b/*"}, Env: []string{"REGION", "ZONE"}, Read: []string{"/etc/**", "/var/x", "/srv/*"}, Exec: []string{"/bin/df", "/opt/id", "/opt/sh"}}, "",
		map[string][]string{"http": {"https://b/*"}, "env": {"ZONE"}, "read": {"/srv/*"}, "exec": {"/opt/sh"}})
}

// TestMissingGrantsAreWritten holds that the error has the block to write, with what
// is granted already.
func TestMissingGrantsAreWritten(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("paths are those of Unix")
	}
	a := &block.Allow{Env: []string{"A\"B*"}, Exec: []string{"/bin/id"}}
	if e := block.MissingError("a.b", a, nil); e != nil {
		t.Errorf("got %v", e)
	}
	missing := block.MissingGrants(scripting.Needs{Exec: true, Programs: []string{"df", "/opt/x"}, Read: true, Files: files(t, "/etc/x"), HTTP: true}, grant.Set{})
	e := block.MissingError("a.b", a, missing)
	if e == nil || e.Path != "script.allow" || e.Warning {
		t.Fatalf("got %+v", e)
	}
	if diff := cmp.Diff("a.b needs what its block does not grant: http, read /etc/x, exec df, exec /opt/x; add to the block:", e.Err.Error()); diff != "" {
		t.Error(diff)
	}
	const want = `script {
  allow {
    http = ["https://HOST/*"]
    read = ["/etc/x"]
    exec = ["/bin/id", "/usr/bin/df", "/opt/x"]
  }
}`
	if diff := cmp.Diff(want, e.Detail); diff != "" {
		t.Error(diff)
	}
}

// TestAllowIsValidated holds that all mistakes in the patterns are told, and that
// nothing is judged by patterns that are wrong.
func TestAllowIsValidated(t *testing.T) {
	a := &block.Allow{HTTP: []string{"x", "https://ok/"}, Env: []string{"A-B"}, Read: []string{"relative", "/a/../b"}, Exec: []string{"df"}, Listen: []string{":80"}}
	err := a.Validate()
	if err == nil {
		t.Fatal("got no error")
	}
	var kinds []string
	for line := range strings.Lines(err.Error()) {
		kind, _, _ := strings.Cut(line, ": ")
		kinds = append(kinds, kind)
	}
	if got, want := strings.Join(kinds[:len(kinds)-1], " "), "http env read read exec"; got != want || !strings.HasPrefix(kinds[len(kinds)-1], "cannot use listen in script.allow") {
		t.Errorf("got %s", err)
	}
	if got := block.UnneededGrants(scripting.Needs{}, a); got != nil {
		t.Errorf("got %v", got)
	}
	if err := (&block.Allow{}).Validate(); err != nil {
		t.Error(err)
	}
}
