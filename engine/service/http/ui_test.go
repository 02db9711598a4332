package http_test

import (
	"io"
	nethttp "net/http"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/weir-run/weir/engine/service/http"
)

// page is a small web UI.
var page = fstest.MapFS{
	"index.html": {Data: []byte(`<!doctype html><link rel="stylesheet" href="ui/app.css"><script type="module" src="ui/app.js"></script>`)},
	"ui/app.js":  {Data: []byte("console.log(1)")},
	"ui/app.css": {Data: []byte("a {}")},
}

func TestUI(t *testing.T) {
	s := run(t, house(t), http.Options{UI: page})
	c := owner(t, s)
	f := func(path, encoding, kind, want string) {
		t.Helper()
		req, err := nethttp.NewRequestWithContext(t.Context(), "GET", "http://"+s.Address()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if encoding != "" {
			req.Header.Set("Accept-Encoding", encoding) // otherwise the client decompresses
		}
		res, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		h := res.Header
		if res.StatusCode != 200 || h.Get("Content-Type") != kind || !strings.HasPrefix(string(body), want) {
			t.Errorf("%s: got %d, %s and %.60q, want %s and %q", path, res.StatusCode, h.Get("Content-Type"), body, kind, want)
		}
		if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("X-Frame-Options") != "DENY" {
			t.Errorf("%s: got the headers %v", path, h)
		}
		policy := h.Get("Content-Security-Policy")
		for _, rule := range []string{"default-src 'none'", "script-src 'self';", "style-src 'self';", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"} {
			if !strings.Contains(policy, rule) {
				t.Errorf("%s: the policy %q has no %s", path, policy, rule)
			}
		}
		if strings.Contains(policy, "unsafe") {
			t.Errorf("%s allows %q", path, policy)
		}
	}
	f("/", "", "text/html; charset=utf-8", "<!doctype html>")
	f("/ui/app.js", "", "text/javascript; charset=utf-8", "console.log(1)")
	f("/ui/app.css", "", "text/css; charset=utf-8", "a {}")
	f("/ui/app.js", "gzip, br", "text/javascript; charset=utf-8", "\x1f\x8b")
	f("/ui/app.js", "identity", "text/javascript; charset=utf-8", "console.log(1)")

	for _, path := range []string{"/ui/lost.js", "/ui/..%2findex.html", "/ui/", "/app.js"} {
		if status, _ := get(t, c, "GET", "http://"+s.Address()+path); status != 404 {
			t.Errorf("%s: got %d, want 404", path, status)
		}
	}
}
