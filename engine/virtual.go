package engine

import (
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/service"
)

// evaluate evaluates a virtual block, and reports whether its value has
// changed. If the config now expands to other nodes, the plan is stale.
func (e *Engine) evaluate(w *wanted) (changed bool) {
	switch w.kind {
	case kindValue:
		return e.assign(w, w.x.Evaluate(w.from))
	case kindItem:
		return e.assign(w, config.Value{V: w.loop.items[w.item]})
	case kindForeach:
		changed = e.evaluateLoop(w)
	case kindImport:
		if w.source.im.Content != nil && w.source.changed(w) {
			e.outdated(w)
		}
	}
	e.show(w)
	return changed
}

// isEvaluated reports whether the final value of a virtual block is known.
func (w *wanted) isEvaluated() bool {
	switch w.kind {
	case kindValue:
		v := w.scope.Variable(w.name)
		return v.Err == nil && !v.Provisional
	case kindForeach:
		return w.loop.known && w.loop.err == nil
	case kindImport:
		return w.source.im.Content == nil || w.source.files != nil && w.source.err == nil
	}
	return true
}

// assign sets the value of a variable.
func (e *Engine) assign(w *wanted, v config.Value) (changed bool) {
	old := w.scope.Variable(w.name)
	// This is necessary even if the value is the same: reading a pending value
	// changes it, and its dependants would not be informed.
	w.scope.SetVariable(w.name, w.id, v)
	if old.Provisional == v.Provisional && sameError(old.Err, v.Err) && equal(old.V, v.V) {
		return false
	}
	if w.of != nil {
		e.show(w.of)
	}
	return true
}

func sameError(a, b error) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return a.Error() == b.Error()
}

func (e *Engine) evaluateLoop(w *wanted) (changed bool) {
	l := w.loop
	next := loop{id: l.id, f: l.f}
	if err := next.set(w.values()); err != nil {
		if ds, ok := errors.AsType[config.Diagnostics](err); ok {
			l.err = ds.Err()
		}
		return false
	}
	l.err = nil
	if !l.known || !slices.Equal(l.keys, next.keys) {
		e.outdated(w)
		return false
	}
	if equal(l.items, next.items) {
		return false
	}
	l.items = next.items
	return true
}

// outdated records that a block must be expanded again.
func (e *Engine) outdated(w *wanted) {
	e.stale = true
	e.behind[w.id] = true
}

// changed reports whether the content of an import.string has changed since it
// was last parsed.
func (s *source) changed(w *wanted) bool {
	v := s.im.Content.Evaluate(w.values())
	text, _, ok := config.Text(v.V)
	return ok && v.Err == nil && !v.Provisional && (!s.tried || s.text != text)
}

// head is the visible state of an instance, a foreach or an import.
type head struct {
	e     *Engine
	stats flow.Stats
	state atomic.Pointer[service.Info]
}

// show publishes the state of a virtual block.
func (e *Engine) show(w *wanted) {
	if w.kind != kindInstance && w.kind != kindForeach && w.kind != kindImport {
		return
	}
	loud := w.kind != kindInstance // errors in an instance are reported by its nodes
	h := e.heads[w.id]
	if h == nil {
		h = &head{e: e}
		e.heads[w.id] = h
	}
	i := service.Info{ID: w.id, Name: w.block.Name, Position: w.position(), DependsOn: w.deps, Stats: &h.stats}
	var err error
	switch w.kind {
	case kindInstance:
		i.Arguments, i.Exports, err = w.instanceValues()
	case kindForeach:
		i.Arguments = map[string]any{"items": len(w.loop.keys)}
		if err = w.loop.err; err == nil && !w.loop.known {
			err = config.Pending("its collection")
		}
	case kindImport:
		if err = w.source.err; err == nil && w.source.files == nil && w.source.im.Content != nil {
			err = config.Pending("its content")
		}
	}
	if err == nil {
		err = e.churning(w.id)
	}
	is := component.Health{State: component.Healthy}
	if w.kind == kindImport && w.source.im.Remote != nil {
		is, i.Arguments = e.remoteState(w)
	}
	if err != nil {
		is = component.Health{State: component.Unhealthy, Message: err.Error(), Reason: reason(err)}
		if pending(err) {
			is = component.Health{State: component.Unknown, Message: err.Error()}
		}
	}
	h.set(i, is, loud)
}

// set sets the visible state.
func (h *head) set(i service.Info, is component.Health, loud bool) {
	old := h.state.Load()
	state, message := is.State, is.Message
	if old != nil && old.Health.State == state && old.Health.Message == message {
		i.Health, i.LastError = old.Health, old.LastError
	} else {
		is.Time = h.e.clock.Now()
		i.Health = is
		if old != nil {
			i.LastError = old.LastError
		}
		if state > component.Healthy {
			i.LastError = i.Health
		}
		if old != nil {
			i.Health = i.Health.Following(old.Health)
		}
		switch {
		case !loud:
		case state > component.Healthy:
			level := slog.LevelError
			if h.e.committing {
				level = h.e.announcedLevel(level)
				h.e.broken = append(h.e.broken, i.ID)
			}
			h.e.log.Log(h.e.hard, level, "cannot follow a change, what was before stays", "component_id", i.ID, "err", message)
		case old != nil && old.Health.State > component.Healthy && h.e.committing:
			h.e.broken = append(h.e.broken, i.ID)
		case old != nil && old.Health.State > component.Healthy:
			h.e.log.Info("node recovered", "component_id", i.ID)
		}
	}
	if i.Problems = nil; i.Health.State == component.Unhealthy {
		i.Problems = []component.Health{i.Health}
	}
	h.state.Store(&i)
}

func (h *head) healthy() bool { return h.state.Load().Health.State == component.Healthy }

// instanceValues returns the arguments and exports of an instance, and why one
// of them is not known.
func (w *wanted) instanceValues() (args, exports map[string]any, err error) {
	args, exports = map[string]any{}, map[string]any{}
	note := func(to map[string]any, name string, v config.Value) {
		if v.Err == nil || v.Provisional {
			to[name] = v.V
		}
		if v.Err != nil && (err == nil || err == config.ErrUnknown) {
			err = v.Err
		}
	}
	for _, a := range w.inner.decl.Arguments {
		note(args, a.Name, w.inner.scope.Variable("argument."+a.Name+".value"))
	}
	for _, x := range w.inner.decl.Exports {
		note(exports, x.Name, w.m.scope.Variable(w.block.ID+"."+x.Name))
	}
	return args, exports, err
}
