package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Every command and every topic has a manual page, which man can format.
func TestManPages(t *testing.T) {
	dir := t.TempDir()
	root := rootCommand(&terminal{out: io.Discard, err: io.Discard})
	root.SetArgs([]string{"man", "--dir", dir})
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	groff, missing := exec.LookPath("groff")
	var all func(c *cobra.Command)
	all = func(c *cobra.Command) {
		if c.Hidden || c.Name() == "help" {
			return
		}
		name := strings.ReplaceAll(c.CommandPath(), " ", "-")
		path := filepath.Join(dir, "man1", name+".1")
		if !c.Runnable() && !c.HasSubCommands() {
			path = filepath.Join(dir, "man7", name+".7")
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
			return
		}
		if missing == nil {
			cmd := exec.Command(groff, "-man", "-Kutf8", "-Tutf8", "-ww", "-P-c", "-z")
			cmd.Stdin = strings.NewReader(string(text))
			if out, err := cmd.CombinedOutput(); err != nil || strings.Contains(string(out), "warning") && !strings.Contains(string(out), "cannot adjust line") && !strings.Contains(string(out), "can't break line") {
				t.Errorf("groff %s: %v\n%s", path, err, out)
			}
		}
		for _, sub := range c.Commands() {
			all(sub)
		}
	}
	all(root)
}

// A page has the parts of the help text, and special characters are kept.
func TestManPage(t *testing.T) {
	c := &cobra.Command{
		Use: "x NODE", Short: "Do -it", Long: ".dot \\ 'a'\nmore\n\n  kept  line\n\n  another\n\n## Part\n\n```sh\nls -l\n```\n- item", Example: "  x --a",
		Run: func(*cobra.Command, []string) {},
	}
	c.Flags().StringP("out", "o", "y", "a `FILE`")
	c.Flags().Bool("gone", false, "")
	if err := c.Flags().MarkHidden("gone"); err != nil {
		t.Fatal(err)
	}
	got := manPage{c, 1}.roff()
	for _, want := range []string{
		"\n.SH NAME\nx \\- Do \\-it\n.SH SYNOPSIS\n.nf\n.B x NODE [flags]\n.fi\n",
		"\n.SH DESCRIPTION\n\\&.dot \\e \\(aqa\\(aq\nmore\n.PP\n.nf\n.RS 4\nkept  line\n\nanother\n.RE\n.fi\n.PP\n.SS Part\n.PP\n.nf\n.RS 4\nls \\-l\n.RE\n.fi\n.PP\n.PP\n\\- item\n",
		"\n.SH OPTIONS\n.TP\n.B \\-o, \\-\\-out FILE\na FILE (default y)\n.SH EXAMPLES\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the page does not contain %q:\n%s", want, got)
		}
	}
	if strings.Contains(got, "gone") {
		t.Errorf("the page contains a hidden flag:\n%s", got)
	}
}
