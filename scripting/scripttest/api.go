package scripttest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/node"
)

// api is what the test file of a session may call.
func (s *session) api() *scripting.TestAPI {
	api := &scripting.TestAPI{
		Tables: []*scripting.Module{fixtures(), generators()},
		Weir: &scripting.Module{
			Name: "weir.test",
			Doc:  "Components under test.",
			Funcs: append([]scripting.Function{{
				Name: "component",
				Doc: "Builds a component as its block in a config would. file is the path of the script, relative to the folder of the test, or a block name. " +
					"args are the attributes of the block, and its blocks, such as script; one that may be repeated is a list. They are checked as in a config. " +
					`time is where its clock begins, such as "2025-06-01T12:00:00Z"; the default is 2025-01-01T00:00:00Z. ` +
					"A component made in a test ends with it, one made outside lives for the whole file.",
				Params: []scripting.Param{{Name: "file", Kind: scripting.KindString}, {Name: "args", Kind: scripting.KindAny, Optional: true}, {Name: "time", Kind: scripting.KindString, Optional: true}},
				Result: scripting.Result{Kind: scripting.KindObject, Type: s.componentType()},
				Fn: func(a []scripting.Value) (scripting.Value, error) {
					at := began
					if text, ok := a[2].(string); ok {
						var err error
						if at, err = clockTime(text); err != nil {
							return nil, err
						}
					}
					n, err := s.open(a[0].(string), a[1], at)
					if err != nil {
						return nil, err
					}
					return &scripting.Object{Type: s.componentType(), Data: n}, nil
				},
			}, s.pipelineFunc()}, s.mockFuncs()...),
			Types: []*scripting.ObjectType{s.componentType(), s.pipelineType(), s.sinkType(), batchType, answerType, mocksType, generatorType},
		},
		Same: func(want, got scripting.Value) error { return checkSame(nil, []scripting.Value{want, got}) },
		Fail: fail,
		Snapshot: func(got scripting.Value, shown, name string) error {
			if got != nil {
				shown = snapshotText(got, s.words)
			}
			return s.snapshot(shown, name)
		},
		Pend: func(why string) error { return &pendingError{why} },
		Print: func(pos, line string) {
			s.output.add(strings.TrimPrefix(pos+": ", ": ") + line)
		},
	}
	refused := refusedOfBusted
	if s.words == scripting.Vitest {
		s.vitest(api)
		refused = refusedOfVitest
	} else {
		s.busted(api)
	}
	api.Unknown = func(name string, globals []string) string {
		if instead, ok := refused[name]; ok {
			return instead
		}
		return config.DidYouMean(name, globals)
	}
	return api
}

// fail is the error of an assertion that does not hold.
func fail(msg, want, got string) error {
	return &Failure{Msg: msg, Diff: lineDiff(splitLines(want), splitLines(got))}
}

// pendingError ends a test that says that it is pending.
type pendingError struct{ why string }

func (e *pendingError) Error() string { return "pending: " + e.why }

// scriptFailure is an error in the script under test, on its way through the
// test that met it.
type scriptFailure struct{ err *scripting.Error }

func (e *scriptFailure) Error() string { return "the script failed: " + e.err.Error() }

// Unwrap returns the script's error.
func (e *scriptFailure) Unwrap() error { return e.err }

// componentType is what weir.test.component returns.
func (s *session) componentType() *scripting.ObjectType {
	if s.componentKind != nil {
		return s.componentKind
	}
	text := scripting.Param{Name: "text", Kind: scripting.KindString, Doc: "Metrics in the text format of a scrape."}
	t := &scripting.ObjectType{
		Name: "component", Doc: "A component under test. Its clock stands still and begins at 2025-01-01T00:00:00Z, unless the component is opened with another time.", New: "component",
		String: func(data any) string { return data.(*testNode).name },
	}
	t.Methods = []scripting.Function{
		{Name: "metrics", Doc: "Sends one batch and returns the output. An error in the script fails the test.",
			Params: []scripting.Param{text}, Result: scripting.Result{Kind: scripting.KindObject, Type: batchType},
			Fn: func(a []scripting.Value) (scripting.Value, error) {
				out, err := s.send(a[0].(*testNode), a[1].(string))
				if err != nil {
					return nil, err
				}
				if len(out.errors) > 0 {
					return nil, &scriptFailure{out.errors[0]}
				}
				return &scripting.Object{Type: batchType, Data: out}, nil
			}},
		{Name: "logs", Doc: "Sends one batch of log lines and returns the output. An error in the script fails the test.",
			Params: []scripting.Param{{Name: "text", Kind: scripting.KindString, Doc: `Lines in text form: {app="api"} the line.`}}, Result: scripting.Result{Kind: scripting.KindObject, Type: batchType},
			Fn: func(a []scripting.Value) (scripting.Value, error) {
				n := a[0].(*testNode)
				if n.accepts&batch.SignalLogs == 0 {
					return nil, fmt.Errorf("cannot send log lines: %s takes %s; what the script has logged is logged()", n.name, n.accepts)
				}
				out, err := s.send(n, a[1].(string))
				if err != nil {
					return nil, err
				}
				if len(out.errors) > 0 {
					return nil, &scriptFailure{out.errors[0]}
				}
				return &scripting.Object{Type: batchType, Data: out}, nil
			}},
		{Name: "failing", Doc: "Like metrics and logs, for a batch on which the script must fail. The output depends on script.on_error; its errors() returns the messages.",
			Params: []scripting.Param{text}, Result: scripting.Result{Kind: scripting.KindObject, Type: batchType},
			Fn: func(a []scripting.Value) (scripting.Value, error) {
				out, err := s.send(a[0].(*testNode), a[1].(string))
				if err != nil {
					return nil, err
				}
				if len(out.errors) == 0 {
					return nil, &Failure{Msg: "the script did not fail"}
				}
				return &scripting.Object{Type: batchType, Data: out}, nil
			}},
		{Name: "unchanged", Doc: "Sends one batch of samples or log lines and fails unless the output contains exactly these records, unchanged: values bit for bit, times, exemplars and metadata. Only labels may be added.",
			Params: []scripting.Param{text},
			Fn: func(a []scripting.Value) (scripting.Value, error) {
				if n := a[0].(*testNode); n.sends == 0 {
					return nil, fmt.Errorf("cannot tell what %s leaves unchanged: it sends nothing on", n.name)
				}
				out, err := s.send(a[0].(*testNode), a[1].(string))
				if err != nil {
					return nil, err
				}
				if len(out.errors) > 0 {
					return nil, &scriptFailure{out.errors[0]}
				}
				if diff := out.changed(); diff != "" {
					return nil, &Failure{Msg: "the batch was changed", Diff: diff}
				}
				return nil, nil
			}},
		{Name: "advance", Doc: `Sets the clock forward, "30s" or a number of seconds, and returns what timers (every) send meanwhile. An error in them fails the test.`,
			Params: []scripting.Param{{Name: "by", Kind: scripting.KindAny}}, Result: scripting.Result{Kind: scripting.KindObject, Type: batchType},
			Fn: func(a []scripting.Value) (scripting.Value, error) {
				d, err := duration(a[1])
				if err != nil {
					return nil, err
				}
				n := a[0].(*testNode)
				if err := cmp.Or(s.usable(n), s.chaos.replaceVMs(s.ctx, n)); err != nil {
					return nil, err
				}
				out, err := n.advance(s.ctx, d)
				if err := cmp.Or(s.mocks.takeDenied(), err); err != nil {
					return nil, err
				}
				if len(out.errors) > 0 {
					return nil, &scriptFailure{out.errors[0]}
				}
				out.typ = batchType
				return &scripting.Object{Type: batchType, Data: out}, nil
			}},
		s.requestMethod(),
		{Name: "state", Doc: "Returns the contents of a piece of ctx.state: a table by key, the sorted keys of a set, or the values of a queue.",
			Params: []scripting.Param{{Name: "name", Kind: scripting.KindString}}, Result: scripting.Result{Kind: scripting.KindAny},
			Fn: func(a []scripting.Value) (scripting.Value, error) {
				n := a[0].(*testNode)
				if err := s.usable(n); err != nil {
					return nil, err
				}
				c, ok := n.comp.(*node.Component)
				if !ok {
					return nil, fmt.Errorf("%s has no state", n.name)
				}
				return c.StateOf(a[1].(string))
			}},
		{Name: "set_state", Doc: "Replaces the contents of a piece of ctx.state. They are as state returns them: a table by key, the keys of a set, or the values of a queue.",
			Params: []scripting.Param{{Name: "name", Kind: scripting.KindString}, {Name: "contents", Kind: scripting.KindAny}},
			Fn: func(a []scripting.Value) (scripting.Value, error) {
				n := a[0].(*testNode)
				if err := s.usable(n); err != nil {
					return nil, err
				}
				c, ok := n.comp.(*node.Component)
				if !ok {
					return nil, fmt.Errorf("%s has no state", n.name)
				}
				return nil, c.SetStateOf(a[1].(string), a[2])
			}},
		{Name: "reload", Doc: "Reloads the component as if the script had been saved: a new instance with new VMs takes over the state of the old one.",
			Fn: func(a []scripting.Value) (scripting.Value, error) {
				n := a[0].(*testNode)
				if err := s.usable(n); err != nil {
					return nil, err
				}
				n.begin()
				err := n.reload(s.ctx, false)
				return nil, cmp.Or(s.mocks.takeDenied(), err, n.failure())
			}},
		{Name: "stop", Doc: "Stops the component, which runs teardown. Open blocks are stopped automatically.",
			Fn: func(a []scripting.Value) (scripting.Value, error) {
				n := a[0].(*testNode)
				if err := s.usable(n); err != nil {
					return nil, err
				}
				n.begin()
				n.stop()
				return nil, n.failure()
			}},
		{Name: "now", Doc: "The time of the clock in Unix ms. Samples without a timestamp get this time.", Result: scripting.Result{Kind: scripting.KindInt},
			Fn: func(a []scripting.Value) (scripting.Value, error) { return a[0].(*testNode).now(), nil }},
		{Name: "logged", Doc: "The lines that the script has logged with ctx.log since the last call of logged.", Result: scripting.Result{Kind: scripting.KindList},
			Fn: func(a []scripting.Value) (scripting.Value, error) {
				return stringList(a[0].(*testNode).log.takeOutput().lines), nil
			}},
	}
	t.Methods = append(t.Methods, ownMetricsMethod(), s.drainMethod())
	t.Methods = append(t.Methods, s.sourceMethods()...)
	s.componentKind = t
	return t
}

// usable returns an error for a component that has ended.
func (s *session) usable(n *testNode) error {
	if n.over {
		return errors.New("cannot use this component: it was stopped, or the test that opened it is over; open it in before_each")
	}
	if s.ctx.Err() != nil {
		return context.Cause(s.ctx)
	}
	return nil
}

// failure is the first error in the script since begin, nil for none.
func (n *testNode) failure() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.errors) == 0 {
		return nil
	}
	return &scriptFailure{n.errors[0]}
}

// send sends a batch through a component that has not ended.
func (s *session) send(n *testNode, text string) (*output, error) {
	if err := cmp.Or(s.usable(n), s.chaos.replaceVMs(s.ctx, n)); err != nil {
		return nil, err
	}
	if n.accepts == 0 {
		return nil, fmt.Errorf("cannot send a batch to %s: it is a source, which takes none; poll it, or send it a request", n.name)
	}
	in, err := n.read(text)
	if err != nil {
		return nil, err
	}
	if k := &s.known[n.known]; len(k.sent) < maxSent && len(text) < maxKept {
		k.sent = append(k.sent, text)
	}
	out, err := n.sendAny(s.ctx, in)
	if out != nil {
		out.typ = batchType
	}
	return out, cmp.Or(s.mocks.takeDenied(), err)
}

func duration(v scripting.Value) (time.Duration, error) {
	d := time.Duration(-1)
	if secs, ok := number(v); ok && secs <= maxAdvance.Seconds() {
		d = time.Duration(secs * float64(time.Second))
	} else if text, ok := v.(string); ok {
		if parsed, err := time.ParseDuration(text); err == nil {
			d = parsed
		}
	}
	if d < 0 || d > maxAdvance {
		return 0, fmt.Errorf(`cannot set the clock forward by %s: write a duration such as "30s", or seconds, up to a year`, show(v))
	}
	return d, nil
}

const maxAdvance = 366 * 24 * time.Hour

// batchType is what a component made of a batch.
var batchType = &scripting.ObjectType{
	Name: "batch", Doc: "The output of a component. #out is the number of records, and out[i] is one of them, as returned by records().",
	New:    "component",
	String: func(data any) string { return data.(*output).text() },
	Len:    func(data any) int { return data.(*output).len() },
	Index:  func(data any, i int) scripting.Value { return data.(*output).record(i) },
	Methods: []scripting.Function{
		{Name: "text", Doc: "All records in the text format, without timestamps that equal the clock.", Result: scripting.Result{Kind: scripting.KindString},
			Fn: func(a []scripting.Value) (scripting.Value, error) { return a[0].(*output).text(), nil }},
		{Name: "records", Doc: "An iterator over the records, which are tables: of samples with name, type, help, labels, value, time and stale, and with histogram for a native histogram in the text format; of log lines with line, labels, metadata, time and ts.",
			Fn: func(a []scripting.Value) (scripting.Value, error) {
				out, i := a[0].(*output), -1
				return scripting.Sequence(func() (scripting.Value, bool) {
					if i++; i >= out.len() {
						return nil, false
					}
					return out.record(i), true
				}), nil
			}},
		{Name: "value", Doc: `The value of a series such as up{job="api"}; nil if it does not exist.`,
			Params: []scripting.Param{{Name: "series", Kind: scripting.KindString}}, Result: scripting.Result{Kind: scripting.KindNumber, Optional: true},
			Fn: func(a []scripting.Value) (scripting.Value, error) { return value(a[0].(*output), a[1].(string)) }},
		{Name: "series", Doc: "The series in the text format, sorted and without duplicates.", Result: scripting.Result{Kind: scripting.KindList},
			Fn: func(a []scripting.Value) (scripting.Value, error) {
				return a[0].(*output).distinct((*batch.Series).String), nil
			}},
		{Name: "names", Doc: "The names of the metrics, sorted and without duplicates.", Result: scripting.Result{Kind: scripting.KindList},
			Fn: func(a []scripting.Value) (scripting.Value, error) {
				return a[0].(*output).distinct((*batch.Series).Name), nil
			}},
		{Name: "label_values", Doc: "The values of a label, sorted and without duplicates.",
			Params: []scripting.Param{{Name: "label", Kind: scripting.KindString}}, Result: scripting.Result{Kind: scripting.KindList},
			Fn: func(a []scripting.Value) (scripting.Value, error) {
				return a[0].(*output).distinct(func(s *batch.Series) string { return s.Label(a[1].(string)) }), nil
			}},
		logMethods[0], logMethods[1],
		routedMethod, outcomeMethod,
		{Name: "dropped", Doc: `How many samples were dropped: by the script, or with reason "script_error" by an error in it.`,
			Params: []scripting.Param{{Name: "reason", Kind: scripting.KindString, Optional: true}}, Result: scripting.Result{Kind: scripting.KindInt},
			Fn: func(a []scripting.Value) (scripting.Value, error) {
				var total uint64
				for reason, n := range a[0].(*output).dropped {
					if a[1] == nil || a[1] == reason {
						total += n
					}
				}
				return int64(total), nil
			}},
		{Name: "errors", Doc: "The messages of the errors in the script, with their positions.", Result: scripting.Result{Kind: scripting.KindList},
			Fn: func(a []scripting.Value) (scripting.Value, error) {
				var msgs []string
				for _, e := range a[0].(*output).errors {
					msgs = append(msgs, fmt.Sprintf("%s: in %s: %v", e.Pos(), e.Hook, e.Err))
				}
				return stringList(msgs), nil
			}},
	},
}

func stringList(ss []string) *scripting.List {
	l := &scripting.List{Items: make([]scripting.Value, len(ss))}
	for i, s := range ss {
		l.Items[i] = s
	}
	return l
}

// distinct returns what f says of the series, without "".
func (o *output) distinct(f func(s *batch.Series) string) *scripting.List {
	var all []string
	add := func(ss []*batch.Series) {
		for _, s := range ss {
			if v := f(s); v != "" {
				all = append(all, v)
			}
		}
	}
	for _, b := range o.batches {
		add(b.Series)
	}
	for _, b := range o.logs {
		add(b.Stream)
	}
	slices.Sort(all)
	return stringList(slices.Compact(all))
}

// record is a record of an output as a table.
func record(b *batch.Metrics, i int) scripting.Value {
	m := scripting.NewMap()
	m.Set("name", b.Series[i].Name())
	if meta := b.Series[i].Meta(); meta != nil {
		if meta.Type != "" {
			m.Set("type", string(meta.Type))
		}
		if meta.Help != "" {
			m.Set("help", meta.Help)
		}
	}
	labels := scripting.NewMap()
	for n, v := range b.Series[i].Labels() {
		if n != batch.NameLabel {
			labels.Set(n, v)
		}
	}
	m.Set("labels", labels)
	stale := batch.IsStale(b.V[i])
	m.Set("stale", stale)
	m.Set("time", b.T[i])
	for _, h := range b.Histograms {
		if h.Row == i {
			r := rows(b.T[i], b.Rows([]int{i}))[0]
			m.Set("histogram", r.sample)
			return m
		}
	}
	if stale {
		m.Set("value", math.NaN())
	} else {
		m.Set("value", b.V[i])
	}
	return m
}

// value returns the value of a series that is written as in text form.
func value(o *output, series string) (scripting.Value, error) {
	want, err := batch.ParseText(series+" 0", batch.TextOptions{})
	if err != nil || want.Len() != 1 {
		return nil, fmt.Errorf(`cannot read %q as a series: write it as up{job="api"}`, series)
	}
	var found scripting.Value
	for _, b := range o.batches {
		for i, s := range b.Series {
			if !s.Equal(want.Series[0]) {
				continue
			}
			if found != nil {
				return nil, fmt.Errorf("there is more than one value of %s", series)
			}
			found = b.V[i]
		}
	}
	return found, nil
}
