package history

import (
	"math"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/service"
)

// Process is the history of weir as a whole. A list is missing if all of its values are 0.
type Process struct {
	CPU       []Value `json:"cpu,omitempty"`       // cores in use
	Memory    []Value `json:"memory,omitempty"`    // bytes of resident memory
	Samples   []Value `json:"samples,omitempty"`   // samples per second from nodes that get nothing from other nodes
	Lines     []Value `json:"lines,omitempty"`     // log lines per second from nodes that get nothing from other nodes
	Unhealthy []Value `json:"unhealthy,omitempty"` // number of nodes and services that are not healthy
	Reloads   []Value `json:"reloads,omitempty"`   // number of changes of the graph since the point before, refused ones included
}

// The columns of a process.
const (
	cpu = iota
	memory
	samples
	lines
	unhealthy
	reloads
	processColumns
)

// process is the history of weir as a whole, by slot.
type process struct {
	usage  func() (cpu, memory float64) // seconds and bytes; NaN if they are not known
	cpu    float64                      // seconds, at the last point
	last   time.Time                    // of the last point
	values [processColumns][Points]Value
}

// newProcess returns a process that asks the operating system for its usage.
func newProcess() process {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return process{usage: func() (seconds, bytes float64) {
		seconds, bytes = math.NaN(), math.NaN()
		families, _ := r.Gather() // what is missing is not known
		for _, f := range families {
			switch m := f.GetMetric()[0]; f.GetName() {
			case "process_cpu_seconds_total":
				seconds = m.GetCounter().GetValue()
			case "process_resident_memory_bytes":
				bytes = m.GetGauge().GetValue()
			}
		}
		return seconds, bytes
	}, cpu: math.NaN()}
}

// take takes a point. fromSamples and fromLines are rates; unknown without a point before.
func (p *process) take(slot int, now time.Time, fromSamples, fromLines Value, nodes []service.Info, changes []service.Reload) {
	for c := range p.values {
		p.values[c][slot] = Value(math.NaN())
	}
	seconds, bytes := p.usage()
	p.values[memory][slot] = Value(bytes)
	if d := now.Sub(p.last).Seconds(); !p.last.IsZero() && d > 0 {
		p.values[cpu][slot] = Value(max(seconds-p.cpu, 0) / d)
		p.values[samples][slot], p.values[lines][slot] = fromSamples, fromLines
	}
	n := 0
	for _, i := range nodes {
		if i.Health.State > component.Healthy {
			n++
		}
	}
	p.values[unhealthy][slot] = Value(n)
	n = 0
	for _, r := range changes {
		if r.Time.After(p.last) && !r.Time.After(now) {
			n++
		}
	}
	p.values[reloads][slot] = Value(n)
	p.cpu, p.last = seconds, now
}

// shown returns the values of slots.
func (p *process) shown(slots []int) *Process {
	column := func(c int) []Value {
		out := make([]Value, len(slots))
		for i, slot := range slots {
			out[i] = p.values[c][slot]
		}
		if !slices.ContainsFunc(out, func(v Value) bool { return v != 0 && !math.IsNaN(float64(v)) }) {
			return nil
		}
		return out
	}
	return &Process{column(cpu), column(memory), column(samples), column(lines), column(unhealthy), column(reloads)}
}
