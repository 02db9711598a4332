package stdlib

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"

	"github.com/weir-run/weir/scripting"
)

// maxSamples is the maximum number of samples in a text.
const maxSamples = 100_000

// Formats: https://prometheus.io/docs/instrumenting/exposition_formats/ and
// https://prometheus.io/docs/specs/om/open_metrics_spec/.
func promModule() *scripting.Module {
	const in = "# HELP up Whether it is up.\n# TYPE up gauge\nup{job=\"api\"} 1\n"
	up := func() *scripting.Map {
		return mapOf("name", "up", "labels", mapOf("job", "api"), "value", 1.0, "type", "gauge", "help", "Whether it is up.")
	}
	return &scripting.Module{
		Name: "prom",
		Doc:  "The text that Prometheus scrapes.",
		Funcs: []scripting.Function{
			{
				Name:   "parse",
				Doc:    "Parses metrics in the OpenMetrics format if the text ends with # EOF, and in the classic Prometheus format otherwise. It uses the parser of Prometheus. At most 8 MiB and 100,000 samples.",
				Params: []scripting.Param{text("s", "The text.")},
				Result: scripting.Result{Kind: scripting.KindList, Fails: true,
					Doc: "The samples, in their order: name, labels, value, time (Unix ms, if given), type, help and unit (if given), exemplar (labels, value, time)."},
				Fn: func(a []scripting.Value) (scripting.Value, error) { return parseExposition(a[0].(string)) },
				Examples: []scripting.FunctionExample{
					ex(list(up()), in),
					ex(list(mapOf("name", "a_total", "labels", mapOf(), "value", 2.0, "time", int64(1500), "type", "counter")), "# TYPE a counter\na_total 2 1.5\n# EOF\n"),
					{Args: []scripting.Value{"up{job=} 1\n"}, Err: "cannot parse the exposition"},
				},
			},
			{
				Name:   "format",
				Doc:    "Writes samples in the classic format, grouped by metric family, each with its metadata.",
				Params: []scripting.Param{{Name: "samples", Kind: scripting.KindList, Doc: "The samples, in the format of parse; name and value are required. Exemplars are omitted because the format does not support them."}},
				Result: scripting.Result{Kind: scripting.KindString, Doc: "The text.", Fails: true},
				Fn:     func(a []scripting.Value) (scripting.Value, error) { return formatExposition(a[0].(*scripting.List)) },
				Examples: []scripting.FunctionExample{
					ex(in, list(up())),
					ex("a{b=\"c\\\"d\"} 0.5 1500\n", list(mapOf("name", "a", "labels", mapOf("b", `c"d`), "value", 0.5, "time", int64(1500)))),
					{Args: []scripting.Value{list(mapOf("name", "a"))}, Err: "its value is missing"},
					{Args: []scripting.Value{list(mapOf("name", "a b", "value", 1.0))}, Err: "cannot use name"},
				},
			},
		},
	}
}

func parseExposition(s string) (scripting.Value, error) {
	format := "text/plain"
	if strings.HasSuffix(strings.TrimRight(s, "\n"), "# EOF") {
		format = "application/openmetrics-text"
	} else if s != "" && !strings.HasSuffix(s, "\n") {
		s += "\n" // responses often lack it
	}
	p, err := textparse.New([]byte(s), format, labels.NewSymbolTable(), textparse.ParserOptions{})
	if err != nil {
		return nil, fmt.Errorf("cannot parse the exposition: %w", err)
	}
	out := &scripting.List{}
	var fam family
	for {
		entry, err := p.Next()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("cannot parse the exposition after %d samples: %w", len(out.Items), err)
		}
		switch entry {
		case textparse.EntryType:
			name, typ := p.Type()
			fam.of(string(name)).typ = string(typ)
		case textparse.EntryHelp:
			name, help := p.Help()
			fam.of(string(name)).help = string(help)
		case textparse.EntryUnit:
			name, unit := p.Unit()
			fam.of(string(name)).unit = string(unit)
		case textparse.EntrySeries:
			if len(out.Items) == maxSamples {
				return nil, fmt.Errorf("cannot parse the exposition: it has more than %d samples", maxSamples)
			}
			out.Items = append(out.Items, fam.sample(p))
		}
	}
}

// family is the metadata of the last metadata lines.
type family struct{ name, typ, help, unit string }

func (f *family) of(name string) *family {
	if f.name != name {
		*f = family{name: name}
	}
	return f
}

// has reports whether a metric belongs to the family.
func (f *family) has(metric string) bool {
	rest, ok := strings.CutPrefix(metric, f.name)
	return ok && f.name != "" && slices.Contains([]string{"", "_total", "_bucket", "_sum", "_count", "_created", "_info", "_gsum", "_gcount"}, rest)
}

func (f *family) sample(p textparse.Parser) *scripting.Map {
	_, ts, v := p.Series()
	var ls labels.Labels
	p.Labels(&ls)
	name := ls.Get(model.MetricNameLabel)
	m := mapOf("name", name, "labels", labelMap(ls), "value", v)
	if ts != nil {
		m.Set("time", *ts)
	}
	if f.has(name) {
		for _, kv := range [][2]string{{"type", f.typ}, {"help", f.help}, {"unit", f.unit}} {
			if kv[1] != "" {
				m.Set(kv[0], kv[1])
			}
		}
	}
	var e exemplar.Exemplar
	if p.Exemplar(&e) {
		x := mapOf("labels", labelMap(e.Labels), "value", e.Value)
		if e.HasTs {
			x.Set("time", e.Ts)
		}
		m.Set("exemplar", x)
	}
	return m
}

func labelMap(ls labels.Labels) *scripting.Map {
	m := scripting.NewMap()
	ls.Range(func(l labels.Label) {
		if l.Name != model.MetricNameLabel {
			m.Set(l.Name, strings.Clone(l.Value))
		}
	})
	return m
}

// written is the state of a family while it is written.
type written struct {
	family
	lines strings.Builder
}

func formatExposition(samples *scripting.List) (scripting.Value, error) {
	var order []*written
	byName := map[string]*written{}
	size := 0
	for i, item := range samples.Items {
		fail := func(err error) error { return fmt.Errorf("cannot write sample %d: %w", i+1, err) }
		m, ok := item.(*scripting.Map)
		if !ok {
			return nil, fail(errors.New("it must be a table with name, labels and value"))
		}
		line, fam, err := formatSample(m)
		if err != nil {
			return nil, fail(err)
		}
		w := byName[fam.name]
		if w == nil {
			w = &written{family: fam}
			order = append(order, w)
			byName[fam.name] = w
		}
		w.lines.WriteString(line)
		if size += len(line) + len(fam.help); size > scripting.MaxString {
			return nil, errLong("write the exposition")
		}
	}
	var b strings.Builder
	for _, w := range order {
		if w.help != "" {
			fmt.Fprintf(&b, "# HELP %s %s\n", w.name, strings.NewReplacer(`\`, `\\`, "\n", `\n`).Replace(w.help))
		}
		if w.typ != "" {
			fmt.Fprintf(&b, "# TYPE %s %s\n", w.name, w.typ)
		}
		b.WriteString(w.lines.String())
	}
	return b.String(), nil
}

var metricTypes = []string{"counter", "gauge", "histogram", "summary", "untyped"}

// formatSample returns the line of a sample and the metadata of its family.
func formatSample(m *scripting.Map) (line string, fam family, err error) {
	word := func(key string) (s string) {
		v, ok := m.Get(key)
		if s, is := v.(string); is {
			return s
		}
		if ok && v != nil && err == nil {
			err = fmt.Errorf("its %s must be text", key)
		}
		return ""
	}
	name := word("name")
	fam = family{typ: word("type"), help: word("help")}
	if err != nil {
		return "", fam, err
	}
	if !model.LegacyValidation.IsValidMetricName(name) {
		return "", fam, fmt.Errorf("cannot use name %q: a name consists of letters, digits, : and _", truncate(name, 60, "…"))
	}
	fam.name = name
	switch fam.typ {
	case "histogram", "summary":
		for _, s := range []string{"_bucket", "_sum", "_count"} {
			fam.name = strings.TrimSuffix(fam.name, s)
		}
	case "unknown":
		fam.typ = "untyped"
	}
	if fam.typ != "" && !slices.Contains(metricTypes, fam.typ) {
		return "", fam, fmt.Errorf("cannot use type %q: the valid types are %s", truncate(fam.typ, 40, "…"), strings.Join(metricTypes, ", "))
	}
	var b strings.Builder
	b.WriteString(name)
	if v, _ := m.Get("labels"); v != nil {
		if err := writeLabels(&b, v); err != nil {
			return "", fam, err
		}
	}
	v, _ := m.Get("value")
	switch v := v.(type) {
	case int64:
		b.WriteString(" " + strconv.FormatInt(v, 10))
	case float64:
		b.WriteString(" " + formatValue(v))
	default:
		return "", fam, errors.New("its value is missing or not a number")
	}
	switch t, _ := m.Get("time"); t := t.(type) {
	case nil:
	case int64:
		b.WriteString(" " + strconv.FormatInt(t, 10))
	default:
		return "", fam, errors.New("its time must be whole milliseconds")
	}
	b.WriteByte('\n')
	return b.String(), fam, nil
}

func formatValue(v float64) string {
	if math.IsInf(v, 0) {
		return map[bool]string{true: "+Inf", false: "-Inf"}[v > 0]
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

func writeLabels(b *strings.Builder, v scripting.Value) error {
	m, ok := v.(*scripting.Map)
	if l, isList := v.(*scripting.List); isList && len(l.Items) == 0 {
		return nil
	}
	if !ok {
		return errors.New("its labels must be a table")
	}
	if m.Len() == 0 {
		return nil
	}
	keys := slices.Sorted(slices.Values(m.Keys()))
	for i, k := range keys {
		if !model.LegacyValidation.IsValidLabelName(k) {
			return fmt.Errorf("cannot use label name %q: a label name consists of letters, digits and _", truncate(k, 60, "…"))
		}
		v, _ := m.Get(k)
		s, err := plainText(v)
		if err != nil {
			return fmt.Errorf("cannot use label %s: %w", k, err)
		}
		b.WriteString(map[bool]string{true: "{", false: ","}[i == 0])
		b.WriteString(k + `="` + strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`).Replace(s) + `"`)
	}
	b.WriteByte('}')
	return nil
}
