package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"syscall"
	"time"

	"github.com/prometheus/common/config"

	"github.com/weir-run/weir/engine/httpclient"
	"github.com/weir-run/weir/scripting/grant"
)

// Options are the options of New.
type Options struct {
	// Granted are the allowed URLs. If there are Needed ones, a URL must be in
	// both.
	Granted, Needed []grant.URL
	// Private also permits hosts of private networks that a pattern with a star
	// contains.
	Private bool
	// Settings are the connection settings: TLS and the proxy.
	Settings httpclient.Arguments
	// UserAgent is the User-Agent header of requests.
	UserAgent string
	// Transport replaces the network in tests; nil: the network.
	Transport http.RoundTripper
	// Wrap returns what sends requests instead of next, the transport or the network;
	// nil: next.
	Wrap func(next http.RoundTripper) http.RoundTripper
	// Resolver looks up hosts; nil: the system's.
	Resolver *net.Resolver
}

// maxInFlight is the maximum number of concurrent requests of a client. Further
// requests wait.
const maxInFlight = 32

// dialTimeout is the time limit for establishing a connection.
const dialTimeout = 10 * time.Second

// Client sends requests. It is safe for concurrent use.
type Client struct {
	o     Options
	rt    http.RoundTripper
	wide  http.RoundTripper // for hosts that no pattern contains by name, with separate connections
	https []*http.Client    // empty if Options.Transport is set
	proxy func(*http.Request) (*url.URL, error)
	slots chan struct{}
}

// New returns a client. Close it when it is no longer used.
func New(o Options) (*Client, error) {
	c := &Client{o: o, rt: o.Transport, slots: make(chan struct{}, maxInFlight)}
	if c.wide = o.Transport; o.Transport != nil {
		return c, nil
	}
	cfg, err := o.Settings.Config()
	if err != nil {
		return nil, err
	}
	c.proxy = cfg.ProxyConfig.Proxy()
	d := &net.Dialer{Timeout: dialTimeout, ControlContext: control, Resolver: o.Resolver}
	for _, rt := range []*http.RoundTripper{&c.rt, &c.wide} {
		h, err := httpclient.NewClient(&o.Settings, config.WithDialContextFunc(d.DialContext), config.WithUserAgent(o.UserAgent),
			config.WithIdleConnTimeout(90*time.Second))
		if err != nil {
			return nil, err
		}
		*rt, c.https = h.Transport, append(c.https, h)
	}
	return c, nil
}

// Close closes idle connections. Requests in flight continue.
func (c *Client) Close() {
	for _, h := range c.https {
		h.CloseIdleConnections()
	}
}

type permitKey struct{}

// control checks the address of a new connection. Names have been resolved by
// now, so an earlier lookup of the name does not matter. Requests to the same
// host and port have the same permit, so they can share connections, except for
// whether a pattern contains the host for their path: see Client.wide.
func control(ctx context.Context, network, address string, _ syscall.RawConn) error {
	p, ok := ctx.Value(permitKey{}).(permit)
	if !ok {
		return &DeniedError{Err: errors.New("BUG: a connection without a permit")}
	}
	if p.proxy {
		return nil
	}
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return &DeniedError{Err: fmt.Errorf("cannot connect to %s by %s: %w", p.host, network, err)}
	}
	return p.check(to.Addr())
}

// permit checks a URL against the grants.
func (c *Client) permit(req *http.Request) (permit, error) {
	t, err := grant.ParseTarget(req.URL)
	if err != nil {
		return permit{}, &DeniedError{Err: err}
	}
	matches := func(u grant.URL) bool { return u.Match(t) }
	if !slices.ContainsFunc(c.o.Granted, matches) {
		return permit{}, &DeniedError{Err: fmt.Errorf("cannot ask %s: script.allow.http does not grant it", grant.Shown(req.URL))}
	}
	if len(c.o.Needed) > 0 && !slices.ContainsFunc(c.o.Needed, matches) {
		return permit{}, &DeniedError{Err: fmt.Errorf("cannot ask %s: the script's needs.http does not name it", grant.Shown(req.URL))}
	}
	p := permit{host: t.Host(), private: c.o.Private}
	p.named = slices.ContainsFunc(c.o.Granted, func(u grant.URL) bool { return u.Named() && u.Match(t) })
	addr, err := netip.ParseAddr(t.Host())
	p.listed = p.named && (err == nil || slices.Contains(metadataNames, t.Host()))
	if c.proxy != nil {
		via, perr := c.proxy(req)
		if perr != nil {
			return p, fmt.Errorf("cannot tell which proxy to ask for %s: %w", t.Host(), perr)
		}
		if p.proxy = via != nil; p.proxy && slices.Contains(metadataNames, t.Host()) && !p.listed {
			return p, &DeniedError{Err: fmt.Errorf("cannot ask %s: it is a cloud's metadata; only a pattern that names it grants it", t.Host())}
		}
	}
	if err == nil { // also if a proxy would connect
		return p, p.check(addr)
	}
	return p, nil
}
