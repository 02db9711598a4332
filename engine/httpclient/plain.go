package httpclient

import (
	"bufio"
	"context"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// Plain makes requests of http URLs with c cheaper if a contains no settings
// that prevent it: authentication, headers, or a proxy. All other requests use
// Prometheus's client as before. dial opens connections; nil is a
// *net.Dialer's.
//
// http.Transport has two goroutines per connection, which pass a request to
// each other and wake up threads for it. This costs more than scraping a
// thousand series. Here, the caller's goroutine writes and reads.
func (a *Arguments) Plain(c *http.Client, dial func(ctx context.Context, network, address string) (net.Conn, error)) {
	if a.BasicAuth != nil || a.Authorization != nil || a.OAuth2 != nil || a.BearerToken != "" || a.BearerTokenFile != "" ||
		len(a.HTTPHeaders) > 0 || a.Proxy.ProxyURL != "" || a.Proxy.ProxyFromEnvironment || readNow == nil {
		return
	}
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	c.Transport = &plain{next: c.Transport, dial: dial, idle: map[string][]*conn{}}
}

// The limits are those of Prometheus's client.
const (
	maxIdle    = 1000 // connections to one address
	maxIdleFor = 5 * time.Minute
)

// plain is a transport of HTTP/1.1 without TLS.
type plain struct {
	next http.RoundTripper // for URLs other than http
	dial func(ctx context.Context, network, address string) (net.Conn, error)

	mu     sync.Mutex
	idle   map[string][]*conn // by address, most recently used last
	swept  time.Time
	closed bool // by CloseIdleConnections, since the last request began
}

// RoundTrip sends a request. The response's body must be closed. It refers to
// the request's context until it is closed or read to its end.
func (p *plain) RoundTrip(req *http.Request) (*http.Response, error) {
	beyondASCII := strings.ContainsFunc(req.URL.Host, func(r rune) bool { return r >= utf8.RuneSelf })
	if req.URL.Scheme != "http" || req.URL.Host == "" || beyondASCII || req.Header.Get("Upgrade") != "" || req.Header.Get("Expect") != "" {
		return p.next.RoundTrip(req)
	}
	defer closeBody(req)
	for {
		c, err := p.get(req)
		if err != nil {
			return nil, err
		}
		resp, silent, err := p.try(c, req)
		if err == nil {
			return resp, nil
		}
		// The server may have closed the connection while it was idle. In that case,
		// it has sent nothing in response to this request.
		if !c.used || !silent || req.Context().Err() != nil {
			return nil, err
		}
		again, ok := rewound(req)
		if !ok {
			return nil, err
		}
		req = again
	}
}

// rewound returns the request for a retry, if it can be repeated.
func rewound(req *http.Request) (*http.Request, bool) {
	if req.Body == nil || req.Body == http.NoBody {
		return req, true
	}
	if req.GetBody == nil {
		return nil, false
	}
	body, err := req.GetBody()
	if err != nil {
		return nil, false
	}
	again := *req
	again.Body = body
	return &again, true
}

func closeBody(req *http.Request) {
	if req.Body != nil {
		req.Body.Close()
	}
}

// get returns an idle connection or a new one.
func (p *plain) get(req *http.Request) (*conn, error) {
	address := req.URL.Host
	if req.URL.Port() == "" {
		address = net.JoinHostPort(req.URL.Hostname(), "80")
	}
	for {
		c := p.pop(address)
		if c == nil {
			break
		}
		if c.quiet() {
			return c, nil
		}
		c.Close()
	}
	nc, err := p.dial(req.Context(), "tcp", address)
	if err != nil {
		if req.Context().Err() != nil {
			err = context.Cause(req.Context())
		}
		return nil, err
	}
	return newConn(nc, address), nil
}

// pop removes and returns the most recently used connection to address, or nil
// if there is none.
func (p *plain) pop(address string) (c *conn) {
	now := time.Now()
	p.mu.Lock()
	p.closed = false
	if all := p.idle[address]; len(all) > 0 {
		c = all[len(all)-1]
		all[len(all)-1] = nil
		p.idle[address] = all[:len(all)-1]
	}
	old := p.removeIdle(now)
	p.mu.Unlock()
	for _, o := range old {
		o.Close()
	}
	return c
}

// removeIdle removes connections that were idle for too long. mu is held.
func (p *plain) removeIdle(now time.Time) (old []*conn) {
	if now.Sub(p.swept) < maxIdleFor/5 {
		return nil
	}
	p.swept = now
	for address, all := range p.idle {
		n := 0
		for n < len(all) && now.Sub(all[n].since) > maxIdleFor {
			n++
		}
		old = append(old, all[:n]...)
		if n == len(all) {
			delete(p.idle, address)
		} else {
			p.idle[address] = slices.Delete(all, 0, n)
		}
	}
	return old
}

// put stores an idle connection.
func (p *plain) put(c *conn) {
	c.used, c.since = true, time.Now()
	p.mu.Lock()
	unwanted := p.closed || len(p.idle[c.address]) >= maxIdle
	if !unwanted {
		p.idle[c.address] = append(p.idle[c.address], c)
	}
	p.mu.Unlock()
	if unwanted {
		c.Close()
	}
}

// CloseIdleConnections closes idle connections. Connections in use are closed
// when they become idle, unless another request begins.
func (p *plain) CloseIdleConnections() {
	p.mu.Lock()
	idle := p.idle
	p.idle, p.closed = map[string][]*conn{}, true
	p.mu.Unlock()
	for _, all := range idle {
		for _, c := range all {
			c.Close()
		}
	}
	if n, ok := p.next.(interface{ CloseIdleConnections() }); ok {
		n.CloseIdleConnections()
	}
}

// try sends a request on c. On error, c is closed. silent means that no
// response began.
func (p *plain) try(c *conn, req *http.Request) (_ *http.Response, silent bool, err error) {
	ctx := req.Context()
	stop := context.AfterFunc(ctx, func() { c.Close() })
	fail := func(err error) (*http.Response, bool, error) {
		stop()
		c.Close()
		c.free()
		if ctx.Err() != nil {
			err = context.Cause(ctx) // the reason why reading failed
		}
		return nil, silent, err
	}
	writeErr := c.write(req)
	if writeErr != nil && !c.broken {
		return fail(writeErr) // caused by the body: there is no response to an incomplete request
	}
	c.in, c.room = readers.Get().(*bufio.Reader), maxHead
	c.in.Reset(c)
	// A server that responds before it has read everything may have closed its
	// side.
	if _, err := c.in.Peek(1); err != nil {
		silent = true
		if writeErr != nil {
			err = writeErr
		}
		if err == io.EOF {
			err = errors.New("server closed the connection without an answer")
		}
		return fail(err)
	}
	resp, err := p.answer(c, req)
	if err != nil {
		return fail(err)
	}
	c.room = math.MaxInt64
	b := &answerBody{p: p, c: c, stop: stop, ctx: ctx, in: resp.Body, keep: writeErr == nil && !resp.Close && !req.Close}
	if resp.Body == http.NoBody || resp.ContentLength == 0 {
		b.end(nil)
		return resp, false, nil
	}
	resp.Body = b
	return resp, false, nil
}

// maxInterim is the maximum number of informational responses before the final
// one.
const maxInterim = 5

// answer reads the header of the response.
func (p *plain) answer(c *conn, req *http.Request) (*http.Response, error) {
	for range maxInterim {
		resp, err := http.ReadResponse(c.in, req)
		if err == io.ErrUnexpectedEOF || err == io.EOF {
			return nil, errors.New("server closed the connection within the head of its answer")
		}
		if err != nil {
			return nil, err
		}
		if resp.StatusCode == http.StatusSwitchingProtocols {
			resp.Close = true // it was not requested
			return resp, nil
		}
		if resp.StatusCode >= 200 {
			return resp, nil
		}
	}
	return nil, errors.New("server sent too many informational answers")
}

// answerBody returns the connection to the pool when it was read to its end.
type answerBody struct {
	p    *plain
	c    *conn
	stop func() bool
	// ctx belongs to the request. It is stored because Read has no context
	// argument and returns its cause.
	ctx  context.Context
	in   io.ReadCloser
	keep bool

	mu   sync.Mutex // Close may be called while Read waits
	over bool
	err  error
}

// Read implements io.Reader. After its end, other requests may use the
// connection.
func (b *answerBody) Read(buf []byte) (int, error) {
	b.mu.Lock()
	if b.over {
		defer b.mu.Unlock()
		return 0, b.err
	}
	b.mu.Unlock()
	n, err := b.in.Read(buf)
	if err != nil {
		err = b.end(err)
	}
	return n, err
}

// end is called with the error of Read, or nil if the body is empty.
func (b *answerBody) end(err error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over {
		return b.err
	}
	b.over = true
	spare := b.c.in.Buffered()
	b.c.free()
	if b.stop() && b.keep && (err == nil || err == io.EOF) && spare == 0 {
		b.p.put(b.c)
	} else {
		b.c.Close()
	}
	if err != nil && err != io.EOF && b.ctx.Err() != nil {
		err = context.Cause(b.ctx)
	}
	b.err = err
	return err
}

// errClosed is the error of Read after Close.
var errClosed = errors.New("http: read on closed response body")

// Close discards the unread rest.
func (b *answerBody) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.over {
		b.over, b.err = true, errClosed
		b.stop()
		b.c.Close()
	}
	return nil
}
