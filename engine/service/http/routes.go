package http

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	nethttp "net/http"
	"net/http/pprof"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/service"
)

// mux returns the service's own paths, for connections that may use them.
func (s *Service) mux() *nethttp.ServeMux {
	m := nethttp.NewServeMux()
	with := func(f func(service.Host, nethttp.ResponseWriter, *nethttp.Request)) nethttp.HandlerFunc {
		return func(w nethttp.ResponseWriter, r *nethttp.Request) {
			host := s.host.Load()
			if host == nil {
				nethttp.Error(w, "weir is starting", nethttp.StatusServiceUnavailable)
				return
			}
			f(*host, w, r)
		}
	}
	m.HandleFunc("GET /{$}", with(page))
	m.HandleFunc("GET /graph", with(graph))
	m.HandleFunc("GET /node/{id...}", with(s.node))
	m.HandleFunc("GET /-/ready", with(ready))
	m.HandleFunc("GET /-/healthy", with(healthy))
	m.HandleFunc("POST /-/reload", with(reload))
	m.HandleFunc("GET /api/v0/status", with(status))
	m.HandleFunc("GET /api/v0/batch/{id...}", with(lastBatch))
	m.HandleFunc("/api/v0/component/{path...}", with(componentHandler))
	m.HandleFunc("/api/v0/control/{path...}", with(control))
	if s.o.Gatherer != nil {
		m.Handle("GET /metrics", promhttp.HandlerFor(s.o.Gatherer, promhttp.HandlerOpts{
			ErrorHandling: promhttp.ContinueOnError, EnableOpenMetrics: true, ErrorLog: gatherLog{s}}))
	}
	m.HandleFunc("GET /debug/pprof/", pprof.Index)
	m.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	m.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	m.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	m.HandleFunc("POST /debug/pprof/symbol", pprof.Symbol)
	m.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return m
}

// needs returns what a request over TCP has to be.
func needs(r *nethttp.Request) access {
	path := r.URL.Path
	switch {
	case path == "/metrics" || path == "/-/ready" || path == "/-/healthy":
		return open
	case path == "/" || path == "/graph" || path == "/api/v0/status" || strings.HasPrefix(path, "/node/"):
		return shown
	case strings.HasPrefix(path, "/api/v0/component/") && (r.Method == nethttp.MethodGet || r.Method == nethttp.MethodHead):
		return open // exporters
	case strings.HasPrefix(path, "/api/v0/component/"):
		return sent // what components are sent: hooks of scripts
	}
	return local
}

type trustedKey struct{}

// trusted reports whether a request came another way than over TCP.
func trusted(r *nethttp.Request) bool { return r.Context().Value(trustedKey{}) != nil }

// serve returns the handler for a kind of connection. Panics are net/http's:
// it logs them and closes the connection.
func (s *Service) serve(trusted bool) nethttp.Handler {
	return nethttp.HandlerFunc(func(w nethttp.ResponseWriter, r *nethttp.Request) {
		if !trusted && s.posture.Load().refuse(w, r) {
			return
		}
		if _, pattern := s.routes.Handler(r); pattern == "" {
			if h := s.added(r.URL.Path); h != nil {
				h.ServeHTTP(w, r) // whoever added it decides for whom
				return
			}
		}
		if !trusted {
			if err := s.check(r, needs(r)); err != nil {
				nethttp.Error(w, "refused: "+err.Error(), nethttp.StatusForbidden)
				return
			}
		}
		if trusted {
			r = r.WithContext(context.WithValue(r.Context(), trustedKey{}, true))
		}
		w.Header().Set("X-Content-Type-Options", "nosniff")
		s.routes.ServeHTTP(w, r)
	})
}

func ready(host service.Host, w nethttp.ResponseWriter, _ *nethttp.Request) {
	if !host.Overview().Ready {
		nethttp.Error(w, "weir is not ready", nethttp.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "weir is ready")
}

func healthy(host service.Host, w nethttp.ResponseWriter, _ *nethttp.Request) {
	var sick []string
	for _, i := range append(host.ListComponents(), host.Overview().Services...) {
		if i.Health.State > component.Healthy {
			sick = append(sick, fmt.Sprintf("%s is %s: %s", i.ID, i.Health.State, i.Health.Message))
		}
	}
	sick = append(sick, host.Overview().Stalled...)
	if len(sick) > 0 {
		nethttp.Error(w, strings.Join(sick, "\n"), nethttp.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "all nodes are healthy")
}

func reload(host service.Host, w nethttp.ResponseWriter, r *nethttp.Request) {
	err := host.Reload(r.Context())
	_, refused := errors.AsType[config.Diagnostics](err)
	switch {
	case refused:
		nethttp.Error(w, err.Error(), nethttp.StatusBadRequest)
	case err != nil:
		nethttp.Error(w, err.Error(), nethttp.StatusServiceUnavailable)
	default:
		fmt.Fprintln(w, host.Overview().Reload.Message)
	}
}

func status(host service.Host, w nethttp.ResponseWriter, _ *nethttp.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.Encode(newStatus(host)) // an error is the client's: it went away
}

// componentOf returns the component with the longest ID that a path begins
// with: IDs of what is inside of a module have slashes. Without one it is the
// first part of the path.
func componentOf(host service.Host, path string) (id string, c component.Component) {
	for end := len(path); end > 0; end = strings.LastIndexByte(path[:end], '/') {
		if c, ok := host.GetComponent(path[:end]); ok {
			return path[:end], c
		}
	}
	id, _, _ = strings.Cut(path, "/")
	return id, nil
}

// componentHandler passes on to what a component serves.
func componentHandler(host service.Host, w nethttp.ResponseWriter, r *nethttp.Request) {
	id, c := componentOf(host, r.PathValue("path"))
	if c == nil {
		nethttp.Error(w, fmt.Sprintf("no component runs as %s", id), nethttp.StatusNotFound)
		return
	}
	if r.PathValue("path") == id {
		nethttp.Redirect(w, r, r.URL.Path+"/", nethttp.StatusMovedPermanently)
		return
	}
	h, ok := c.(component.HTTPHandler)
	// Who does not say that it needs this service shows nothing to the network.
	if !ok || !slices.Contains(host.GetServiceConsumers("http"), id) {
		nethttp.Error(w, fmt.Sprintf("%s serves nothing", id), nethttp.StatusNotFound)
		return
	}
	nethttp.StripPrefix("/api/v0/component/"+id, h.Handler()).ServeHTTP(w, r)
}

// control passes on to what a component shows of itself to its user.
func control(host service.Host, w nethttp.ResponseWriter, r *nethttp.Request) {
	id, c := componentOf(host, r.PathValue("path"))
	if c == nil {
		nethttp.Error(w, fmt.Sprintf("no component runs as %s", id), nethttp.StatusNotFound)
		return
	}
	h, ok := c.(component.Controller)
	if !ok {
		nethttp.Error(w, fmt.Sprintf("%s has nothing to look into", id), nethttp.StatusNotFound)
		return
	}
	nethttp.StripPrefix("/api/v0/control/"+id, h.Control()).ServeHTTP(w, r)
}

// gatherLog logs what /metrics cannot show.
type gatherLog struct{ s *Service }

// Println logs.
func (g gatherLog) Println(v ...any) {
	g.s.log.Warn("cannot show all metrics", "err", strings.TrimSpace(fmt.Sprintln(v...)))
}
