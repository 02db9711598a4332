package remote_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/pkg/remote"
)

func TestSourceText(t *testing.T) {
	f := func(text string, want remote.Source) {
		t.Helper()
		got, err := remote.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
		if got.String() != text {
			t.Errorf("got %s, want %s", got, text)
		}
	}
	hex := strings.Repeat("0a", 32)
	f("git+https://host/repo.git//a/b?ref=v1", remote.Source{Kind: remote.Git, URL: "https://host/repo.git", Revision: "v1", Path: "a/b"})
	f("git+ssh://git@host:22/repo?ref=feature/x", remote.Source{Kind: remote.Git, URL: "ssh://git@host:22/repo", Revision: "feature/x"})
	f("https://host/pkg.tar.gz", remote.Source{Kind: remote.HTTP, URL: "https://host/pkg.tar.gz"})
	f("http://host:80/pkg.tgz//a?x=1&y=//z", remote.Source{Kind: remote.HTTP, URL: "http://host:80/pkg.tgz?x=1&y=//z", Path: "a"})
	f("https://host/x#request=00ff", remote.Source{Kind: remote.HTTP, URL: "https://host/x", Request: "00ff"})
	f("oci://host/acme/http:1.2.0", remote.Source{Kind: remote.OCI, URL: "host/acme/http", Revision: "1.2.0"})
	f("oci://host:5000/acme/http:1.2.0//a", remote.Source{Kind: remote.OCI, URL: "host:5000/acme/http", Revision: "1.2.0", Path: "a"})
	f("oci://host/acme@sha256:"+hex, remote.Source{Kind: remote.OCI, URL: "host/acme", Revision: "sha256:" + hex})
}

func TestSourceDefaults(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		got, err := remote.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got.String() != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	f("git+https://host/repo.git", "git+https://host/repo.git?ref=main")
	f("oci://host:5000/acme", "oci://host:5000/acme:latest")
}

func TestSourceErrors(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		if s, err := remote.Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v and %v, want an error with %q", text, s, err, want)
		}
	}
	f("host/repo", "must begin with")
	f("ftp://host/x", "does not know the scheme ftp://")
	f("git+file:///etc", "must begin with https:// or http:// or ssh://")
	f("git+https://host", "must have a path")
	f("git+https://me:secret@host/repo", "use the block basic_auth")
	f("git+ssh://me:secret@host/repo", "use the block basic_auth")
	f("git+https://host/repo?ref=HEAD~1", "must be a branch, a tag or a commit")
	f("git+https://host/repo?ref=a..b", "must be a branch, a tag or a commit")
	f("git+https://host/repo?ref=--upload-pack=x", "must be a branch, a tag or a commit")
	f("git+https://host/repo?rev=1", "has only ?ref=REVISION")
	f("git+https://host/repo//../x", "clean relative path")
	f("git+https://host/repo///etc", "clean relative path")
	f("https://me:secret@host/x", "use the block basic_auth")
	f("https:///x", "must begin with http:// or https:// and a host")
	f("https://host/x#y", "must have no fragment")
	f("oci://host", "must be a registry and a name")
	f("oci://host/UPPER", "must be a registry and a name")
	f("oci://host/acme@sha256:12", "64 hexadecimal digits")
	f("oci://host/acme:-", "must consist of letters")
	f("oci://host/acme?x=1", "neither ? nor #")
}
