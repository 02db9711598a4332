package http

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	nethttp "net/http"
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

	mu       sync.Mutex
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
func (s *Service) Definition() service.Definition { return service.Definition{Name: "http"} }

// Update opens the port.
func (s *Service) Update(any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.o.Listen == "" || s.tcp != nil {
		return nil
	}
	l, err := net.Listen("tcp", s.o.Listen)
	if err != nil {
		return fmt.Errorf("cannot listen on %s: %w", s.o.Listen, err)
	}
	s.tcp = l
	return nil
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
	serve := func(l net.Listener, h nethttp.Handler) {
		srv := &nethttp.Server{
			Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
			ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
		}
		servers = append(servers, srv)
		go func() { errs <- srv.Serve(l) }()
	}
	serve(s.memory, s.serve(true))
	if tcp != nil {
		serve(tcp, s.serve(false))
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
