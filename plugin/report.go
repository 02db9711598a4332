package plugin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"sync"

	"github.com/prometheus/common/expfmt"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/plugin/protocol"
)

// counted are the counts that were sent to weir.
type counted struct {
	mu                           sync.Mutex
	out, linesOut                uint64
	samplesDropped, linesDropped map[string]uint64
}

// count sends what the component has counted since the last call.
func (n *node) count() {
	n.counted.mu.Lock()
	defer n.counted.mu.Unlock()
	c := new(protocol.Counts)
	if n.reg.Sends == 0 { // otherwise, weir counts what receivers accept
		out, lines := n.stats.Out.Load(), n.stats.LinesOut.Load()
		c.SamplesOut, c.LinesOut = out-n.counted.out, lines-n.counted.linesOut
		n.counted.out, n.counted.linesOut = out, lines
	}
	c.SamplesDropped, n.counted.samplesDropped = increments(n.stats.Dropped(), n.counted.samplesDropped)
	c.LinesDropped, n.counted.linesDropped = increments(n.stats.DroppedLines(), n.counted.linesDropped)
	if c.SamplesOut+c.LinesOut > 0 || len(c.SamplesDropped)+len(c.LinesDropped) > 0 {
		n.trySend(&protocol.ToWeir{Message: &protocol.ToWeir_Counts{Counts: c}})
	}
}

func increments(now, before map[string]uint64) (more, sum map[string]uint64) {
	for reason, v := range now {
		if d := v - before[reason]; d > 0 {
			if more == nil {
				more = map[string]uint64{}
			}
			more[reason] = d
		}
	}
	return more, now
}

// reply answers a question.
func (n *node) reply(a *protocol.Ask) {
	r := &protocol.Reply{Id: a.Id}
	err := guard(func() (err error) {
		switch a.What {
		case protocol.Ask_PING:
		case protocol.Ask_METRICS:
			r.Data, err = n.metrics()
		case protocol.Ask_DEBUG:
			if d, ok := n.comp.(component.Debugger); ok {
				r.Data, err = json.Marshal(d.DebugInfo())
			}
		case protocol.Ask_STATE:
			if k, ok := n.comp.(Keeper); ok {
				r.Data, err = k.State()
			}
		case protocol.Ask_BACKLOG:
			if q, ok := n.comp.(component.Queuer); ok {
				r.Data, err = json.Marshal(q.Backlog())
			}
		default:
			err = fmt.Errorf("there is no question %d in this version", a.What)
		}
		return err
	})
	if err != nil {
		r.Error = err.Error()
	}
	n.trySend(&protocol.ToWeir{Message: &protocol.ToWeir_Reply{Reply: r}})
}

// metrics returns the metrics of the component in Prometheus's protobuf format.
func (n *node) metrics() ([]byte, error) {
	families, err := n.registry.Gather()
	if err != nil && len(families) == 0 {
		return nil, err
	}
	var buf bytes.Buffer
	enc := expfmt.NewEncoder(&buf, expfmt.NewFormat(expfmt.TypeProtoDelim))
	for _, f := range families {
		if err := enc.Encode(f); err != nil {
			return nil, err
		}
	}
	return buf.Bytes(), nil
}

// respond answers an HTTP request.
func (n *node) respond(in *protocol.Request) {
	out := &protocol.Response{Id: in.Id, Status: http.StatusNotFound}
	err := guard(func() error {
		h, ok := n.comp.(component.HTTPHandler)
		if !ok {
			return nil
		}
		req, err := http.NewRequestWithContext(n.stream.Context(), in.Method, in.Url, bytes.NewReader(in.Body))
		if err != nil {
			return err
		}
		for _, p := range in.Header {
			req.Header.Add(p.Key, p.Value)
		}
		w := &recorder{header: http.Header{}, status: http.StatusOK}
		h.Handler().ServeHTTP(w, req)
		out.Status, out.Body = uint32(w.status), w.body.Bytes()
		for name, values := range w.header {
			for _, v := range values {
				out.Header = append(out.Header, &protocol.Pair{Key: name, Value: v})
			}
		}
		return nil
	})
	if err != nil {
		out.Status, out.Body = http.StatusInternalServerError, []byte(err.Error())
	}
	n.trySend(&protocol.ToWeir{Message: &protocol.ToWeir_Response{Response: out}})
}

// logHandler sends log records to weir.
type logHandler struct {
	n      *node
	attrs  []*protocol.Pair
	prefix string
}

// Enabled reports whether weir wants the record. weir decides by its own level.
func (h *logHandler) Enabled(context.Context, slog.Level) bool { return true }

// Handle sends a record.
func (h *logHandler) Handle(_ context.Context, r slog.Record) error {
	l := &protocol.Log{Level: int32(r.Level), Message: r.Message, Attributes: h.attrs}
	r.Attrs(func(a slog.Attr) bool {
		l.Attributes = append(l.Attributes[:len(l.Attributes):len(l.Attributes)], h.pair(a))
		return true
	})
	return h.n.send(&protocol.ToWeir{Message: &protocol.ToWeir_Log{Log: l}})
}

func (h *logHandler) pair(a slog.Attr) *protocol.Pair {
	return &protocol.Pair{Key: h.prefix + a.Key, Value: a.Value.Resolve().String()}
}

// WithAttrs returns a handler that adds attributes.
func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	w := *h
	w.attrs = h.attrs[:len(h.attrs):len(h.attrs)]
	for _, a := range attrs {
		w.attrs = append(w.attrs, h.pair(a))
	}
	return &w
}

// WithGroup returns a handler that adds the name of a group to attributes.
func (h *logHandler) WithGroup(name string) slog.Handler {
	w := *h
	w.prefix += name + "."
	return &w
}

// recorder keeps a response.
type recorder struct {
	header http.Header
	status int
	wrote  bool
	body   bytes.Buffer
}

// Header returns the header of the response.
func (r *recorder) Header() http.Header { return r.header }

// WriteHeader sets the status, once.
func (r *recorder) WriteHeader(status int) {
	if !r.wrote {
		r.status, r.wrote = status, true
	}
}

// Write adds to the body.
func (r *recorder) Write(p []byte) (int, error) {
	r.wrote = true
	return r.body.Write(p)
}
