package api_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/api"
	"github.com/weir-run/weir/scripting/lua"
	"github.com/weir-run/weir/scripting/scripttest"
	"github.com/weir-run/weir/stdlib"
)

// TestExamples runs the examples of all entries, each as a script of its own
// with a test beside it.
func TestExamples(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "scripts")
	entries := map[string]string{} // by component
	write := func(name, content string) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	for where, uses := range api.Get().Uses() {
		for _, u := range uses {
			name := fmt.Sprintf("example/e%d", n)
			n++
			entries[name+".lua"] = where
			write(name+".lua", script(u))
			if u.Test != "" {
				write(name+"_test.lua", fmt.Sprintf("it(%q, function()\n  local t = weir.test.component(%q, %s)\n%s\nend)\n", where, filepath.Base(name)+".lua", "{"+u.Args+"}", u.Test))
			}
		}
	}
	r, err := scripttest.Run(t.Context(), scripttest.Options{Languages: []scripting.Language{lua.New()}, Modules: stdlib.Modules(), Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Files {
		where := entries["example/"+strings.ReplaceAll(filepath.Base(f.Name), "_test.lua", ".lua")]
		if f.Problem != nil {
			t.Errorf("%s: %+v", where, f.Problem)
		}
		for _, test := range f.Tests {
			if test.Status != scripttest.Passed {
				t.Errorf("%s: %+v", where, test.Problem)
			}
		}
	}
	if passed := r.Count(scripttest.Passed); passed != n {
		t.Errorf("%d of %d examples passed", passed, n)
	}
}

// script makes the file of an example.
func script(u scripting.Use) string {
	var b strings.Builder
	section := func(name, text string) {
		fmt.Fprintf(&b, "-- Example %s:\n", name)
		for line := range strings.Lines(text) {
			b.WriteString("--   " + strings.TrimRight(line, "\n") + "\n")
		}
	}
	if u.Test == "" {
		if u.Args != "" {
			section("Args", u.Args)
		}
		section("Input", u.Input)
		section("Output", u.Output)
	}
	if strings.Contains(u.Lua, "return weir.") {
		return b.String() + u.Lua + "\n"
	}
	hook := "metrics = function(batch, ctx)"
	if u.Hook == "logs" {
		hook = "logs = function(batch, ctx)"
	} else if u.Hook != "" && u.Hook != "metrics" {
		hook = u.Hook + " = function(s, ctx)"
	}
	return b.String() + "return (require \"weir\").transform { " + hook + "\n" + u.Lua + "\nend }\n"
}
