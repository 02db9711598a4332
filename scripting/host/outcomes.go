package host

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/egress"
)

// Outcomes count the results of a script's requests and commands.
type Outcomes struct {
	requests *prometheus.CounterVec
	seconds  prometheus.Counter
	commands *prometheus.CounterVec
}

// NewOutcomes returns outcomes at zero.
func NewOutcomes() *Outcomes {
	o := &Outcomes{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_script_http_requests_total", Help: "Requests of ctx.http, by the class of their status, or by the reason why there was no response.",
		}, []string{"outcome"}),
		seconds: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "weir_script_http_seconds_total", Help: "Duration of requests of ctx.http, in seconds.",
		}),
		commands: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_script_commands_total", Help: "Calls of ctx.exec, by outcome.",
		}, []string{"outcome"}),
	}
	for _, outcome := range []string{"2xx", "3xx", "4xx", "5xx", "denied", "timeout", "too_large", "error"} {
		o.requests.WithLabelValues(outcome)
	}
	for _, outcome := range []string{"ok", "denied", "timeout", "too_large", "error"} {
		o.commands.WithLabelValues(outcome)
	}
	return o
}

// Collectors returns the collectors for the given needs.
func (o *Outcomes) Collectors(n scripting.Needs) (cs []prometheus.Collector) {
	if n.HTTP {
		cs = append(cs, o.requests, o.seconds)
	}
	if n.Exec {
		cs = append(cs, o.commands)
	}
	return cs
}

func (o *Outcomes) request(status int, err error, took time.Duration) {
	outcome := failure(err)
	if err == nil {
		outcome = fmt.Sprintf("%dxx", status/100)
	}
	o.requests.WithLabelValues(outcome).Inc()
	o.seconds.Add(took.Seconds())
}

func (o *Outcomes) command(err error) {
	outcome := failure(err)
	if err == nil {
		outcome = "ok"
	}
	o.commands.WithLabelValues(outcome).Inc()
}

// failure returns the class of an external error.
func failure(err error) string {
	if _, denied := errors.AsType[*egress.DeniedError](err); denied {
		return "denied"
	}
	switch {
	case errors.Is(err, egress.ErrTooLarge):
		return "too_large"
	case errors.Is(err, errTimeout), errors.Is(err, scripting.ErrLimit):
		return "timeout"
	}
	return "error"
}
