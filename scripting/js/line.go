package js

import (
	"fmt"
	"iter"

	"github.com/dop251/goja"

	"github.com/weir-run/weir/engine/view"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/api"
	"github.com/weir-run/weir/scripting/operation"
)

// line is a script's handle of one row of a batch of log lines, as record is
// for samples.
type line struct {
	hosted
	labels, metadata labels // open when their v is set
	v                *vm
	row              int
	epoch            uint64
}

func (v *vm) newLine(row int) *line {
	if len(v.data.lines) == 0 {
		v.data.lines = make([]line, handleBlock)
	}
	r := &v.data.lines[0]
	v.data.lines = v.data.lines[1:]
	r.v, r.row, r.epoch = v, row, v.lines.Epoch()
	r.open(v.rt, v.data.proto.record, r)
	return r
}

func (r *line) check() *view.Logs {
	if r.v.lines == nil || r.v.lines.Epoch() != r.epoch {
		r.v.raise(errLate)
	}
	return r.v.lines
}

func (r *line) label(name string) string          { return r.check().Label(r.row, name) }
func (r *line) setLabel(name, value string) error { return r.check().SetLabel(r.row, name, value) }
func (r *line) all() iter.Seq2[string, string]    { return r.check().Labels(r.row) }

// lineMeta is the metadata of a line, which is read and written like labels.
type lineMeta struct{ *line }

func (m lineMeta) label(name string) string { return m.check().MetaValue(m.row, name) }
func (m lineMeta) setLabel(name, value string) error {
	return m.check().SetMeta(m.row, name, value)
}
func (m lineMeta) all() iter.Seq2[string, string] { return m.check().MetaAll(m.row) }

// Get returns a field or a method.
func (r *line) Get(name string) goja.Value {
	v, m := r.v, r.check()
	switch name {
	case "line":
		if p := m.FixedLine(r.row); p != nil {
			return v.data.texts.fixed(p)
		}
		return v.data.texts.value(m.Line(r.row))
	case "labels":
		if r.labels.v == nil {
			return r.labels.init(v, r)
		}
		return r.labels.value()
	case "metadata":
		if r.metadata.v == nil {
			return r.metadata.init(v, lineMeta{r})
		}
		return r.metadata.value()
	case "time":
		return v.data.numbers.int(m.Time(r.row))
	case "ts":
		return nanos(m.Nanos(r.row))
	}
	return v.member(named().line, name)
}

// Set sets a field.
func (r *line) Set(name string, x goja.Value) bool {
	r.check()
	r.v.setLineField(r.row, name, x, false)
	return true
}

// Has reports whether a record has a member of that name.
func (*line) Has(name string) bool { return has(named().line, name) }

// Delete refuses.
func (r *line) Delete(name string) bool {
	r.v.raise(fmt.Errorf("cannot delete %s of a record: set what can be set, or drop the record", name))
	return false
}

// Keys returns the names of the fields.
func (*line) Keys() []string { return scripting.Names(named().line.Fields) }

// openLines creates the methods of log records and of their copies.
func (v *vm) openLines() {
	ms := v.operations(named().line, func(call goja.FunctionCall, c *operation.Call) {
		r := self[*line](v, call, "a record")
		m := r.check()
		c.Window, c.Metrics, c.Logs, c.Record = &m.Window, nil, m, r.row
	})
	ms["toString"] = func(call goja.FunctionCall) goja.Value {
		r := self[*line](v, call, "a record")
		return v.data.texts.value(r.check().RowText(r.row))
	}
	v.openMethods(named().line, ms)
	v.openMethods(named().lineCopy, map[string]native{
		"toString": func(call goja.FunctionCall) goja.Value { return v.data.texts.value("record") },
	})
}

func (v *vm) newCopiedLine(rec view.LogRecord) goja.Value {
	c := &copiedLine{v: v, rec: rec}
	c.labels.init(v, ownPairs(&c.rec.Labels))
	c.metadata.init(v, ownPairs(&c.rec.Meta))
	return c.open(v.rt, v.data.proto.record, c)
}

// match returns the groups of a pattern's first match in a line as an array.
// Without groups, it returns the whole match. It returns undefined if the line
// does not match.
func (v *vm) match(re scripting.Pattern, text string) goja.Value {
	at := v.find(re, text)
	if at == nil {
		return goja.Undefined()
	}
	row := v.newRow(max(1, len(at)/2-1))
	v.groupsOf(row.values[:0], text, at)
	return row.hosted.value()
}

// setLineField sets a field of a row. label means that any other name is a
// label.
func (v *vm) setLineField(row int, field string, x goja.Value, label bool) {
	m := v.lines
	switch field {
	case "line":
		v.must(m.SetLine(row, v.stringField(field, x)))
	case "time":
		v.must(m.SetTime(row, v.timeField(x)))
	case "ts":
		v.must(m.SetTS(row, v.nanosField(x)))
	case "labels":
		v.setLabels(v.newLine(row), x)
	case "metadata":
		v.setPairs("metadata", lineMeta{v.newLine(row)}, x)
	default:
		if !label {
			v.raise(api.CannotSet(named().line, field))
		}
		v.must(m.SetLabel(row, field, v.labelValue(x, field)))
	}
}

// nanosField converts a time in Unix ns: a BigInt, or its digits.
func (v *vm) nanosField(x goja.Value) string {
	s, ok := stringOf(x)
	switch {
	case ok:
	case x != nil && goja.IsBigInt(x):
		s = x.String()
	default:
		v.raise(fmt.Errorf("cannot set ts to %s: it is Unix ns in a BigInt, as a number cannot hold it; time takes Unix ms", kindOf(x)))
	}
	return s
}

// copiedLine is the result of copy() of a line: a record that belongs to the
// script.
type copiedLine struct {
	hosted
	v                *vm
	rec              view.LogRecord
	labels, metadata labels
}

// Get returns a field.
func (c *copiedLine) Get(name string) goja.Value {
	switch name {
	case "line":
		return c.v.hostString(c.rec.Line)
	case "labels":
		return c.labels.value()
	case "metadata":
		return c.metadata.value()
	case "time":
		return c.v.data.numbers.int(c.rec.Time())
	case "ts":
		return nanos(c.rec.T)
	}
	return c.v.member(named().lineCopy, name)
}

// Set sets a field.
func (c *copiedLine) Set(name string, x goja.Value) bool {
	c.v.setLogRecord(&c.rec, name, x)
	return true
}

// Has reports whether a copy has a member of that name.
func (*copiedLine) Has(name string) bool { return has(named().lineCopy, name) }

// Delete refuses.
func (c *copiedLine) Delete(name string) bool {
	c.v.raise(fmt.Errorf("cannot delete %s of a record: set what can be set", name))
	return false
}

// heldBytes returns the size of a copy.
func (c *copiedLine) heldBytes() int { return c.rec.Held() }

// Keys returns the names of the fields.
func (*copiedLine) Keys() []string { return scripting.Names(named().lineCopy.Fields) }

// setLogRecord sets a field of a line that will be emitted.
func (v *vm) setLogRecord(r *view.LogRecord, field string, x goja.Value) {
	switch field {
	case "line":
		r.Line = v.stringField(field, x)
	case "time":
		v.must(r.SetTime(v.timeField(x)))
	case "ts":
		v.must(r.SetTS(v.nanosField(x)))
	case "labels":
		v.setLabels(ownPairs(&r.Labels), x)
	case "metadata":
		v.setPairs("metadata", ownPairs(&r.Meta), x)
	default:
		v.raise(api.CannotSet(named().lineCopy, field))
	}
}
