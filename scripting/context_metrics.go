package scripting

import (
	"fmt"
	"math"
	"strings"
)

// metricsTable is ctx.metrics: metrics of the script's own, which weir shows
// beside those of the node.
func metricsTable(h *hookHost) *Module {
	labels := Param{Name: "labels", Kind: KindMap, Optional: true, Doc: fmt.Sprintf("Label values by name; the names are the same in all uses of a metric. At most %d, of %d bytes, with values of %d bytes.", maxOwnLabels, maxOwnLabel, maxOwnValue)}
	help := Param{Name: "help", Kind: KindString, Optional: true, Doc: fmt.Sprintf("What it counts; the first use decides. At most %d bytes.", maxOwnHelp)}
	name := Param{Name: "name", Kind: KindString, Doc: "Lower case letters, digits and underscores; it is shown as weir_script_custom_<name>, with the label component_id."}
	get := func(kind ownKind) func([]Value) (Value, error) {
		return func(args []Value) (Value, error) {
			labels, _ := args[1].(*Map)
			help, _ := args[2].(string)
			s, wrong, msg := h.metric(kind, args[0].(string), labels, help)
			if msg != "" {
				return nil, &ArgError{Func: kind.String(), Param: wrong, Msg: msg}
			}
			return &Object{Type: kind.objectType(), Data: s}, nil
		}
	}
	return &Module{
		Name: "metrics",
		Doc: fmt.Sprintf("Metrics of the script's own. They go on over a reload; one that the new version does not use is gone after %d minutes. A node has %d metrics with %d series at most, and what is over does nothing but count in weir_script_custom_refused_total.",
			ownIdle, maxOwnNames, maxOwnSeries),
		Funcs: []Function{
			{
				Name: "counter", Doc: "A counter, from zero up; _total is put behind its name.",
				Params: []Param{name, labels, help}, Result: Result{Kind: KindObject, Type: counterType, Doc: "The counter."},
				Uses: []Use{{Lua: `ctx.metrics.counter("batches", { size = #batch > 1 and "many" or "one" }):add()`,
					JS: `ctx.metrics.counter("batches", { size: batch.length > 1 ? "many" : "one" }).add();`, Input: "a 1\n", Output: "a 1\n"}},
				Fn: get(ownCounter),
			},
			{
				Name: "gauge", Doc: "A gauge, which goes up and down.",
				Params: []Param{name, labels, help}, Result: Result{Kind: KindObject, Type: gaugeType, Doc: "The gauge."},
				Uses: []Use{{Lua: `ctx.metrics.gauge("last_batch"):set(#batch)`, JS: `ctx.metrics.gauge("last_batch").set(batch.length);`, Input: "a 1\n", Output: "a 1\n"}},
				Fn:   get(ownGauge),
			},
			{
				Name: "histogram", Doc: "A histogram of Prometheus's default buckets, from 5 ms to 10 s if it is of seconds.",
				Params: []Param{name, labels, help}, Result: Result{Kind: KindObject, Type: histogramType, Doc: "The histogram."},
				Uses: []Use{{Lua: `for r in batch:records() do ctx.metrics.histogram("value", { name = r.name }):observe(r.value) end`,
					JS: `for (const r of batch) ctx.metrics.histogram("value", { name: r.name }).observe(r.value);`, Input: "a 1\n", Output: "a 1\n"}},
				Fn: get(ownHistogram),
			},
		},
		Types: []*ObjectType{counterType, gaugeType, histogramType},
	}
}

func (k ownKind) objectType() *ObjectType {
	return [...]*ObjectType{counterType, gaugeType, histogramType}[k]
}

var counterType = &ObjectType{
	Name: "metrics.Counter", Doc: "A counter of the script's own.", New: "counter",
	Methods: []Function{{
		Name: "add", Doc: "Adds to it.",
		Params: []Param{{Name: "n", Kind: KindNumber, Optional: true, Doc: "How much, not negative; 1 when left out."}},
		Uses: []Use{{Lua: `ctx.metrics.counter("records", { }, "Records seen."):add(#batch)`,
			JS: `ctx.metrics.counter("records", {}, "Records seen.").add(batch.length);`, Input: "a 1\n", Output: "a 1\n"}},
		Fn: func(args []Value) (Value, error) {
			n, ok := args[1].(float64)
			if !ok {
				n = 1
			}
			if !(n >= 0) || math.IsInf(n, 0) {
				return nil, &ArgError{Func: "add", Param: "n", Msg: "must not be negative: a counter only goes up"}
			}
			if s := args[0].(*ownSeries).touch(); s.counter != nil {
				s.counter.Add(n)
			}
			return nil, nil
		},
	}},
	String: ownString,
}

var gaugeType = &ObjectType{
	Name: "metrics.Gauge", Doc: "A gauge of the script's own.", New: "gauge",
	Methods: []Function{
		{
			Name: "set", Doc: "Sets it.",
			Params: []Param{{Name: "value", Kind: KindNumber, Doc: "To what."}},
			Uses:   []Use{{Lua: `ctx.metrics.gauge("temperature", { unit = "c" }):set(21.5)`, JS: `ctx.metrics.gauge("temperature", { unit: "c" }).set(21.5);`, Input: "a 1\n", Output: "a 1\n"}},
			Fn: func(args []Value) (Value, error) {
				if s := args[0].(*ownSeries).touch(); s.gauge != nil {
					s.gauge.Set(args[1].(float64))
				}
				return nil, nil
			},
		},
		{
			Name: "add", Doc: "Adds to it, or takes from it.",
			Params: []Param{{Name: "n", Kind: KindNumber, Doc: "How much."}},
			Uses:   []Use{{Lua: `ctx.metrics.gauge("balance"):add(-1)`, JS: `ctx.metrics.gauge("balance").add(-1);`, Input: "a 1\n", Output: "a 1\n"}},
			Fn: func(args []Value) (Value, error) {
				if s := args[0].(*ownSeries).touch(); s.gauge != nil {
					s.gauge.Add(args[1].(float64))
				}
				return nil, nil
			},
		},
	},
	String: ownString,
}

var histogramType = &ObjectType{
	Name: "metrics.Histogram", Doc: "A histogram of the script's own.", New: "histogram",
	Methods: []Function{{
		Name: "observe", Doc: "Counts a value.",
		Params: []Param{{Name: "value", Kind: KindNumber, Doc: "The value; NaN is left out."}},
		Uses:   []Use{{Lua: `ctx.metrics.histogram("seconds"):observe(0.02)`, JS: `ctx.metrics.histogram("seconds").observe(0.02);`, Input: "a 1\n", Output: "a 1\n"}},
		Fn: func(args []Value) (Value, error) {
			v := args[1].(float64)
			if s := args[0].(*ownSeries).touch(); s.histogram != nil && v == v {
				s.histogram.Observe(v)
			}
			return nil, nil
		},
	}},
	String: ownString,
}

func ownString(data any) string { return strings.TrimSpace(data.(*ownSeries).name) }
