package http_test

import (
	"fmt"
	"log/slog"
	nethttp "net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/audit"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/service/http"
)

// TestAudit: changes are recorded with their caller and outcome, also refused ones, and
// reads are not. Secrets are not recorded.
func TestAudit(t *testing.T) {
	h := &host{components: map[string]component.Component{"a.b.c": server{}, "a.failing.c": failing{}}}
	l := audit.New(slog.New(slog.DiscardHandler))
	s := http.New(http.Options{Listen: "127.0.0.1:0", Audit: l})
	if err := s.Update(&http.Arguments{Auth: &http.AuthArguments{Basic: &http.BasicArguments{Username: "me", Password: "hunter2"}}}); err != nil {
		t.Fatal(err)
	}
	serve(t, s, h)
	base := "http://" + s.Address()
	token, page := owner(t, s), session(t, s)
	login := client(t, nil)
	login.Transport = withHeader{"Authorization", "Basic bWU6aHVudGVyMg==", login.Transport}
	// Reads.
	for _, path := range []string{"/api/v0/status", "/api/v0/control/a.b.c/state", "/api/v0/audit"} {
		get(t, token, "GET", base+path)
		get(t, token, "HEAD", base+path)
	}
	// Without access.
	get(t, client(t, nil), "POST", base+"/api/v0/control/a.b.c/rollback")
	get(t, token, "POST", base+"/-/page")

	get(t, token, "POST", base+"/-/reload?wait=true")
	get(t, login, "POST", base+"/api/v0/control/a.b.c/rollback?version=abc")
	get(t, page, "PUT", base+"/api/v0/control/a.b.c/state/seen?key=k&value=hunter2")
	get(t, token, "POST", base+"/api/v0/control/a.failing.c/replay", "Accept", "application/json")
	get(t, token, "POST", base+"/api/v0/control/nowhere/unpin")
	for _, path := range []string{"/-/reload", "/-/reload/preview", "/-/page"} {
		s.Handler().ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), "POST", "http://weir"+path, nil))
	}
	get(t, client(t, nil), "GET", base+"/-/page?token=ABCDEFGH")
	get(t, client(t, nil), "GET", base+"/-/page?token=ABCDEFGH", "Accept", "text/html")

	var got []string
	id := regexp.MustCompile(`session [0-9a-f]{8}`)
	for _, e := range l.Entries() {
		text := fmt.Sprintf("%s (%s): %s: %s %d %s", e.Who, e.Remote, e.Request, e.Outcome, e.Status, e.Message)
		got = append(got, id.ReplaceAllString(text, "session ID"))
	}
	want := []string{
		"session ID (127.0.0.1): GET /-/page?token=%28hidden%29: done 303 ",
		"token (127.0.0.1): POST /-/reload?wait=true: done 200 ",
		"login me (127.0.0.1): POST /api/v0/control/a.b.c/rollback?version=abc: done 200 ",
		"session ID (127.0.0.1): PUT /api/v0/control/a.b.c/state/seen?key=k&value=%28hidden%29: done 200 ",
		"token (127.0.0.1): POST /api/v0/control/a.failing.c/replay: refused 418 mine",
		"token (127.0.0.1): POST /api/v0/control/nowhere/unpin: refused 404 no component runs as nowhere",
		"socket (): POST /-/reload: done 200 ",
		"socket (): POST /-/page: done 200 ",
		"link (127.0.0.1): GET /-/page?token=%28hidden%29: refused 401 refused: the link has been used or has expired: print another with 'weir page'",
		"link (127.0.0.1): GET /-/page?token=%28hidden%29: refused 401 refused: the link has been used or has expired: print another with 'weir page'",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if e := l.Entries(); e[0].Who != e[3].Who {
		t.Errorf("the session that began as %q changed something as %q", e[0].Who, e[3].Who)
	}
	_, body := get(t, token, "GET", base+"/api/v0/audit")
	if !strings.Contains(body, `"request": "POST /-/reload?wait=true"`) || strings.Contains(body, "hunter2") || strings.Contains(body, s.Token()) {
		t.Errorf("got %s", body)
	}

	s = http.New(http.Options{})
	serve(t, s, h)
	rec := httptest.NewRecorder()
	for rec.Code = nethttp.StatusServiceUnavailable; rec.Code == nethttp.StatusServiceUnavailable; {
		rec = httptest.NewRecorder()
		s.Handler().ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), "GET", "http://weir/api/v0/audit", nil))
	}
	if rec.Code != 404 || rec.Body.String() != "this weir has no audit log\n" {
		t.Errorf("got %d %s without a log", rec.Code, rec.Body)
	}
}
