package docs

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"path"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// repository is where links to files outside of docs lead.
const repository = "https://github.com/weir-run/weir/blob/main/"

// HTML returns the page as HTML. Links between pages are relative URLs without
// the ending .md, images are data URLs, and raw HTML in the Markdown is
// left out. The HTML needs no other resources.
func (p Page) HTML() (string, error) {
	md := goldmark.New(goldmark.WithExtensions(extension.Table), goldmark.WithParserOptions(
		parser.WithAutoHeadingID(), parser.WithASTTransformers(util.Prioritized(links{p.Name}, 100))))
	var b bytes.Buffer
	err := md.Convert([]byte(p.Text), &b, parser.WithContext(parser.NewContext(parser.WithIDs(&headingIDs{}))))
	if err != nil {
		return "", fmt.Errorf("cannot render the page %s: %w", p.Name, err)
	}
	return b.String(), nil
}

// links rewrites the destinations of the links and images of a page.
type links struct{ page string }

// Transform implements parser.ASTTransformer.
func (l links) Transform(doc *ast.Document, _ text.Reader, _ parser.Context) {
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			switch n := n.(type) {
			case *ast.Link:
				n.Destination = []byte(l.link(string(n.Destination)))
			case *ast.Image:
				n.Destination = []byte(l.image(string(n.Destination)))
			}
		}
		return ast.WalkContinue, nil
	})
}

func (l links) link(to string) string {
	if strings.Contains(to, ":") || strings.HasPrefix(to, "#") { // a URL, or this page
		return to
	}
	file, anchor, _ := strings.Cut(to, "#")
	if anchor != "" {
		anchor = "#" + anchor
	}
	// The path below the repository's root.
	at := path.Join("docs", path.Dir(l.page), file)
	if name, ok := strings.CutSuffix(at, ".md"); ok && strings.HasPrefix(at, "docs/") {
		return strings.TrimSuffix(file, path.Base(file)) + strings.TrimPrefix(path.Base(name), "README") + anchor
	}
	return repository + at + anchor
}

func (l links) image(to string) string {
	b, err := files.ReadFile(path.Join(path.Dir(l.page), to))
	if err != nil {
		return to
	}
	kind := "image/png"
	if strings.HasSuffix(to, ".svg") {
		kind = "image/svg+xml"
	}
	return "data:" + kind + ";base64," + base64.StdEncoding.EncodeToString(b)
}

// headingIDs makes the anchors of headings as GitHub does, so that the same links
// work there.
type headingIDs struct{ used map[string]int }

// Generate implements parser.IDs.
func (h *headingIDs) Generate(heading []byte, _ ast.NodeKind) []byte {
	var b strings.Builder
	for _, r := range strings.ToLower(string(heading)) {
		switch {
		case r == ' ':
			b.WriteByte('-')
		case r == '-' || r == '_' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r > 127 && r != '·' && r != '…':
			b.WriteRune(r)
		}
	}
	id := b.String()
	if h.used == nil {
		h.used = map[string]int{}
	}
	n := h.used[id]
	h.used[id]++
	if n > 0 {
		id = fmt.Sprintf("%s-%d", id, n)
	}
	return []byte(id)
}

// Put implements parser.IDs.
func (h *headingIDs) Put([]byte) {}
