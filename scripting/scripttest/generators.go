package scripttest

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-run/weir/scripting"
)

// drawFunc makes a value from choices.
type drawFunc func(d *draw) scripting.Value

// generator is a drawFunc with the name of its function.
type generator struct {
	name string
	draw drawFunc
}

var generatorType = &scripting.ObjectType{
	Name: "generator", Doc: "A generator of random values for forall.", New: "gen",
	String: func(data any) string { return "gen." + data.(*generator).name },
}

const (
	defaultInt  = 1_000_000
	maxItems    = 100
	defaultList = 20
)

// generators is the table gen.
func generators() *scripting.Module {
	lo, hi := optionalParam("min", scripting.KindInt), optionalParam("max", scripting.KindInt)
	most := scripting.Param{Name: "max", Kind: scripting.KindInt, Optional: true, Doc: "The maximum length."}
	one := scripting.Param{Name: "gen", Kind: scripting.KindObject, Type: generatorType}
	g := func(name, doc string, make func(a []scripting.Value) (drawFunc, error), params ...scripting.Param) scripting.Function {
		return scripting.Function{Name: name, Doc: doc, Params: params, Result: scripting.Result{Kind: scripting.KindObject, Type: generatorType},
			Fn: func(a []scripting.Value) (scripting.Value, error) {
				draw, err := make(a)
				if err != nil {
					return nil, err
				}
				return &scripting.Object{Type: generatorType, Data: &generator{name, draw}}, nil
			}}
	}
	plain := func(of drawFunc) func([]scripting.Value) (drawFunc, error) {
		return func([]scripting.Value) (drawFunc, error) { return of, nil }
	}
	text := func(of func(d *draw) string) func([]scripting.Value) (drawFunc, error) {
		return plain(func(d *draw) scripting.Value { return of(d) })
	}
	return &scripting.Module{
		Name: "gen",
		Doc:  "Generators of random values for forall.",
		Funcs: []scripting.Function{
			g("int", "Whole numbers from min to max, by default up to a million, positive and negative.", func(a []scripting.Value) (drawFunc, error) {
				from, to := int64(-defaultInt), int64(defaultInt)
				if n, ok := a[0].(int64); ok {
					if from = n; to < n {
						to = n + defaultInt
					}
				}
				if n, ok := a[1].(int64); ok {
					to = n
				}
				if from > to || to-from < 0 {
					return nil, fmt.Errorf("cannot generate numbers from %d to %d", from, to)
				}
				return func(d *draw) scripting.Value { return drawInt(d, from, to) }, nil
			}, lo, hi),
			g("number", "Finite numbers: whole ones, fractions, very large and very small ones.", plain(func(d *draw) scripting.Value { return drawNumber(d) })),
			g("boolean", "True or false.", plain(func(d *draw) scripting.Value { return d.below(2) == 1 })),
			g("string", "Strings of letters, digits, punctuation, blanks and Unicode, and some that programs do not expect.", func(a []scripting.Value) (drawFunc, error) {
				n, err := length(a[0])
				return func(d *draw) scripting.Value { return drawString(d, n) }, err
			}, most),
			g("one_of", "One of the items of a list, which are values or generators.", func(a []scripting.Value) (drawFunc, error) {
				items := a[0].(*scripting.List).Items
				if len(items) == 0 {
					return nil, fmt.Errorf("cannot generate one of no items")
				}
				return func(d *draw) scripting.Value { return drawPart(d, items[d.below(len(items))]) }, nil
			}, scripting.Param{Name: "items", Kind: scripting.KindList}),
			g("list", "Lists of values of a generator.", func(a []scripting.Value) (drawFunc, error) {
				n, err := length(a[1])
				of := a[0].(*generator)
				return func(d *draw) scripting.Value {
					l := &scripting.List{Items: []scripting.Value{}}
					for d.more(len(l.Items), n) {
						l.Items = append(l.Items, of.draw(d))
					}
					return l
				}, err
			}, one, most),
			g("record", "Tables with these fields, which are values or generators.", func(a []scripting.Value) (drawFunc, error) {
				fields := a[0].(*scripting.Map)
				return func(d *draw) scripting.Value {
					m := scripting.NewMap()
					for _, k := range sortedKeys(fields) {
						v, _ := fields.Get(k)
						m.Set(k, drawPart(d, v))
					}
					return m
				}, nil
			}, scripting.Param{Name: "fields", Kind: scripting.KindMap}),
			g("labels", "Label sets: tables of values by name, without the name of the metric.", plain(func(d *draw) scripting.Value {
				m := scripting.NewMap()
				for _, l := range drawLabels(d) {
					m.Set(l[0], l[1])
				}
				return m
			})),
			g("series", `Series in the text format, such as up{job="api"}.`, text(func(d *draw) string { return seriesText(drawName(d), drawLabels(d)) })),
			g("metrics", "Batches of samples in the text format: counters, gauges, histograms, special values.", text(drawMetrics)),
			g("histogram", "Batches with one histogram in the text format, classic or native, whose buckets add up.", text(drawHistogram)),
			g("line", "Log lines: logfmt, JSON, access logs, plain text, empty ones.", text(drawLine)),
			g("logs", "Batches of log lines in the text format, with their labels.", text(drawLogs)),
		},
	}
}

func length(v scripting.Value) (int, error) {
	n, ok := v.(int64)
	if !ok {
		return defaultList, nil
	}
	if n < 0 || n > maxItems {
		return 0, fmt.Errorf("cannot generate a length of %d: the maximum must be 0 to %d", n, maxItems)
	}
	return int(n), nil
}

// drawPart draws a value if v is a generator; else it is v.
func drawPart(d *draw, v scripting.Value) scripting.Value {
	if o, ok := v.(*scripting.Object); ok && o.Type == generatorType {
		return o.Data.(*generator).draw(d)
	}
	return v
}

// drawInt draws a number. The one nearest to zero is the simplest.
func drawInt(d *draw, from, to int64) int64 {
	simple := min(max(from, 0), to)
	up, down := uint64(to-simple), uint64(simple-from)
	c := d.choose(up+down+1, func() uint64 {
		switch d.rng.IntN(4) {
		case 0:
			return d.rng.Uint64N(min(up+down+1, 20))
		case 1: // the ends
			if d.rng.IntN(2) == 0 {
				return up + down
			}
			return up + down - min(up, down, 1)
		}
		return d.rng.Uint64N(up + down + 1)
	})
	// Numbers alternate around the simplest one as long as there are some on both sides.
	both := min(up, down)
	switch {
	case c > 2*both && up > down:
		return simple + int64(c-both)
	case c > 2*both:
		return simple - int64(c-both)
	case c%2 == 1:
		return simple + int64(c/2) + 1
	}
	return simple - int64(c/2)
}

var specialNumbers = []float64{math.Copysign(0, -1), math.MaxFloat64, math.SmallestNonzeroFloat64, -math.MaxFloat64, 1 << 53, 1e15, 0.1}

func drawNumber(d *draw) float64 {
	switch d.below(4) {
	case 0, 1:
		return float64(drawInt(d, -defaultInt, defaultInt))
	case 2:
		return float64(drawInt(d, -defaultInt, defaultInt)) / 1000
	}
	return specialNumbers[d.below(len(specialNumbers))]
}

var characters = []rune("abcdefghijklmnopqrstuvwxyz0123456789ABCXYZ_-./ :=,{}[]()%\"'\\\n\täß東\U0001f39b")

func drawString(d *draw, most int) string {
	if d.below(8) == 7 {
		if s := hostile[d.below(len(hostile))]; len([]rune(s)) <= most {
			return s
		}
	}
	var b strings.Builder
	for n := 0; d.more(n, most); n++ {
		b.WriteRune(characters[d.below(len(characters))])
	}
	return b.String()
}

func pick(d *draw, of []string) string { return of[d.below(len(of))] }

var labelNames = []string{"job", "instance", "path", "code", "le", "quantile", "pod", "region", "a", "ä b"}

// drawLabels draws labels with different names.
func drawLabels(d *draw) (out [][2]string) {
	for d.more(len(out), 6) {
		name := pick(d, labelNames)
		value := ""
		switch d.below(3) {
		case 0:
			value = pick(d, []string{"a", "api", "GET", "/users/42", "200", "10.0.0.1:9090"})
		default:
			value = drawString(d, 10)
		}
		if value != "" && !slices.ContainsFunc(out, func(l [2]string) bool { return l[0] == name }) {
			out = append(out, [2]string{name, value})
		}
	}
	return out
}

func drawName(d *draw) string {
	return pick(d, []string{"up", "http_requests_total", "request_seconds", "node_memory_bytes", "x:rate5m", "a"})
}

func seriesText(name string, labels [][2]string) string {
	if len(labels) == 0 {
		return name
	}
	parts := make([]string, len(labels))
	for i, l := range labels {
		parts[i] = metaName(l[0]) + "=" + quote(l[1])
	}
	return name + "{" + strings.Join(parts, ",") + "}"
}

func valueText(d *draw) string {
	switch d.below(8) {
	case 7:
		return pick(d, []string{"0", "-0", "NaN", "+Inf", "-Inf", "stale"})
	}
	return strconv.FormatFloat(drawNumber(d), 'g', -1, 64)
}

func drawMetrics(d *draw) string {
	var b strings.Builder
	known, typed := map[string]bool{}, map[string]bool{}
	for n := 0; d.more(n, 30); n++ {
		name, labels := drawName(d), drawLabels(d)
		value := valueText(d)
		kind := pick(d, []string{"", "gauge", "counter", "unknown"})
		slices.SortFunc(labels, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
		series := seriesText(name, labels)
		if known[series] {
			continue
		}
		known[series] = true
		if kind != "" && !typed[name] {
			fmt.Fprintf(&b, "# TYPE %s %s\n", name, kind)
		}
		typed[name] = true
		b.WriteString(series + " " + value + "\n")
	}
	return b.String()
}

func drawHistogram(d *draw) string {
	labels := slices.DeleteFunc(drawLabels(d), func(l [2]string) bool { return l[0] == "le" || l[0] == "quantile" })
	counts := make([]int64, 1+d.below(6))
	total := int64(0)
	for i := range counts {
		counts[i] = drawInt(d, 0, 1000)
		total += counts[i]
	}
	sum := strconv.FormatFloat(float64(drawInt(d, 0, defaultInt))/1000, 'g', -1, 64)
	var b strings.Builder
	b.WriteString("# TYPE request_seconds histogram\n")
	if d.below(2) == 1 { // a native one, with the differences of the buckets
		deltas, last := make([]string, len(counts)), int64(0)
		for i, n := range counts {
			deltas[i], last = strconv.FormatInt(n-last, 10), n
		}
		fmt.Fprintf(&b, "%s {count:%d,sum:%s,schema:%d,positive_spans:[0:%d],positive_buckets:[%s]}\n",
			seriesText("request_seconds", labels), total, sum, d.below(5), len(counts), strings.Join(deltas, ","))
		return b.String()
	}
	below := int64(0)
	for i, n := range counts {
		below += n
		le := "+Inf"
		if i < len(counts)-1 {
			le = strconv.FormatFloat(math.Pow(2, float64(i))/8, 'g', -1, 64)
		}
		fmt.Fprintf(&b, "%s %d\n", seriesText("request_seconds_bucket", append(slices.Clone(labels), [2]string{"le", le})), below)
	}
	fmt.Fprintf(&b, "%s %s\n%s %d\n", seriesText("request_seconds_sum", labels), sum, seriesText("request_seconds_count", labels), total)
	return b.String()
}

func drawLine(d *draw) string {
	switch d.below(6) {
	case 0, 1:
		return strings.ReplaceAll(drawString(d, 40), "\n", " ")
	case 2:
		return fmt.Sprintf("level=%s msg=%q took=%dms", pick(d, []string{"info", "warn", "error", "debug"}), drawString(d, 20), drawInt(d, 0, 5000))
	case 3:
		return fmt.Sprintf(`{"level":"%s","msg":%s,"code":%d}`, pick(d, []string{"info", "warn", "error"}), jsonText(drawString(d, 20)), drawInt(d, 100, 599))
	case 4:
		return fmt.Sprintf(`10.0.0.%d - - [01/Jan/2025:00:00:00 +0000] "%s %s HTTP/1.1" %d %d`, d.below(256), pick(d, []string{"GET", "POST"}),
			pick(d, []string{"/", "/users/42", "/a?b=c"}), drawInt(d, 100, 599), drawInt(d, 0, 100_000))
	}
	return pick(d, []string{"", " ", "panic: runtime error", "\tat com.example.Main", "\x1b[31mred\x1b[0m", "{", "a=", strings.Repeat("x", 500)})
}

func jsonText(s string) string {
	text, _ := json.Marshal(s) // a string can be marshalled
	return string(text)
}

func drawLogs(d *draw) string {
	var b strings.Builder
	for n := 0; d.more(n, 30); n++ {
		labels := drawLabels(d)
		if len(labels) == 0 {
			labels = [][2]string{{"app", "a"}}
		}
		b.WriteString(seriesText("", labels) + " " + strconv.Quote(drawLine(d)) + "\n")
	}
	return b.String()
}
