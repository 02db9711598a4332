package http

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"log/slog"
	"net"
	nethttp "net/http"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/engine/audit"
	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/history"
	"github.com/weir-run/weir/engine/service"
	"github.com/weir-run/weir/engine/service/ui"
)

// Options are the options of New.
type Options struct {
	// Listen is the TCP address, such as 127.0.0.1:12345, or "".
	Listen string
	// Hosts are additional host names, without port, of the web UI.
	Hosts []string
	// Docs is the documentation. It may be empty.
	Docs Docs
	// Manual returns the manual of a component by the name of its block. It may be nil.
	Manual func(name string) (string, bool)
	// Completions returns the names that an editor completes, for a language or a component.
	// It may be nil.
	Completions func(of string) ([]Completion, bool)
	// Routes are routes of the program that need credentials.
	Routes []Route
	// Check checks the config at a path. It returns the texts of its files, by path, and
	// what is wrong with them, both without secrets. If it is nil, nothing is checked.
	Check func(path string) (files map[string]string, ds config.Diagnostics, err error)
	// UI contains the files of the web UI: index.html, which is served as /, and the files that
	// it loads from the folder ui. If it is nil, there is no web UI.
	UI fs.FS
	// Document is the OpenAPI document of the API. If it is nil, it is not served.
	Document []byte
	// Audit gets the changes that are requested. If it is nil, they are not recorded.
	Audit *audit.Log
	// History is what the nodes did in the last hour. If it is nil, it is not served.
	History *history.Recorder
	// Log returns the last lines of weir's log. It may be nil.
	Log func() []byte
	// Gatherer gathers the metrics for /metrics.
	Gatherer prometheus.Gatherer
	// Registerer gets the metrics of the service; it may be nil.
	Registerer prometheus.Registerer
	// Allowed returns what the block ui allows to callers over TCP; nil allows everything.
	Allowed func() ui.Arguments
	// Clock times out links and sessions; nil is the system's.
	Clock clock.Clock
	// Logger logs errors of serving; nil discards them.
	Logger *slog.Logger
}

// memoryAddress is the host and port for connections in memory.
const memoryAddress = "weir.internal:12345"

// Service is the http service.
type Service struct {
	o         Options
	log       *slog.Logger
	memory    *memoryListener
	host      atomic.Pointer[service.Host]
	routes    *nethttp.ServeMux
	access    map[string]access // of routes, by pattern
	ui        func() (map[string]asset, error)
	token     string
	sessions  *sessions
	failures  *failures
	metrics   *metrics
	streams   atomic.Int64 // clients that follow the events of reloads
	taps      atomic.Int64 // clients that follow the records of a node
	followers atomic.Int64 // clients that follow the counters of all nodes
	meters    meters
	live      *live         // clients that follow the state of all nodes
	closing   chan struct{} // closed when Run is about to end

	posture atomic.Pointer[posture] // how TCP connections are accepted; written under updating

	checking sync.Mutex // held during a check of the config

	// updating is held during a whole Update or Wait, which may read files that do not
	// respond. mu is not held then: requests need it.
	updating sync.Mutex

	mu       sync.Mutex
	args     *Arguments // the last arguments, valid or not
	tcp      net.Listener
	prefixes []prefix // longest first
}

// prefix is a handler that was added by Handle.
type prefix struct {
	path    string
	handler nethttp.Handler
}

// New returns the service. The first Update opens its port.
func New(o Options) *Service {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = clock.System{}
	}
	s := &Service{o: o, log: o.Logger, memory: newMemoryListener(), token: rand.Text() + rand.Text(), closing: make(chan struct{})}
	s.metrics = newMetrics(o.Registerer)
	limited := func(limit string) { s.metrics.limited.WithLabelValues(limit).Inc() }
	s.sessions = newSessions(o.Clock, limited)
	s.failures = &failures{clock: o.Clock, limited: limited, until: map[netip.Addr]time.Time{}}
	if o.UI != nil {
		s.ui = assets(o.UI)
	} else {
		s.ui = func() (map[string]asset, error) { return nil, nil }
	}
	s.live = newLive(s)
	s.routes, s.access = s.mux()
	return s
}

// Token returns the secret for API clients over TCP, as a bearer token: 52
// letters and digits, different in every process. The caller writes it to
// control.TokenFile.
func (s *Service) Token() string { return s.token }

// metrics count refused requests.
type metrics struct {
	refused, limited *prometheus.CounterVec
}

func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "weir_http_requests_refused_total",
			Help: "Requests to weir's own port that were refused, by reason."}, []string{"reason"}),
		limited: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "weir_http_limited_total",
			Help: "How often a limit of weir's own port took effect: page_links and page_sessions ended the oldest one, failed_logins refused an address, failed_login_addresses forgot the failed logins of one, connections closed a new one."}, []string{"limit"}),
	}
	for _, reason := range reasons {
		m.refused.WithLabelValues(reason)
	}
	for _, limit := range []string{"connections", "failed_login_addresses", "failed_logins", "page_links", "page_sessions"} {
		m.limited.WithLabelValues(limit)
	}
	if r != nil {
		r.MustRegister(m.refused, m.limited)
	}
	return m
}

// Definition describes the service.
func (s *Service) Definition() service.Definition {
	return service.Definition{Name: "http", Block: "http", NewConfig: func() any { return new(Arguments) }, Doc: doc}
}

// Address returns the TCP address on which it listens, with the port that was
// chosen for :0, or "".
func (s *Service) Address() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tcp != nil {
		return s.tcp.Addr().String()
	}
	return s.o.Listen
}

// URL returns the URL of the web UI for a browser on this machine, or "" if the
// service does not listen.
func (s *Service) URL() string {
	addr := s.Address()
	if a, err := netip.ParseAddrPort(addr); err == nil && a.Addr().IsUnspecified() {
		addr = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), a.Port()).String()
	}
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

// handle adds or replaces the handler of a prefix; nil removes it. The paths of
// the service itself cannot be replaced.
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

// Handler returns the handler of the control socket, which allows everything.
func (s *Service) Handler() nethttp.Handler { return s.serve(overSocket) }

// closeTime is the time limit for requests when weir stops.
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
	serve(s.memory, &nethttp.Server{Handler: s.serve(inMemory)})
	if tcp != nil {
		l := &listener{Listener: tcp, s: s}
		serve(l, &nethttp.Server{Handler: s.serve(overTCP), ReadTimeout: readTime, ConnContext: func(ctx context.Context, _ net.Conn) context.Context {
			return context.WithValue(ctx, connectionKey{}, &connection{made: l.last})
		}})
	}
	var failed error
	left := len(servers)
	select {
	case <-ctx.Done():
	case failed = <-errs:
		left--
	}
	close(s.closing)
	s.live.close()
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

// errorLog logs the messages of net/http.
type errorLog struct{ log *slog.Logger }

// Write logs a line. Failed handshakes are logged at a low level, because any
// client can cause any number of them.
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
