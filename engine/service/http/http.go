package http

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	nethttp "net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/engine/service"
)

// Options are what the service is made of.
type Options struct {
	// Listen is the TCP address, such as 127.0.0.1:12345; "" for none.
	Listen string
	// Hosts are more names, without port, under which the page may be asked for.
	Hosts []string
	// Gatherer is what /metrics shows.
	Gatherer prometheus.Gatherer
	// Logger gets errors of serving; nil discards.
	Logger *slog.Logger
}

// memoryAddress is the host and port that DialContext connects in memory.
const memoryAddress = "weir.internal:12345"

// Service is the http service.
type Service struct {
	o      Options
	log    *slog.Logger
	memory *memoryListener
	host   atomic.Pointer[service.Host]
	routes *nethttp.ServeMux

	posture atomic.Pointer[posture] // how TCP is met; written under mu

	mu       sync.Mutex
	args     *Arguments // the last, whether they could be used or not
	tcp      net.Listener
	prefixes []prefix // longest first
}

// prefix is a handler that was added by Handle.
type prefix struct {
	path    string
	handler nethttp.Handler
}

// New returns the service; it opens its port at the first Update.
func New(o Options) *Service {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Service{o: o, log: o.Logger, memory: newMemoryListener()}
	s.routes = s.mux()
	return s
}

// Definition describes the service.
func (s *Service) Definition() service.Definition {
	return service.Definition{Name: "http", Block: "http", NewConfig: func() any { return new(Arguments) }, Doc: doc}
}

// Address returns the TCP address it listens on, with the port that was
// chosen for :0; "" when it does not.
func (s *Service) Address() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tcp != nil {
		return s.tcp.Addr().String()
	}
	return s.o.Listen
}

// URL returns where the page is, "" when it does not listen.
func (s *Service) URL() string {
	addr := s.Address()
	switch p := s.posture.Load(); {
	case addr == "":
		return ""
	case p != nil && p.tls != nil:
		return "https://" + addr
	}
	return "http://" + addr
}

// Data returns a service.HTTPData.
func (s *Service) Data() any {
	return service.HTTPData{
		ListenAddress: s.Address(),
		MemoryAddress: memoryAddress,
		DialContext:   s.dial,
		Handle:        s.handle,
	}
}

func (s *Service) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if address == memoryAddress {
		return s.memory.dial(ctx)
	}
	var d net.Dialer
	return d.DialContext(ctx, network, address)
}

// handle adds or replaces the handler of a prefix; nil removes it. The paths
// of the service itself cannot be replaced.
func (s *Service) handle(path string, h nethttp.Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ps := slices.DeleteFunc(slices.Clone(s.prefixes), func(p prefix) bool { return p.path == path })
	if h != nil {
		ps = append(ps, prefix{path, h})
	}
	slices.SortFunc(ps, func(a, b prefix) int { return len(b.path) - len(a.path) })
	s.prefixes = ps
}

func (s *Service) added(path string) nethttp.Handler {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.prefixes {
		if strings.HasPrefix(path, p.path) {
			return p.handler
		}
	}
	return nil
}

// Handler returns all there is, for connections that are trusted.
func (s *Service) Handler() nethttp.Handler { return s.serve(true) }

// closeTime is how long requests have to end when weir does.
const closeTime = 2 * time.Second

// Run serves until ctx ends.
func (s *Service) Run(ctx context.Context, host service.Host) error {
	s.host.Store(&host)
	s.mu.Lock()
	tcp := s.tcp
	s.mu.Unlock()
	errs := make(chan error, 2)
	var servers []*nethttp.Server
	serve := func(l net.Listener, srv *nethttp.Server) {
		srv.ReadHeaderTimeout, srv.IdleTimeout, srv.MaxHeaderBytes = 10*time.Second, 2*time.Minute, 64<<10
		srv.ErrorLog = log.New(errorLog{s.log}, "", 0)
		servers = append(servers, srv)
		go func() { errs <- srv.Serve(l) }()
	}
	serve(s.memory, &nethttp.Server{Handler: s.serve(true)})
	if tcp != nil {
		l := &listener{Listener: tcp, s: s}
		serve(l, &nethttp.Server{Handler: s.serve(false), ConnContext: func(ctx context.Context, _ net.Conn) context.Context {
			return context.WithValue(ctx, postureKey{}, l.last)
		}})
	}
	var failed error
	left := len(servers)
	select {
	case <-ctx.Done():
	case failed = <-errs:
		left--
	}
	closing, cancel := context.WithTimeout(context.Background(), closeTime) // ctx has ended
	defer cancel()
	for _, srv := range servers {
		if srv.Shutdown(closing) != nil {
			srv.Close()
		}
	}
	for range left {
		if err := <-errs; !errors.Is(err, nethttp.ErrServerClosed) {
			failed = errors.Join(failed, err)
		}
	}
	if failed != nil {
		return fmt.Errorf("cannot serve: %w", failed)
	}
	return nil
}

var _ service.Service = (*Service)(nil)

// errorLog takes the lines of net/http.
type errorLog struct{ log *slog.Logger }

// Write logs a line. Handshakes that fail are the doing of whoever knocks, as
// often as they like.
func (l errorLog) Write(line []byte) (int, error) {
	level := slog.LevelWarn
	if bytes.HasPrefix(line, []byte("http: TLS handshake error")) {
		level = slog.LevelDebug
	}
	l.log.Log(context.Background(), level, string(bytes.TrimSpace(line)))
	return len(line), nil
}

func absolute(files []string) (out []string) {
	for _, f := range files {
		if abs, err := filepath.Abs(f); err == nil {
			out = append(out, abs)
		}
	}
	return out
}
