package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/docs"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/service/http"
	"github.com/weir-run/weir/scripting"
)

// docsTopics returns the pages of the documentation that 'weir help TOPIC'
// prints. It omits the reference, which 'weir components' and 'weir doc' print.
// Findings of weir check have hidden topics with their sections of the page lint.
func docsTopics() []*cobra.Command {
	var topics []*cobra.Command
	for _, p := range docs.Pages() {
		if !strings.Contains(p.Name, "/") {
			topics = append(topics, &cobra.Command{Use: p.Name, Short: strings.TrimSuffix(p.Summary, "."), Long: strings.TrimSpace(p.Text)})
		}
	}
	if lint, ok := docs.Find("lint"); ok {
		for _, id := range append(slices.Clone(scripting.LintIDs), scripting.LintBadIgnore) {
			_, text, _ := strings.Cut(lint.Text, "\n## "+id+"\n")
			text, _, _ = strings.Cut(text, "\n## ")
			topics = append(topics, &cobra.Command{Use: id, Short: "A finding of weir check", Long: id + "\n\n" + strings.TrimSpace(text), Hidden: true})
		}
	}
	return topics
}

// mostFound is how many sections a search in the documentation returns.
const mostFound = 50

// documentation returns the documentation for the web UI.
func documentation() (out http.Docs) {
	for _, p := range docs.Pages() {
		out.Pages = append(out.Pages, http.DocPage{Name: p.Name, Title: p.Title, Summary: p.Summary})
	}
	out.HTML = func(name string) (http.Doc, bool) {
		p, ok := docs.Find(name)
		if name == "index" {
			p, ok = docs.Index(), true
		}
		if !ok {
			return http.Doc{}, false
		}
		html, err := p.HTML()
		if err != nil {
			html = "<p>This page cannot be shown; weir help prints it.</p>"
		}
		return http.Doc{Name: name, Title: p.Title, HTML: html}, true
	}
	out.Search = func(query string) []http.DocSection {
		found := []http.DocSection{}
		for _, s := range docs.Search(query, mostFound) {
			found = append(found, http.DocSection{Page: s.Page, Title: s.Title, Heading: s.Heading, Anchor: s.Anchor, Text: s.Text})
		}
		return found
	}
	return out
}

// manuals returns a function that prints the manual of a component of the catalogs.
func manuals(catalogs func() []component.Catalog) func(name string) (string, bool) {
	return func(name string) (string, bool) {
		r, ok := lookup(catalogs(), name)
		if !ok || r.Err != nil {
			return "", false
		}
		var b strings.Builder
		_ = writeManual(&b, false, r) // a strings.Builder takes everything
		return b.String(), true
	}
}
