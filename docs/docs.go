// Package docs is the documentation of weir: the Markdown files of this
// directory, embedded in the binary. `weir help` prints them, and the web UI
// shows them as HTML.
//
// README.md lists the pages in reading order. The pages below reference are
// generated from the manuals of the components, commands and script API, and from the
// descriptions of the routes of the HTTP API.
package docs

//go:generate go test ../cmd/weir -run ^TestReference$ -update

import (
	"embed"
	"io/fs"
	"regexp"
	"strings"
)

//go:embed *.md reference/*.md reference/openapi.json images/*.png images/*.svg
var files embed.FS

// Page is one page of the documentation.
type Page struct {
	Name    string // path without its ending, such as reference/components
	Title   string
	Summary string // what the page is about, a sentence
	Text    string // Markdown
}

// entry is a line of README.md that lists a page.
var entry = regexp.MustCompile(`(?m)^ *- \[(.+)\]\((.+)\.md\): (.+)$`)

// Pages returns all pages in reading order.
func Pages() []Page {
	var pages []Page
	for _, m := range entry.FindAllStringSubmatch(read("README.md"), -1) {
		pages = append(pages, Page{Name: m[2], Title: m[1], Summary: m[3], Text: read(m[2] + ".md")})
	}
	return pages
}

// Index returns the page that lists all pages.
func Index() Page {
	return Page{Name: "README", Title: "Documentation", Text: read("README.md")}
}

// Find returns the page with a name.
func Find(name string) (Page, bool) {
	for _, p := range Pages() {
		if p.Name == name {
			return p, true
		}
	}
	return Page{}, false
}

// OpenAPI returns the OpenAPI document of the HTTP API. It must not be modified.
func OpenAPI() []byte { return []byte(read("reference/openapi.json")) }

// read returns the text of a file. A file that is missing is empty; the tests
// make sure that the pages exist.
func read(path string) string {
	b, _ := fs.ReadFile(files, strings.TrimPrefix(path, "./"))
	return string(b)
}
