package server

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/flow"
)

// bodyGrace is how long the rest of a body may take to arrive when the server
// stops. Otherwise, a client with an incomplete request could delay the
// shutdown of weir indefinitely.
const bodyGrace = 5 * time.Second

// errCutBody is the error of a body that was cut off because the server stops.
// Nothing of the request was accepted.
var errCutBody error = cutError{}

// cutError is flow.ErrStopped with a message for clients.
type cutError struct{}

func (cutError) Error() string {
	return "weir is stopping and the rest of the body has not arrived; send it again"
}
func (cutError) Unwrap() error { return flow.ErrStopped }

// bodies contains the requests whose body has not been read to its end.
type bodies struct {
	mu      sync.Mutex
	cut     bool
	pending map[source]struct{}
}

// source is the source of a body: its connection, or with HTTP/2, which shares
// a connection between requests, its http.ResponseController.
type source interface {
	SetReadDeadline(time.Time) error
}

// end makes reading fail. The handler can still answer.
func end(s source) { _ = s.SetReadDeadline(time.Unix(1, 0)) }

// connKey is the key of a request's net.Conn in its context.
type connKey struct{}

// serve sets the handler of s to next, with bodies that can be cut off.
func (b *bodies) serve(s *http.Server, next http.Handler) {
	s.Handler = b.handler(next)
	s.ConnContext = func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) }
	s.ConnState = func(c net.Conn, state http.ConnState) {
		if state != http.StateActive {
			b.done(c)
		}
	}
}

func (b *bodies) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body == http.NoBody {
			next.ServeHTTP(w, r)
			return
		}
		x := &body{ReadCloser: r.Body, of: b}
		if r.ProtoMajor == 1 {
			// net/http reads the rest of a body when next has returned, and waits for
			// it: the body is pending until the connection changes its state.
			x.from = r.Context().Value(connKey{}).(net.Conn)
		} else {
			x.from = http.NewResponseController(w)
			defer b.done(x.from) // it is not valid afterwards
		}
		b.add(x.from)
		r = r.WithContext(r.Context())
		r.Body = x
		next.ServeHTTP(w, r)
	})
}

func (b *bodies) add(s source) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pending == nil {
		b.pending = map[source]struct{}{}
	}
	b.pending[s] = struct{}{}
	if b.cut {
		end(s)
	}
}

func (b *bodies) done(s source) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.pending, s)
}

// cutAfter cuts off the bodies that have not arrived after d, unless ctx ends
// before.
func (b *bodies) cutAfter(ctx context.Context, c clock.Clock, d time.Duration) {
	if clock.Sleep(ctx, c, d) != nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cut = true
	for s := range b.pending {
		end(s)
	}
}

func (b *bodies) wasCut() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.cut
}

// body is the body of one request.
type body struct {
	io.ReadCloser
	of   *bodies
	from source
}

// Read implements io.Reader. The error is errCutBody if the server did not wait
// for the rest.
func (x *body) Read(p []byte) (int, error) {
	n, err := x.ReadCloser.Read(p)
	switch {
	case err == nil:
	case errors.Is(err, io.EOF):
		x.of.done(x.from)
	case errors.Is(err, os.ErrDeadlineExceeded) && x.of.wasCut():
		err = errCutBody
	}
	return n, err
}
