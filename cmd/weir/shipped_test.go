package main

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/weir-run/weir/engine/config"
)

// TestShippedScriptsConfigs checks that the header of each script that ships with
// weir contains a valid config.
func TestShippedScriptsConfigs(t *testing.T) {
	none := t.TempDir()
	cs, err := scriptsUse{}.catalogs(none)
	if err != nil {
		t.Fatal(err)
	}
	scripted := cs[len(cs)-1]
	for _, name := range scripted.Names() {
		r, _ := scripted.Lookup(name)
		block := headerConfig(name, r.Doc.Summary)
		if block == "" {
			if !strings.HasPrefix(name, "demo.") { // the quickstart contains it
				t.Errorf("%s has no config in its header", name)
			}
			continue
		}
		checkHeaderConfig(t, name, block, none)
	}
}

// checkHeaderConfig checks that the config in the header of a script is valid, next to
// a folder of scripts.
func checkHeaderConfig(t *testing.T, name, block, scripts string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.alloy")
	block += "\n\nprometheus.remote_write \"default\" {\n  endpoint {\n    url = \"http://127.0.0.1:1/api/v1/write\"\n  }\n}\n\n" +
		"loki.write \"default\" {\n  endpoint {\n    url = \"http://127.0.0.1:1/loki/api/v1/push\"\n  }\n}\n"
	if err := os.WriteFile(path, []byte(block), 0o600); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	if code := execute(t.Context(), &terminal{out: io.Discard, err: &said}, []string{"check", "--scripts=" + scripts, path}); code != exitOK {
		t.Errorf("%s: the config in its header is not valid:\n%s\n%s", name, block, &said)
	}
}

// headerConfig returns the config block of a script in the text of its header, or
// "". The block ends with the first bracket that has the same indentation as its
// beginning.
func headerConfig(name, text string) string {
	begin := regexp.MustCompile(`(?m)^( *)` + regexp.QuoteMeta(name) + ` "default" \{$`).FindStringSubmatchIndex(text)
	if begin == nil {
		return ""
	}
	rest := text[begin[0]:]
	end := "\n" + text[begin[2]:begin[3]] + "}"
	return rest[:strings.Index(rest+end, end)] + end
}

// TestShippedConfigsAreFormatted checks that 'weir fmt -t' accepts every config
// that ships with weir or is printed: the quickstart, the examples of components,
// the headers of scripts, and the configs in the documentation.
func TestShippedConfigsAreFormatted(t *testing.T) {
	check := func(where, text string) {
		t.Helper()
		formatted, ds := config.Format(where, text)
		if len(ds) > 0 {
			t.Errorf("%s: %v", where, ds)
		} else if strings.TrimSpace(formatted) != strings.TrimSpace(text) {
			t.Errorf("%s is not formatted, want:\n%s", where, formatted)
		}
	}
	n := 0
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || path != root && strings.HasPrefix(d.Name(), ".") || d.Name() == "bin" || d.Name() == "weirbench") { // its configs are templates
			return fs.SkipDir
		}
		ext := filepath.Ext(path)
		if d.IsDir() || ext != ".alloy" && ext != ".md" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if ext == ".alloy" {
			n++
			check(path, string(text))
			return nil
		}
		blocks, err := docBlocks("", path)
		if err != nil {
			return err
		}
		for _, b := range blocks {
			if b.lang == "alloy" {
				n++
				check(path, b.text)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	all, err := usable(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		for _, name := range c.Names() {
			r, _ := c.Lookup(name)
			check("the example of "+name, exampleOf(r))
			if header := headerConfig(name, r.Doc.Summary); header != "" {
				n++
				indent := header[:len(header)-len(strings.TrimLeft(header, " "))]
				check("the header of "+name, strings.ReplaceAll("\n"+header, "\n"+indent, "\n"))
			}
		}
	}
	if n < 50 {
		t.Errorf("only %d configs were found", n)
	}
}
