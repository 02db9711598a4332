// Package wordlist checks the English of the repository: Markdown files, Go
// comments and Go string literals must not use the words below. It contains a
// test only, because codespell replaces single words and vale is neither a Go
// module nor a Debian package. Directories that do not pass yet are in
// testdata/allowed.txt with the number of their findings. The numbers may only
// fall: go test ./docs/wordlist -update lowers them.
package wordlist

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	update  = flag.Bool("update", false, "lower the numbers in testdata/allowed.txt")
	compile = regexp.MustCompile
)

// words are banned constructions and the text to write instead.
var words = []struct {
	re     *regexp.Regexp
	advice string
}{
	{compile(`(?i)\banew\b`), `write "again"`},
	{compile(`(?i)([^e]|[^r]e)\s(is|are) none\b`), `write "does not exist" or "there is no …"`},
	{compile(`(?i)\b(says?|said) so\b`), `write "reports this" or name the setting`},
	{compile(`(?i)\bso it does when\b`), `write the condition first: "if …, it …"`},
	{compile(`(?i)\bmakes? (nothing of|of (it|them|this|that|what|a|an|the))\b`), `write "uses" or "creates from"`},
	{compile(`(?i)\bthe ones? before\b`), `write "the previous …"`},
	{compile(`(?i)\bback-pressure\b`), `write "backpressure"`},
	{compile(`(?i)\bothers[.;:](\s|$)`), `name them: "the other nodes"`},
	{compile(`(?i)\b(is|are) owed\b`), `write "is pending"`},
	{compile(`(?i)[^"]\blanes?\b`), `write "shard"`}, // "lanes" is a key in meta.json,
	{compile(`(?i)\breceipts?\b`), `write "acknowledgement"`},
	{compile(`(?i)\bparcels?\b`), `name it: a payload, an emission, a write request`},
	{compile(`(?i)\bbeside\b`), `write "next to" or "in addition to"`},
	{compile(`(?i)\b(to|for|from|with|of|by|at) who\b`), `write "a user who …" or "anyone who …"`},
	{compile(`(?m)(^|[.:;]\s+)Who [^?.]*\.`), `begin with the subject: "Users who …"`},
	{compile(`(?m)(^|\.\s+)What [^?.]*\.`), `begin with the subject instead of a "What …" clause`},
}

func TestWords(t *testing.T) {
	allowed, found := readAllowed(t), map[string][]string{}
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if n := d.Name(); d.IsDir() && p != root && (n == "testdata" || n == "bin" || n == "wordlist" || strings.HasPrefix(n, ".")) {
			return fs.SkipDir
		}
		rel := filepath.ToSlash(strings.TrimPrefix(p, root+string(filepath.Separator)))
		switch {
		case strings.HasPrefix(rel, "docs/reference/"): // generated; its sources are checked
		case path.Ext(rel) == ".md": // each Markdown file has its own number
			b, err := os.ReadFile(p)
			found[rel] = check(rel, 1, code.ReplaceAllStringFunc(string(b), blank))
			return err
		case path.Ext(rel) == ".go" && !strings.HasSuffix(rel, "_gen.go"):
			uses, err := checkGo(p, rel)
			found[path.Dir(rel)] = append(found[path.Dir(rel)], uses...)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for key, uses := range found {
		if limit := allowed[key]; len(uses) > limit {
			t.Errorf("%s has %d banned constructions, want at most %d (testdata/allowed.txt):\n%s", key, len(uses), limit, strings.Join(uses, "\n"))
		}
	}
	var list strings.Builder
	for _, key := range slices.Sorted(maps.Keys(allowed)) {
		n := min(allowed[key], len(found[key]))
		if n < allowed[key] {
			t.Logf("%s has %d banned constructions left and may have %d: lower the limit with -update", key, n, allowed[key])
		}
		if n > 0 {
			fmt.Fprintf(&list, "%s %d\n", key, n)
		}
	}
	if *update {
		if err := os.WriteFile(filepath.Join("testdata", "allowed.txt"), []byte(list.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// checkGo returns the findings in the comments and string literals of a file.
func checkGo(file, rel string) (uses []string, err error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, file, nil, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	for _, c := range f.Comments {
		uses = append(uses, check(rel, fset.Position(c.Pos()).Line, c.Text())...)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			s, _ := strconv.Unquote(lit.Value)
			uses = append(uses, check(rel, fset.Position(lit.Pos()).Line, s)...)
		}
		return true
	})
	return uses, nil
}

// code is the code and the headings of a Markdown file.
var code = compile("(?ms)^ *```.*?^ *```|`[^`\n]+`|^#[^\n]*$")

// blank keeps the line numbers; no sentence continues after a block of code.
func blank(s string) string { return strings.Repeat("?\n", strings.Count(s, "\n")) + "x" }

func check(rel string, line int, text string) (uses []string) {
	for _, w := range words {
		for _, m := range w.re.FindAllStringIndex(text, -1) {
			uses = append(uses, fmt.Sprintf("%s:%d: %q: %s", rel, line+strings.Count(text[:m[0]], "\n"), text[m[0]:m[1]], w.advice))
		}
	}
	return uses
}

func readAllowed(t *testing.T) map[string]int {
	b, err := os.ReadFile(filepath.Join("testdata", "allowed.txt"))
	if err != nil {
		t.Fatal(err)
	}
	allowed := make(map[string]int)
	for line := range strings.Lines(string(b)) {
		key, n, _ := strings.Cut(strings.TrimSpace(line), " ")
		if allowed[key], err = strconv.Atoi(n); err != nil {
			t.Fatalf("testdata/allowed.txt: %q: %v", line, err)
		}
	}
	return allowed
}
