package node_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-run/weir/engine/tap"
	"github.com/weir-run/weir/scripting/node"
)

// play runs a text in the playground of the node and returns the result as lines.
func (f *debugs) play(req node.PlaygroundRequest) string {
	f.t.Helper()
	body, err := json.Marshal(req)
	if err != nil {
		f.t.Fatal(err)
	}
	resp, err := http.Post(f.server.URL+"/playground", "application/json", strings.NewReader(string(body))) //nolint:noctx
	if err != nil {
		f.t.Fatal(err)
	}
	defer resp.Body.Close()
	var res node.PlaygroundResult
	if err := json.NewDecoder(resp.Body).Decode(&res); err != nil || resp.StatusCode != http.StatusOK {
		f.t.Fatalf("got %s, %v", resp.Status, err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d records\n", res.Records)
	for _, text := range res.Events {
		var e struct {
			Kind    string
			Record  struct{ Name, Line string }
			Changes []string
			Text    string
		}
		if err := json.Unmarshal(text, &e); err != nil {
			f.t.Fatal(err)
		}
		fmt.Fprintln(&b, strings.Join(strings.Fields(fmt.Sprint(e.Kind, " ", e.Record.Name, e.Record.Line, " ", e.Text, strings.Join(e.Changes, ", "))), " "))
	}
	for _, e := range res.Errors {
		if e.Input {
			e.File = "input"
		}
		fmt.Fprintf(&b, "%s:%d: %s\n", e.File, e.Line, e.Message)
	}
	if res.Log != "" {
		fmt.Fprintf(&b, "log: %s\n", res.Log[strings.Index(res.Log, "level="):strings.Index(res.Log, "\n")])
	}
	return b.String()
}

// TestPlayground: another text processes records, and the node and its state stay as they are.
func TestPlayground(t *testing.T) {
	f := newDebugs(t)
	f.run("a/b.lua", debuggedLua)
	head := "local weir = require \"weir\"\nreturn weir.transform {\n  state = { seen = weir.state.map{} },\n"
	for _, c := range []struct {
		name string
		req  node.PlaygroundRequest
		want string
	}{
		{"the same", node.PlaygroundRequest{Text: debuggedLua, Pasted: tap.Pasted{Metrics: "up 1\nm 2\n"}},
			"2 records\nchanged up n=\"1\" added\nchanged m n=\"1\" added\nlog: level=INFO msg=hello"},
		{"drop and add", node.PlaygroundRequest{Text: head + "  series = function(s) if s.name == \"m\" then s:drop() end end,\n  metrics = function(b, ctx) ctx.emit { name = \"new\", value = 1 } end,\n}", Pasted: tap.Pasted{Metrics: "up 1\nm 2\n"}},
			"2 records\ndropped m\nadded new\nnote unchanged records: 1\n"},
		{"an error in a line", node.PlaygroundRequest{Text: head + "  metrics = function(b)\n    b:each(function(s) error(\"no\") end)\n  end,\n}", Pasted: tap.Pasted{Metrics: "up 1\n"}},
			"1 records\ndropped up\nscripts/a/b.lua:5: no\n"},
		{"a syntax error", node.PlaygroundRequest{Text: "return (", Pasted: tap.Pasted{Metrics: "up 1\n"}}, "0 records\nscripts/a/b.lua:1: "},
		{"another kind", node.PlaygroundRequest{Text: "return require(\"weir\").source { interval = \"1s\", poll = function() end }", Pasted: tap.Pasted{Metrics: "up 1\n"}}, "does not return weir.transform"},
		{"invalid input", node.PlaygroundRequest{Text: debuggedLua, Pasted: tap.Pasted{Metrics: "up 1\nup {"}}, "0 records\ninput:2: "},
		{"the time of lines", node.PlaygroundRequest{Text: head + "  logs = function(b, ctx)\n    b:each(function(l) l.labels.fresh = tostring(ctx.now() - l.time < 60000) end)\n  end,\n}", Pasted: tap.Pasted{Lines: "{} one\r\n"}}, "1 records\nchanged {} one fresh=\"true\" added\n"},
		{"another signal", node.PlaygroundRequest{Text: debuggedLua, Pasted: tap.Pasted{Logs: "{a=\"b\"} hello\n"}}, "0 records\n:0: the script does not accept logs\n"},
		{"another system", node.PlaygroundRequest{Text: head + "  needs = { http = true },\n  metrics = function(b, ctx) assert(ctx.http.get(\"http://127.0.0.1:1/\")) end,\n}", Pasted: tap.Pasted{Metrics: "up 1\n"}}, "a.b needs what its block does not grant: http"},
		{"an endless loop", node.PlaygroundRequest{Text: head + "  metrics = function(b) while true do end end,\n}", Pasted: tap.Pasted{Metrics: "up 1\n"}}, "the call ran longer than 1."},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := f.play(c.req); !strings.Contains(strings.ReplaceAll(got, f.f.Dir+"/", ""), c.want) {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
	if got := f.play(node.PlaygroundRequest{Text: debuggedLua, Pasted: tap.Pasted{Metrics: "up 1\n"}}); !strings.Contains(got, `n="1" added`) {
		t.Errorf("the state of the node has changed: %s", got)
	}
}

// TestPlaygroundStart: the editor gets the text of the file if the node runs another one, and no other
// file.
func TestPlaygroundStart(t *testing.T) {
	f := newDebugs(t)
	f.run("a/b.lua", debuggedLua)
	path := filepath.Join(f.f.Dir, "a/b.lua")
	disk := func(when, want string) {
		t.Helper()
		resp, err := http.Get(f.server.URL + "/playground") //nolint:noctx
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var start node.PlaygroundStart
		if err := json.NewDecoder(resp.Body).Decode(&start); err != nil {
			t.Fatal(err)
		}
		if start.Text != debuggedLua || start.Disk != want {
			t.Errorf("%s: got the texts %q and %q, want %q", when, start.Text, start.Disk, want)
		}
	}
	disk("the file has not changed", "")
	const broken = "return weir.transform {"
	if err := os.WriteFile(path, []byte(broken), 0o600); err != nil {
		t.Fatal(err)
	}
	disk("the file is broken", broken)
	outside := filepath.Join(t.TempDir(), "b.lua")
	if err := os.Rename(path, outside); err != nil {
		t.Fatal(err)
	}
	disk("the file has been removed", "")
	if err := os.Symlink(outside, path); err != nil {
		t.Fatal(err)
	}
	disk("the file is a link that leads out of the folder", "")
}
