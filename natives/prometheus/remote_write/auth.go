package remotewrite

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"

	"github.com/prometheus/prometheus/storage/remote/azuread"
	"github.com/prometheus/prometheus/storage/remote/googleiam"
	"github.com/prometheus/sigv4"
)

// authenticated wraps next with the cloud authentication of the endpoint.
func (e *Endpoint) authenticated(next http.RoundTripper) http.RoundTripper {
	var newTransport func(ctx context.Context) (http.RoundTripper, error)
	switch {
	case e.SigV4 != nil:
		newTransport = func(ctx context.Context) (http.RoundTripper, error) {
			return sigv4.NewSigV4RoundTripper(e.SigV4.config(), next, sigv4.WithContext(ctx))
		}
	case e.AzureAD != nil:
		newTransport = func(context.Context) (http.RoundTripper, error) {
			c := e.AzureAD.config()
			if err := c.Validate(); err != nil { // also sets defaults
				return nil, err
			}
			return azuread.NewAzureADRoundTripper(c, next)
		}
	case e.GoogleIAM != nil:
		newTransport = func(context.Context) (http.RoundTripper, error) {
			return googleiam.NewRoundTripper(e.GoogleIAM.config(), next)
		}
	default:
		return next
	}
	return &lateTransport{method: strings.Join(e.auths(), ""), next: next, make: newTransport}
}

// lateTransport creates its transport with the first request. Creating it may
// request credentials over the network, and a configuration is valid even if they
// are not available yet. In the meantime, samples wait in the journal.
type lateTransport struct {
	method string
	next   http.RoundTripper
	make   func(context.Context) (http.RoundTripper, error)

	mu   sync.Mutex
	made http.RoundTripper
}

// RoundTrip sends a request. If no credentials are available, it returns an error
// like a network error.
func (l *lateTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	l.mu.Lock()
	if l.made == nil {
		made, err := l.make(req.Context())
		if err != nil {
			l.mu.Unlock()
			return nil, fmt.Errorf("cannot authenticate by %s: %w", l.method, err)
		}
		l.made = made
	}
	made := l.made
	l.mu.Unlock()
	return made.RoundTrip(req)
}

// CloseIdleConnections closes the idle connections of the underlying transport.
func (l *lateTransport) CloseIdleConnections() {
	if c, ok := l.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// dialAny connects to one of the addresses of a host name, chosen at random, so
// that connections are spread over all of them.
func dialAny(ctx context.Context, network, addr string) (net.Conn, error) {
	var d net.Dialer
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("cannot dial %q: %w", addr, err)
	}
	addrs, err := net.DefaultResolver.LookupHost(ctx, host)
	if err != nil || len(addrs) == 0 {
		return d.DialContext(ctx, network, addr) // returns a more specific error
	}
	var errs []error
	for _, i := range rand.Perm(len(addrs)) {
		conn, err := d.DialContext(ctx, network, net.JoinHostPort(addrs[i], port))
		if err == nil {
			return conn, nil
		}
		errs = append(errs, err)
		if ctx.Err() != nil {
			break
		}
	}
	return nil, errors.Join(errs...)
}
