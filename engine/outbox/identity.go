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

// Ref contains the arguments that identify an endpoint in its block.
type Ref struct{ Name, URL string }

// Key identifies it in its component.
func (r Ref) Key() string {
	if r.Name != "" {
		return "name " + r.Name
	}
	return "url " + r.URL
}

// ShownURL returns a URL without the parts that may be secret, including parts
// of its path.
func ShownURL(text string) string { return component.HideURLs(journal.PublicURL(text)) }

// Label returns a name for people and metrics, without secrets. It is different
// for each endpoint: if URLs differ only in hidden parts, it contains a hash.
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

// Twice returns an error for each endpoint that occurs more than once.
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

// Tenant returns everything except the URL by which the receiver may identify
// the owner of the rows: headers, the user name, and the values in more. It
// does not contain passwords, because they change.
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
		panic(err) // all values are strings
	}
	return string(text)
}
