package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/weir-run/weir/scripting/scripttest"
	"github.com/weir-run/weir/stdlib"
)

var took = regexp.MustCompile(`  [0-9.]+(ns|µs|ms|s)$| in [0-9.]+(ns|µs|ms|s)$`)

// TestWatch: a save runs only the tests that depend on the file and the tests
// that failed.
func TestWatch(t *testing.T) {
	t.Chdir(t.TempDir())
	save := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		// An atomic save: tests must not see an incomplete file.
		if err := os.WriteFile(filepath.Dir(name)+"/.new", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Dir(name)+"/.new", name); err != nil {
			t.Fatal(err)
		}
	}
	script := func(label string) string {
		return "local weir, x = require 'weir', require 'x'\nreturn weir.transform { series = function(s) s.labels.mark = '" + label + "' .. x end }\n"
	}
	const markTest = `local t = weir.test.component("mark.lua")
it("marks", function() assert.same({ "a1" }, t:metrics("up 1"):label_values("mark")) end)
`
	save("scripts/lib/x.lua", "return '1'\n")
	save("scripts/a/mark.lua", script("a"))
	save("scripts/a/mark_test.lua", markTest)
	save("scripts/a/other_test.lua", "it('is another', function() end)\n")

	out, in := io.Pipe()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	o := &testOptions{format: "pretty", Options: scripttest.Options{Languages: languages(), Modules: stdlib.Modules(), Pipelines: pipelines(), Parallel: 1}}
	go func() {
		defer in.Close()
		done <- o.watch(ctx, &terminal{out: in, err: in})
	}()
	lines := bufio.NewScanner(out)
	// until reads up to a line that contains text and returns the lines without
	// times.
	until := func(text string) string {
		t.Helper()
		var b strings.Builder
		for lines.Scan() {
			l := took.ReplaceAllString(lines.Text(), "")
			b.WriteString(l + "\n")
			if strings.Contains(l, text) {
				return b.String()
			}
		}
		t.Fatalf("no %q after\n%s", text, b.String())
		return ""
	}
	want := func(got string, lines ...string) {
		t.Helper()
		for _, l := range lines {
			if !strings.Contains(got, l+"\n") {
				t.Errorf("no line %q in\n%s", l, got)
			}
		}
		if n := strings.Count(got, "ok  ") + strings.Count(got, "FAIL"); n != strings.Count(strings.Join(lines, ""), "ok  ")+strings.Count(strings.Join(lines, ""), "FAIL") {
			t.Errorf("other files were run:\n%s", got)
		}
	}
	want(until("ctrl-C ends"), "ok    scripts/a/mark_test.lua  1 test", "ok    scripts/a/other_test.lua  1 test", "2 passed")

	save("scripts/a/mark.lua", script("b"))
	got := until("1 failed")
	want(got, "FAIL  scripts/a/mark_test.lua  1 test")
	if path, err := filepath.Abs("scripts/a/mark.lua"); err != nil || !strings.Contains(got, path) {
		t.Errorf("no %s in\n%s, %v", path, got, err)
	}
	save("scripts/lib/x.lua", "return '2'\n")
	want(until("1 failed"), "FAIL  scripts/a/mark_test.lua  1 test")
	save("scripts/a/mark_test.lua", strings.Replace(markTest, "a1", "b2", 1))
	want(until("1 passed"), "ok    scripts/a/mark_test.lua  1 test")
	save("scripts/a/third_test.lua", "it('is new', function() end)\n")
	want(until("1 passed"), "ok    scripts/a/third_test.lua  1 test")

	save("scripts/a/notes.txt", "nothing\n")
	want(until("no test depends on it"))

	stop()
	if _, err := io.Copy(io.Discard, out); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Errorf("ended with %v", err)
	}
}
