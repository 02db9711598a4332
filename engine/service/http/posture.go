package http

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	nethttp "net/http"
	"sync/atomic"
	"syscall"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/service"
)

// posture specifies how connections over TCP are accepted: in plaintext or with
// TLS, with or without a password. It is immutable and replaced as a whole.
type posture struct {
	tls     *tls.Config // nil: plaintext
	clients string      // see TLSArguments.clients
	auth    *auth
	closed  bool // no requests are served
}

// newPosture reads the files in the arguments.
func newPosture(a *Arguments) (*posture, error) {
	p := &posture{auth: newAuth(a.Auth)}
	if a.TLS == nil {
		return p, nil
	}
	var err error
	if p.tls, err = a.TLS.config(); err != nil {
		return nil, err
	}
	p.clients = a.TLS.clients(p.tls)
	return p, nil
}

// errPlaintext refuses a change that would expose secrets.
var errPlaintext = errors.New("weir would serve plaintext again where it serves HTTPS now: keep the block tls, or restart weir to do without")

// closedFor returns the posture while a cannot be applied: p, unless a requires
// more protection than p. p may be nil.
func (p *posture) closedFor(a *Arguments) *posture {
	next := posture{}
	if p != nil {
		next = *p
	}
	less := a.TLS != nil && next.tls == nil || newAuth(a.Auth) != nil && next.auth == nil
	if p != nil && !less && !p.closed {
		return p
	}
	next.closed = true
	if a.TLS != nil && next.tls == nil {
		next.tls = noCertificate
	}
	return &next
}

// serves reports whether it has a certificate to serve HTTPS with.
func (p *posture) serves() bool { return p != nil && p.tls != nil && p.tls != noCertificate }

// refuse responds to a request on a connection that the posture does not serve.
func (p *posture) refuse(w nethttp.ResponseWriter, r *nethttp.Request) (refused bool) {
	made := connectionOf(r)
	switch {
	case p.tls != nil && r.TLS == nil:
		// This is an older connection. For a new one, net/http sends the same
		// response.
		w.Header().Set("Connection", "close")
		nethttp.Error(w, "Client sent an HTTP request to an HTTPS server.", nethttp.StatusBadRequest)
	case p.closed:
		nethttp.Error(w, "weir does not serve: what the block http refers to is not there, or cannot be used", nethttp.StatusServiceUnavailable)
	case made != nil && made.made.clients != p.clients:
		w.Header().Set("Connection", "close")
		nethttp.Error(w, "client certificates are checked in another way since this connection was made: connect again", nethttp.StatusMisdirectedRequest)
	default:
		return false
	}
	return true
}

// listener adds TLS to connections according to the current posture.
type listener struct {
	net.Listener
	s    *Service
	open atomic.Int64 // connections
	// last is the posture of the connection that Accept returned last.
	// Server.Serve requests its context before it accepts another one.
	last *posture
}

// Accept returns the next connection. With TLS, it is a *tls.Conn, which the
// server expects.
func (l *listener) Accept() (net.Conn, error) {
	c, err := l.accept()
	if err != nil {
		return nil, err
	}
	l.last = l.s.posture.Load()
	if l.last.tls != nil {
		return tls.Server(c, l.last.tls), nil
	}
	return c, nil
}

// accept returns the next connection that there is room for.
func (l *listener) accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.open.Add(1) <= maxConnections {
			return &client{Conn: c, open: &l.open}, nil
		}
		l.open.Add(-1)
		l.s.metrics.limited.WithLabelValues("connections").Inc()
		_ = c.Close()
	}
}

// Check returns the error that Update would return.
func (s *Service) Check(config any, open bool) error {
	a := config.(*Arguments)
	if s.posture.Load().serves() && a.TLS == nil {
		return errPlaintext
	}
	if open || !a.TLS.answers() {
		return nil
	}
	_, err := newPosture(a)
	return err
}

// Wait stops serving while it is not known how to protect the port.
func (s *Service) Wait(config any) error {
	a := config.(*Arguments)
	s.updating.Lock()
	defer s.updating.Unlock()
	s.want(a)
	s.posture.Store(s.posture.Load().closedFor(a))
	return s.listen()
}

// Update applies *Arguments. The first call opens the port.
func (s *Service) Update(config any) error {
	a := config.(*Arguments)
	s.updating.Lock()
	defer s.updating.Unlock()
	now := s.posture.Load()
	if now.serves() && a.TLS == nil {
		return errPlaintext
	}
	s.want(a)
	p, err := newPosture(a)
	if err != nil {
		s.posture.Store(now.closedFor(a))
		return err
	}
	s.posture.Store(p)
	return s.listen()
}

func (s *Service) want(a *Arguments) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.args = a
}

func (s *Service) listen() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.o.Listen == "" || s.tcp != nil {
		return nil
	}
	l, err := net.Listen("tcp", s.o.Listen)
	if err != nil {
		return cannotListen(s.o.Listen, err)
	}
	s.tcp = l
	return nil
}

// cannotListen returns the error for an address that could not be opened.
func cannotListen(address string, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("cannot listen on %s: the address is already in use; stop the process that uses it, or choose another address with --server.http.listen-addr", address)
	}
	return fmt.Errorf("cannot listen on %s: %w; choose another address with --server.http.listen-addr", address, err)
}

// Sourced returns the files of the certificates.
func (s *Service) Sourced() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.args == nil {
		return nil
	}
	return absolute(s.args.files())
}

// DebugInfo returns how the port is protected, and how long the certificate is
// valid.
func (s *Service) DebugInfo() any {
	p := s.posture.Load()
	if p == nil {
		return nil
	}
	d := map[string]any{"address": s.Address(), "https": p.tls != nil, "password": p.auth != nil, "serves": !p.closed}
	if p.serves() {
		leaf := p.tls.Certificates[0].Leaf
		d["certificate"] = map[string]any{"subject": leaf.Subject.String(), "names": leaf.DNSNames, "not_after": leaf.NotAfter}
	}
	return d
}

var (
	_ component.Debugger = (*Service)(nil)

	_ service.Checker = (*Service)(nil)
	_ service.Waiter  = (*Service)(nil)
	_ service.Sourced = (*Service)(nil)
)
