package write

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/url"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/journal"
)

// key identifies an endpoint in its component.
func (e *Endpoint) key() string {
	if e.Name != "" {
		return "name " + e.Name
	}
	return "url " + e.URL
}

// label is the endpoint's name for people and metrics, without secrets. It is
// another one for each endpoint: URLs that differ only in what is not shown
// differ in a hash.
func (e *Endpoint) label() string {
	if e.Name != "" {
		return e.Name
	}
	public := journal.PublicURL(e.URL)
	if public != e.URL {
		sum := sha256.Sum256([]byte(e.URL))
		public += fmt.Sprintf("#%x", sum[:3])
	}
	return public
}

// tenant is what may say to the receiver whose the samples are, besides the
// URL: tenant_id, headers, and who signs in as whom. Passwords do not, and change.
func (e *Endpoint) tenant() string {
	c := e.Client
	who := map[string]any{
		"tenant_id": e.TenantID, "headers": e.Headers, "http_headers": c.HTTPHeaders, "bearer_token": c.BearerToken + component.Secret(c.BearerTokenFile),
		"authorization": c.Authorization, "cert": c.TLSConfig.Cert + c.TLSConfig.CertFile,
	}
	if u, err := url.Parse(e.URL); err == nil {
		who["user"] = u.User.Username()
	}
	if c.BasicAuth != nil {
		who["user"] = c.BasicAuth.Username
	}
	if o := c.OAuth2; o != nil {
		who["oauth2"] = []any{o.ClientID, o.TokenURL, o.Scopes, o.EndpointParams}
	}
	text, err := json.Marshal(who)
	if err != nil {
		panic(err) // they are strings
	}
	return string(text)
}
