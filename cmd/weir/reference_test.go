package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/weir-run/weir/engine/api"
)

// TestReference: the generated pages of the documentation are up to date. With
// -update, which make generated uses, it writes them.
func TestReference(t *testing.T) {
	catalogs, err := usable(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	f := func(page string, write func(w io.Writer) error) {
		t.Helper()
		var b strings.Builder
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("..", "..", "docs", "reference", page)
		if *update {
			if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if want := b.String(); string(got) != want {
			t.Errorf("%s is out of date; run: go generate ./docs (-is +should be)\n%s", path, cmp.Diff(strings.Split(string(got), "\n"), strings.Split(want, "\n")))
		}
	}
	f("components.md", func(w io.Writer) error { return writeAllManuals(w, catalogs) })
	f("script-api.md", func(w io.Writer) error { return writeBook(w, book(), "") })
	document, err := api.Document("The HTTP API", "v0", apiText, apiRoutes(), comments{}.of)
	if err != nil {
		t.Fatal(err)
	}
	f("openapi.json", func(w io.Writer) error { _, err := w.Write(document); return err })
	f("api.md", func(w io.Writer) error { return api.WriteMarkdown(w, document) })
	f("commands.md", func(w io.Writer) error {
		fmt.Fprint(w, "# Commands\n\nThe commands of weir, as `weir COMMAND --help` prints them.\n")
		writeCommands(w, rootCommand(&terminal{out: io.Discard, err: io.Discard}))
		return nil
	})
}

func writeCommands(w io.Writer, c *cobra.Command) {
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() && sub.Name() != "help" {
			fmt.Fprintf(w, "\n## %s\n\n```text\n%s\n\n%s```\n", sub.CommandPath(), strings.TrimSpace(sub.Long), sub.UsageString())
			writeCommands(w, sub)
		}
	}
}
