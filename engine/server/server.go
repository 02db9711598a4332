// Package server is the HTTP server of the components that are sent data, native
// or scripted: its arguments, TLS and life.
//
// It is not a component, and not weir's own port (engine/service/http). The
// rules to know: the port is opened in Run and never in Build; one that cannot
// be opened makes the node unhealthy and is tried again, with back-off, and
// what was served before is served on; new arguments other than the address
// take effect without closing the port, requests in flight end under the
// old ones, and no connection is closed while its client may send a request on
// it; certificates are read again when their files change; from TLS back
// to plaintext there is no way but a restart.
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

// Options are what a Server is made of.
type Options struct {
	// Handler gets the requests.
	Handler http.Handler
	// Logger gets what goes wrong with connections.
	Logger *slog.Logger
	// Clock paces the tries to open a port.
	Clock clock.Clock
	// Health is told whether the server listens, and where.
	Health func(component.Health)
	// Setting returns what sets the address, for errors: "address and port in
	// the block listen of x.y.z (file:line)".
	Setting func() string
}

// Server serves HTTP while it runs. All methods are safe for concurrent use.
type Server struct {
	o       Options
	slots   *slots
	changed chan struct{} // capacity 1: want is another
	address atomic.Pointer[string]

	mu   sync.Mutex
	want *settings
}

// settings are validated arguments with what was read of their files.
type settings struct {
	args Arguments
	tls  *tls.Config // nil without TLS
}

// New returns a Server that listens once it runs. It reads the TLS files.
func New(o Options, a *Arguments) (*Server, error) {
	s := &Server{o: o, slots: newSlots(), changed: make(chan struct{}, 1)}
	if err := s.Update(a); err != nil {
		return nil, err
	}
	return s, nil
}

// ErrPlaintext is returned by Update when TLS would be switched off.
var ErrPlaintext = errors.New("refused to go from TLS to plaintext: put the tls block back, or restart weir to serve in the clear")

// Update takes new arguments, which are valid, and reads the TLS files again.
// On error the old arguments stay.
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

// Check returns what Update would, and changes nothing.
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

// Files returns the files that were read, absolute.
func (s *Server) Files() []string { return s.wanted().args.Files() }

// Address returns where it listens, "" when it does not.
func (s *Server) Address() string {
	if a := s.address.Load(); a != nil {
		return *a
	}
	return ""
}

// Connections returns how many there are.
func (s *Server) Connections() int {
	s.slots.mu.Lock()
	defer s.slots.mu.Unlock()
	return s.slots.open
}

// LimitReached returns how often as many connections were open as conn_limit allows.
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

// The pauses between tries to open a port double from minPause to maxPause.
const (
	minPause = 250 * time.Millisecond
	maxPause = 30 * time.Second
)

// Run serves until ctx ends, and returns when the requests in flight did or
// the graceful shutdown timed out.
func (s *Server) Run(ctx context.Context) error {
	base := context.WithoutCancel(ctx) // of requests, and of the shutdown
	r := &run{s: s, stopping: make(chan struct{})}
	defer r.wg.Wait()
	retry := s.o.Clock.NewTimer(time.Hour)
	retry.Stop()
	defer retry.Stop()
	select {
	case <-s.changed: // what is wanted is looked at anyway
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

// run is one running of a Server.
type run struct {
	s  *Server
	wg sync.WaitGroup
	// stopping is closed when the server stops: connections to earlier settings are
	// closed then.
	stopping chan struct{}

	set  *settings
	door *door // nil while there is none

	mu  sync.Mutex
	gen *httpServer // whom connections go to
}

// httpServer is an http.Server: its timeouts cannot be changed.
type httpServer struct {
	http  *http.Server
	queue *queue
	tls   atomic.Pointer[tls.Config]
	end   time.Duration // graceful shutdown
	clock clock.Clock
	open  bodies
	// retired says that other settings are in effect.
	retired atomic.Bool
}

// reconcile makes what is served what is wanted. Requests get ctx.
func (r *run) reconcile(ctx context.Context) error {
	want := r.s.wanted()
	address := want.args.Address()
	moved := r.door == nil || r.door.address != address
	var before *door
	if moved {
		next, err := r.open(address)
		if err != nil {
			if r.gen != nil && want.tls != nil && r.set.tls != nil {
				r.gen.tls.Store(want.tls) // certificates are renewed wherever it serves
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

// open opens an address. One that differs from the current one in the host
// only may be in use by ourselves; that is closed first then.
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

// accept serves what comes through the door.
func (r *run) accept() {
	d := r.door
	r.wg.Go(func() { d.accept(r.s.o.Clock, r.s.slots, r.handOver, r.accepting) })
}

// SamePort reports whether two addresses have the same port, which is not 0.
func SamePort(a, b string) bool {
	_, p, _ := net.SplitHostPort(a)
	_, q, _ := net.SplitHostPort(b)
	return p == q && p != "0"
}

// sameServer reports whether an http.Server made for a does for b.
func sameServer(a, b *Arguments) bool {
	x, y := a.HTTP, b.HTTP
	same := (x.TLS == nil) == (y.TLS == nil) && a.GracefulShutdownTimeout == b.GracefulShutdownTimeout
	x.TLS, y.TLS, x.ConnLimit, y.ConnLimit = nil, nil, 0, 0
	return same && x == y
}

// serve starts a server for the settings and ends the previous one. Requests get ctx.
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
			if before.tls.Load() != nil || set.tls == nil { // plaintext ends at once
				before.retired.Store(true)
				r.retire()
			}
			before.shutdown(ctx)
		})
	}
}

// retireAfter is how long connections to earlier settings stay open. A client that
// uses one is told to close it after the answer. A client that sends a request
// while the server closes its connection would not know whether the request arrived.
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

// handler returns next, which has a client close its connection when other settings
// are in effect.
func (g *httpServer) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g.retired.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// shutdown lets the requests in flight end, within the graceful shutdown
// timeout. It waits for bodies that have not arrived for a shorter time.
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

// handOver gives a connection to the current server.
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

// accepting logs that connections cannot be accepted, or can again.
func (r *run) accepting(err error) {
	if err != nil {
		r.s.o.Logger.Error("cannot accept connections", "err", err)
		return
	}
	r.s.o.Logger.Info("connections are accepted again")
}

// stop closes the port, and ends when the requests in flight did.
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

// inUse reports whether an address could not be opened because it is.
func inUse(err error) bool {
	// The error's number differs by system, and its text does not.
	return strings.Contains(err.Error(), "address already in use") || strings.Contains(err.Error(), "Only one usage of each socket address")
}
