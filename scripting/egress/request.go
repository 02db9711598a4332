package egress

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/weir-run/weir/scripting/grant"
)

// Request is one request. Header names may repeat.
type Request struct {
	Method    string // "" is GET
	URL       string
	Header    []Header
	Body      []byte // nil: none
	MaxBody   int64  // of the response, decompressed
	Redirects int    // maximum number of redirects
}

// Header is a field of a request's header.
type Header struct{ Name, Value string }

// Response is the complete response.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
	URL    string // that responded, after redirects; without secrets
}

// DeniedError means that a resource is not granted.
type DeniedError struct{ Err error }

func (e *DeniedError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *DeniedError) Unwrap() error { return e.Err }

// ErrTooLarge is wrapped by an error if a response, a file or the output of a
// command is larger than its limit.
var ErrTooLarge = errors.New("it is too large")

// maxHeader is the maximum size of a response's header, in bytes.
const maxHeader = 64 << 10

// methods are the methods that a script may use.
var methods = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions}

// ownHeaders are headers that only the client itself sets, because with them, a
// request could be interpreted differently than it was checked.
var ownHeaders = []string{"Host", "Connection", "Content-Length", "Transfer-Encoding", "Trailer", "Te", "Upgrade", "Keep-Alive",
	"Proxy-Authorization", "Proxy-Connection", "Accept-Encoding", "Expect"}

// harmless are headers that are sent with a redirect to another host.
var harmless = []string{"Accept", "Accept-Language", "Content-Type", "User-Agent"}

// Do sends a request and follows its redirects, each of which is checked like
// the first request. The error is the context's cause if the context ended, and
// a *DeniedError if something is not granted. It contains no secrets.
func (c *Client) Do(ctx context.Context, r *Request) (*Response, error) {
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		return nil, fmt.Errorf("cannot ask %s: %w", shownText(r.URL), context.Cause(ctx))
	}
	req, err := newRequest(ctx, r)
	if err != nil {
		return nil, err
	}
	for hop := 0; ; hop++ {
		resp, err := c.once(req, r)
		if err != nil {
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			if _, denied := errors.AsType[*DeniedError](err); denied && hop == 0 {
				return nil, err // which says what was asked
			}
			return nil, fmt.Errorf("cannot ask %s: %w", shownText(r.URL), err)
		}
		to := resp.Header.Get("Location")
		if !redirects(resp.Status) || to == "" || r.Redirects == 0 {
			return resp, nil
		}
		if hop == r.Redirects {
			return nil, fmt.Errorf("cannot ask %s: it redirects more than %d times", shownText(r.URL), r.Redirects)
		}
		if req, err = follow(ctx, req, r, resp.Status, to); err != nil {
			return nil, fmt.Errorf("cannot ask %s: %w", shownText(r.URL), err)
		}
	}
}

func newRequest(ctx context.Context, r *Request) (*http.Request, error) {
	method := r.Method
	if method == "" {
		method = http.MethodGet
	}
	if !slices.Contains(methods, method) {
		return nil, fmt.Errorf("cannot use %q as method: there is %s", method, strings.Join(methods, ", "))
	}
	if strings.IndexFunc(r.URL, func(c rune) bool { return c < ' ' || c == 0x7f }) >= 0 {
		return nil, errors.New("cannot ask this URL: it has a control character in it")
	}
	u, err := url.Parse(r.URL)
	if err != nil { // the library's error has the whole URL
		return nil, errors.New("cannot ask this URL: it cannot be read")
	}
	u.Fragment, u.RawFragment = "", ""
	var body io.Reader
	if r.Body != nil {
		body = bytes.NewReader(r.Body)
	}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), body)
	if err != nil {
		return nil, fmt.Errorf("cannot ask %s: the request cannot be made", grant.Shown(u))
	}
	for _, h := range r.Header {
		name := http.CanonicalHeaderKey(h.Name)
		switch {
		case !httpguts.ValidHeaderFieldName(h.Name):
			return nil, fmt.Errorf("cannot use %q as the name of a header", h.Name)
		case slices.Contains(ownHeaders, name):
			return nil, fmt.Errorf("cannot set the header %s: the client does that itself", name)
		case !httpguts.ValidHeaderFieldValue(h.Value):
			return nil, fmt.Errorf("cannot use this value of the header %s: it has a line feed or another control character in it", name)
		}
		req.Header.Add(name, h.Value)
	}
	return req, nil
}

// once sends one request and reads its response.
func (c *Client) once(req *http.Request, r *Request) (*Response, error) {
	p, err := c.permit(req)
	if err != nil {
		return nil, err
	}
	req = req.WithContext(context.WithValue(req.Context(), permitKey{}, p))
	req.Header.Set("Accept-Encoding", "gzip")
	rt := c.rt
	if !p.named {
		rt = c.wide
	}
	if c.o.Wrap != nil {
		rt = c.o.Wrap(rt)
	}
	resp, err := rt.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	size := 0
	for name, values := range resp.Header {
		for _, v := range values {
			size += len(name) + len(v)
		}
	}
	if size > maxHeader {
		return nil, fmt.Errorf("%w: the header has more than %d bytes", ErrTooLarge, maxHeader)
	}
	body, err := readBody(resp, r.MaxBody)
	if err != nil {
		return nil, err
	}
	return &Response{Status: resp.StatusCode, Header: resp.Header, Body: body, URL: grant.Shown(req.URL)}, nil
}

// readBody reads a response of at most limit bytes, both compressed and
// decompressed.
func readBody(resp *http.Response, limit int64) ([]byte, error) {
	tooLarge := fmt.Errorf("%w: the answer has more than %d bytes, the limit is max_bytes", ErrTooLarge, limit)
	if resp.ContentLength > limit {
		return nil, tooLarge
	}
	raw := &bounded{r: resp.Body, left: limit, err: tooLarge}
	if !strings.EqualFold(resp.Header.Get("Content-Encoding"), "gzip") {
		return io.ReadAll(raw)
	}
	resp.Header.Del("Content-Encoding")
	resp.Header.Del("Content-Length")
	z, err := gzip.NewReader(raw)
	if errors.Is(err, io.EOF) { // the response to HEAD, a 304
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot unpack the answer: %w", err)
	}
	body, err := io.ReadAll(&bounded{r: z, left: limit, err: tooLarge})
	if err != nil && !errors.Is(err, ErrTooLarge) {
		err = fmt.Errorf("cannot unpack the answer: %w", err)
	}
	return body, err
}

// bounded returns an error after left bytes.
type bounded struct {
	r    io.Reader
	left int64
	err  error
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.r.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, b.err
	}
	return n, err
}

func redirects(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// follow creates the request for a redirect. A redirect to another host gets
// only harmless headers, without credentials or a body.
func follow(ctx context.Context, from *http.Request, r *Request, status int, location string) (*http.Request, error) {
	to, err := from.URL.Parse(location)
	if err != nil {
		return nil, errors.New("it redirects to a URL that cannot be read")
	}
	to.Fragment, to.RawFragment = "", ""
	a, err := grant.ParseTarget(from.URL)
	if err != nil {
		return nil, err
	}
	b, err := grant.ParseTarget(to)
	if err != nil {
		return nil, &DeniedError{Err: fmt.Errorf("it redirects: %w", err)}
	}
	if a.Encrypted() && !b.Encrypted() {
		return nil, &DeniedError{Err: fmt.Errorf("it redirects from https to %s", grant.Shown(to))}
	}
	method, body := from.Method, r.Body
	if method != http.MethodHead && (status == http.StatusSeeOther || method == http.MethodPost && status < http.StatusTemporaryRedirect) {
		method, body = http.MethodGet, nil
	}
	if from.Method != method || from.ContentLength == 0 {
		body = nil // it was dropped in an earlier redirect
	}
	same := a.Origin() == b.Origin()
	if !same && len(body) > 0 {
		return nil, &DeniedError{Err: fmt.Errorf("it redirects a request with a body to another host, %s", grant.Shown(to))}
	}
	var in io.Reader
	if body != nil {
		in = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, to.String(), in)
	if err != nil {
		return nil, errors.New("it redirects to a URL that cannot be asked")
	}
	for name, values := range from.Header {
		if (same || slices.Contains(harmless, name)) && (body != nil || name != "Content-Type") {
			req.Header[name] = values
		}
	}
	return req, nil
}

func shownText(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "this URL"
	}
	return grant.Shown(u)
}
