package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"google.golang.org/protobuf/proto"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/plugin/internal/link"
	"github.com/weir-run/weir/plugin/protocol"
)

// The time limits of a node.
const (
	buildTimeout = 15 * time.Second
	askTimeout   = 5 * time.Second
	pingInterval = 5 * time.Second
	pingTimeout  = 15 * time.Second // after which a process that does not answer is ended
)

// reasonProcess is the reason of a node whose process does not run.
const reasonProcess = "plugin_process"

// Component is a component in a plugin. It exists as long as its node runs this version
// of the plugin, and longer than the process behind it.
type Component struct {
	kind *kind
	o    component.Options

	updates sync.Mutex // serialises Update

	mu      sync.Mutex
	args    any
	session *session      // the last one; it may have ended
	changed chan struct{} // closed when there is another session
}

var (
	_ component.Updater    = (*Component)(nil)
	_ component.Debugger   = (*Component)(nil)
	_ flow.MetricsConsumer = (*Component)(nil)
	_ flow.LogsConsumer    = (*Component)(nil)
)

// build is Build of the registration.
func (k *kind) build(o component.Options, args any, previous component.Component) (component.Component, error) {
	// Build has no context, and the time is limited.
	ctx, cancel := context.WithTimeout(context.Background(), buildTimeout)
	defer cancel()
	c := &Component{kind: k, o: o, args: args, changed: make(chan struct{})}
	var old *Component
	if h, ok := previous.(interface{ plugin() *Component }); ok {
		old = h.plugin()
	}
	s, err := c.connect(ctx, args, old)
	if err != nil {
		return nil, err
	}
	c.session = s
	if err := component.Register(o.Registerer, metrics{c}); err != nil {
		s.close()
		return nil, err
	}
	switch {
	case s.opened.Http && s.opened.Backlog:
		return &struct {
			*Component
			handler
			queue
		}{c, handler{c}, queue{c}}, nil
	case s.opened.Http:
		return &struct {
			*Component
			handler
		}{c, handler{c}}, nil
	case s.opened.Backlog:
		return &struct {
			*Component
			queue
		}{c, queue{c}}, nil
	}
	return c, nil
}

func (c *Component) plugin() *Component { return c }

// current returns the session, or nil if there is none at the moment.
func (c *Component) current() *session {
	c.mu.Lock()
	s := c.session
	c.mu.Unlock()
	select {
	case <-s.done:
		return nil
	default:
		return s
	}
}

// live returns the session. It waits for another one if the process has ended.
func (c *Component) live(ctx context.Context) (*session, error) {
	for {
		c.mu.Lock()
		s, changed := c.session, c.changed
		c.mu.Unlock()
		select {
		case <-s.done:
		default:
			return s, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// ConsumeMetrics passes b to the plugin.
func (c *Component) ConsumeMetrics(ctx context.Context, b *batch.Metrics) error {
	return c.consume(ctx, link.Batch{Metrics: b})
}

// ConsumeLogs passes b to the plugin.
func (c *Component) ConsumeLogs(ctx context.Context, b *batch.Logs) error {
	return c.consume(ctx, link.Batch{Logs: b})
}

func (c *Component) consume(ctx context.Context, b link.Batch) error {
	s, err := c.live(ctx)
	if err != nil {
		return err
	}
	return s.consume(ctx, b)
}

// Run runs the component until ctx ends. If the process ends, it creates the component
// again in another process.
func (c *Component) Run(ctx context.Context) error {
	for {
		s := c.session // only Run replaces it
		s.trySend(&protocol.ToPlugin{Message: &protocol.ToPlugin_Run{Run: &protocol.Run{}}})
		lost, err := c.watch(ctx, s)
		s.close()
		if !lost || ctx.Err() != nil {
			return err
		}
		c.o.Logger.Error("the plugin has failed and is started again", "err", s.err)
		c.o.Health(component.Health{State: component.Unhealthy, Reason: reasonProcess, Message: s.err.Error()})
		if !c.reconnect(ctx) {
			return nil
		}
		c.o.Health(component.Health{State: component.Healthy, Reason: reasonProcess, Message: "the plugin was started again"})
	}
}

// watch waits for the end of a session. lost reports that the process has failed.
func (c *Component) watch(ctx context.Context, s *session) (lost bool, err error) {
	t := time.NewTicker(pingInterval)
	defer t.Stop()
	var pings sync.WaitGroup
	defer pings.Wait()
	canceled := ctx.Done()
	for {
		select {
		case err := <-s.ended:
			return false, err
		case <-s.done:
			return true, nil
		case <-canceled:
			canceled = nil
			s.trySend(&protocol.ToPlugin{Message: &protocol.ToPlugin_Stop{Stop: &protocol.Stop{Cause: stopCause(ctx)}}})
		case <-t.C:
			pings.Go(func() {
				if _, err := s.ask(protocol.Ask_PING, pingTimeout); err != nil && !errors.Is(err, errLost) {
					_ = s.proc.fail(fmt.Errorf("the plugin %s does not respond: %w", s.proc.p.path, err))
					s.cancel()
				}
			})
		}
	}
}

func stopCause(ctx context.Context) protocol.Stop_Cause {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, component.ErrRemoved):
		return protocol.Stop_REMOVED
	case errors.Is(cause, component.ErrReplaced):
		return protocol.Stop_REPLACED
	}
	return protocol.Stop_SHUTDOWN
}

// reconnect creates the component in another process. It returns false if ctx has ended.
func (c *Component) reconnect(ctx context.Context) bool {
	pause := minRestart
	for {
		c.updates.Lock()
		attempt, cancel := context.WithTimeout(ctx, maxRestart+buildTimeout)
		s, err := c.connect(attempt, c.args, nil)
		cancel()
		if err == nil {
			c.mu.Lock()
			c.session = s
			close(c.changed)
			c.changed = make(chan struct{})
			c.mu.Unlock()
			c.updates.Unlock()
			return true
		}
		c.updates.Unlock()
		if ctx.Err() != nil {
			return false
		}
		c.o.Health(component.Health{State: component.Unhealthy, Reason: reasonProcess, Message: err.Error()})
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return false
		}
		pause = min(2*pause, maxRestart)
	}
}

// Update passes new arguments to the plugin. If it does not run at the moment, it gets
// them when it has been started.
func (c *Component) Update(args any) error {
	c.updates.Lock()
	defer c.updates.Unlock()
	if s := c.current(); s != nil {
		arguments, err := s.arguments(args)
		if err != nil {
			return err
		}
		s.trySend(&protocol.ToPlugin{Message: &protocol.ToPlugin_Update{Update: &protocol.Update{Arguments: arguments}}})
		select {
		case u := <-s.updated:
			switch {
			case u.Rebuild:
				return component.ErrRebuild
			case u.Error != "":
				return errors.New(u.Error)
			}
		case <-s.done: // it was not updated; reconnect uses the new arguments
		}
	}
	c.args = args
	return nil
}

// DebugInfo returns the process, and the details of the component.
func (c *Component) DebugInfo() any {
	c.mu.Lock()
	s := c.session
	c.mu.Unlock()
	p := c.kind.program
	info := map[string]any{"plugin": map[string]any{
		"path": filepath.ToSlash(p.path), "sha256": p.digest, "version": p.desc.Version, "starts": p.starts.Load(),
		"pid": s.proc.cmd.Process.Pid, "started": s.proc.started.UTC().Format(time.RFC3339),
	}}
	if s := c.current(); s != nil && s.opened.Debug {
		data, err := s.ask(protocol.Ask_DEBUG, time.Second)
		switch {
		case err != nil:
			info["error"] = err.Error()
		case json.Valid(data):
			info["component"] = json.RawMessage(data)
		}
	}
	return info
}

// queue adds component.Queuer.
type queue struct{ c *Component }

// Backlog asks the plugin. If it does not answer soon, the result is empty.
func (q queue) Backlog() (b component.Backlog) {
	if s := q.c.current(); s != nil {
		if data, err := s.ask(protocol.Ask_BACKLOG, time.Second); err == nil {
			_ = json.Unmarshal(data, &b)
		}
	}
	return b
}

// handler adds component.HTTPHandler.
type handler struct{ c *Component }

// maxBody is the maximum size of the body of a request.
const maxBody = 16 << 20

// Handler passes requests to the plugin.
func (h handler) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := h.c.current()
		if s == nil {
			http.Error(w, "the plugin does not run at the moment", http.StatusServiceUnavailable)
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			http.Error(w, "cannot read the body: "+err.Error(), http.StatusRequestEntityTooLarge)
			return
		}
		in := &protocol.Request{Id: s.lastID.Add(1), Method: r.Method, Url: r.URL.RequestURI(), Body: body}
		for name, values := range r.Header {
			for _, v := range values {
				in.Header = append(in.Header, &protocol.Pair{Key: name, Value: v})
			}
		}
		out, err := s.request(r.Context(), in)
		if err != nil {
			http.Error(w, "the plugin has not answered: "+err.Error(), http.StatusBadGateway)
			return
		}
		for _, p := range out.Header {
			w.Header().Add(p.Key, p.Value)
		}
		if out.Status < 200 || out.Status > 599 {
			out.Status = http.StatusBadGateway
		}
		w.WriteHeader(int(out.Status))
		_, _ = w.Write(out.Body) // an error means that the client is gone
	})
}

func (s *session) request(ctx context.Context, in *protocol.Request) (*protocol.Response, error) {
	c := make(chan *protocol.Response, 1)
	s.mu.Lock()
	if s.err != nil {
		s.mu.Unlock()
		return nil, errLost
	}
	s.responses[in.Id] = c
	s.mu.Unlock()
	s.trySend(&protocol.ToPlugin{Message: &protocol.ToPlugin_Request{Request: in}})
	select {
	case out, ok := <-c:
		if !ok {
			return nil, errLost
		}
		return out, nil
	case <-ctx.Done():
		s.mu.Lock()
		delete(s.responses, in.Id)
		s.mu.Unlock()
		return nil, context.Cause(ctx)
	}
}

// metrics collects the metrics of a component in a plugin.
type metrics struct{ c *Component }

// Describe sends nothing: the metrics are not known in advance.
func (m metrics) Describe(chan<- *prometheus.Desc) {}

// Collect asks the plugin.
func (m metrics) Collect(ch chan<- prometheus.Metric) {
	s := m.c.current()
	if s == nil {
		return
	}
	data, err := s.ask(protocol.Ask_METRICS, askTimeout)
	if err != nil {
		m.c.o.Logger.Warn("cannot collect the metrics of the plugin", "err", err)
		return
	}
	dec := expfmt.NewDecoder(bytes.NewReader(data), expfmt.NewFormat(expfmt.TypeProtoDelim))
	for {
		var f dto.MetricFamily
		if err := dec.Decode(&f); err != nil {
			return // the end, or not the format
		}
		for _, one := range f.Metric {
			names := make([]string, len(one.Label))
			for i, l := range one.Label {
				names[i] = l.GetName()
			}
			ch <- foreign{prometheus.NewDesc(f.GetName(), f.GetHelp(), names, nil), one}
		}
	}
}

// foreign is a metric that was collected in a plugin.
type foreign struct {
	desc *prometheus.Desc
	m    *dto.Metric
}

// Desc returns its description.
func (f foreign) Desc() *prometheus.Desc { return f.desc }

// Write copies it to out.
func (f foreign) Write(out *dto.Metric) error {
	proto.Merge(out, f.m)
	return nil
}
