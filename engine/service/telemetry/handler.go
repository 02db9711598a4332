package telemetry

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/engine/component"
)

// root is the destination of all loggers.
type root struct {
	out     *lockedWriter
	level   slog.LevelVar
	lines   *prometheus.CounterVec
	current atomic.Pointer[format]
}

// format is the log format; it is replaced as a whole.
type format struct {
	name    string
	handler slog.Handler
}

func newRoot(out io.Writer) *root {
	r := &root{out: &lockedWriter{w: out}, lines: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "weir_log_lines_total", Help: "Lines that were logged, by level."}, []string{"level"})}
	for name := range levels {
		r.lines.WithLabelValues(name)
	}
	return r
}

func (r *root) set(level slog.Level, name string) {
	r.level.Set(level)
	if f := r.current.Load(); f != nil && f.name == name {
		return
	}
	o := &slog.HandlerOptions{Level: &r.level, ReplaceAttr: attr}
	f := &format{name: name}
	if name == "json" {
		f.handler = slog.NewJSONHandler(r.out, o)
	} else {
		f.handler = slog.NewTextHandler(r.out, o)
	}
	r.current.Store(f)
}

// attr formats time and level as Alloy does, and durations with their unit,
// because a plain JSON number would be ambiguous. It hides possible secrets in
// URLs.
func attr(groups []string, a slog.Attr) slog.Attr {
	switch {
	case a.Value.Kind() == slog.KindDuration:
		return slog.String(a.Key, a.Value.Duration().String())
	case len(groups) > 0:
	case a.Key == slog.TimeKey && a.Value.Kind() == slog.KindTime:
		return slog.String("ts", a.Value.Time().UTC().Format(time.RFC3339Nano))
	case a.Key == slog.LevelKey:
		if l, ok := a.Value.Any().(slog.Level); ok {
			return slog.String(slog.LevelKey, levelName(l))
		}
	}
	switch text := a.Value; text.Kind() {
	case slog.KindString:
		a.Value = slog.StringValue(component.HideURLs(text.String()))
	case slog.KindAny:
		if err, ok := text.Any().(error); ok {
			a.Value = slog.StringValue(component.HideURLs(err.Error()))
		}
	}
	return a
}

func levelName(l slog.Level) string { return strings.ToLower(l.String()) }

// handler passes records to the root's current handler, with its own attributes
// and groups.
type handler struct {
	root *root
	with func(slog.Handler) slog.Handler // nil for none

	made atomic.Pointer[made]
}

// made is a handler for one format.
type made struct {
	from    *format
	handler slog.Handler
}

// Enabled reports whether the level is logged now.
func (h *handler) Enabled(_ context.Context, l slog.Level) bool { return l >= h.root.level.Level() }

// Handle writes a line.
func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	f := h.root.current.Load()
	m := h.made.Load()
	if m == nil || m.from != f {
		m = &made{f, f.handler}
		if h.with != nil {
			m.handler = h.with(f.handler)
		}
		h.made.Store(m)
	}
	name := levelName(r.Level)
	if _, ok := levels[name]; !ok {
		name = "info" // a level between two named ones
	}
	h.root.lines.WithLabelValues(name).Inc()
	return m.handler.Handle(ctx, r)
}

// WithAttrs returns a handler with more attributes.
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return h.then(func(next slog.Handler) slog.Handler { return next.WithAttrs(attrs) })
}

// WithGroup returns a handler with a group.
func (h *handler) WithGroup(name string) slog.Handler {
	return h.then(func(next slog.Handler) slog.Handler { return next.WithGroup(name) })
}

func (h *handler) then(f func(slog.Handler) slog.Handler) slog.Handler {
	before := h.with
	return &handler{root: h.root, with: func(next slog.Handler) slog.Handler {
		if before != nil {
			next = before(next)
		}
		return f(next)
	}}
}

// lockedWriter keeps lines intact while the format changes, because each of
// slog's handlers has its own lock. It also keeps the last lines in memory.
type lockedWriter struct {
	mu   sync.Mutex
	w    io.Writer
	last recent
}

// Write writes a line.
func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last.add(p)
	return l.w.Write(p)
}

// kept keeps lines in memory without writing them.
type kept struct{ out *lockedWriter }

func (k kept) Write(p []byte) (int, error) {
	k.out.mu.Lock()
	defer k.out.mu.Unlock()
	k.out.last.add(p)
	return len(p), nil
}
