package docs

import (
	"slices"
	"strings"
	"sync"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// Section is a part of a page that begins with a heading.
type Section struct {
	Page    string // name
	Title   string // of the page
	Heading string // "" for the beginning of the page
	Anchor  string // of the heading; "" for the beginning of the page
	Text    string // without markup

	lower string // heading and text in lower case
}

// sections are all sections of all pages in reading order.
var sections = sync.OnceValue(func() (out []Section) {
	for _, p := range Pages() {
		out = append(out, sectionsOf(p)...)
	}
	return out
})

func sectionsOf(p Page) (out []Section) {
	source := []byte(p.Text)
	md := goldmark.New(goldmark.WithExtensions(extension.Table), goldmark.WithParserOptions(parser.WithAutoHeadingID()))
	doc := md.Parser().Parse(text.NewReader(source), parser.WithContext(parser.NewContext(parser.WithIDs(&headingIDs{}))))
	s := Section{Page: p.Name, Title: p.Title}
	var body strings.Builder
	end := func() {
		s.Text = strings.Join(strings.Fields(body.String()), " ")
		s.lower = strings.ToLower(s.Heading + " " + s.Text)
		out = append(out, s)
		body.Reset()
	}
	for n := doc.FirstChild(); n != nil; n = n.NextSibling() {
		h, ok := n.(*ast.Heading)
		if !ok {
			plain(&body, n, source)
			continue
		}
		if h.Level == 1 {
			continue // the title
		}
		end()
		var heading strings.Builder
		plain(&heading, h, source)
		id, _ := h.AttributeString("id")
		anchor, _ := id.([]byte)
		s.Heading, s.Anchor = strings.TrimSpace(heading.String()), string(anchor)
	}
	end()
	return out
}

// plain writes the text of a node without markup.
func plain(b *strings.Builder, n ast.Node, source []byte) {
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch {
		case !entering:
			if n.Type() == ast.TypeBlock {
				b.WriteByte(' ')
			}
		case n.Kind() == ast.KindText:
			t := n.(*ast.Text)
			b.Write(t.Value(source))
			if t.SoftLineBreak() || t.HardLineBreak() {
				b.WriteByte(' ')
			}
		case n.Kind() == ast.KindCodeBlock || n.Kind() == ast.KindFencedCodeBlock:
			b.Write(n.Lines().Value(source))
		}
		return ast.WalkContinue, nil
	})
}

// excerptLength is the length of the text of a section that Search returns, in bytes.
const excerptLength = 240

// Search returns at most most sections that contain all words of query, those with the words in the
// heading first. Case does not matter. The text is an excerpt around the first word.
func Search(query string, most int) (found []Section) {
	words := strings.Fields(strings.ToLower(query))
	if len(words) == 0 {
		return nil
	}
	var others []Section
	for _, s := range sections() {
		switch heading := strings.ToLower(s.Title + " " + s.Heading); {
		case containsAll(heading, words):
			found = append(found, s)
		case containsAll(s.lower, words):
			others = append(others, s)
		}
	}
	found = append(found, others...)
	found = slices.Clone(found[:min(len(found), most)])
	for i := range found {
		found[i].Text = excerpt(found[i].Text, words[0])
	}
	return found
}

func containsAll(text string, words []string) bool {
	return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
}

// excerpt returns the part of a text around a word, in whole words.
func excerpt(text, word string) string {
	from := max(0, strings.Index(strings.ToLower(text), word)-excerptLength/3)
	if from > len(text) { // lower case may be longer
		from = 0
	}
	if i := strings.IndexByte(text[from:], ' '); from > 0 && i >= 0 {
		from += i + 1
	}
	to := min(len(text), from+excerptLength)
	if to < len(text) {
		if i := strings.LastIndexByte(text[from:to], ' '); i > 0 {
			to = from + i
		}
	}
	out := strings.ToValidUTF8(text[from:to], "")
	if from > 0 {
		out = "…" + out
	}
	if to < len(text) {
		out += "…"
	}
	return out
}
