package http_test

import (
	"fmt"
	nethttp "net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weir-run/weir/engine/clock/clocktest"
	"github.com/weir-run/weir/engine/service/http"
)

// session is a browser that opened the page: paths are those of its session.
func session(t *testing.T, s *http.Service) *nethttp.Client {
	t.Helper()
	c := client(t, nil)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Jar = jar
	res, err := c.Get(s.PageURL())
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	base := res.Header.Get("Location")
	if res.StatusCode != 303 || !strings.HasPrefix(base, "/s/") || !strings.HasSuffix(base, "/") {
		t.Fatalf("got %s to %q", res.Status, base)
	}
	// The jar is asked before a transport could change the path.
	at, err := url.Parse("http://" + s.Address() + base)
	if err != nil {
		t.Fatal(err)
	}
	if elsewhere, _ := url.Parse("http://" + s.Address() + "/api/v0/component/x/"); len(jar.Cookies(elsewhere)) != 0 || len(jar.Cookies(at)) != 1 {
		t.Fatalf("the cookie goes to other paths: %v", res.Cookies())
	}
	c.Transport = inSession{strings.TrimSuffix(base, "/"), jar.Cookies(at), c.Transport}
	return c
}

type inSession struct {
	base    string
	cookies []*nethttp.Cookie
	nethttp.RoundTripper
}

func (i inSession) RoundTrip(r *nethttp.Request) (*nethttp.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Path = i.base + r.URL.Path
	for _, c := range i.cookies {
		r.AddCookie(c)
	}
	return i.RoundTripper.RoundTrip(r)
}

func TestSession(t *testing.T) {
	clk := clocktest.New(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	h := house(t)
	s := run(t, h, http.Options{Clock: clk})
	c, base := client(t, nil), "http://"+s.Address()

	// A link works once, and leads to an address without the token.
	link := s.PageURL()
	r, err := nethttp.NewRequest("HEAD", link, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, method := range []string{"HEAD", "GET"} { // a program that looks at links does not use it up
		r.Method = method
		res, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if method == "HEAD" {
			continue
		}
		_, token, _ := strings.Cut(link, "token=")
		cookies := res.Cookies()
		if to := res.Header.Get("Location"); res.StatusCode != 303 || len(cookies) != 1 || strings.Contains(to, token) || cookies[0].Path != to {
			t.Fatalf("got %s to %s with %v", res.Status, to, cookies)
		}
		if c := cookies[0]; !c.HttpOnly || c.SameSite != nethttp.SameSiteStrictMode || c.MaxAge != 12*60*60 || c.Domain != "" {
			t.Errorf("got cookie %v", c)
		}
		if got := res.Header.Get("Referrer-Policy"); got != "no-referrer" {
			t.Errorf("got Referrer-Policy %q", got)
		}
	}
	if status, body := get(t, c, "GET", link); status != 401 || !strings.Contains(body, "weir page") {
		t.Errorf("the link again: got %d %q", status, body)
	}
	if status, body := get(t, c, "GET", link, "Accept", "text/html"); status != 401 || !strings.Contains(body, "<pre>weir page</pre>") {
		t.Errorf("the link again in a browser: got %d %q", status, body)
	}

	// Everything is there, and links stay in the session.
	in := session(t, s)
	prefix := in.Transport.(inSession).base
	for path, want := range map[string]string{
		"/":                    `src="ui/app.js"`,
		"/ui/app.js":           "console",
		"/api/v0/status":       `"arguments"`,
		"/-/healthy":           "no disk",
		"/debug/pprof/cmdline": "",
	} {
		if _, body := get(t, in, "GET", base+path); !strings.Contains(body, want) {
			t.Errorf("%s in a session has no %s:\n%s", path, want, body)
		}
	}
	if status, _ := get(t, in, "POST", base+"/-/reload"); status != 200 || h.reloads != 1 {
		t.Errorf("got %d, %d reloads", status, h.reloads)
	}
	// A session cannot prolong itself.
	if status, _ := get(t, in, "POST", base+"/-/page"); status != 403 {
		t.Errorf("a session made a link: got %d", status)
	}

	// A change needs the secret ID of the session in its path: the cookie, which a browser
	// sends by itself, is not enough.
	cookie := in.Transport.(inSession).cookies[0].String()
	for path, want := range map[string]int{"/-/reload": 401, "/s/x/-/reload": 401, session(t, s).Transport.(inSession).base + "/-/reload": 401, prefix + "/-/reload": 200} {
		before := h.reloads
		if status, _ := get(t, c, "POST", base+path, "Cookie", cookie, "Origin", base, "Sec-Fetch-Site", "same-origin"); status != want || h.reloads-before != map[int]int{200: 1}[want] {
			t.Errorf("POST %s with the cookie: got %d and %d reloads, want %d", path, status, h.reloads-before, want)
		}
	}

	// The path without the cookie is nothing, nor is the cookie of another session.
	if status, _ := get(t, c, "GET", base+prefix+"/"); status != 401 {
		t.Errorf("without the cookie: got %d", status)
	}
	other := session(t, s).Transport.(inSession)
	if status, _ := get(t, c, "GET", base+prefix+"/", "Cookie", other.cookies[0].String()); status != 401 {
		t.Errorf("with the cookie of another session: got %d", status)
	}
	if status, _ := get(t, c, "GET", base+"/", "Cookie", other.cookies[0].String()); status != 401 {
		t.Errorf("with a cookie and no session: got %d", status)
	}
	// A link on a page of another site: the browser leaves the cookie out, and
	// asks again from weir's own page.
	navigate := []string{"Accept", "text/html", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}
	if status, body := get(t, c, "GET", base+prefix+"/", navigate...); status != 401 || !strings.Contains(body, `http-equiv="refresh"`) {
		t.Errorf("a link elsewhere: got %d %s", status, body)
	}
	if _, body := get(t, c, "GET", base+"/s/unknown/", navigate...); strings.Contains(body, `http-equiv="refresh"`) {
		t.Errorf("a session that does not exist asks again: %s", body)
	}

	// Links and sessions end.
	late := s.PageURL()
	clk.Advance(10 * time.Minute)
	if status, _ := get(t, c, "GET", late); status != 401 {
		t.Errorf("an old link: got %d", status)
	}
	if status, _ := get(t, in, "GET", base+"/"); status != 200 {
		t.Errorf("after ten minutes: got %d", status)
	}
	clk.Advance(12 * time.Hour)
	if status, body := get(t, in, "GET", base+"/"); status != 401 || !strings.Contains(body, "the session has ended") {
		t.Errorf("after twelve hours: got %d %s", status, body)
	}
}

// TestSessionLimits: the number of links and sessions is bounded; the oldest one
// ends, and that is counted.
func TestSessionLimits(t *testing.T) {
	clk := clocktest.New(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	reg := prometheus.NewRegistry()
	s := run(t, house(t), http.Options{Clock: clk, Registerer: reg})
	c, base := client(t, nil), "http://"+s.Address()
	limited := func(links, sessions int) {
		t.Helper()
		want := fmt.Sprintf(`# HELP weir_http_limited_total How often a limit of weir's own port took effect: page_links and page_sessions ended the oldest one, failed_logins refused an address, failed_login_addresses forgot the failed logins of one, connections closed a new one.
# TYPE weir_http_limited_total counter
weir_http_limited_total{limit="connections"} 0
weir_http_limited_total{limit="failed_login_addresses"} 0
weir_http_limited_total{limit="failed_logins"} 0
weir_http_limited_total{limit="page_links"} %d
weir_http_limited_total{limit="page_sessions"} %d
`, links, sessions)
		if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "weir_http_limited_total"); err != nil {
			t.Error(err)
		}
	}
	var ins []*nethttp.Client
	for range 17 {
		ins = append(ins, session(t, s))
		clk.Advance(time.Second)
	}
	limited(0, 1)
	for i, in := range ins {
		want := 200
		if i == 0 {
			want = 401
		}
		if status, _ := get(t, in, "GET", base+"/"); status != want {
			t.Errorf("session %d: got %d, want %d", i, status, want)
		}
	}
	clk.Advance(13 * time.Hour) // all have ended: room is made without a limit
	session(t, s)
	limited(0, 1)
	var links []string
	for range 17 {
		links = append(links, s.PageURL())
		clk.Advance(time.Second)
	}
	for i, link := range links[:2] {
		want := []int{401, 303}[i]
		if status, _ := get(t, c, "GET", link); status != want {
			t.Errorf("link %d: got %d, want %d", i, status, want)
		}
	}
	limited(1, 1)
}

// TestGuesses: an address cannot try passwords as fast as it likes, and cannot
// lock out a client that is logged in.
func TestGuesses(t *testing.T) {
	clk := clocktest.New(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	s := run(t, house(t), http.Options{Clock: clk})
	update(t, s, &http.Arguments{Auth: &http.AuthArguments{Basic: &http.BasicArguments{Username: "me", Password: "secret"}}})
	base := "http://" + s.Address()
	const right, wrong = "Basic bWU6c2VjcmV0", "Basic bWU6d3Jvbmc="
	f := func(c *nethttp.Client, authorization string, want int) {
		t.Helper()
		if status, body := get(t, c, "GET", base+"/", "Authorization", authorization); status != want {
			t.Errorf("got %d %s, want %d", status, body, want)
		}
	}
	in, guesser := client(t, nil), client(t, nil) // each has its own connection
	for range 50 {
		f(in, right, 200) // right ones are not counted
	}
	for range 20 {
		f(guesser, wrong, 401)
	}
	f(guesser, wrong, 429)
	f(guesser, right, 429) // or it would learn which one is right
	f(in, right, 200)      // on its connection
	// Other addresses, and other credentials, are not held up.
	f(guesser, "Bearer "+s.Token(), 200)
	other := httptest.NewRequest("GET", "http://10.0.0.1/-/healthy", nil)
	other.RemoteAddr = "10.0.0.2:1"
	other.Header.Set("Authorization", wrong)
	w := httptest.NewRecorder()
	s.TCPHandler().ServeHTTP(w, other)
	if w.Code != 401 {
		t.Errorf("another address: got %d", w.Code)
	}
	clk.Advance(6 * time.Second)
	f(guesser, wrong, 401)
	f(guesser, wrong, 429)
	clk.Advance(6 * time.Second)
	f(guesser, right, 200)

	// Routes without a login are not delayed by wrong passwords, and do not reveal
	// whether a password is right.
	update(t, s, &http.Arguments{Auth: &http.AuthArguments{Basic: &http.BasicArguments{Username: "me", Password: "other"},
		Filter: &http.FilterArguments{Paths: []string{"/api"}, AuthenticateMatchingPaths: true}}})
	guesser = client(t, nil)
	for range 25 {
		if status, body := get(t, guesser, "GET", base+"/-/healthy", "Authorization", wrong); status != 503 || strings.Contains(body, "no disk") {
			t.Fatalf("health with a wrong login: got %d %s", status, body)
		}
	}
	if _, body := get(t, guesser, "GET", base+"/-/healthy", "Authorization", "Basic bWU6b3RoZXI="); strings.Contains(body, "no disk") {
		t.Errorf("health after too many logins tells the right one: %s", body)
	}
}
