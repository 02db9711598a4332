package node_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/node"
)

// TestWriteSource: the file of the script is written if nobody has changed it, and no other file.
func TestWriteSource(t *testing.T) {
	f := newDebugs(t)
	f.run("a/b.lua", debuggedLua)
	path := filepath.Join(f.f.Dir, "a/b.lua")
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	put := func(text, replaces string) (int, string) {
		t.Helper()
		body, err := json.Marshal(node.SourceWrite{Text: text, Replaces: replaces})
		if err != nil {
			t.Fatal(err)
		}
		return send(t, f.server.URL+"/source", body)
	}
	disk := func(want string) {
		t.Helper()
		got, err := os.ReadFile(path)
		if err != nil || string(got) != want {
			t.Errorf("the file contains %q, %v; want %q", got, err, want)
		}
	}
	want := func(status int, text string, wantStatus int, wantText string) {
		t.Helper()
		if status != wantStatus || !strings.Contains(text, wantText) {
			t.Errorf("got %d %q, want %d %q", status, text, wantStatus, wantText)
		}
	}
	changed := debuggedLua + "-- changed\n"
	status, text := put(changed, debuggedLua)
	want(status, text, 200, "wrote ")
	disk(changed)
	fi, err := os.Stat(path)
	if err != nil || fi.Mode().Perm() != 0o640 {
		t.Errorf("the file has the permissions %v, %v", fi.Mode(), err)
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".weir*")); len(left) > 0 || err != nil {
		t.Errorf("files were left: %v, %v", left, err)
	}

	// Somebody else has changed it.
	status, text = put("return 1", debuggedLua)
	want(status, text, 409, "has changed since it was read")
	var c node.SourceConflict
	if err := json.Unmarshal([]byte(text), &c); err != nil || c.Text != changed {
		t.Errorf("got the text %q, %v", c.Text, err)
	}
	disk(changed)

	// Invalid requests.
	status, text = put("", changed)
	want(status, text, 400, "cannot write an empty file")
	status, text = put(strings.Repeat("-", scripting.MaxFileSize+1), changed)
	want(status, text, 400, "the limit is")
	status, text = send(t, f.server.URL+"/source", []byte("{"))
	want(status, text, 400, "cannot read the request")
	status, text = send(t, f.server.URL+"/source", []byte(`{"path": "`+strings.Repeat("-", 3*scripting.MaxFileSize+4<<20)+`"}`))
	want(status, text, 400, "request body too large")
	disk(changed)

	// A request cannot name another file than a test.
	known, err := json.Marshal(changed)
	if err != nil {
		t.Fatal(err)
	}
	status, text = send(t, f.server.URL+"/source?path=../../other.lua", []byte(`{"text": "return 2", "replaces": `+string(known)+`, "path": "../other.lua", "file": "other.lua", "__proto__": {"path": "other.lua"}}`))
	want(status, text, 200, "a/b.lua")
	disk("return 2")
	if found, err := filepath.Glob(filepath.Join(f.f.Dir, "*", "other.lua")); len(found) > 0 || err != nil {
		t.Errorf("another file was written: %v, %v", found, err)
	}
	status, text = put(changed, "return 2")
	want(status, text, 200, "wrote ")

	// The file has become a link that leads out of the folder.
	outside := filepath.Join(t.TempDir(), "b.lua")
	if err := os.Rename(path, outside); err != nil {
		t.Fatal(err)
	}
	status, text = put("return 1", changed)
	want(status, text, 409, "has been removed")
	if err := os.Symlink(outside, path); err != nil {
		t.Fatal(err)
	}
	status, text = put("return 1", changed)
	want(status, text, 403, "cannot write ")
	disk(changed)

	// A link within the folder stays.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	inside := filepath.Join(f.f.Dir, "..data")
	if err := os.Rename(outside, inside); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(inside, path); err != nil {
		t.Fatal(err)
	}
	status, text = put(debuggedLua, changed)
	want(status, text, 200, "wrote ")
	disk(debuggedLua)
	if fi, err := os.Lstat(path); err != nil || fi.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link was replaced: %v, %v", fi, err)
	}
}

// TestWriteTest: tests next to the script are written, and an existing file is replaced only by
// somebody who knows its text.
func TestWriteTest(t *testing.T) {
	f := newDebugs(t)
	f.run("a/b.lua", debuggedLua)
	put := func(w node.SourceWrite, wantStatus int, wantText string) {
		t.Helper()
		body, err := json.Marshal(w)
		if err != nil {
			t.Fatal(err)
		}
		if status, text := send(t, f.server.URL+"/source", body); status != wantStatus || !strings.Contains(text, wantText) {
			t.Errorf("%+v: got %d %q, want %d %q", w, status, text, wantStatus, wantText)
		}
	}
	disk := func(rel, want string) {
		t.Helper()
		if got, err := os.ReadFile(filepath.Join(f.f.Dir, rel)); err != nil || string(got) != want {
			t.Errorf("%s contains %q, %v; want %q", rel, got, err, want)
		}
	}
	put(node.SourceWrite{Text: "-- 1", Replaces: "-- 0", Test: "b_recorded_test.lua"}, 409, "has been removed")
	put(node.SourceWrite{Text: "-- 1", Test: "b_recorded_test.lua"}, 200, "a/b_recorded_test.lua")
	disk("a/b_recorded_test.lua", "-- 1")
	put(node.SourceWrite{Text: "-- 2", Test: "b_recorded_test.lua"}, 409, `b_recorded_test.lua exists already","text":"-- 1"`)
	put(node.SourceWrite{Text: "-- 2", Replaces: "-- 0", Test: "b_recorded_test.lua"}, 409, "has changed since it was read")
	disk("a/b_recorded_test.lua", "-- 1")
	put(node.SourceWrite{Text: "-- 2", Replaces: "-- 1", Test: "b_recorded_test.lua"}, 200, "wrote ")
	disk("a/b_recorded_test.lua", "-- 2")
	put(node.SourceWrite{Text: "-- 3", Test: "b.test.lua"}, 200, "wrote ")
	disk("a/b.lua", debuggedLua)

	for _, name := range []string{"b.lua", "../b_test.lua", "a/b_test.lua", `..\b_test.lua`, "/tmp/b_test.lua", ".b_test.lua", "b_test.js", "b_test", "_test.lua", "b\x00_test.lua", "b\n_test.lua"} {
		put(node.SourceWrite{Text: "-- 4", Replaces: debuggedLua, Test: name}, 400, "the name of a test consists of")
	}
	disk("a/b.lua", debuggedLua)

	// Links that lead out of the folder.
	outside := t.TempDir()
	if err := os.Symlink(filepath.Join(outside, "new"), filepath.Join(f.f.Dir, "a/x_test.lua")); err != nil {
		t.Fatal(err)
	}
	put(node.SourceWrite{Text: "-- 5", Test: "x_test.lua"}, 403, "cannot create ")
	if err := os.Rename(filepath.Join(f.f.Dir, "a"), filepath.Join(outside, "a")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(outside, "a"), filepath.Join(f.f.Dir, "a")); err != nil {
		t.Fatal(err)
	}
	put(node.SourceWrite{Text: "-- 5", Test: "y_test.lua"}, 403, "cannot write ")
	if left, err := filepath.Glob(filepath.Join(outside, "*", "y*")); len(left) > 0 || err != nil {
		t.Errorf("a file outside was written: %v, %v", left, err)
	}
}

// send sends a body with PUT.
func send(t *testing.T, url string, body []byte) (status int, text string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}
