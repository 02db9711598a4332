// Package server is the HTTP server of native or scripted components that
// receive data: its arguments, TLS and lifetime.
//
// It is not a component, and not weir's own port (engine/service/http). The
// port is opened in Run and never in Build. If it cannot be opened, the node is
// unhealthy and opening is retried with back-off, while the previous server
// continues. New arguments other than the address take effect without closing
// the port; requests in flight end under the old arguments, and no connection
// is closed while its client may send a request on it. Certificates are read
// again when their files change. Changing from TLS to plaintext requires a
// restart.
package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/component"
)

// Options are the options of New.
type Options struct {
	// Handler handles the requests.
	Handler http.Handler
	// Logger logs errors of connections.
	Logger *slog.Logger
	// Clock times the retries of opening a port.
	Clock clock.Clock
	// Health is called with whether the server listens, and where.
	Health func(component.Health)
	// Setting returns the name of the setting of the address, for errors: "address
	// and port in the block listen of x.y.z (file:line)".
	Setting func() string
}

// Server serves HTTP while it runs. All methods are safe for concurrent use.
type Server struct {
	o       Options
	slots   *slots
	changed chan struct{} // capacity 1: want has changed
	address atomic.Pointer[string]

	mu   sync.Mutex
	want *settings
}

// settings are validated arguments with the content of their files.
type settings struct {
	args Arguments
	tls  *tls.Config // nil without TLS
}

// New returns a Server that listens when it runs. It reads the TLS files.
func New(o Options, a *Arguments) (*Server, error) {
	s := &Server{o: o, slots: newSlots(), changed: make(chan struct{}, 1)}
	if err := s.Update(a); err != nil {
		return nil, err
	}
	return s, nil
}

// ErrPlaintext is returned by Update when TLS would be switched off.
var ErrPlaintext = errors.New("refused to go from TLS to plaintext: put the tls block back, or restart weir to serve in the clear")

// Update applies new, valid arguments, and reads the TLS files again. On error,
// the old arguments stay.
func (s *Server) Update(a *Arguments) error {
	next, err := read(a)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.plaintext(next) {
		return ErrPlaintext
	}
	s.want = next
	s.slots.setLimit(a.HTTP.ConnLimit)
	select {
	case s.changed <- struct{}{}:
	default:
	}
	return nil
}

// Check returns the error that Update would return, and changes nothing.
func (s *Server) Check(a *Arguments) error {
	next, err := read(a)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.plaintext(next) {
		return ErrPlaintext
	}
	return nil
}

// read reads the TLS files.
func read(a *Arguments) (*settings, error) {
	set := &settings{args: *a}
	var err error
	if t := a.HTTP.TLS; t != nil {
		set.tls, err = t.load(a.HTTP.HTTP2.Enabled)
	}
	return set, err
}

// plaintext reports whether TLS would be switched off. s.mu is held.
func (s *Server) plaintext(next *settings) bool {
	return s.want != nil && s.want.tls != nil && next.tls == nil
}

// Files returns the absolute paths of the files that were read.
func (s *Server) Files() []string { return s.wanted().args.Files() }

// Address returns the address on which it listens, or "".
func (s *Server) Address() string {
	if a := s.address.Load(); a != nil {
		return *a
	}
	return ""
}

// Connections returns the number of open connections.
func (s *Server) Connections() int {
	s.slots.mu.Lock()
	defer s.slots.mu.Unlock()
	return s.slots.open
}

// LimitReached returns how often conn_limit was reached.
func (s *Server) LimitReached() int {
	s.slots.mu.Lock()
	defer s.slots.mu.Unlock()
	return s.slots.reached
}

func (s *Server) wanted() *settings {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.want
}

// The pauses between attempts to open a port double from minPause to maxPause.
const (
	minPause = 250 * time.Millisecond
	maxPause = 30 * time.Second
)

// Run serves until ctx ends, and returns when the requests in flight have ended
// or the graceful shutdown timed out.
func (s *Server) Run(ctx context.Context) error {
	base := context.WithoutCancel(ctx) // of requests, and of the shutdown
	r := &run{s: s, stopping: make(chan struct{})}
	defer r.wg.Wait()
	retry := s.o.Clock.NewTimer(time.Hour)
	retry.Stop()
	defer retry.Stop()
	select {
	case <-s.changed: // the current settings are read anyway
	default:
	}
	pause := minPause
	for {
		err := r.reconcile(base)
		if err == nil {
			pause = minPause
			retry.Stop()
		} else {
			retry.Reset(pause)
			s.unhealthy(err, r.door, pause, pause == minPause)
			pause = min(2*pause, maxPause)
		}
		select {
		case <-s.changed:
			pause = minPause
		case <-retry.C():
		case <-ctx.Done():
			r.stop(base)
			return nil
		}
	}
}

func (s *Server) unhealthy(err error, d *door, pause time.Duration, first bool) {
	if first {
		s.o.Logger.Error("cannot serve where it should", "err", err)
	}
	msg := fmt.Sprintf("%v; next try in %s", err, pause)
	if d != nil {
		msg += ", until then " + d.Addr().String() + " is served"
	}
	s.o.Health(component.Health{State: component.Unhealthy, Message: msg, Time: s.o.Clock.Now()})
}

// run is one run of a Server.
type run struct {
	s  *Server
	wg sync.WaitGroup
	// stopping is closed when the server stops. Connections with earlier settings
	// are then closed.
	stopping chan struct{}

	set  *settings
	door *door // nil while there is none

	mu  sync.Mutex
	gen *httpServer // the server for new connections
}

// httpServer is an http.Server: its timeouts cannot be changed.
type httpServer struct {
	http  *http.Server
	queue *queue
	tls   atomic.Pointer[tls.Config]
	end   time.Duration // limit of the graceful shutdown
	clock clock.Clock
	open  bodies
	// retired means that other settings are in effect.
	retired atomic.Bool
}

// reconcile applies the wanted settings. ctx is the context of requests.
func (r *run) reconcile(ctx context.Context) error {
	want := r.s.wanted()
	address := want.args.Address()
	moved := r.door == nil || r.door.address != address
	var before *door
	if moved {
		next, err := r.open(address)
		if err != nil {
			if r.gen != nil && want.tls != nil && r.set.tls != nil {
				r.gen.tls.Store(want.tls) // certificates are renewed whatever the address is
			}
			return err
		}
		before, r.door = r.door, next
	}
	if r.gen == nil || moved || !sameServer(&r.set.args, &want.args) {
		r.serve(ctx, want)
	} else {
		r.gen.tls.Store(want.tls)
	}
	r.set = want
	if moved {
		if before != nil {
			before.Close()
		}
		r.accept()
		r.s.o.Logger.Info("listening", "address", r.door.Addr().String(), "tls", want.tls != nil)
	}
	at := r.door.Addr().String()
	r.s.address.Store(&at)
	scheme := "http"
	if want.tls != nil {
		scheme = "https"
	}
	r.s.o.Health(component.Health{State: component.Healthy, Message: "listening on " + scheme + "://" + at, Time: r.s.o.Clock.Now()})
	return nil
}

// open opens an address. An address that differs from the current one in the
// host only may be in use by this server; the current one is then closed first.
func (r *run) open(address string) (*door, error) {
	next, err := open(address)
	if err != nil && inUse(err) && r.door != nil && SamePort(r.door.address, address) {
		r.door.Close()
		if next, err = open(address); err != nil {
			r.reopen()
		}
	}
	if err == nil {
		return next, nil
	}
	return nil, CannotListen(address, r.s.o.Setting(), err)
}

// reopen opens the address again that was closed for another one.
func (r *run) reopen() {
	d, err := open(r.door.address)
	if r.door = d; err != nil {
		r.s.address.Store(nil)
		return
	}
	r.accept()
}

// accept serves the connections of the door.
func (r *run) accept() {
	d := r.door
	r.wg.Go(func() { d.accept(r.s.o.Clock, r.s.slots, r.handOver, r.accepting) })
}

// SamePort reports whether two addresses have the same port, other than 0.
func SamePort(a, b string) bool {
	_, p, _ := net.SplitHostPort(a)
	_, q, _ := net.SplitHostPort(b)
	return p == q && p != "0"
}

// sameServer reports whether an http.Server created for a can be used for b.
func sameServer(a, b *Arguments) bool {
	x, y := a.HTTP, b.HTTP
	same := (x.TLS == nil) == (y.TLS == nil) && a.GracefulShutdownTimeout == b.GracefulShutdownTimeout
	x.TLS, y.TLS, x.ConnLimit, y.ConnLimit = nil, nil, 0, 0
	return same && x == y
}

// serve starts a server for the settings and ends the previous one. ctx is the
// context of requests.
func (r *run) serve(ctx context.Context, set *settings) {
	h := &set.args.HTTP
	g := &httpServer{queue: newQueue(r.door.Addr()), end: set.args.GracefulShutdownTimeout, clock: r.s.o.Clock}
	g.tls.Store(set.tls)
	g.http = &http.Server{
		ReadTimeout: h.ReadTimeout, WriteTimeout: h.WriteTimeout, IdleTimeout: h.IdleTimeout,
		MaxHeaderBytes: 64 << 10,
		ErrorLog:       slog.NewLogLogger(r.s.o.Logger.Handler(), slog.LevelDebug),
		BaseContext:    func(net.Listener) context.Context { return ctx },
		Protocols:      new(http.Protocols),
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams:          h.HTTP2.MaxConcurrentStreams,
			MaxDecoderHeaderTableSize:     h.HTTP2.MaxDecoderHeaderTableSize,
			MaxEncoderHeaderTableSize:     h.HTTP2.MaxEncoderHeaderTableSize,
			MaxReadFrameSize:              h.HTTP2.MaxReadFrameSize,
			PermitProhibitedCipherSuites:  h.HTTP2.PermitProhibitedCiphers,
			SendPingTimeout:               h.HTTP2.ReadIdleTimeout,
			PingTimeout:                   h.HTTP2.PingTimeout,
			WriteByteTimeout:              h.HTTP2.WriteByteTimeout,
			MaxReceiveBufferPerConnection: h.HTTP2.MaxUploadBufferPerConnection,
			MaxReceiveBufferPerStream:     h.HTTP2.MaxUploadBufferPerStream,
		},
	}
	g.open.serve(g.http, g.handler(r.s.o.Handler))
	g.http.Protocols.SetHTTP1(true)
	g.http.Protocols.SetHTTP2(h.HTTP2.Enabled)
	g.http.Protocols.SetUnencryptedHTTP2(h.HTTP2.Enabled && set.tls == nil)
	if set.tls != nil {
		g.http.TLSConfig = &tls.Config{
			GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return g.tls.Load(), nil },
		}
	}
	r.wg.Go(func() {
		var err error
		if set.tls != nil {
			err = g.http.ServeTLS(g.queue, "", "")
		} else {
			err = g.http.Serve(g.queue)
		}
		if !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			r.s.o.Logger.Error("cannot serve", "err", err)
		}
	})
	r.mu.Lock()
	before := r.gen
	r.gen = g
	r.mu.Unlock()
	if before != nil {
		r.wg.Go(func() {
			before.queue.Close()
			if before.tls.Load() != nil || set.tls == nil { // plaintext connections end immediately
				before.retired.Store(true)
				r.retire()
			}
			before.shutdown(ctx)
		})
	}
}

// retireAfter is how long connections with earlier settings stay open. A client
// that uses one is told to close it after the response. If the server closed
// the connection while a client sends a request, the client would not know
// whether the request arrived.
const retireAfter = 10 * time.Second

// retire waits for retireAfter, or until the server stops.
func (r *run) retire() {
	t := r.s.o.Clock.NewTimer(retireAfter)
	defer t.Stop()
	select {
	case <-t.C():
	case <-r.stopping:
	}
}

// handler returns next with an addition: when other settings are in effect,
// clients are told to close their connections.
func (g *httpServer) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g.retired.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// shutdown lets the requests in flight end, within the graceful shutdown
// timeout. It waits for a shorter time for bodies that have not arrived.
func (g *httpServer) shutdown(ctx context.Context) {
	g.queue.Close()
	ctx, cancel := context.WithTimeout(ctx, g.end)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { g.open.cutAfter(ctx, g.clock, bodyGrace) })
	if g.http.Shutdown(ctx) != nil {
		g.http.Close()
	}
}

// handOver passes a connection to the current server.
func (r *run) handOver(c net.Conn) {
	for {
		r.mu.Lock()
		g := r.gen
		r.mu.Unlock()
		if g == nil {
			c.Close()
			return
		}
		select {
		case g.queue.conns <- c:
			return
		case <-g.queue.closed:
		}
	}
}

// accepting logs that connections cannot be accepted, or that they can again.
func (r *run) accepting(err error) {
	if err != nil {
		r.s.o.Logger.Error("cannot accept connections", "err", err)
		return
	}
	r.s.o.Logger.Info("connections are accepted again")
}

// stop closes the port, and returns when the requests in flight have ended.
func (r *run) stop(ctx context.Context) {
	close(r.stopping)
	if r.door != nil {
		r.door.Close()
	}
	r.mu.Lock()
	g := r.gen
	r.gen = nil
	r.mu.Unlock()
	r.s.address.Store(nil)
	if g != nil {
		g.shutdown(ctx)
	}
}

// inUse reports whether an address could not be opened because it is in use.
func inUse(err error) bool {
	// The error number depends on the system, but its text does not.
	return strings.Contains(err.Error(), "address already in use") || strings.Contains(err.Error(), "Only one usage of each socket address")
}
