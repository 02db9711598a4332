package scripttest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/scripting"
)

// MaxInput is the maximum size of the input of a trial, in bytes.
const MaxInput = 8 << 20

// InputFormats are the values of Input.Format: detected by content; the text form of
// batches and what targets expose; OpenMetrics; JSON lines; log lines.
var InputFormats = []string{"auto", "text", "openmetrics", "json", "lines"}

// Input is the input of a trial.
type Input struct {
	Name string // for people
	Text string
	// Format is one of InputFormats; empty: auto.
	Format string
	// Labels are added to series that lack them, as a scrape does.
	Labels []batch.Label
}

// InputError is a mistake in a line of an input.
type InputError struct {
	Name      string
	Line, Col int // Col is 0 if it is unknown
	Msg       string
}

func (e *InputError) Error() string {
	if e.Col > 0 {
		return fmt.Sprintf("%s:%d:%d: %s", e.Name, e.Line, e.Col, e.Msg)
	}
	return fmt.Sprintf("%s:%d: %s", e.Name, e.Line, e.Msg)
}

// readInput reads a batch of a signal that the component accepts.
func (n *testNode) readInput(given Input, modules []*scripting.Module) (in input, err error) {
	given.Text = strings.TrimPrefix(given.Text, "\ufeff")
	switch {
	case len(given.Text) > MaxInput:
		return in, fmt.Errorf("cannot read %s: it has more than %d MiB", given.Name, MaxInput>>20)
	case strings.ContainsRune(given.Text, 0):
		return in, fmt.Errorf("cannot read %s: it is binary; give text, and unpack compressed files", given.Name)
	case strings.TrimSpace(given.Text) == "":
		return in, fmt.Errorf("cannot read %s: it is empty", given.Name)
	}
	format, logs := given.Format, n.accepts == batch.SignalLogs
	if format == "" || format == "auto" {
		format, logs = n.detect(given.Text)
	} else if bothSignals(n.accepts) {
		logs = format == "lines" || format != "openmetrics" && isLogsText(firstLine(given.Text), format)
	}
	switch {
	case logs && format == "openmetrics":
		return in, fmt.Errorf("cannot use %s as OpenMetrics: %s accepts log lines", given.Name, n.name)
	case !logs && format == "lines":
		return in, fmt.Errorf("cannot use %s as log lines: %s accepts metrics", given.Name, n.name)
	case logs && format == "text":
		in.logs, err = batch.ParseLogsText(given.Text, batch.TextOptions{T: n.nanos(), Source: n.source, Series: n.handle})
	case logs:
		in.logs, err = n.parseLines(given, format == "json")
	case format == "text":
		in.metrics, err = batch.ParseText(given.Text, batch.TextOptions{T: n.now(), Source: n.source, Series: n.labelled(given.Labels)})
	default:
		in.metrics, err = n.parseSamples(given, format == "json", modules)
	}
	if e, ok := errors.AsType[*batch.SyntaxError](err); ok {
		err = &InputError{given.Name, e.Line, e.Col, e.Msg}
	}
	if err == nil && in.len() == 0 {
		err = fmt.Errorf("cannot use %s: it has no records", given.Name)
	}
	return in, err
}

// detect returns the format of a text and whether it consists of log lines.
func (n *testNode) detect(text string) (format string, logs bool) {
	first := firstLine(text)
	isJSON := json.Valid([]byte(first)) && strings.HasPrefix(first, "{")
	switch {
	case n.accepts&batch.SignalMetrics != 0 && isOpenMetrics(text):
		return "openmetrics", false
	case n.accepts&batch.SignalLogs == 0 && isJSON:
		return "json", false
	case n.accepts&batch.SignalLogs == 0:
		return "text", false
	case isJSON:
		return "json", !bothSignals(n.accepts) || isLogsText(first, "json")
	case isLogsText(first, "text"):
		return "text", true
	case bothSignals(n.accepts) && isMetricsText(first):
		return "text", false
	}
	return "lines", true
}

// isOpenMetrics reports whether the last line of a text is that of OpenMetrics.
func isOpenMetrics(text string) bool {
	return strings.HasSuffix(strings.TrimRight(text, "\r\n"), "# EOF")
}

// firstLine returns the first line of a text that is neither empty nor a comment.
func firstLine(text string) string {
	for l := range strings.Lines(text) {
		if l = strings.TrimSpace(l); l != "" && l[0] != '#' {
			return l
		}
	}
	return ""
}

// isLogsText reports whether a line is a log line in a format, json or text.
func isLogsText(line, format string) bool {
	if format == "json" {
		var r jsonRecord
		return json.Unmarshal([]byte(line), &r) != nil || r.Name == nil || r.Value == nil
	}
	_, err := batch.ParseLogsText(line, batch.TextOptions{})
	return err == nil
}

func isMetricsText(line string) bool {
	_, err := batch.ParseText(line, batch.TextOptions{})
	return err == nil
}

// labelled is n.handle for series that get labels as from a scrape.
func (n *testNode) labelled(more []batch.Label) func([]batch.Label, *batch.Metadata) *batch.Series {
	return func(sorted []batch.Label, meta *batch.Metadata) *batch.Series {
		for _, l := range more {
			if i, has := slices.BinarySearchFunc(sorted, l, func(a, b batch.Label) int { return strings.Compare(a.Name, b.Name) }); !has {
				sorted = slices.Insert(sorted, i, l)
			}
		}
		return n.handle(sorted, meta)
	}
}

// jsonRecord is a line of JSON lines: a sample has a name and a value, a log line has a
// line.
type jsonRecord struct {
	Name   *string           `json:"name"`
	Line   *string           `json:"line"`
	Labels map[string]string `json:"labels"`
	Value  *json.Number      `json:"value"`
	Time   *int64            `json:"time"` // Unix ms
}

// sortedLabels returns the labels, with a name unless it is empty.
func (r jsonRecord) sortedLabels(name string) []batch.Label {
	var ls []batch.Label
	if name != "" {
		ls = append(ls, batch.Label{Name: batch.NameLabel, Value: name})
	}
	for n, v := range r.Labels {
		if v != "" && n != batch.NameLabel {
			ls = append(ls, batch.Label{Name: n, Value: v})
		}
	}
	slices.SortFunc(ls, func(a, b batch.Label) int { return strings.Compare(a.Name, b.Name) })
	return ls
}

// parseLines reads log lines, one in each line. With records, a JSON object with a
// string line and with labels is a record, and every line is an object.
func (n *testNode) parseLines(given Input, records bool) (*batch.Logs, error) {
	b, number := &batch.Logs{Source: n.source}, 0
	for l := range strings.Lines(given.Text) {
		number++
		if l = strings.TrimRight(l, "\r\n"); strings.TrimSpace(l) == "" {
			continue
		}
		r, t := jsonRecord{}, n.nanos()
		if records {
			var object map[string]any
			if err := json.Unmarshal([]byte(l), &object); err != nil {
				return nil, &InputError{given.Name, number, 0, "this line is not a JSON object: " + err.Error() + "; --input-format=lines reads any lines"}
			}
			if err := json.Unmarshal([]byte(l), &r); err == nil && r.Line != nil && r.Labels != nil {
				l = *r.Line
				if r.Time != nil {
					t = *r.Time * 1_000_000
				}
			} else {
				r = jsonRecord{}
			}
		}
		b.Stream, b.T, b.Line = append(b.Stream, n.handle(r.sortedLabels(""), nil)), append(b.T, t), append(b.Line, l)
	}
	return b, nil
}

// parseSamples reads OpenMetrics or JSON lines.
func (n *testNode) parseSamples(given Input, isJSON bool, modules []*scripting.Module) (*batch.Metrics, error) {
	b, handle := &batch.Metrics{Source: n.source}, n.labelled(given.Labels)
	add := func(r jsonRecord, v float64, meta *batch.Metadata) {
		t := n.now()
		if r.Time != nil {
			t = *r.Time
		}
		b.Series, b.T, b.V = append(b.Series, handle(r.sortedLabels(*r.Name), meta)), append(b.T, t), append(b.V, v)
	}
	if isJSON {
		number := 0
		for l := range bytes.Lines([]byte(given.Text)) {
			if number++; len(bytes.TrimSpace(l)) == 0 {
				continue
			}
			var r jsonRecord
			if err := json.Unmarshal(l, &r); err != nil {
				return nil, &InputError{given.Name, number, 0, "this line is not a sample in JSON: " + err.Error()}
			}
			if r.Name == nil || *r.Name == "" || r.Value == nil {
				return nil, &InputError{given.Name, number, 0, `a sample has a name and a value, such as {"name":"up","labels":{"job":"api"},"value":1}`}
			}
			v, err := r.Value.Float64()
			if err != nil {
				return nil, &InputError{given.Name, number, 0, err.Error()}
			}
			add(r, v, nil)
		}
		return b, nil
	}
	if !isOpenMetrics(given.Text) {
		return nil, &InputError{given.Name, strings.Count(strings.TrimRight(given.Text, "\n"), "\n") + 1, 0, "the last line of OpenMetrics is # EOF"}
	}
	samples, err := openMetrics(given, modules)
	if err != nil {
		return nil, err
	}
	for _, item := range samples.Items {
		m := item.(*scripting.Map)
		r, meta := jsonRecord{Labels: map[string]string{}}, &batch.Metadata{}
		text := func(key string) string {
			v, _ := m.Get(key)
			s, _ := v.(string)
			return s
		}
		name := text("name")
		r.Name, meta.Help, meta.Unit = &name, text("help"), text("unit")
		meta.Type = batch.MetricType(text("type"))
		if *meta == (batch.Metadata{}) {
			meta = nil
		}
		if v, ok := m.Get("labels"); ok {
			ls := v.(*scripting.Map)
			for _, k := range ls.Keys() {
				value, _ := ls.Get(k)
				r.Labels[k] = value.(string)
			}
		}
		if t, ok := m.Get("time"); ok {
			ms := t.(int64)
			r.Time = &ms
		}
		v := math.NaN()
		raw, _ := m.Get("value")
		switch x := raw.(type) {
		case float64:
			v = x
		case int64:
			v = float64(x)
		}
		add(r, v, meta)
	}
	return b, nil
}

// openMetrics parses OpenMetrics with Prometheus's parser, which does not tell in which
// line a mistake is: it is the last line of the shortest beginning that is not valid.
func openMetrics(given Input, modules []*scripting.Module) (*scripting.List, error) {
	i := slices.IndexFunc(modules, func(m *scripting.Module) bool { return m.Name == "prom" })
	parse, _ := modules[i].Func("parse")
	all, err := parse.Call(nil, []scripting.Value{given.Text})
	if err == nil {
		return all.(*scripting.List), nil
	}
	lines := strings.SplitAfter(strings.TrimRight(given.Text, "\n"), "\n")
	bad := sort.Search(len(lines)-1, func(i int) bool {
		_, err := parse.Call(nil, []scripting.Value{strings.Join(lines[:i+1], "") + "# EOF\n"})
		return err != nil
	})
	msg := err.Error()
	if at := strings.LastIndex(msg, "samples: "); at >= 0 {
		msg = msg[at+len("samples: "):]
	}
	return nil, &InputError{given.Name, bad + 1, 0, strings.ToValidUTF8(msg, string(utf8.RuneError))}
}
