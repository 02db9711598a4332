package outbox

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/httpclient"
	"github.com/weir-run/weir/engine/journal"
)

// Ref is what the block of an endpoint says that tells it from others.
type Ref struct{ Name, URL string }

// Key identifies it in its component.
func (r Ref) Key() string {
	if r.Name != "" {
		return "name " + r.Name
	}
	return "url " + r.URL
}

// ShownURL is a URL without what may be secret in it, its path included.
func ShownURL(text string) string { return component.HideURLs(journal.PublicURL(text)) }

// Label is its name for people and metrics, without secrets. It is another one
// for each: URLs that differ only in what is not shown differ in a hash.
func (r Ref) Label() string {
	if r.Name != "" {
		return r.Name
	}
	public := ShownURL(r.URL)
	if public != r.URL {
		sum := sha256.Sum256([]byte(r.URL))
		public += fmt.Sprintf("#%x", sum[:3])
	}
	return public
}

// Twice returns what is wrong with endpoints of which several are the same.
func Twice(all []Ref) (errs []error) {
	seen := map[string]bool{}
	for _, r := range all {
		k := r.Key()
		if seen[k] && r.Name != "" {
			errs = append(errs, fmt.Errorf("two endpoints are named %q", r.Name))
		} else if seen[k] {
			errs = append(errs, fmt.Errorf("two endpoints have the URL %s and no name", ShownURL(r.URL)))
		}
		seen[k] = true
	}
	return errs
}

// Tenant is what may say to the receiver whose the rows are, besides the URL:
// headers, who signs in as whom, and more. Passwords do not, and change.
func (r Ref) Tenant(headers map[string]string, c *httpclient.Arguments, more map[string]any) string {
	who := map[string]any{
		"headers": headers, "http_headers": c.HTTPHeaders, "bearer_token": c.BearerToken + component.Secret(c.BearerTokenFile),
		"authorization": c.Authorization, "cert": c.TLSConfig.Cert + c.TLSConfig.CertFile,
	}
	if u, err := url.Parse(r.URL); err == nil {
		who["user"] = u.User.Username()
	}
	if c.BasicAuth != nil {
		who["user"] = c.BasicAuth.Username
	}
	if o := c.OAuth2; o != nil {
		who["oauth2"] = []any{o.ClientID, o.TokenURL, o.Scopes, o.EndpointParams}
	}
	maps.Copy(who, more)
	text, err := json.Marshal(who)
	if err != nil {
		panic(err) // they are strings
	}
	return string(text)
}
