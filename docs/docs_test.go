package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

const root = ".."

// markdown returns the paths of the Markdown files of the repository that people
// read, below root.
func markdown(t *testing.T) []string {
	t.Helper()
	var paths []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range found {
			rel, err := filepath.Rel(root, p)
			if err != nil {
				t.Fatal(err)
			}
			paths = append(paths, filepath.ToSlash(rel))
		}
	}
	return paths
}

// parsed is what other files can link to, and the links of a file.
type parsed struct {
	anchors []string
	links   []string
}

func parse(t *testing.T, path string) parsed {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	md := goldmark.New(goldmark.WithExtensions(extension.Table), goldmark.WithParserOptions(parser.WithAutoHeadingID()))
	doc := md.Parser().Parse(text.NewReader(b), parser.WithContext(parser.NewContext(parser.WithIDs(&headingIDs{}))))
	var p parsed
	err = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			if id, ok := n.AttributeString("id"); ok {
				p.anchors = append(p.anchors, string(id.([]byte)))
			}
		case *ast.Link:
			p.links = append(p.links, string(n.Destination))
		case *ast.Image:
			p.links = append(p.links, string(n.Destination))
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestLinks: relative links lead to files and headings that exist.
func TestLinks(t *testing.T) {
	files := map[string]parsed{}
	for _, path := range markdown(t) {
		files[path] = parse(t, path)
	}
	if len(files) < 10 {
		t.Fatalf("found %d Markdown files, want 10 or more", len(files))
	}
	for path, p := range files {
		for _, link := range p.links {
			if strings.Contains(link, "://") || strings.HasPrefix(link, "mailto:") {
				continue
			}
			file, anchor, _ := strings.Cut(link, "#")
			to := path
			if file != "" {
				to = filepath.ToSlash(filepath.Join(filepath.Dir(path), file))
			}
			if _, err := os.Stat(filepath.Join(root, to)); err != nil {
				t.Errorf("%s links to %s, which does not exist", path, link)
				continue
			}
			if anchor == "" {
				continue
			}
			if target, ok := files[to]; !ok || !slices.Contains(target.anchors, anchor) {
				t.Errorf("%s links to %s: %s has no heading with this anchor", path, link, to)
			}
		}
	}
}

// TestPages: README.md lists every page once, and each page has content.
func TestPages(t *testing.T) {
	listed := map[string]int{}
	for _, p := range Pages() {
		listed["docs/"+p.Name+".md"]++
		if !strings.HasPrefix(p.Text, "# ") {
			t.Errorf("%s is missing or does not begin with a heading", p.Name)
		}
		if !strings.HasSuffix(p.Summary, ".") {
			t.Errorf("%s: the summary %q is no sentence", p.Name, p.Summary)
		}
		if found, ok := Find(p.Name); !ok || found != p {
			t.Errorf("Find does not find %s", p.Name)
		}
	}
	for _, path := range markdown(t) {
		if strings.HasPrefix(path, "docs/") && path != "docs/README.md" && listed[path] != 1 {
			t.Errorf("docs/README.md lists %s %d times, want once", path, listed[path])
		}
	}
	if _, ok := Find("no-such-page"); ok {
		t.Error("Find finds a page that does not exist")
	}
}

// TestHTML: the HTML of the pages loads nothing, and its links are URLs of pages.
func TestHTML(t *testing.T) {
	outside := regexp.MustCompile(`src="(?:[^d]|d[^a])[^"]*"|<(script|style|iframe|object)`)
	local := regexp.MustCompile(`href="[^":]*\.md[^"]*"`)
	for _, p := range append(Pages(), Index()) {
		html, err := p.HTML()
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range append(outside.FindAllString(html, -1), local.FindAllString(html, -1)...) {
			t.Errorf("%s contains %s", p.Name, m)
		}
	}
}

func TestLinkRewriting(t *testing.T) {
	f := func(page, to, want string) {
		t.Helper()
		if got := (links{page}).link(to); got != want {
			t.Errorf("link to %s on page %s: got %q, want %q", to, page, got, want)
		}
	}
	f("logs", "operating.md", "operating")
	f("logs", "operating.md#limits", "operating#limits")
	f("logs", "#top", "#top")
	f("logs", "reference/components.md#a", "reference/components#a")
	f("logs", "README.md", "")
	f("reference/components", "../logs.md", "../logs")
	f("logs", "../SECURITY.md#listeners", repository+"SECURITY.md#listeners")
	f("logs", "https://example.com/a.md", "https://example.com/a.md")
}

func TestRawHTML(t *testing.T) {
	got, err := Page{Name: "x", Text: "# A\n\n<script>alert(1)</script>\n\n[b](javascript:alert(1))\n"}.HTML()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(got, "alert") {
		t.Errorf("got %s", got)
	}
}
