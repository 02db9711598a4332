// Package httpclient contains the arguments of every component with an HTTP
// client, and creates the client from them. The client itself, with its
// authentication, TLS and proxies, is Prometheus's.
//
// It is not a component. A component that squashes Arguments into its own must
// call SetToDefault and Validate, because the config language calls neither for
// squashed fields.
package httpclient

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/prometheus/common/config"

	"github.com/weir-run/weir/engine/component"
)

// Arguments are the client's settings.
type Arguments struct {
	// User name and password to send with each request.
	BasicAuth *BasicAuth `alloy:"basic_auth,block,optional"`
	// Authorization header to send with each request.
	Authorization *Authorization `alloy:"authorization,block,optional"`
	// OAuth 2.0 client credentials to get a token with.
	OAuth2 *OAuth2 `alloy:"oauth2,block,optional"`
	// Bearer token to send with each request.
	BearerToken component.Secret `alloy:"bearer_token,attr,optional"`
	// File with the bearer token, a regular file of at most 1 MiB; it is read again
	// for each request.
	BearerTokenFile string `alloy:"bearer_token_file,attr,optional"`
	// TLS settings of the connection.
	TLSConfig TLSConfig `alloy:"tls_config,block,optional"`
	// Whether HTTP 3xx answers are followed. To another host or port, credentials,
	// headers of the config and bodies are not sent, and no redirect leads from
	// https to http. The discovery of targets follows none when it has http_headers.
	FollowRedirects bool `alloy:"follow_redirects,attr,optional"`
	// Whether HTTP/2 is offered over TLS.
	EnableHTTP2 bool `alloy:"enable_http2,attr,optional"`
	// Headers to add to each request.
	HTTPHeaders map[string][]component.Secret `alloy:"http_headers,attr,optional"`

	Proxy Proxy `alloy:",squash"`
}

// Proxy specifies the proxy for connections.
type Proxy struct {
	// URL of the proxy to send requests through.
	ProxyURL string `alloy:"proxy_url,attr,optional"`
	// Comma-separated addresses, CIDR blocks and domains to reach without the proxy.
	NoProxy string `alloy:"no_proxy,attr,optional"`
	// Whether the proxy is taken from the environment (HTTP_PROXY, HTTPS_PROXY, NO_PROXY).
	ProxyFromEnvironment bool `alloy:"proxy_from_environment,attr,optional"`
	// Headers to send to the proxy with CONNECT requests.
	ProxyConnectHeader map[string][]component.Secret `alloy:"proxy_connect_header,attr,optional"`
}

// BasicAuth is a user name with its password.
type BasicAuth struct {
	// User name.
	Username string `alloy:"username,attr,optional"`
	// Password.
	Password component.Secret `alloy:"password,attr,optional"`
	// File with the password, a regular file of at most 1 MiB; it is read again for
	// each request.
	PasswordFile string `alloy:"password_file,attr,optional"`
}

// Authorization is the content of an Authorization header.
type Authorization struct {
	// Authentication scheme, Bearer unless written.
	Type string `alloy:"type,attr,optional"`
	// Credentials that follow the scheme.
	Credentials component.Secret `alloy:"credentials,attr,optional"`
	// File with the credentials, a regular file of at most 1 MiB; it is read again
	// for each request.
	CredentialsFile string `alloy:"credentials_file,attr,optional"`
}

// OAuth2 specifies how to get a token with client credentials.
type OAuth2 struct {
	// Client ID.
	ClientID string `alloy:"client_id,attr,optional"`
	// Client secret.
	ClientSecret component.Secret `alloy:"client_secret,attr,optional"`
	// File with the client secret, a regular file of at most 1 MiB.
	ClientSecretFile string `alloy:"client_secret_file,attr,optional"`
	// Scopes to ask for.
	Scopes []string `alloy:"scopes,attr,optional"`
	// URL to get the token from.
	TokenURL string `alloy:"token_url,attr,optional"`
	// Parameters to add to the token URL.
	EndpointParams map[string]string `alloy:"endpoint_params,attr,optional"`
	// TLS settings of the connection to the token URL.
	TLSConfig TLSConfig `alloy:"tls_config,block,optional"`

	Proxy Proxy `alloy:",squash"`
}

// TLSConfig are the TLS settings of a client.
type TLSConfig struct {
	// CA certificates to verify the server with, as PEM text.
	CA string `alloy:"ca_pem,attr,optional"`
	// File with the CA certificates, a regular file of at most 1 MiB.
	CAFile string `alloy:"ca_file,attr,optional"`
	// Client certificate, as PEM text.
	Cert string `alloy:"cert_pem,attr,optional"`
	// File with the client certificate, a regular file of at most 1 MiB.
	CertFile string `alloy:"cert_file,attr,optional"`
	// Key of the client certificate, as PEM text.
	Key component.Secret `alloy:"key_pem,attr,optional"`
	// File with the key of the client certificate, a regular file of at most 1 MiB.
	KeyFile string `alloy:"key_file,attr,optional"`
	// Server name to verify instead of the address's.
	ServerName string `alloy:"server_name,attr,optional"`
	// Whether the server's certificate is left unverified.
	InsecureSkipVerify bool `alloy:"insecure_skip_verify,attr,optional"`
	// Lowest TLS version to accept: TLS10, TLS11, TLS12 or TLS13.
	MinVersion string `alloy:"min_version,attr,optional"`
}

// SetToDefault sets the defaults of most components; remote_write changes
// EnableHTTP2.
func (a *Arguments) SetToDefault() {
	*a = Arguments{FollowRedirects: true, EnableHTTP2: true}
}

// Validate returns all errors in the arguments, joined.
func (a *Arguments) Validate() error {
	var errs []error
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }

	var auth []string
	for name, set := range map[string]bool{
		"basic_auth": a.BasicAuth != nil, "authorization": a.Authorization != nil, "oauth2": a.OAuth2 != nil,
		"bearer_token": a.BearerToken != "", "bearer_token_file": a.BearerTokenFile != "",
	} {
		if set {
			auth = append(auth, name)
		}
	}
	if len(auth) > 1 {
		slices.Sort(auth)
		add("at most one of basic_auth, authorization, oauth2, bearer_token and bearer_token_file may be set, not %s", strings.Join(auth, " and "))
	}
	if b := a.BasicAuth; b != nil && b.Password != "" && b.PasswordFile != "" {
		add("basic_auth: at most one of password and password_file may be set")
	}
	if z := a.Authorization; z != nil {
		if z.Credentials != "" && z.CredentialsFile != "" {
			add("authorization: at most one of credentials and credentials_file may be set")
		}
		if strings.EqualFold(strings.TrimSpace(z.Type), "basic") {
			add(`authorization: type cannot be "basic", use a basic_auth block instead`)
		}
	}
	if o := a.OAuth2; o != nil {
		if o.ClientID == "" {
			add("oauth2: client_id must be set")
		}
		if o.TokenURL == "" {
			add("oauth2: token_url must be set")
		}
		if o.ClientSecret != "" && o.ClientSecretFile != "" {
			add("oauth2: at most one of client_secret and client_secret_file may be set")
		}
		errs = append(errs, o.TLSConfig.validate("oauth2: tls_config"), o.Proxy.validate("oauth2: "))
	}
	errs = append(errs, a.TLSConfig.validate("tls_config"), a.Proxy.validate(""))
	for _, name := range slices.Sorted(maps.Keys(a.HTTPHeaders)) { // Prometheus reports only one of them
		header := config.Headers{Headers: map[string]config.Header{name: {}}}
		if err := header.Validate(); err != nil {
			add("http_headers: %w", err)
		}
	}
	return errors.Join(errs...)
}

func (t *TLSConfig) validate(where string) error {
	var errs []error
	add := func(msg string) { errs = append(errs, errors.New(where+": "+msg)) }
	if t.CA != "" && t.CAFile != "" {
		add("at most one of ca_pem and ca_file may be set")
	}
	if t.Cert != "" && t.CertFile != "" {
		add("at most one of cert_pem and cert_file may be set")
	}
	if t.Key != "" && t.KeyFile != "" {
		add("at most one of key_pem and key_file may be set")
	}
	cert, key := t.Cert != "" || t.CertFile != "", t.Key != "" || t.KeyFile != ""
	if cert && !key {
		add("a client certificate needs key_pem or key_file")
	}
	if key && !cert {
		add("a client key needs cert_pem or cert_file")
	}
	if _, ok := config.TLSVersions[t.MinVersion]; t.MinVersion != "" && !ok {
		add(fmt.Sprintf("min_version must be TLS10, TLS11, TLS12 or TLS13, not %q", t.MinVersion))
	}
	return errors.Join(errs...)
}

func (p *Proxy) validate(where string) error {
	var errs []error
	add := func(msg string) { errs = append(errs, errors.New(where+msg)) }
	if _, err := url.Parse(p.ProxyURL); err != nil {
		add(fmt.Sprintf("proxy_url: %v", err))
	}
	if len(p.ProxyConnectHeader) > 0 && !p.ProxyFromEnvironment && p.ProxyURL == "" {
		add("proxy_connect_header needs proxy_url or proxy_from_environment")
	}
	if p.ProxyFromEnvironment && p.ProxyURL != "" {
		add("at most one of proxy_url and proxy_from_environment may be set")
	}
	if p.ProxyFromEnvironment && p.NoProxy != "" {
		add("at most one of no_proxy and proxy_from_environment may be set")
	}
	if p.ProxyURL == "" && !p.ProxyFromEnvironment && p.NoProxy != "" {
		add("no_proxy needs proxy_url")
	}
	return errors.Join(errs...)
}

// Files returns the absolute paths of the files that the client reads, in the
// order of the arguments. The client itself detects their changes: it reads
// credentials for each request, and TLS files when their content changed.
func (a *Arguments) Files() []string {
	var files []string
	add := func(paths ...string) {
		for _, p := range paths {
			if p == "" {
				continue
			}
			if abs, err := filepath.Abs(p); err == nil {
				files = append(files, abs)
			}
		}
	}
	if a.BasicAuth != nil {
		add(a.BasicAuth.PasswordFile)
	}
	if a.Authorization != nil {
		add(a.Authorization.CredentialsFile)
	}
	if o := a.OAuth2; o != nil {
		add(o.ClientSecretFile, o.TLSConfig.CAFile, o.TLSConfig.CertFile, o.TLSConfig.KeyFile)
	}
	add(a.BearerTokenFile, a.TLSConfig.CAFile, a.TLSConfig.CertFile, a.TLSConfig.KeyFile)
	return files
}
