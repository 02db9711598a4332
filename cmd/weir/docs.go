package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/docs"
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

// docsPage returns a page of the documentation for the web UI.
func docsPage(name string) (http.Doc, bool) {
	p, ok := docs.Find(name)
	if name == "" {
		p, ok = docs.Index(), true
	}
	if !ok {
		return http.Doc{}, false
	}
	html, err := p.HTML()
	if err != nil {
		html = "<p>This page cannot be shown; weir help prints it.</p>"
	}
	return http.Doc{Title: p.Title, HTML: html}, true
}
