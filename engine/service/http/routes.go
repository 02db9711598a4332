package http

import (
	"context"
	"fmt"
	nethttp "net/http"
	"net/http/pprof"
	labels "runtime/pprof"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/weir-run/weir/engine/api"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/service"
)

// route is one of the service's own routes. The operation describes it (api.go).
type route struct {
	pattern string
	access  access
	handler nethttp.HandlerFunc
	api.Operation
}

// controlPattern is the pattern of the routes of components, which describe their operations.
const controlPattern = "/api/v0/control/{path...}"

// Route is a route of the program that uses the service.
type Route struct {
	api.Route
	Handler func(host service.Host, w nethttp.ResponseWriter, r *nethttp.Request)
}

// table returns the service's own routes with their access.
func (s *Service) table() []route {
	with := func(f func(service.Host, nethttp.ResponseWriter, *nethttp.Request)) nethttp.HandlerFunc {
		return func(w nethttp.ResponseWriter, r *nethttp.Request) {
			host := s.host.Load()
			if host == nil {
				nethttp.Error(w, "weir is starting", nethttp.StatusServiceUnavailable)
				return
			}
			f(s.shown(*host, r), w, r)
		}
	}
	routes := []route{
		{"GET /{$}", owned, s.showUI, webUI},
		{"GET /ui/{file}", owned, s.showUI, webUI},
		{"GET /-/ready", public, with(ready), readyOperation},
		{"GET /-/healthy", public, with(healthy), healthyOperation},
		{"POST /-/reload", owned, with(reload), reloadOperation},
		{"POST /-/reload/preview", owned, with(preview), previewOperation},
		{"GET " + linkPath, public, s.openLink, openLinkOperation}, // the token is in the query
		{"POST " + linkPath, socketOnly, with(s.newLink), newLinkOperation},
		{"GET /api/v0/openapi.json", public, s.serveDocument, documentOperation},
		{"GET /api/v0/docs", owned, with(s.listDocs), docsOperation},
		{"GET /api/v0/docs/{page...}", owned, with(s.serveDoc), docOperation},
		{"GET /api/v0/manual/{name}", owned, with(s.serveManual), manualOperation},
		{"GET /api/v0/completions/{of}", owned, with(s.serveCompletions), completionsOperation},
		{"GET /api/v0/status", limited, with(s.status), statusOperation},
		{"GET /api/v0/config", owned, with(serveConfig), configOperation},
		{"GET /api/v0/config/check", owned, with(s.checkConfig), checkOperation},
		{"GET /api/v0/audit", owned, with(s.serveAudit), auditOperation},
		{"GET /api/v0/events", owned, with(s.serveLive), eventsOperation},
		{"GET /api/v0/graph", owned, with(s.serveGraph), graphOperation},
		{"GET /api/v0/history", owned, with(s.serveHistory), recentOperation},
		{"GET /api/v0/log", owned, with(s.serveLog), logOperation},
		{"GET /api/v0/reloads", owned, with(reloads), reloadsOperation},
		{"GET /api/v0/reloads/events", owned, with(s.reloadEvents), reloadEventsOperation},
		{"GET /api/v0/batch/{id...}", owned, with(lastBatch), batchOperation},
		{"GET /api/v0/tap/{id...}", owned, with(s.tapped), tapOperation},
		{"GET /api/v0/top", owned, with(s.top), topOperation},
		{"GET /api/v0/why/{id...}", owned, with(s.serveWhy), whyOperation},
		{"GET /api/v0/playground/{id...}", owned, with(servePlaygroundBlock), playgroundBlockOperation},
		{"POST /api/v0/playground/{id...}", owned, with(servePlay), playBlockOperation},
		{"/api/v0/component/{path...}", served, with(componentHandler), componentOperation},
		{controlPattern, owned, with(s.controlHandler), describedByComponents},
		{"GET /debug/pprof/", owned, pprof.Index, profiles},
		{"GET /debug/pprof/cmdline", owned, pprof.Cmdline, profiles},
		{"GET /debug/pprof/profile", owned, s.cpuProfile, profiles},
		{"GET /debug/pprof/symbol", owned, pprof.Symbol, profiles},
		{"POST /debug/pprof/symbol", owned, pprof.Symbol, profiles},
		{"GET /debug/pprof/trace", owned, pprof.Trace, profiles},
	}
	for _, r := range s.o.Routes {
		routes = append(routes, route{r.Pattern, owned, with(r.Handler), r.Operation})
	}
	if s.o.Gatherer != nil {
		routes = append(routes, route{"GET /metrics", public, promhttp.HandlerFor(s.o.Gatherer, promhttp.HandlerOpts{
			ErrorHandling: promhttp.ContinueOnError, EnableOpenMetrics: true, ErrorLog: gatherLog{s}}).ServeHTTP, metricsOperation})
	}
	return routes
}

func (s *Service) serveLog(_ service.Host, w nethttp.ResponseWriter, _ *nethttp.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if s.o.Log != nil {
		_, _ = w.Write(s.o.Log()) // the client is gone
	}
}

// mux returns the service's own routes, and their access by pattern.
func (s *Service) mux() (*nethttp.ServeMux, map[string]access) {
	m, accesses := nethttp.NewServeMux(), map[string]access{}
	for _, rt := range s.table() {
		if rt.access == unclassified {
			panic("BUG: the route " + rt.pattern + " does not say who may use it")
		}
		m.Handle(rt.pattern, s.gated(rt))
		accesses[rt.pattern] = rt.access
	}
	return m, accesses
}

// Routes returns the descriptions of the service's own routes.
func Routes() (out []api.Route) {
	s := &Service{o: Options{Gatherer: prometheus.NewRegistry()}}
	for _, rt := range s.table() {
		out = append(out, api.Route{Pattern: rt.pattern, Access: accessNames[rt.access], Operation: rt.Operation})
	}
	return out
}

// accessNames are the kinds of access as users know them. Callers of routes of
// components may need credentials of the component.
var accessNames = map[access]api.Access{public: api.Anyone, served: api.Anyone, limited: api.Reduced, owned: api.Credential, socketOnly: api.Socket}

// accessOf returns the access of the route for a request, or unclassified if
// there is none.
func (s *Service) accessOf(r *nethttp.Request) access {
	_, pattern := s.routes.Handler(r)
	return s.access[pattern]
}

func ready(host service.Host, w nethttp.ResponseWriter, _ *nethttp.Request) {
	if !host.Overview().Ready {
		nethttp.Error(w, "weir is not ready", nethttp.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "weir is ready")
}

// healthy serves the unhealthy nodes with the reasons, or without credentials,
// only their number.
func healthy(host service.Host, w nethttp.ResponseWriter, r *nethttp.Request) {
	var sick []string
	nodes := append(host.ListComponents(), host.Overview().Services...)
	for _, i := range nodes {
		if i.Health.State > component.Healthy {
			sick = append(sick, fmt.Sprintf("%s is %s: %s", i.ID, i.Health.State, i.Health.Message))
		}
	}
	stalled := host.Overview().Stalled
	switch {
	case len(sick) == 0 && len(stalled) == 0:
		fmt.Fprintln(w, "all nodes are healthy")
	case callerOf(r).owner:
		sick = append(sick, stalled...)
		nethttp.Error(w, strings.Join(sick, "\n"), nethttp.StatusServiceUnavailable)
	default:
		text := fmt.Sprintf("%d of %d nodes are not healthy", len(sick), len(nodes))
		if len(stalled) > 0 {
			text += fmt.Sprintf("; operations that have not returned: %d", len(stalled))
		}
		nethttp.Error(w, text, nethttp.StatusServiceUnavailable)
	}
}

// componentOf returns the component with the longest ID that is a prefix of a
// path, because IDs inside a module contain slashes. If there is none, the ID
// is the first part of the path.
func componentOf(host service.Host, path string) (id string, c component.Component) {
	for end := len(path); end > 0; end = strings.LastIndexByte(path[:end], '/') {
		if c, ok := host.GetComponent(path[:end]); ok {
			return path[:end], c
		}
	}
	id, _, _ = strings.Cut(path, "/")
	return id, nil
}

// componentHandler passes a request to the handler of a component.
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
	// A component that does not declare that it needs this service is not
	// accessible over the network.
	if !ok || !slices.Contains(host.GetServiceConsumers("http"), id) {
		nethttp.Error(w, fmt.Sprintf("%s serves nothing", id), nethttp.StatusNotFound)
		return
	}
	serveNode(id, nethttp.StripPrefix("/api/v0/component/"+id, h.Handler()), w, r)
}

// controlHandler passes a request to the Control handler of a component.
func (s *Service) controlHandler(host service.Host, w nethttp.ResponseWriter, r *nethttp.Request) {
	id, c := componentOf(host, r.PathValue("path"))
	controller, ok := c.(component.Controller)
	if !ok {
		why := fmt.Sprintf("%s has nothing to look into", id)
		if c == nil {
			why = fmt.Sprintf("no component runs as %s", id)
		}
		s.permit(w, r, api.Operation{}, func(w nethttp.ResponseWriter) { nethttp.Error(w, why, nethttp.StatusNotFound) })
		return
	}
	w.Header().Set("Content-Security-Policy", "sandbox") // scripts influence the response
	h := controller.Control()
	serveNode(id, nethttp.StripPrefix("/api/v0/control/"+id, nethttp.HandlerFunc(func(w nethttp.ResponseWriter, inner *nethttp.Request) {
		s.permit(w, r, operationOf(h, inner), func(w nethttp.ResponseWriter) { h.ServeHTTP(w, s.withoutRecords(r, inner)) })
	})), w, r)
}

// operationOf returns the description of what a request asks a component for. A component
// that does not describe it may show records.
func operationOf(h nethttp.Handler, r *nethttp.Request) api.Operation {
	if d, ok := h.(interface {
		Operation(r *nethttp.Request) api.Operation
	}); ok {
		return d.Operation(r)
	}
	return api.Operation{Records: true}
}

// serveNode calls the handler of a node. CPU profiles attribute its time to the node.
func serveNode(id string, h nethttp.Handler, w nethttp.ResponseWriter, r *nethttp.Request) {
	labels.Do(r.Context(), labels.Labels(flow.NodeLabel, id), func(ctx context.Context) { h.ServeHTTP(w, r.WithContext(ctx)) })
}

// gatherLog logs errors in gathering metrics.
type gatherLog struct{ s *Service }

// Println logs.
func (g gatherLog) Println(v ...any) {
	g.s.log.Warn("cannot show all metrics", "err", strings.TrimSpace(fmt.Sprintln(v...)))
}
