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

// authenticated returns next behind the endpoint's cloud authentication.
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
			if err := c.Validate(); err != nil { // it also fills in defaults
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

// lateTransport makes its transport at the first request: to make one may ask
// the network for credentials, and that they are missing now is no reason to
// refuse a config. Samples wait in the journal meanwhile.
type lateTransport struct {
	method string
	next   http.RoundTripper
	make   func(context.Context) (http.RoundTripper, error)

	mu   sync.Mutex
	made http.RoundTripper
}

// RoundTrip makes a request. That credentials cannot be had is an error like
// that of a network.
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

// CloseIdleConnections closes those of the transport below.
func (l *lateTransport) CloseIdleConnections() {
	if c, ok := l.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// dialAny connects to one of the addresses that a name has, another one each
// time, so that connections spread over all of them.
func dialAny(ctx context.Context, network, addr string) (net.Conn, error) {
	var d net.Dialer
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("cannot dial %q: %w", addr, err)
	}
	addrs, err := net.DefaultResolver.LookupHost(ctx, host)
	if err != nil || len(addrs) == 0 {
		return d.DialContext(ctx, network, addr) // its error says more
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
