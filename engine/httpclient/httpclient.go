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

// tracked is the label of the connection metrics of Prometheus's client, in the
// process's default registry, where nothing is ever removed. It is the same for
// all clients, because nodes come and go.
const tracked = "weir"

// NewClient returns the client for the arguments. opts are options of
// Prometheus's client: WithDialContextFunc, WithUserAgent and so on. The client
// has no timeout; limit each request by its context. CheckRedirect determines
// which parts of a request follow redirects.
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

// ReadReferences lets a client created with ByReference read its files.
func ReadReferences() config.HTTPClientOption { return config.WithSecretManager(reader{}) }

// reader reads the files that byReference names.
type reader struct{}

// Fetch returns the content of a file without surrounding white space, like
// Prometheus's own reader, which would wait for a FIFO forever.
func (reader) Fetch(_ context.Context, path string) (string, error) {
	b, err := files.Read(path, files.MaxSecret)
	if err != nil {
		return "", fmt.Errorf("cannot read file: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}

// byReference replaces all files in cfg by references, which reader resolves.
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

// Config returns the arguments in Prometheus's form, valid and in separate
// memory. A client that Prometheus creates from it sends http_headers to every
// host to which it is redirected, so with http_headers it follows no redirects.
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
	// This Validate also converts the bearer token to the form that the client
	// uses.
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return c, nil
}

// ByReference is like Config, for a client that is created with ReadReferences.
func (a *Arguments) ByReference() (*config.HTTPClientConfig, error) {
	c, err := a.Config()
	if err == nil {
		byReference(c)
	}
	return c, err
}

// Checked is like Config, for a client that other code creates without options,
// and that must read files again while it runs. A file that cannot be read now
// is an error. A file that becomes a FIFO later can still block the client.
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

// Loaded is like Config, with the content of all files that it names, for
// clients that other code creates and that would wait for a FIFO or a dead file
// system forever. Load it again when one of Files changes.
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

// CheckFiles returns what is wrong with the files of clients, which read them by
// themselves.
func CheckFiles(all ...*Arguments) error {
	var errs []error
	for _, a := range all {
		if len(a.Files()) > 0 {
			_, err := a.Loaded()
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
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

// tls reads the files of a block. They must not be empty, because Prometheus's
// client would treat that as no certificate.
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

// config must be called with validated settings.
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

// Digest returns a digest of the content of files, or "" if there are none. A
// client depends on this content. For a file that cannot be read, its error is
// used.
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
