package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/host"
)

var _ component.HTTPHandler = (*Component)(nil)

// hookHTTP is the hook of a source that handles requests.
const hookHTTP = "http"

// Time limits for clients, on the machine's clock: to send a body
// (listen.read_timeout for the node's own address) and to read the response.
const (
	bodyTime   = 30 * time.Second
	answerTime = 30 * time.Second
)

// Handler serves the routes of the script's hook http.
func (c *Component) Handler() http.Handler {
	if s, ok := c.kind.(*source); ok {
		return s.routes
	}
	return (*routes)(nil)
}

// routes are the routes of an instance; nil has no routes.
type routes struct{ mux *http.ServeMux }

func (s *source) openRoutes() {
	s.routes = &routes{http.NewServeMux()}
	for _, r := range s.c.script.Definition.HTTP {
		s.routes.mux.Handle(r.Key, &route{s, r})
	}
}

// ServeHTTP finds the route of a request.
func (rs *routes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if rs == nil { // the next version of the script accepts no requests
		http.NotFound(w, r)
		return
	}
	h, pattern := rs.mux.Handler(r)
	if _, ours := h.(*route); !ours && pattern != "" {
		// This is a redirect to a cleaned path. It would lack the prefix of the
		// component's path.
		http.NotFound(w, r)
		return
	}
	rs.mux.ServeHTTP(w, r)
}

// route is a Route of an instance.
type route struct {
	s *source
	scripting.Route
}

// ServeHTTP handles a request.
func (rt *route) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	out, to := rt.s.serve(w, r, rt.Route)
	if to != nil {
		to.Handler().ServeHTTP(w, r)
		return
	}
	rt.s.c.mem.metrics.served.WithLabelValues(fmt.Sprintf("%dxx", out.Status/100)).Inc()
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerTime)) // a test server has no deadline
	out.Write(w)
}

// serve handles a request, or returns the instance that must handle it instead.
// The body can then be read again.
func (s *source) serve(w http.ResponseWriter, r *http.Request, rt scripting.Route) (*host.Reply, *Component) {
	c := s.c
	limits := c.block.RequestLimits()
	most := int64(limits.MaxRequests)
	if c.mem.requests.Add(1) > most {
		c.mem.requests.Add(-1)
		return host.Refuse(http.StatusServiceUnavailable, "there are %d requests in flight already", most), nil
	}
	defer c.mem.requests.Add(-1)
	conn := http.NewResponseController(w)
	if r.Context().Value(ownAddress{}) == nil {
		_ = conn.SetReadDeadline(time.Now().Add(bodyTime)) // as in ServeHTTP
	}
	body, err := host.ReadBody(w, r, int64(limits.MaxBodySize))
	if e, ok := errors.AsType[*host.BodyError](err); ok {
		return host.Refuse(e.Status, "%v", err), nil
	}
	// Otherwise, the server would interpret the deadline as the end of the
	// connection.
	_ = conn.SetReadDeadline(time.Time{})

	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	until := c.opts.Clock.Now().Add(c.block.Limits.Wait)
	alarm := clock.AfterFunc(c.opts.Clock, c.block.Limits.Wait, func() { cancel(errNotInTime) })
	defer alarm.Stop()
	out, to := s.request(ctx, r, rt, body, until)
	if to != nil {
		r.Body = io.NopCloser(strings.NewReader(body))
		r.ContentLength = int64(len(body))
		r.Header.Del("Content-Encoding")
	}
	return out, to
}

var errNotInTime = errors.New("it took longer than script.limits.wait")

// request runs the hook of a route and sends the emitted records. next is the
// component that must handle the request instead, if any. ctx ends at until; by
// then, a hook that waits may already have reached its own limit.
func (s *source) request(ctx context.Context, r *http.Request, rt scripting.Route, body string, until time.Time) (out *host.Reply, next *Component) {
	c := s.c
	later := func(err error) (*host.Reply, *Component) {
		c.opts.Logger.Debug("a request was not answered in time", "route", rt.Key, "err", err)
		return host.Refuse(http.StatusServiceUnavailable, "not now: come again"), nil
	}
	toSuccessor := func() (*host.Reply, *Component) {
		to, err := c.admission.successor(ctx)
		if err != nil {
			return later(err)
		}
		return nil, to
	}
	switch err := c.admission.awaitReady(ctx); {
	case err == errReplaced:
		return toSuccessor()
	case err != nil:
		return later(err)
	}
	q, err := host.NewRequest(r, rt, body, c.world.JSON("decode"))
	if err != nil {
		return host.Refuse(http.StatusBadRequest, "%v", err), nil
	}
	c.instance.addCall()
	defer c.instance.endCall()
	source := c.mem.shipper.source
	a, ok := c.runBatchlessHook(ctx, ctx, &scripting.Hook{Name: hookHTTP, Key: rt.Key, Args: []scripting.Value{q}}, source)
	switch {
	case !ok && c.admission.closed.Load():
		return toSuccessor()
	case !ok:
		return later(context.Cause(ctx))
	case a.err == nil:
		if out, err = host.NewReply(a.value, c.world.JSON("encode")); err != nil {
			a.err = &scripting.Error{File: c.script.File.Name, Hook: hookHTTP, Err: fmt.Errorf("%s: %w", rt.Key, err)}
			c.report.errored(scripting.AsError(a.err))
			c.report.done(source, scripting.AsError(a.err))
			s.lost(a.out, "script_error")
		}
	}
	switch {
	case a.err != nil && (errors.Is(a.err, scripting.ErrLimit) || ctx.Err() != nil || !c.opts.Clock.Now().Before(until)):
		return later(a.err)
	case a.err != nil:
		return host.Refuse(http.StatusInternalServerError, scriptFailed), nil
	case !a.any:
		return out, nil
	}
	if err := c.mem.shipper.send(ctx, c, a.out, c.block.Limits.Wait); err != nil {
		s.lost(a.out, "refused")
		return later(err)
	}
	return out, nil
}

const scriptFailed = "the script failed; weir's log says why"

// lost counts records that a hook emitted and that are not sent.
func (s *source) lost(out result, reason string) {
	c := s.c
	c.opts.Stats.Drop(reason, out.samples.len())
	c.opts.Stats.DropLines(reason, out.lines.len())
}
