//go:build integration

package integration

import (
	"context"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// without returns the URL of a proxy to weir that hides from weir that requests come from another
// origin, and from the browser the named headers of responses.
func (w *weirRun) without(headers ...string) string {
	w.t.Helper()
	to, err := url.Parse(w.url)
	if err != nil {
		w.t.Fatal(err)
	}
	s := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			for name := range r.Out.Header {
				if strings.HasPrefix(name, "Sec-Fetch-") || name == "Origin" || name == "Referer" {
					r.Out.Header.Del(name)
				}
			}
		},
		ModifyResponse: func(r *http.Response) error {
			for _, name := range headers {
				r.Header.Del(name)
			}
			return nil
		},
	})
	w.t.Cleanup(s.Close)
	w.t.Cleanup(s.CloseClientConnections)
	return s.URL
}

// TestUIFrames: the browser shows no page of weir in a frame of another page, even if the other page
// knows the path of the session and is on the same host, so that the browser sends the cookie of the
// session. Each of the headers that forbid it has an effect of its own.
func TestUIFrames(t *testing.T) {
	w, b, _ := startUI(t)
	b.shows("my.tidy.default")
	session, err := ask(b, chromedp.Evaluate[string](`location.pathname`))
	if err != nil || !strings.HasPrefix(session, "/s/") {
		t.Fatalf("got the path %q, %v", session, err)
	}
	script, err := ask(b, chromedp.Evaluate[string](`new URL(document.querySelector("script[src]").src).pathname`))
	if err != nil {
		t.Fatal(err)
	}
	const frameOptions, policy = "X-Frame-Options", "Content-Security-Policy"
	hidden, noOptions, noPolicy, neither := w.without(), w.without(frameOptions), w.without(policy), w.without(frameOptions, policy)
	blocked := map[string]bool{neither + session: false} // without the headers, the frame has the page
	for _, path := range []string{"/", "/graph", session, session + "#/graph", session + "#/node/my.tidy.default?tab=playground", script,
		session + "api/v0/status", session + "api/v0/docs/index", session + "api/v0/batch/my.tidy.default", "/api/v0/openapi.json", "/metrics", "/no/such/page"} {
		for _, base := range []string{w.url, hidden} {
			blocked[base+path] = true
		}
	}
	blocked[noOptions+session], blocked[noPolicy+session] = true, true

	other := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/html")
		for u := range blocked {
			fmt.Fprintf(rw, "<iframe name=\"%[1]s\" src=\"%[1]s\"></iframe>\n", html.EscapeString(u))
		}
	}))
	t.Cleanup(other.Close)
	for _, complaint := range []string{"refused", "frame", "401", "403", "404", "ERR_"} {
		b.complaints(complaint)
	}
	b.open(other.URL) // until all frames are loaded
	b.screenshot("frames")
	shown := map[string]bool{}
	b.run(chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		tree, err := cdp.Call(ctx, tab, page.GetFrameTree, cdp.Empty{})
		if err != nil {
			return err
		}
		for _, c := range tree.FrameTree.ChildFrames {
			shown[c.Frame.Name] = c.Frame.UnreachableURL == ""
		}
		return nil
	}))
	for u, want := range blocked {
		if is, ok := shown[u]; !ok || is == want {
			t.Errorf("%s: shown in a frame: %t, there is a frame: %t; want blocked: %t", u, is, ok, want)
		}
	}
}
