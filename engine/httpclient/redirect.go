package httpclient

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/common/config"
)

// maxRedirects is the maximum number of redirects, as in net/http.
const maxRedirects = 10

// harmless are headers that are sent with a redirect to another host.
var harmless = []string{"Accept", "Accept-Encoding", "Accept-Language", "User-Agent", "Content-Type",
	"X-Prometheus-Scrape-Timeout-Seconds"}

// CheckRedirect is the http.Client.CheckRedirect of all clients. A redirect to
// another host, port or scheme, except from http to https, gets neither
// credentials nor headers of the config, and no body: for a request with a
// body, it is an error. So are a redirect from https to http, and one with a
// user name.
func CheckRedirect(req *http.Request, via []*http.Request) error {
	if len(via) >= maxRedirects {
		return fmt.Errorf("server redirects more than %d times", maxRedirects)
	}
	from := via[len(via)-1].URL
	switch {
	case req.URL.User != nil:
		return fmt.Errorf("server %s redirects to %s with a user name, which is not followed", from.Host, req.URL.Host)
	case from.Scheme == "https" && req.URL.Scheme != "https":
		return fmt.Errorf("server %s redirects from https to %s://%s, which is not followed", from.Host, req.URL.Scheme, req.URL.Host)
	case !hasLeft(req):
		return nil
	case req.Body != nil && req.Body != http.NoBody:
		return fmt.Errorf("server %s redirects to another host, %s, which does not get what was to be sent: if it should, make it the host of the url", via[0].URL.Host, req.URL.Host)
	}
	for name := range req.Header {
		if !slices.Contains(harmless, name) {
			delete(req.Header, name) // Referer is the previous URL, with its query
		}
	}
	return nil
}

// hasLeft reports whether a chain of redirects has left the origin of the first
// request, even if it returned to it.
func hasLeft(req *http.Request) bool {
	first := req
	for first.Response != nil && first.Response.Request != nil {
		first = first.Response.Request
	}
	for r := req; r != first; r = r.Response.Request {
		if !sameOrigin(first.URL, r.URL) {
			return true
		}
	}
	return false
}

// sameOrigin reports whether b has the host and port of a. A change from http
// to https with default ports counts as the same origin.
func sameOrigin(a, b *url.URL) bool {
	if !strings.EqualFold(a.Hostname(), b.Hostname()) {
		return false
	}
	pa, pb := port(a), port(b)
	return a.Scheme == b.Scheme && pa == pb || a.Scheme == "http" && b.Scheme == "https" && pa == "80" && pb == "443"
}

func port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	if u.Scheme == "https" {
		return "443"
	}
	return "80"
}

// guard sends requests that have left the origin through a separate transport.
// The transport of Prometheus's client adds headers to all requests, and
// credentials to those for another port.
type guard struct {
	http.RoundTripper
	bare func() (*http.Client, error)

	mu   sync.Mutex
	made *http.Client
}

func newGuard(next http.RoundTripper, cfg config.HTTPClientConfig, opts []config.HTTPClientOption) *guard {
	cfg.BasicAuth, cfg.Authorization, cfg.OAuth2, cfg.HTTPHeaders = nil, nil, nil, nil
	cfg.BearerToken, cfg.BearerTokenFile = "", ""
	cfg.TLSConfig.Cert, cfg.TLSConfig.CertFile, cfg.TLSConfig.CertRef = "", "", ""
	cfg.TLSConfig.Key, cfg.TLSConfig.KeyFile, cfg.TLSConfig.KeyRef = "", "", ""
	return &guard{RoundTripper: next, bare: func() (*http.Client, error) { return config.NewClientFromConfig(cfg, tracked, opts...) }}
}

// RoundTrip sends a request.
func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	if !hasLeft(req) {
		return g.RoundTripper.RoundTrip(req)
	}
	rt, err := g.other()
	if err != nil {
		if req.Body != nil {
			req.Body.Close()
		}
		return nil, err
	}
	return rt.RoundTrip(req)
}

// other returns the transport for other origins, which is rarely needed.
func (g *guard) other() (http.RoundTripper, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.made == nil {
		c, err := g.bare()
		if err != nil {
			return nil, errors.Join(errors.New("cannot make a client without credentials for a redirect"), err)
		}
		g.made = c
	}
	return g.made.Transport, nil
}

// CloseIdleConnections closes idle connections.
func (g *guard) CloseIdleConnections() {
	if c, ok := g.RoundTripper.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.made != nil {
		g.made.CloseIdleConnections()
	}
}
