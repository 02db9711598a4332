package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestGlossary: the glossary has at most 30 terms, in alphabetical order, each
// with one sentence, and the code or the other documentation uses each of them.
func TestGlossary(t *testing.T) {
	page, ok := Find("glossary")
	if !ok {
		t.Fatal("there is no page glossary")
	}
	entries := regexp.MustCompile(`(?m)^- \*\*(.+?)\*\*: (.+)$`).FindAllStringSubmatch(page.Text, -1)
	if n := strings.Count(page.Text, "\n- "); n != len(entries) || n == 0 || n > 30 {
		t.Errorf("got %d terms in %d lines, want one in each and at most 30", len(entries), n)
	}
	unused := map[string]bool{}
	var terms []string
	for _, e := range entries {
		terms = append(terms, e[1])
		unused[e[1]] = true
		if !strings.HasSuffix(e[2], ".") || strings.Contains(e[2], ". ") {
			t.Errorf("%s is explained by more or less than a sentence: %s", e[1], e[2])
		}
	}
	if !slices.IsSorted(terms) || len(unused) != len(terms) {
		t.Errorf("the terms are not sorted or not unique: %v", terms)
	}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || len(unused) == 0 {
			return err
		}
		if n := d.Name(); d.IsDir() && path != root && (n == "testdata" || n == "bin" || strings.HasPrefix(n, ".")) {
			return fs.SkipDir
		}
		if ext := filepath.Ext(path); d.IsDir() || ext != ".go" && ext != ".md" || filepath.Base(path) == "glossary.md" {
			return nil
		}
		b, err := os.ReadFile(path)
		text := strings.ToLower(string(b))
		for term := range unused {
			if strings.Contains(text, term) {
				delete(unused, term)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for term := range unused {
		t.Errorf("nothing uses the term %s", term)
	}
}
