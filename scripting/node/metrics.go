package node

import (
	"fmt"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/host"
)

// metrics are the counters of one scripted node.
type metrics struct {
	calls      *prometheus.CounterVec
	errors     *prometheus.CounterVec
	seconds    prometheus.Counter
	vms        prometheus.Gauge
	discarded  prometheus.Counter
	emitted    prometheus.Counter
	collisions prometheus.Counter
	routed     *prometheus.CounterVec
	silenced   prometheus.Counter
	skipped    prometheus.Counter
	pollTime   prometheus.Counter
	own        *host.Metrics
	outside    *host.Outcomes
	served     *prometheus.CounterVec
	more       []prometheus.Collector // additional metrics of the node

	emittedLines prometheus.Counter
}

func newMetrics() *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	return &metrics{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_script_calls_total", Help: "Calls of a hook: series and stream once for each new one, metrics and logs once for each batch.",
		}, []string{"hook"}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_script_errors_total", Help: "Errors in a script, by the hook they happened in.",
		}, []string{"hook"}),
		seconds:   counter("weir_script_seconds_total", "Time that hooks took, what they waited for included but in run, in seconds."),
		vms:       prometheus.NewGauge(prometheus.GaugeOpts{Name: "weir_script_vms", Help: "VMs that exist for the node."}),
		discarded: counter("weir_script_vms_discarded_total", "VMs thrown away because a limit stopped the script."),
		emitted:   counter("weir_script_samples_emitted_total", "Samples that the script emitted in addition to those it got."),
		routed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_script_samples_routed_total", Help: "Samples and log lines that the script sent to an output instead of forward_to, by output.",
		}, []string{"output"}),
		collisions: counter("weir_script_samples_collided_total", "Samples that left with the labels and the timestamp of another sample of their batch."),
		silenced:   counter("weir_script_log_lines_suppressed_total", "Log lines of the script that were not written because there were too many."),
		own:        host.NewMetrics(),
		skipped:    counter("weir_script_ticks_skipped_total", "Times that a timer, or poll, was not called because it was still running."),
		pollTime:   counter("weir_script_poll_seconds_total", "Time that polls took, what they waited for included, in seconds."),
		outside:    host.NewOutcomes(),
		served: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_script_served_requests_total", Help: "Requests that the routes of the script were sent, by the class of the status that answered them.",
		}, []string{"code"}),

		emittedLines: counter("weir_script_lines_emitted_total", "Log lines that the script emitted in addition to those it got."),
	}
}

// hooks creates the counters of a script's hooks, so that they exist, at zero,
// before the first error: increase() ignores the first sample.
func (m *metrics) hooks(d *scripting.Definition) {
	if d.Series {
		m.calls.WithLabelValues("series")
		m.errors.WithLabelValues("series")
	}
	if d.Metrics {
		m.calls.WithLabelValues("metrics")
		m.errors.WithLabelValues("metrics")
		m.errors.WithLabelValues("each")
	}
	if d.Logs || d.Send {
		m.errors.WithLabelValues("each")
	}
	for hook, has := range map[string]bool{scripting.HookSend: d.Send, "stream": d.Stream, "logs": d.Logs, "setup": d.Setup, "teardown": d.Teardown, "every": len(d.Every) > 0, hookHTTP: len(d.HTTP) > 0, hookPoll: d.Poll, hookRun: d.Run} {
		if has {
			m.calls.WithLabelValues(hook)
			m.errors.WithLabelValues(hook)
		}
	}
	if len(d.HTTP) > 0 {
		for _, class := range []string{"2xx", "3xx", "4xx", "5xx"} {
			m.served.WithLabelValues(class)
		}
	}
	for _, name := range d.Outputs {
		m.routed.WithLabelValues(name)
	}
}

// register registers the counters.
func (m *metrics) register(r prometheus.Registerer, d *scripting.Definition, more ...prometheus.Collector) error {
	all := []prometheus.Collector{m.calls, m.errors, m.seconds, m.vms, m.discarded, m.emitted, m.collisions, m.routed, m.silenced, m.skipped, m.own}
	if (d.Accepts()|d.Sends)&batch.SignalLogs != 0 {
		all = append(all, m.emittedLines)
	}
	if len(d.HTTP) > 0 {
		all = append(all, m.served)
	}
	if d.Poll {
		all = append(all, m.pollTime)
	}
	if err := component.Register(r, slices.Concat(all, m.outside.Collectors(d.Needs), m.more, more)...); err != nil {
		return fmt.Errorf("cannot register the script's metrics: %w", err)
	}
	return nil
}
