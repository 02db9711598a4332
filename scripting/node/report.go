package node

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/scripting"
)

// failureAge is the time without a batch after which a source whose last call
// failed no longer makes its node unhealthy, because it is gone.
const failureAge = 10 * time.Minute

// maxPositions is the maximum number of script lines whose errors are logged.
const maxPositions = 1000

// Limits of a script's log lines: burst, and lines per second.
const (
	logBurst = 20
	logRate  = 10
)

// reporter reports errors of a script as health, log lines and counts.
type reporter struct {
	o       component.Options
	script  string
	metrics *metrics
	says    string // what happens to data, in addition to the error

	telling sync.Mutex // held while health is reported
	said    bool       // late, as last reported; guarded by telling

	mu      sync.Mutex
	fails   map[uint64]time.Time // sources whose last call failed, and until when that counts
	health  component.HealthState
	message string
	logged  map[string]bool  // positions logged since the node was last healthy
	quiet   int              // errors since then that were not logged
	last    *scripting.Error // since then
	late    *scripting.Error // the last exceeded time limit since then
	tokens  float64
	filled  time.Time
}

func newReporter(o component.Options, script string, m *metrics) *reporter {
	return &reporter{
		o: o, script: script, metrics: m,
		fails: map[uint64]time.Time{}, logged: map[string]bool{}, tokens: logBurst, filled: o.Clock.Now(),
	}
}

// errored counts an error and logs it if its line has not been logged yet.
func (r *reporter) errored(e *scripting.Error) {
	if e.Script == "" {
		e.Script = r.script
	}
	e.Shorten()
	e.Node = r.o.ID
	r.metrics.errors.WithLabelValues(e.Hook).Inc()
	r.mu.Lock()
	pos := e.Pos()
	r.last = e
	quiet := r.logged[pos] || len(r.logged) >= maxPositions
	if quiet {
		r.quiet++
	} else {
		r.logged[pos] = true
	}
	r.mu.Unlock()
	if quiet {
		return
	}
	attrs := []any{"pos", pos, "hook", e.Hook, "err", e.Err}
	if e.Source != "" {
		attrs = append(attrs, "source", e.Source)
	}
	if e.Record != "" {
		attrs = append(attrs, "record", e.Record)
	}
	if e.Hint != "" {
		attrs = append(attrs, "hint", e.Hint)
	}
	if len(e.Trace) > 1 {
		attrs = append(attrs, "trace", e.Stack())
	}
	r.o.Logger.Error("script failed", attrs...)
}

// done reports the end of a call for a source. err is its first error, or nil.
func (r *reporter) done(source uint64, err *scripting.Error) {
	if err != nil {
		r.failing(source, err, failureAge)
		return
	}
	now := r.o.Clock.Now()
	r.mu.Lock()
	if r.health == component.Healthy { // the common case
		r.mu.Unlock()
		return
	}
	delete(r.fails, source)
	r.recoverIfWell(now)
}

// failing reports an error of a source that may not send for longer than age.
func (r *reporter) failing(source uint64, err *scripting.Error, age time.Duration) {
	r.reportFailure(source, err, r.says, age)
}

// reportDelivered reports that a held batch was processed. over is the limit
// because of which it was processed in parts, or nil.
func (r *reporter) reportDelivered(source uint64, over *scripting.Error) {
	if over == nil {
		r.done(source, nil)
		return
	}
	r.reportFailure(source, over, inPartsSays, failureAge)
}

// reportFailure is like failing, with a text about what happens to data.
func (r *reporter) reportFailure(source uint64, err *scripting.Error, says string, age time.Duration) {
	now := r.o.Clock.Now()
	r.mu.Lock()
	r.fails[source] = now.Add(age)
	message := err.Error()
	if says != "" {
		message += "\n  " + says
	}
	changed := r.health != component.Unhealthy || r.message != message
	r.health, r.message = component.Unhealthy, message
	if r.late == nil && errors.Is(err, scripting.ErrTime) {
		r.late, changed = err, true
	}
	r.mu.Unlock()
	if changed {
		r.reportHealth(now)
	}
}

// reportHealth reports the current health. If several calls overlap, the last
// one reports the latest health.
func (r *reporter) reportHealth(now time.Time) {
	r.telling.Lock()
	defer r.telling.Unlock()
	r.mu.Lock()
	h := component.Health{State: r.health, Message: r.message, Time: now}
	late := component.Health{State: component.Healthy, Time: now, Reason: component.ReasonTimeout}
	if r.late != nil {
		late.State, late.Message = component.Unhealthy, r.late.Error()
	}
	r.mu.Unlock()
	r.o.Health(h)
	if is := late.State == component.Unhealthy; is != r.said {
		r.said = is
		r.o.Health(late)
	}
}

// recoverIfWell is called with mu held and unlocks it. It reports healthy if
// nothing fails.
func (r *reporter) recoverIfWell(now time.Time) {
	if len(r.fails) > 0 || r.health == component.Healthy {
		r.mu.Unlock()
		return
	}
	again := r.health == component.Unhealthy
	r.health, r.message = component.Healthy, ""
	quiet := r.quiet
	r.late = nil
	if again { // otherwise, the errors of a running call are reported at its end
		clear(r.logged)
		r.quiet, r.last = 0, nil
	}
	r.mu.Unlock()
	if again {
		r.o.Logger.Info("script works again", "errors_not_logged", quiet)
	}
	r.reportHealth(now)
}

// lastError returns the last error since the node was healthy, or nil if it is
// healthy.
func (r *reporter) lastError() *scripting.Error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// forgetIdleSources removes the failures of sources that no longer send.
func (r *reporter) forgetIdleSources() {
	now := r.o.Clock.Now()
	r.mu.Lock()
	for s, until := range r.fails {
		if now.After(until) {
			delete(r.fails, s)
		}
	}
	r.recoverIfWell(now)
}

// log logs a line that the script wrote.
func (r *reporter) log(level slog.Level, pos, msg string, fields []any) {
	now := r.o.Clock.Now()
	r.mu.Lock()
	r.tokens = min(logBurst, r.tokens+now.Sub(r.filled).Seconds()*logRate)
	r.filled = now
	allowed := r.tokens >= 1
	if allowed {
		r.tokens--
	}
	r.mu.Unlock()
	if !allowed {
		r.metrics.silenced.Inc()
		return
	}
	// The message comes from the script.
	msg = component.Shorten(msg)
	fields = fields[:min(len(fields), 2*scripting.MaxLogFields)]
	for i, f := range fields {
		if s, ok := f.(string); ok {
			fields[i] = component.Shorten(s)
		}
	}
	fields = append([]any{"pos", pos}, fields...)
	switch level {
	case slog.LevelDebug:
		r.o.Logger.Debug(msg, fields...)
	case slog.LevelWarn:
		r.o.Logger.Warn(msg, fields...)
	case slog.LevelError:
		r.o.Logger.Error(msg, fields...)
	default:
		r.o.Logger.Info(msg, fields...)
	}
}

func panicError(v any) error { return fmt.Errorf("BUG: panic in a host function: %v", v) }
