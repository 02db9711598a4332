package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/prometheus/common/config"

	"github.com/weir-run/weir/engine/httpclient"
	"github.com/weir-run/weir/engine/pkg"
)

// ModuleFile is the name of the file for a response that is not an archive.
const ModuleFile = "module.alloy"

// Web is the Fetcher of HTTP. A response is an archive or, otherwise, a module.
type Web struct{}

var _ Fetcher = Web{}

// Fetch gets the file.
func (Web) Fetch(ctx context.Context, s Source, a Access, files *Files) (string, error) {
	client, err := a.HTTPClient()
	if err != nil {
		return "", err
	}
	defer client.CloseIdleConnections()
	var body io.Reader
	if a.Body != "" {
		body = strings.NewReader(a.Body)
	}
	req, err := http.NewRequestWithContext(ctx, cmp.Or(a.Method, http.MethodGet), s.URL, body)
	if err != nil {
		return "", withoutURL(err)
	}
	for _, name := range slices.Sorted(maps.Keys(a.Headers)) { // a header may be set in two spellings: use the same one each time
		req.Header.Set(name, a.Headers[name])
		if strings.EqualFold(name, "Host") {
			req.Host = a.Headers[name]
		}
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", withoutURL(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("the server answered %s, want 200 OK", resp.Status)
	}
	b, err := readAll(resp.Body, pkg.MaxBytes)
	if err != nil {
		return "", fmt.Errorf("cannot read the answer: %w", err)
	}
	if ok, err := files.AddArchive(b, s.Path); ok {
		return "", err
	}
	if s.Path != "" {
		return "", errors.New("the answer is not an archive, and the source has a path in it: only tar, tar.gz and zip files have paths")
	}
	return "", files.Add(ModuleFile, strings.NewReader(string(b)))
}

// Versions returns ErrNoVersions.
func (Web) Versions(context.Context, Source, Access) ([]string, error) { return nil, ErrNoVersions }

// HTTPClient returns the HTTP client for an access. It has no timeout. It follows
// redirects only within a host, or not at all if the settings of the client disable
// them.
func (a Access) HTTPClient() (*http.Client, error) {
	c := a.Client
	if c == nil {
		c = &httpclient.Arguments{}
		c.SetToDefault()
		c.Proxy.ProxyFromEnvironment = true
	}
	agent := a.UserAgent
	for name, value := range a.Headers {
		if strings.EqualFold(name, "User-Agent") { // the client's own would override it
			agent = value
		}
	}
	client, err := httpclient.NewClient(c, config.WithUserAgent(cmp.Or(agent, "weir")))
	if err == nil && c.FollowRedirects {
		client.CheckRedirect = SameHost
	}
	return client, err
}

// SameHost is an http.Client.CheckRedirect that refuses redirects to another host,
// because trust in a source and credentials are those of its host.
func SameHost(req *http.Request, via []*http.Request) error {
	from := via[0].URL
	if !strings.EqualFold(from.Host, req.URL.Host) || from.Scheme != req.URL.Scheme {
		return fmt.Errorf("the server redirects to %s://%s, and weir follows redirects only within %s://%s: if the content has moved, change the source", req.URL.Scheme, req.URL.Host, from.Scheme, from.Host)
	}
	return httpclient.CheckRedirect(req, via)
}

// withoutURL returns the error of a request without the URL, which the caller names.
func withoutURL(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}
