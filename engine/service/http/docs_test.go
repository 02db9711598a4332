package http_test

import (
	"strings"
	"testing"

	"github.com/weir-run/weir/engine/service/http"
)

func TestDocs(t *testing.T) {
	s := run(t, house(t), http.Options{Docs: func(name string) (http.Doc, bool) {
		return http.Doc{Title: "A & B", HTML: `<p id="x">page "` + name + `"</p>`}, name != "lost"
	}})
	c, base := owner(t, s), "http://"+s.Address()
	f := func(path string, status int, want string) {
		t.Helper()
		res, body := get(t, c, "GET", base+path)
		if res != status || !strings.Contains(body, want) {
			t.Errorf("%s: got %d and %s, want %d and %s", path, res, body, status, want)
		}
	}
	f("/docs/", 200, `<p id="x">page ""</p>`)
	f("/docs/logs", 200, "<title>A &amp; B – weir</title>")
	f("/docs/reference/components", 200, `page "reference/components"`)
	f("/docs/lost", 404, "no page with this name")
	f("/", 200, `<a href="/docs/">docs</a>`)

	res, err := c.Get(base + "/docs/logs")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if csp := res.Header.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") {
		t.Errorf("the page allows %q", csp)
	}
}
