package scripttest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/scripting"
)

// Log lines in tests and examples. The signals that the component takes or
// sends determine how a text is parsed. With both signals, a row that begins
// with a brace is a log line, so samples of series with special names cannot be
// written.

// bothSignals reports whether s is metrics and logs.
func bothSignals(s batch.Signals) bool { return s == batch.SignalMetrics|batch.SignalLogs }

// sorted splits text into samples and log lines, each in the lines where they
// were.
func sorted(text string, signals batch.Signals) (samples, logs string) {
	switch {
	case signals == batch.SignalLogs:
		return "", text
	case !bothSignals(signals):
		return text, ""
	}
	var s, l strings.Builder
	for row := range strings.SplitAfterSeq(text, "\n") {
		into, other := &s, &l
		if strings.HasPrefix(strings.TrimLeft(row, " \t"), "{") {
			into, other = &l, &s
		}
		into.WriteString(row)
		if strings.HasSuffix(row, "\n") {
			other.WriteByte('\n')
		}
	}
	return s.String(), l.String()
}

// ConsumeLogs is the sink's.
func (n *testNode) ConsumeLogs(_ context.Context, b *batch.Logs) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cameLogs = append(n.cameLogs, b)
	return nil
}

// ConsumeLogs keeps what came by the output.
func (r routed) ConsumeLogs(_ context.Context, b *batch.Logs) error {
	r.n.mu.Lock()
	defer r.n.mu.Unlock()
	if r.n.routedLogs == nil {
		r.n.routedLogs = map[string][]*batch.Logs{}
	}
	r.n.routedLogs[r.name] = append(r.n.routedLogs[r.name], b)
	return nil
}

// input is a batch of either signal.
type input struct {
	metrics *batch.Metrics
	logs    *batch.Logs
}

func (in input) len() int {
	if in.logs != nil {
		return in.logs.Len()
	}
	return in.metrics.Len()
}

// read reads a batch of a signal that the component takes.
func (n *testNode) read(text string) (in input, err error) {
	samples, logs := sorted(text, n.accepts)
	if n.accepts&batch.SignalLogs != 0 && strings.TrimSpace(logs) != "" {
		if strings.TrimSpace(samples) != "" && !onlyComments(samples) {
			return in, errors.New("cannot send samples and log lines in one batch: write two")
		}
		in.logs, err = n.parseLogs(logs)
		return in, err
	}
	in.metrics, err = n.parse(samples)
	return in, err
}

func onlyComments(text string) bool {
	for line := range strings.Lines(text) {
		if t := strings.TrimSpace(line); t != "" && t[0] != '#' {
			return false
		}
	}
	return true
}

func (n *testNode) parseLogs(text string) (*batch.Logs, error) {
	b, err := batch.ParseLogsText(text, batch.TextOptions{T: n.nanos(), Source: n.source, Series: n.handle})
	if e, ok := errors.AsType[*batch.SyntaxError](err); ok {
		return nil, &textError{e, "log lines"}
	}
	return b, err
}

// nanos is the time of lines without one, Unix ns.
func (n *testNode) nanos() int64 { return n.clock.Now().UnixNano() }

// sendAny sends one batch through the component.
func (n *testNode) sendAny(ctx context.Context, in input) (*output, error) {
	if in.logs == nil {
		return n.send(ctx, in.metrics)
	}
	before := n.begin()
	if err := n.sendInput(ctx, in); err != nil {
		return nil, err
	}
	if _, err := n.awaitIdle(ctx); err != nil { // a script that sleeps moves the clock
		return nil, err
	}
	out := n.output(&batch.Metrics{}, before)
	out.inLogs = in.logs
	return out, nil
}

// wanted is what a text says that should come out.
type wanted struct {
	samples []row
	logs    []string
}

// want reads what should come out of the component.
func (n *testNode) want(text string) (w wanted, err error) {
	samples, logs := sorted(text, n.sends)
	b, err := batch.ParseText(samples, batch.TextOptions{T: n.now()})
	if err != nil {
		return w, err
	}
	l, err := batch.ParseLogsText(logs, batch.TextOptions{T: n.nanos()})
	if err != nil {
		return w, err
	}
	return wanted{rows(n.now(), b), logRows(n.nanos(), l)}, nil
}

// wanted is the output as what should come out.
func (o *output) wanted() wanted {
	return wanted{rows(o.t, o.batches...), logRows(o.nanos, o.logs...)}
}

// difference compares what came out with what should have: samples in any
// order, lines in that of their batches.
func (o *output) difference(w wanted, exact bool) string {
	return compare(w.samples, rows(o.t, o.batches...), exact) + lineDiff(w.logs, logRows(o.nanos, o.logs...))
}

// logRows are lines in text form.
func logRows(now int64, bs ...*batch.Logs) (out []string) {
	for _, b := range bs {
		for l := range strings.Lines(string(batch.AppendLogsTextAt(nil, b, now))) {
			out = append(out, strings.TrimSuffix(l, "\n"))
		}
	}
	return out
}

// withoutAddedLogs are the lines that came out, without labels that were added
// to those that went in: the same one by one, as far as there are as many.
func (o *output) withoutAddedLogs() []string {
	var out []string
	row := 0
	for _, b := range o.logs {
		for i, s := range b.Stream {
			one := b.Rows([]int{i})
			if row < o.inLogs.Len() && contains(s, o.inLogs.Stream[row]) {
				one.Stream[0] = o.inLogs.Stream[row]
			}
			out = append(out, logRows(o.nanos, one)...)
			row++
		}
	}
	return out
}

// changed is what unchanged complains of, "" for nothing.
func (o *output) changed() string {
	if o.inLogs == nil {
		return compare(rows(o.t, o.in), o.withoutAdded(), true)
	}
	return lineDiff(logRows(o.nanos, o.inLogs), o.withoutAddedLogs()) + compare(nil, rows(o.t, o.batches...), true)
}

// logRecord is a line of an output as a table.
func logRecord(b *batch.Logs, i int) scripting.Value {
	m := scripting.NewMap()
	m.Set("line", b.Line[i])
	labels, meta := scripting.NewMap(), scripting.NewMap()
	for n, v := range b.Stream[i].Labels() {
		labels.Set(n, v)
	}
	for _, l := range b.MetaOf(i) {
		meta.Set(l.Name, l.Value)
	}
	m.Set("labels", labels)
	m.Set("metadata", meta)
	ms := b.T[i] / 1_000_000
	if b.T[i]%1_000_000 < 0 {
		ms--
	}
	m.Set("time", ms)
	m.Set("ts", fmt.Sprint(b.T[i]))
	return m
}

// logMethods are methods of what came out that are about lines.
var logMethods = []scripting.Function{
	{Name: "lines", Doc: "The log lines in order, without labels and timestamps.", Result: scripting.Result{Kind: scripting.KindList},
		Fn: func(a []scripting.Value) (scripting.Value, error) {
			var lines []string
			for _, b := range a[0].(*output).logs {
				lines = append(lines, b.Line...)
			}
			return stringList(lines), nil
		}},
	{Name: "streams", Doc: "The streams of the log lines in the text format, sorted and without duplicates.", Result: scripting.Result{Kind: scripting.KindList},
		Fn: func(a []scripting.Value) (scripting.Value, error) {
			var all []string
			for _, b := range a[0].(*output).logs {
				for _, s := range b.Stream {
					all = append(all, string(batch.AppendStream(nil, s)))
				}
			}
			slices.Sort(all)
			return stringList(slices.Compact(all)), nil
		}},
}
