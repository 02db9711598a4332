package lua

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"strconv"

	lua "github.com/yuin/gopher-lua"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/view"
	"github.com/weir-run/weir/scripting/api"
	"github.com/weir-run/weir/scripting/operation"
)

// line is a script's handle of one row of a batch of log lines; what record is
// for samples.
type line struct {
	ud, labels, metadata lua.LUserData
	v                    *vm
	row                  int
	epoch                uint64
}

func (v *vm) newLine(row int) *line {
	if len(v.handles.lines) == 0 {
		v.handles.lines = make([]line, recordBlock)
	}
	r := &v.handles.lines[0]
	v.handles.lines = v.handles.lines[1:]
	r.v, r.row, r.epoch = v, row, v.call.logs.Epoch()
	r.ud.Value, r.ud.Metatable = r, v.values.mt.line
	r.labels.Value, r.labels.Metatable = r, v.values.mt.labels
	return r
}

func (r *line) check(L *lua.LState) *view.Logs {
	if r.v.call.logs == nil || r.v.call.logs.Epoch() != r.epoch {
		r.v.raise(L, errLate)
	}
	return r.v.call.logs
}

func (r *line) label(L *lua.LState, name string) string { return r.check(L).Label(r.row, name) }
func (r *line) setLabel(L *lua.LState, name, value string) error {
	return r.check(L).SetLabel(r.row, name, value)
}
func (r *line) all(L *lua.LState) iter.Seq2[string, string] { return r.check(L).Labels(r.row) }

// lineMeta is the metadata of a line, which reads and writes as labels do.
type lineMeta struct{ *line }

func (m lineMeta) label(L *lua.LState, name string) string { return m.check(L).MetaValue(m.row, name) }
func (m lineMeta) setLabel(L *lua.LState, name, value string) error {
	return m.check(L).SetMeta(m.row, name, value)
}
func (m lineMeta) all(L *lua.LState) iter.Seq2[string, string] { return m.check(L).MetaAll(m.row) }

// copiedLine is what copy() of a line returns: a record of the script's own.
type copiedLine struct {
	rec              view.LogRecord
	labels, metadata *lua.LUserData
}

// ownLabels are the labels or the metadata of a copy.
type ownLabels struct{ of *view.Pairs }

func own(ls *[]batch.Label) ownLabels { return ownLabels{(*view.Pairs)(ls)} }

func (o ownLabels) label(_ *lua.LState, name string) string { return o.of.Get(name) }
func (o ownLabels) setLabel(_ *lua.LState, name, value string) error {
	o.of.Set(name, value)
	return nil
}
func (o ownLabels) all(*lua.LState) iter.Seq2[string, string] { return o.of.All() }

func (v *vm) newCopiedLine(rec view.LogRecord) *lua.LUserData {
	c := &copiedLine{rec: rec}
	c.labels = &lua.LUserData{Value: own(&c.rec.Labels), Metatable: v.values.mt.labels}
	c.metadata = &lua.LUserData{Value: own(&c.rec.Meta), Metatable: v.values.mt.labels}
	return &lua.LUserData{Value: c, Metatable: v.values.mt.lineCopy}
}

// shortText is how many bytes a part of a line may have to be taken for one that
// comes again.
const shortText = 64

func (vs *values) text(s string) lua.LValue {
	if len(s) <= shortText {
		return boxString(vs.texts.Short(s))
	}
	return boxString(vs.texts.Long(s))
}

// part is a part of a text in a script.
func (vs *values) part(part, text string) lua.LValue {
	if len(part) <= shortText {
		return boxString(vs.texts.Short(part))
	}
	return boxString(vs.texts.Long(vs.parts.Of(part, text)))
}

// cell is a field of a line in a script.
func (v *vm) cell(c view.Cell, line string) lua.LValue {
	if c.Fixed != nil {
		return boxString(c.Fixed)
	}
	return v.lineValue(c.Value, line)
}

// lineValue is what a line holds in a script: an integer that a number would
// round is its text, an object or a list JSON.
func (v *vm) lineValue(x view.Value, line string) lua.LValue {
	switch x.Kind {
	case view.Missing:
		return lua.LNil
	case view.Number:
		if x.Exact() {
			return v.values.numbers.value(x.Num)
		}
	case view.Bool:
		return lua.LBool(x.Text == "true")
	}
	return v.values.part(x.Text, line)
}

func (v *vm) lineText(m *view.Logs, row int) lua.LValue {
	if p := m.FixedLine(row); p != nil {
		return boxString(p)
	}
	return v.values.text(m.Line(row))
}

// openLines creates the metatables of log lines and of their copies.
func (v *vm) openLines(mt func(index, newindex, tostring lua.LGFunction) *lua.LTable) {
	methods := v.bindOperations(api.Get().Line, func(L *lua.LState, c *operation.Call) {
		r := self[*line](v, L, "a record")
		m := r.check(L)
		c.Window, c.Metrics, c.Logs, c.Record = &m.Window, nil, m, r.row
	})
	v.values.mt.line = mt(func(L *lua.LState) int {
		r := self[*line](v, L, "a record")
		m := r.check(L)
		key, _ := L.Get(2).(lua.LString)
		switch key {
		case "line":
			L.Push(v.lineText(m, r.row))
		case "labels":
			L.Push(&r.labels)
		case "metadata":
			if r.metadata.Value == nil {
				r.metadata.Value, r.metadata.Metatable = lineMeta{r}, v.values.mt.labels
			}
			L.Push(&r.metadata)
		case "time":
			L.Push(v.values.numbers.value(float64(m.Time(r.row))))
		case "ts":
			L.Push(lua.LString(m.TS(r.row)))
		default:
			if f := methods.find(key); f != nil {
				L.Push(f)
				break
			}
			v.raise(L, api.Unknown(api.Get().Line, L.Get(2).String()))
		}
		return 1
	}, func(L *lua.LState) int {
		r := self[*line](v, L, "a record")
		r.check(L)
		v.setLineField(L, r.row, L.Get(2).String(), L.Get(3), false)
		return 0
	}, func(L *lua.LState) int {
		r := self[*line](v, L, "a record")
		v.pushString(L, r.check(L).RowText(r.row))
		return 1
	})
	v.values.mt.lineCopy = mt(v.copiedLineIndex, func(L *lua.LState) int {
		c := self[*copiedLine](v, L, "a record")
		v.setLogRecord(L, &c.rec, L.Get(2).String(), L.Get(3))
		return 0
	}, func(L *lua.LState) int {
		L.Push(lua.LString("record"))
		return 1
	})
	v.openStream(mt)
}

func (v *vm) copiedLineIndex(L *lua.LState) int {
	c := self[*copiedLine](v, L, "a record")
	switch key := L.Get(2).String(); key {
	case "line":
		v.pushString(L, c.rec.Line)
	case "labels":
		L.Push(c.labels)
	case "metadata":
		L.Push(c.metadata)
	case "time":
		L.Push(lua.LNumber(c.rec.Time()))
	case "ts":
		L.Push(lua.LString(strconv.FormatInt(c.rec.T, 10)))
	default:
		v.raise(L, api.Unknown(api.Get().LineCopy, key))
	}
	return 1
}

func (v *vm) openStream(mt func(index, newindex, tostring lua.LGFunction) *lua.LTable) {
	h := seriesHandle{v}
	labels := &lua.LUserData{Value: h, Metatable: v.values.mt.labels}
	methods := v.bindOperations(api.Get().Stream, func(L *lua.LState, c *operation.Call) {
		c.Series = self[seriesHandle](v, L, "a stream").check(L)
	})
	v.args.stream = &lua.LUserData{Value: h, Metatable: mt(func(L *lua.LState) int {
		self[seriesHandle](v, L, "a stream").check(L)
		switch key := L.Get(2).String(); key {
		case "labels":
			L.Push(labels)
		case "line", "metadata", "time", "ts":
			v.raise(L, fmt.Errorf("cannot read %s in stream: the hook sees labels only, because what it decides is remembered for the stream; use logs", key))
		default:
			if f := methods.find(lua.LString(key)); f != nil {
				L.Push(f)
				break
			}
			v.raise(L, api.Unknown(api.Get().Stream, key))
		}
		return 1
	}, func(L *lua.LState) int {
		self[seriesHandle](v, L, "a stream").check(L)
		if key := L.Get(2).String(); key != "labels" {
			v.raise(L, api.CannotSet(api.Get().Stream, key))
		}
		v.setLabels(L, h, L.Get(3))
		return 0
	}, func(L *lua.LState) int {
		v.pushString(L, "stream "+v.labelsText(L, h))
		return 1
	})}
}

// setLineField sets a field of a row; label says that other names are labels.
func (v *vm) setLineField(L *lua.LState, row int, field string, x lua.LValue, label bool) {
	m := v.call.logs
	switch field {
	case "line":
		v.must(L, m.SetLine(row, v.lineArg(L, x)))
	case "time":
		v.must(L, m.SetTime(row, v.timeArg(L, x)))
	case "ts":
		v.must(L, m.SetTS(row, v.tsArg(L, x)))
	case "labels":
		v.setLabels(L, v.newLine(row), x)
	case "metadata":
		v.setPairs(L, "metadata", lineMeta{v.newLine(row)}, x)
	default:
		if !label {
			v.raise(L, api.CannotSet(api.Get().Line, field))
		}
		v.must(L, m.SetLabel(row, field, v.labelValue(L, x, field)))
	}
}

// setLogRecord sets a field of a line that is to be emitted.
func (v *vm) setLogRecord(L *lua.LState, r *view.LogRecord, field string, x lua.LValue) {
	switch field {
	case "line":
		r.Line = v.lineArg(L, x)
	case "time":
		v.must(L, r.SetTime(v.timeArg(L, x)))
	case "ts":
		v.must(L, r.SetTS(v.tsArg(L, x)))
	case "labels":
		v.setLabels(L, own(&r.Labels), x)
	case "metadata":
		v.setPairs(L, "metadata", own(&r.Meta), x)
	default:
		v.raise(L, api.CannotSet(api.Get().LineCopy, field))
	}
}

func (v *vm) lineArg(L *lua.LState, x lua.LValue) string {
	s, ok := x.(lua.LString)
	if !ok {
		v.raise(L, fmt.Errorf("cannot set line to a %s: it must be a string", x.Type()))
	}
	return string(s)
}

func (v *vm) timeArg(L *lua.LState, x lua.LValue) int64 {
	n, ok := x.(lua.LNumber)
	if !ok || float64(n) != math.Trunc(float64(n)) || math.Abs(float64(n)) > 1<<53 {
		v.raise(L, fmt.Errorf("cannot set time to a %s: it must be a whole number of milliseconds", x.Type()))
	}
	return int64(n)
}

func (v *vm) tsArg(L *lua.LState, x lua.LValue) string {
	s, ok := x.(lua.LString)
	if !ok {
		v.raise(L, fmt.Errorf("cannot set ts to a %s: it is Unix ns in a string, which a number cannot hold; time takes Unix ms", x.Type()))
	}
	return string(s)
}

// emitLine is ctx.emit of a log record.
func (v *vm) emitLine(L *lua.LState, way int, rec view.LogRecord) {
	m := v.call.outLogs
	if m == nil {
		v.raise(L, v.notSent("log records", "logs"))
	}
	v.must(L, v.budget.charge(int64(len(rec.Line)>>7)))
	v.must(L, m.EmitTo(way, rec))
}

// notSent is the error of emitting what the script does not send.
func (v *vm) notSent(what, signal string) error {
	if !v.call.canEmit() {
		return errors.New("cannot use ctx.emit here: it is for metrics, logs, every, poll, run and http")
	}
	return fmt.Errorf(`cannot emit %s: the script does not send %s; add sends = { "metrics", "logs" } to its definition`, what, signal)
}

// lineTable reads a table as a log record.
func (v *vm) lineTable(L *lua.LState, t *lua.LTable) view.LogRecord {
	rec := view.LogRecord{T: v.call.params.Now.UnixNano()}
	if m := v.call.logs; m != nil && m.Batch().Len() > 0 {
		rec.T = m.Batch().T[0]
	}
	for k, x := range entries(t) {
		v.setLogRecord(L, &rec, k.String(), x)
	}
	return rec
}
