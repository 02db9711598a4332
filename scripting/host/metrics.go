package host

import (
	"fmt"
	"math"
	"strings"

	"github.com/weir-run/weir/scripting"
)

// metricsTable implements ctx.metrics: the script's own metrics, which weir
// exposes together with those of the node.
func metricsTable(h *Binding) *scripting.Module {
	labels := scripting.Param{Name: "labels", Kind: scripting.KindMap, Optional: true, Doc: fmt.Sprintf("Label values by name. All uses of a metric must have the same label names. At most %d labels; names have at most %d bytes and values at most %d bytes.", maxOwnLabels, maxOwnLabel, maxOwnValue)}
	help := scripting.Param{Name: "help", Kind: scripting.KindString, Optional: true, Doc: fmt.Sprintf("The help text; the first use sets it. At most %d bytes.", maxOwnHelp)}
	name := scripting.Param{Name: "name", Kind: scripting.KindString, Doc: "Lower-case letters, digits and underscores. The metric is exported as weir_script_custom_<name> with the label component_id."}
	get := func(kind MetricKind) func([]scripting.Value) (scripting.Value, error) {
		return func(args []scripting.Value) (scripting.Value, error) {
			labels, _ := args[1].(*scripting.Map)
			help, _ := args[2].(string)
			s, wrong, msg := h.Metric(kind, args[0].(string), labels, help)
			if msg != "" {
				return nil, &scripting.ArgError{Func: kind.String(), Param: wrong, Msg: msg}
			}
			return &scripting.Object{Type: kind.objectType(), Data: s}, nil
		}
	}
	return &scripting.Module{
		Name: "metrics",
		Doc: fmt.Sprintf("Metrics that the script defines. They keep their values across reloads. A metric that the new version does not use is removed after %d minutes. A node can have at most %d metrics with %d series; further series are ignored and counted in weir_script_custom_refused_total.",
			ownIdle, maxOwnNames, maxOwnSeries),
		Funcs: []scripting.Function{
			{
				Name: "counter", Doc: "A counter, which starts at zero and only increases. The suffix _total is added to its name.",
				Params: []scripting.Param{name, labels, help}, Result: scripting.Result{Kind: scripting.KindObject, Type: counterType, Doc: "The counter."},
				Uses: []scripting.Use{{Lua: `ctx.metrics.counter("batches", { size = #batch > 1 and "many" or "one" }):add()`,
					JS: `ctx.metrics.counter("batches", { size: batch.length > 1 ? "many" : "one" }).add();`, Input: "a 1\n", Output: "a 1\n"}},
				Fn: get(ownCounter),
			},
			{
				Name: "gauge", Doc: "A gauge, which can go up and down.",
				Params: []scripting.Param{name, labels, help}, Result: scripting.Result{Kind: scripting.KindObject, Type: gaugeType, Doc: "The gauge."},
				Uses: []scripting.Use{{Lua: `ctx.metrics.gauge("last_batch"):set(#batch)`, JS: `ctx.metrics.gauge("last_batch").set(batch.length);`, Input: "a 1\n", Output: "a 1\n"}},
				Fn:   get(ownGauge),
			},
			{
				Name: "histogram", Doc: "A histogram with Prometheus's default buckets, from 5 ms to 10 s if its unit is seconds.",
				Params: []scripting.Param{name, labels, help}, Result: scripting.Result{Kind: scripting.KindObject, Type: histogramType, Doc: "The histogram."},
				Uses: []scripting.Use{{Lua: `for r in batch:records() do ctx.metrics.histogram("value", { name = r.name }):observe(r.value) end`,
					JS: `for (const r of batch) ctx.metrics.histogram("value", { name: r.name }).observe(r.value);`, Input: "a 1\n", Output: "a 1\n"}},
				Fn: get(ownHistogram),
			},
		},
		Types: []*scripting.ObjectType{counterType, gaugeType, histogramType},
	}
}

func (k MetricKind) objectType() *scripting.ObjectType {
	return [...]*scripting.ObjectType{counterType, gaugeType, histogramType}[k]
}

var counterType = &scripting.ObjectType{
	Name: "metrics.Counter", Doc: "A counter that the script defines.", New: "counter",
	Methods: []scripting.Function{{
		Name: "add", Doc: "Adds a number to the counter.",
		Params: []scripting.Param{{Name: "n", Kind: scripting.KindNumber, Optional: true, Doc: "The number to add; it must not be negative. 1 by default."}},
		Uses: []scripting.Use{{Lua: `ctx.metrics.counter("records", { }, "Records seen."):add(#batch)`,
			JS: `ctx.metrics.counter("records", {}, "Records seen.").add(batch.length);`, Input: "a 1\n", Output: "a 1\n"}},
		Fn: func(args []scripting.Value) (scripting.Value, error) {
			n, ok := args[1].(float64)
			if !ok {
				n = 1
			}
			if !(n >= 0) || math.IsInf(n, 0) {
				return nil, &scripting.ArgError{Func: "add", Param: "n", Msg: "must not be negative: a counter only goes up"}
			}
			if s := args[0].(*Series).touch(); s.counter != nil {
				s.counter.Add(n)
			}
			return nil, nil
		},
	}},
	String: ownString,
}

var gaugeType = &scripting.ObjectType{
	Name: "metrics.Gauge", Doc: "A gauge that the script defines.", New: "gauge",
	Methods: []scripting.Function{
		{
			Name: "set", Doc: "Sets the gauge.",
			Params: []scripting.Param{{Name: "value", Kind: scripting.KindNumber, Doc: "The value."}},
			Uses:   []scripting.Use{{Lua: `ctx.metrics.gauge("temperature", { unit = "c" }):set(21.5)`, JS: `ctx.metrics.gauge("temperature", { unit: "c" }).set(21.5);`, Input: "a 1\n", Output: "a 1\n"}},
			Fn: func(args []scripting.Value) (scripting.Value, error) {
				if s := args[0].(*Series).touch(); s.gauge != nil {
					s.gauge.Set(args[1].(float64))
				}
				return nil, nil
			},
		},
		{
			Name: "add", Doc: "Adds a number to the gauge; a negative number decreases it.",
			Params: []scripting.Param{{Name: "n", Kind: scripting.KindNumber, Doc: "The number to add."}},
			Uses:   []scripting.Use{{Lua: `ctx.metrics.gauge("balance"):add(-1)`, JS: `ctx.metrics.gauge("balance").add(-1);`, Input: "a 1\n", Output: "a 1\n"}},
			Fn: func(args []scripting.Value) (scripting.Value, error) {
				if s := args[0].(*Series).touch(); s.gauge != nil {
					s.gauge.Add(args[1].(float64))
				}
				return nil, nil
			},
		},
	},
	String: ownString,
}

var histogramType = &scripting.ObjectType{
	Name: "metrics.Histogram", Doc: "A histogram that the script defines.", New: "histogram",
	Methods: []scripting.Function{{
		Name: "observe", Doc: "Records an observation.",
		Params: []scripting.Param{{Name: "value", Kind: scripting.KindNumber, Doc: "The value; NaN is ignored."}},
		Uses:   []scripting.Use{{Lua: `ctx.metrics.histogram("seconds"):observe(0.02)`, JS: `ctx.metrics.histogram("seconds").observe(0.02);`, Input: "a 1\n", Output: "a 1\n"}},
		Fn: func(args []scripting.Value) (scripting.Value, error) {
			v := args[1].(float64)
			if s := args[0].(*Series).touch(); s.histogram != nil && v == v {
				s.histogram.Observe(v)
			}
			return nil, nil
		},
	}},
	String: ownString,
}

func ownString(data any) string { return strings.TrimSpace(data.(*Series).name) }
