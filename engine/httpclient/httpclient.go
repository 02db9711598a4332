package httpclient

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/prometheus/common/config"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/files"
)

// tracked is the label of the metrics that Prometheus's client counts connections
// with, in the process's default registry, where nothing is ever removed. It is the
// same for all clients: nodes come and go.
const tracked = "weir"

// NewClient returns the client that the arguments describe. opts are Prometheus's
// own: WithDialContextFunc, WithUserAgent and so on.
// The client has no timeout; bound each request by its context. What of a request
// follows redirects, CheckRedirect says.
func NewClient(a *Arguments, opts ...config.HTTPClientOption) (*http.Client, error) {
	cfg, err := a.Config()
	if err != nil {
		return nil, err
	}
	byReference(cfg)
	client, err := config.NewClientFromConfig(*cfg, tracked, append(slices.Clip(opts), ReadReferences())...)
	if err != nil {
		return nil, fmt.Errorf("cannot make the HTTP client: %w", err)
	}
	client.Transport = newGuard(client.Transport, *cfg, opts)
	if a.FollowRedirects {
		client.CheckRedirect = CheckRedirect
	}
	return client, nil
}

// ReadReferences makes a client of ByReference read its files.
func ReadReferences() config.HTTPClientOption { return config.WithSecretManager(reader{}) }

// reader reads the files that byReference names.
type reader struct{}

// Fetch returns the content of a file without white space around it, as
// Prometheus's own reader does, which waits for a FIFO for ever.
func (reader) Fetch(_ context.Context, path string) (string, error) {
	b, err := files.Read(path, files.MaxSecret)
	if err != nil {
		return "", fmt.Errorf("cannot read file: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}

// byReference makes all files of cfg references, which reader resolves.
func byReference(cfg *config.HTTPClientConfig) {
	move := func(file, ref *string) {
		if *file != "" {
			*ref, *file = *file, ""
		}
	}
	pki := func(t *config.TLSConfig) {
		move(&t.CAFile, &t.CARef)
		move(&t.CertFile, &t.CertRef)
		move(&t.KeyFile, &t.KeyRef)
	}
	pki(&cfg.TLSConfig)
	if b := cfg.BasicAuth; b != nil {
		move(&b.PasswordFile, &b.PasswordRef)
	}
	if z := cfg.Authorization; z != nil {
		move(&z.CredentialsFile, &z.CredentialsRef)
	}
	if o := cfg.OAuth2; o != nil {
		move(&o.ClientSecretFile, &o.ClientSecretRef)
		pki(&o.TLSConfig)
	}
}

// Config returns the arguments as Prometheus has them, valid, in memory of
// their own. Clients that Prometheus makes of it send http_headers to whatever host
// they are redirected to, so with such it follows no redirects.
func (a *Arguments) Config() (*config.HTTPClientConfig, error) {
	if err := a.Validate(); err != nil {
		return nil, err
	}
	c := &config.HTTPClientConfig{
		BearerToken:     config.Secret(a.BearerToken),
		BearerTokenFile: a.BearerTokenFile,
		TLSConfig:       a.TLSConfig.config(),
		FollowRedirects: a.FollowRedirects && len(a.HTTPHeaders) == 0,
		EnableHTTP2:     a.EnableHTTP2,
		ProxyConfig:     a.Proxy.config(),
	}
	if b := a.BasicAuth; b != nil {
		c.BasicAuth = &config.BasicAuth{Username: b.Username, Password: config.Secret(b.Password), PasswordFile: b.PasswordFile}
	}
	if z := a.Authorization; z != nil {
		c.Authorization = &config.Authorization{Type: z.Type, Credentials: config.Secret(z.Credentials), CredentialsFile: z.CredentialsFile}
	}
	if o := a.OAuth2; o != nil {
		c.OAuth2 = &config.OAuth2{
			ClientID:         o.ClientID,
			ClientSecret:     config.Secret(o.ClientSecret),
			ClientSecretFile: o.ClientSecretFile,
			Scopes:           o.Scopes,
			TokenURL:         o.TokenURL,
			EndpointParams:   o.EndpointParams,
			TLSConfig:        o.TLSConfig.config(),
			ProxyConfig:      o.Proxy.config(),
		}
	}
	if len(a.HTTPHeaders) > 0 {
		c.HTTPHeaders = &config.Headers{Headers: map[string]config.Header{}}
		for name, values := range a.HTTPHeaders {
			c.HTTPHeaders.Headers[name] = config.Header{Secrets: secrets(values)}
		}
	}
	// Theirs also brings the bearer token into the form the client uses.
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return c, nil
}

// ByReference is Config for a client that is made with ReadReferences.
func (a *Arguments) ByReference() (*config.HTTPClientConfig, error) {
	c, err := a.Config()
	if err == nil {
		byReference(c)
	}
	return c, err
}

// Checked is Config for a client that others make, that takes no options and must
// read files again while it runs. Those that cannot be read now are an error; a file
// that becomes a FIFO later still holds up the client.
func (a *Arguments) Checked() (*config.HTTPClientConfig, error) {
	c, err := a.Config()
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, path := range a.Files() {
		if _, err := (reader{}).Fetch(context.Background(), path); err != nil {
			errs = append(errs, err)
		}
	}
	return c, errors.Join(errs...)
}

// Loaded is Config with the content of all files that it names, for clients that
// others make and that would wait for a FIFO or a dead file system for ever. Load
// it again when one of Files changes.
func (a *Arguments) Loaded() (*config.HTTPClientConfig, error) {
	c, err := a.Config()
	if err != nil {
		return nil, err
	}
	l := loader{}
	l.tls(&c.TLSConfig)
	if b := c.BasicAuth; b != nil {
		l.secret(&b.PasswordFile, &b.Password)
	}
	if z := c.Authorization; z != nil {
		l.secret(&z.CredentialsFile, &z.Credentials)
	}
	if o := c.OAuth2; o != nil {
		l.secret(&o.ClientSecretFile, &o.ClientSecret)
		l.tls(&o.TLSConfig)
	}
	return c, errors.Join(l.errs...)
}

// loader reads files, and collects the errors.
type loader struct{ errs []error }

func (l *loader) secret(file *string, to *config.Secret) {
	if *file == "" {
		return
	}
	text, err := reader{}.Fetch(context.Background(), *file)
	if err != nil {
		l.errs = append(l.errs, err)
	}
	*to, *file = config.Secret(text), ""
}

// tls reads the files of a block, which must not be empty: Prometheus's client
// would take that for no certificate.
func (l *loader) tls(t *config.TLSConfig) {
	pem := func(file *string, to *config.Secret) {
		name := *file
		if l.secret(file, to); name != "" && *to == "" && len(l.errs) == 0 {
			l.errs = append(l.errs, fmt.Errorf("%s is empty", files.Name(name)))
		}
	}
	ca, cert := config.Secret(t.CA), config.Secret(t.Cert)
	pem(&t.CAFile, &ca)
	pem(&t.CertFile, &cert)
	pem(&t.KeyFile, &t.Key)
	t.CA, t.Cert = string(ca), string(cert)
}

func (t *TLSConfig) config() config.TLSConfig {
	return config.TLSConfig{
		CA: t.CA, CAFile: t.CAFile,
		Cert: t.Cert, CertFile: t.CertFile,
		Key: config.Secret(t.Key), KeyFile: t.KeyFile,
		ServerName:         t.ServerName,
		InsecureSkipVerify: t.InsecureSkipVerify,
		MinVersion:         config.TLSVersions[t.MinVersion],
	}
}

// config expects validated settings.
func (p *Proxy) config() config.ProxyConfig {
	c := config.ProxyConfig{NoProxy: p.NoProxy, ProxyFromEnvironment: p.ProxyFromEnvironment}
	if u, err := url.Parse(p.ProxyURL); err == nil && p.ProxyURL != "" {
		c.ProxyURL = config.URL{URL: u}
	}
	if len(p.ProxyConnectHeader) > 0 {
		c.ProxyConnectHeader = config.ProxyHeader{}
		for name, values := range p.ProxyConnectHeader {
			c.ProxyConnectHeader[name] = secrets(values)
		}
	}
	return c
}

func secrets(in []component.Secret) []config.Secret {
	out := make([]config.Secret, len(in))
	for i, s := range in {
		out[i] = config.Secret(s)
	}
	return out
}

// Digest returns one of the content of files, "" without any: what a client made of
// them depends on. What cannot be read counts as what is wrong with it.
func Digest(paths []string) string {
	if len(paths) == 0 {
		return ""
	}
	h := sha256.New()
	for _, p := range paths {
		b, err := files.Read(p, files.MaxSecret)
		if err != nil {
			b = []byte(err.Error())
		}
		fmt.Fprintf(h, "%d %s", len(b), b)
	}
	return string(h.Sum(nil))
}
