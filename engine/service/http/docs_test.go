package http_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/weir-run/weir/engine/service/http"
)

func TestDocs(t *testing.T) {
	s := run(t, house(t), http.Options{
		Docs: http.Docs{
			Pages: []http.DocPage{{Name: "logs", Title: "A & B", Summary: "About logs."}},
			HTML:  func(name string) (http.Doc, bool) { return http.Doc{Name: name, HTML: "<p>x</p>"}, name != "lost" },
			Search: func(query string) []http.DocSection {
				if query == "__proto__" {
					return nil
				}
				return []http.DocSection{{Page: "logs", Text: query}}
			},
		},
		Manual: func(name string) (string, bool) { return "manual of " + name, name == "a.sink" },
	})
	c, base := owner(t, s), "http://"+s.Address()
	f := func(path string, status int, want string) {
		t.Helper()
		res, body := get(t, c, "GET", base+path)
		if body = strings.Join(strings.Fields(body), " "); res != status || body != want {
			t.Errorf("%s: got %d and %s, want %d and %s", path, res, body, status, want)
		}
	}
	f("/api/v0/docs", 200, `{ "pages": [ { "name": "logs", "title": "A \u0026 B", "summary": "About logs." } ] }`)
	f("/api/v0/docs?search=a+b", 200, `{ "pages": [ { "name": "logs", "title": "A \u0026 B", "summary": "About logs." } ], "found": [ { "page": "logs", "title": "", "heading": "", "anchor": "", "text": "a b" } ] }`)
	f("/api/v0/docs?search=__proto__", 200, `{ "pages": [ { "name": "logs", "title": "A \u0026 B", "summary": "About logs." } ], "found": [] }`)
	f("/api/v0/docs/reference/components", 200, `{ "name": "reference/components", "title": "", "html": "\u003cp\u003ex\u003c/p\u003e" }`)
	f("/api/v0/docs/lost", 404, "the documentation has no page with this name")
	f("/api/v0/manual/a.sink", 200, `{ "name": "a.sink", "text": "manual of a.sink" }`)
	f("/api/v0/manual/nobody", 404, "there is no manual of nobody")
}

// TestNoDocs: a program that uses the service without documentation.
func TestNoDocs(t *testing.T) {
	s := run(t, house(t), http.Options{UI: fstest.MapFS{}})
	c, base := owner(t, s), "http://"+s.Address()
	for path, want := range map[string]int{"/api/v0/docs": 200, "/api/v0/docs?search=x": 200, "/api/v0/docs/logs": 404, "/api/v0/manual/a.sink": 404, "/": 404, "/ui/app.js": 404} {
		if status, body := get(t, c, "GET", base+path); status != want {
			t.Errorf("%s: got %d %s, want %d", path, status, body, want)
		}
	}
}
