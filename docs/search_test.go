package docs

import (
	"strings"
	"testing"
)

func TestSearch(t *testing.T) {
	f := func(query, page, anchor string) {
		t.Helper()
		for _, s := range Search(query, 50) {
			if s.Page == page && s.Anchor == anchor {
				return
			}
		}
		t.Errorf("%q does not find %s#%s", query, page, anchor)
	}
	f("live records", "operating", "live-records")
	f("LIVE   Records", "operating", "live-records")
	f("canary max_errors", "hot-reload", "canary")
	f("positions loki.source.file", "reference/components", "lokisourcefile")
	if first := Search("shadow", 1); len(first) != 1 || first[0].Heading != "Shadow" {
		t.Errorf("got %v first, want the section Shadow", first)
	}
	for _, query := range []string{"", "  ", "no-such-word-anywhere"} {
		if got := Search(query, 10); len(got) != 0 {
			t.Errorf("%q finds %d sections", query, len(got))
		}
	}
	for _, s := range Search("the", 1000) {
		if len(s.Text) > excerptLength+2*len("…") || !strings.Contains(strings.ToLower(s.Text+s.Heading+s.Title), "the") {
			t.Errorf("%s#%s: the excerpt is %q", s.Page, s.Anchor, s.Text)
		}
	}
	if got := len(Search("the", 3)); got != 3 {
		t.Errorf("got %d sections, want 3", got)
	}
}

// TestSections: every section of every page can be linked to.
func TestSections(t *testing.T) {
	for _, p := range Pages() {
		html, err := p.HTML()
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range sectionsOf(p) {
			if s.Anchor != "" && !strings.Contains(html, `id="`+s.Anchor+`"`) {
				t.Errorf("%s has no anchor %s", p.Name, s.Anchor)
			}
		}
	}
}
