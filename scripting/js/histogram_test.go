package js_test

import (
	"strings"
	"testing"
)

// TestHistogramObjects: a native histogram is an object of its own, whatever a
// script does to it.
func TestHistogramObjects(t *testing.T) {
	var e exprs
	f := e.add
	const buckets = `.buckets.map((b) => [b.lower, b.upper, b.count])`
	// Buckets from the lowest to the highest, the zero bucket among them.
	f(`batch[0].name`, "ints")
	f(`Object.keys(batch[0].histogram)`, `["count","sum","schema","zeroCount","zeroThreshold","buckets"]`)
	f(`batch[0].histogram`+buckets, `[[-2,-1,2],[-0.001,0.001,1],[1,2,1],[2,4,2]]`)
	f(`[batch[0].histogram.count, batch[0].histogram.sum, batch[0].histogram.schema]`, "[6,12.5,0]")
	f(`[batch[0].histogram.zeroCount, batch[0].histogram.zeroThreshold]`, "[1,0.001]")
	// A gap between spans leaves buckets out.
	f(`batch[1].histogram`+buckets, `[[1,2,2],[8,16,3]]`)
	// A record with a histogram has no value.
	f(`batch[0].value`, "undefined")
	f(`batch[0].stale`, "false")
	f(`batch[0].exemplars`, "undefined")
	f(`batch[2].histogram`, "undefined")
	f(`batch[2].value`, "1")
	f(`[...batch.rows("name", "value")].map(([i, n, v]) => n + ":" + v)`, `["ints:undefined","gap:undefined","plain:1"]`)
	// Each read gives another object, which is the script's own.
	f(`batch[0].histogram === batch[0].histogram`, "false")
	f(`(() => { const h = batch[0].histogram; h.count = 99; h.buckets.length = 0; return [h.count, batch[0].histogram.count, batch[0].histogram.buckets.length] })()`, "[99,6,4]")
	f(`batch[0].histogram.buckets.reduce((n, b) => n + b.count, 0)`, "6")
	f(`JSON.parse(JSON.stringify(batch[0])).histogram.schema`, "0")
	f(`Array.isArray(batch[0].histogram.buckets)`, "true")
	f(`batch[0].histogram.buckets[0].nope`, "undefined")
	// Copies keep it, and it cannot be set.
	f(`batch[0].copy().histogram.count`, "6")
	f(`batch[0].copy().value`, "undefined")
	f(`batch[0].histogram = {}`, `Error: cannot set "histogram" of a record: what can be set is name, value, labels, time and stale`)
	f(`batch[0].copy().value = 2`, "Error: cannot set the value of a copy of ints: it is a native histogram; multiply it with scale before you copy it")
	f(`(() => { const c = batch[2].copy(); c.value = 2; return c.value })()`, "2")
	f(`batch[0].value = 2`, "Error: cannot set the value of ints: it is a native histogram; scale is what it takes")
	f(`String(batch[1]).startsWith("gap {")`, "true")
	e.run(t, "ints {count:6,sum:12.5,schema:0,zero_threshold:0.001,zero_count:1,positive_spans:[1:2],positive_buckets:[1,2],negative_spans:[1:1],negative_buckets:[2]}\n"+
		"gap {count:5,sum:1,schema:0,positive_spans:[1:1,2:1],positive_buckets:[2,3]}\n"+
		"plain 1\n", "")
}

// TestExemplarObjects reads exemplars.
func TestExemplarObjects(t *testing.T) {
	var e exprs
	f := e.add
	f(`m.exemplars.length`, "2")
	f(`m.exemplars[0]`, `{"labels":{"span":"s","trace":"t"},"value":0.5,"time":7}`)
	f(`m.exemplars[1]`, `{"labels":{},"value":2}`)
	f(`"time" in m.exemplars[1]`, "false")
	f(`m.exemplars === m.exemplars`, "false")
	f(`(() => { const x = m.exemplars; x[0].labels.trace = "mine"; x.pop(); return [m.exemplars.length, m.exemplars[0].labels.trace] })()`, `[2,"t"]`)
	f(`m.copy().exemplars[0].labels.trace`, "t")
	f(`m.exemplars = []`, `Error: cannot set "exemplars" of a record: what can be set is name, value, labels, time and stale`)
	f(`m.value`, "1")
	e.run(t, "c 1 # {trace=\"t\",span=\"s\"} 0.5 7 # {} 2\n", "")
}

// TestHistogramsCost: what a script reads of histograms counts as work, so a loop
// over many buckets ends.
func TestHistogramsCost(t *testing.T) {
	in := "h {count:1000,sum:1,schema:0,positive_spans:[0:1000],positive_buckets:[1" + strings.Repeat(",0", 999) + "]}\n"
	fx := build(t, metrics("for (;;) batch[0].histogram"), "script {\nlimits {\ntime = \"20ms\"\n}\n}")
	if got := fx.send(t, in); !strings.HasPrefix(got, "h {") {
		t.Errorf("got %q, want the batch as it was", got)
	}
	if h := fx.Health(); !strings.Contains(h.Message, "limit exceeded") {
		t.Errorf("got %q", h.Message)
	}
}
