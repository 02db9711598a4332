package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"strings"
	"testing"
)

// TestTryWatches: a trial is repeated when the script, a module that it requires or the
// input is saved, also after they were removed or renamed.
func TestTryWatches(t *testing.T) {
	t.Chdir(t.TempDir())
	save := func(name, text string) {
		t.Helper()
		// As editors save: into another file that is then renamed.
		if err := os.WriteFile(".new", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(".new", name); err != nil {
			t.Fatal(err)
		}
	}
	script := func(label string) string {
		return "local weir, x = require 'weir', require 'x'\nreturn weir.transform { series = function(s) s.labels.mark = '" + label + "' .. x end }\n"
	}
	if err := os.Mkdir("lib", 0o755); err != nil {
		t.Fatal(err)
	}
	save("lib/x.lua", "return '1'\n")
	save("mark.lua", script("a"))
	save("in.prom", "up 1\n")

	out, in := io.Pipe()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		defer in.Close()
		done <- tryOptions{file: "mark.lua", input: "in.prom", format: "auto", limit: 10}.run(ctx, &terminal{out: in, err: in}, strings.NewReader(""))
	}()
	lines := bufio.NewScanner(out)
	until := func(text string) {
		t.Helper()
		var b strings.Builder
		for lines.Scan() {
			b.WriteString(lines.Text() + "\n")
			if strings.Contains(lines.Text(), text) {
				return
			}
		}
		t.Fatalf("no %q after\n%s", text, b.String())
	}
	until(`label mark: + "a1"`)
	until("ctrl-C ends")

	save("mark.lua", script("b"))
	until("changed  mark.lua")
	until(`label mark: + "b1"`)
	save("lib/x.lua", "return '2'\n")
	until(`label mark: + "b2"`)
	save("in.prom", "down 0\n")
	until("~ down 0")
	save("in.prom", "down\n")
	until("in.prom:1:5: ")
	save("in.prom", "up 2\n")
	until("~ up 2")
	save("mark.lua", "return 1 +\n")
	until("mark.lua:")
	if err := os.Rename("mark.lua", "mark.lua~"); err != nil {
		t.Fatal(err)
	}
	until("no such file or directory")
	save("mark.lua", script("c"))
	until(`label mark: + "c2"`)

	stop()
	if _, err := io.Copy(io.Discard, out); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Errorf("ended with %v", err)
	}
}
