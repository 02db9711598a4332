package node_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/scripting/internal/registrytest"
	"github.com/weir-run/weir/scripting/node"
	"github.com/weir-run/weir/scripting/versions"
)

// A node lists, pins and unpins the versions of its script.
func TestHistory(t *testing.T) {
	f := newTrials(t)
	path := f.f.Write("a/b.lua", registrytest.Script)
	f.cat.Refresh([]string{path})
	r := registrytest.Lookup(t, f.cat, "a.b")
	f.swap(r, "")
	store := f.options.Versions
	for i, id := range []string{"abc1", "abc2", "def1"} {
		_, err := store.Activate("a.b", f.f.Dir, versions.Version{ID: id}, []versions.File{{Path: "a/b.lua", Text: registrytest.Script + "-- " + id}}, "a.b.default", time.Unix(int64(i), 0))
		if err != nil {
			t.Fatal(err)
		}
	}
	r.Activated("a.b.default", time.Unix(9, 0))
	refused := func(method, path, want string) {
		t.Helper()
		if got := control(t, f.c, method, path, http.StatusConflict); !strings.Contains(got, want) {
			t.Errorf("%s %s: got %q, want %q", method, path, got, want)
		}
	}
	refused("POST", "/rollback?version=abc", "version abc is not unique in the history of a.b.default; write more characters of abc1 or abc2")
	refused("POST", "/rollback?version=x", "there is no version x in the history of a.b.default; 'weir history a.b.default' lists them")
	refused("POST", "/rollback?version="+r.Version, "a.b.default runs version "+component.ShortVersion(r.Version)+" already")
	refused("POST", "/unpin", "a.b.default is not pinned to a version")

	// Without a version, it is the one that was active before.
	var asked []string
	f.cat.(component.Changing).OnChange(func(paths []string) { asked = append(asked, paths...) })
	var s node.Switch
	ask := func(method, path string) {
		t.Helper()
		if err := json.Unmarshal([]byte(control(t, f.c, method, path, http.StatusOK)), &s); err != nil {
			t.Fatalf("%s %s: %v", method, path, err)
		}
	}
	ask("POST", "/rollback")
	if s.From != r.Version || s.To != "def1" || len(asked) != 1 || asked[0] != path {
		t.Errorf("got %+v, and the engine is to look at %q", s, asked)
	}
	if other := r.Instead("a.b.other"); other != nil {
		t.Errorf("another node is to run %s", other.Version)
	}
	pinned := r.Instead("a.b.default")
	if pinned == nil || pinned.Version != "def1" || pinned.Trial != nil || pinned.Sources[0] != path {
		t.Fatalf("got %+v, want version def1 without a trial", pinned)
	}
	f.swap(*pinned, "")
	ask("POST", "/unpin")
	if s.From != "def1" || s.To != r.Version || r.Instead("a.b.default") != nil {
		t.Errorf("got %+v", s)
	}

	// A pin ends with the content of the files.
	ask("POST", "/rollback?version=abc1")
	f.save("a/b.lua", registrytest.Script+"-- new")
	if r = registrytest.Lookup(t, f.cat, "a.b"); r.Instead("a.b.default") != nil {
		t.Error("the node is still pinned although its files have changed")
	}
	// It stays while they cannot be used.
	f.save("a/b.lua", "return (")
	if r, _ = f.cat.Lookup("a.b"); r.Err == nil || r.Instead("a.b.default") == nil || r.Instead("a.b.default").Version != "abc1" || r.Instead("a.b.other") != nil {
		t.Errorf("got %v, want the pinned version", r.Err)
	}
}
