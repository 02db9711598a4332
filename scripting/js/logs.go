package js

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/dop251/goja"

	"github.com/weir-run/weir/engine/regex"
	"github.com/weir-run/weir/engine/view"
	"github.com/weir-run/weir/scripting"
)

func (v *vm) openLogs() {
	v.logBatch = v.openRows(&rowsHandle{logs: true}, named().logs, map[string]native{
		"dropWhere": v.dropWhere, "keepWhere": v.keepWhere,
		"setLabel": v.setLabel, "dropLabel": v.dropLabel, "renameLabel": v.renameLabel, "mapLabel": v.mapLabel,
		"setLine": v.setLine, "promote": v.promoteField,
		"json": v.jsonEach, "logfmt": v.logfmtEach, "match": v.matchEach,
		"filter": v.filterLines, "rows": v.lineRows, "set": v.setLineRow, "drop": v.drop,
		"each": v.eachLine, "records": v.lineRecords, "groupBy": v.groupBy, "text": v.logsText,
	})
	v.openLines()
}

// logs returns the batch of lines that a method was called on.
func (v *vm) logs(call goja.FunctionCall) *view.Logs {
	v.windowOf(call)
	if call.This != v.logBatch {
		v.raise(errors.New("cannot use a batch of samples as one of log lines"))
	}
	return v.lines
}

// readLines charges for a native operation that goes over the lines.
func (v *vm) readLines(m *view.Logs) {
	bytes := m.Batch().Bytes()
	v.budget.native(bytes)
	v.must(v.budget.charge(int64(m.Len()/8+bytes>>8) + 1))
}

func (v *vm) setLine(call goja.FunctionCall) goja.Value {
	m := v.logs(call)
	v.readLines(m)
	v.must(m.SetLineAll(v.stringArg(call, 0, "setLine", "template")))
	return goja.Undefined()
}

func (v *vm) promoteField(call goja.FunctionCall) goja.Value {
	m := v.logs(call)
	v.readLines(m)
	v.must(m.Promote(v.stringArg(call, 0, "promote", "field"), v.stringArg(call, 1, "promote", "label")))
	return goja.Undefined()
}

// projection is the fields of lines that a script names, and which of them is
// ts: a BigInt here.
type projection struct {
	*view.Projection
	nanos []int
}

func (v *vm) projection(m *view.Logs, kind string, names []string) projection {
	p, err := m.Projection(kind, names)
	v.must(err)
	out := projection{Projection: p}
	for i, name := range names {
		if name == "ts" && kind == "" {
			out.nanos = append(out.nanos, i)
		}
	}
	return out
}

// readCells puts the fields of a row into out.
func (v *vm) readCells(m *view.Logs, p projection, row int, out []goja.Value) {
	v.data.read = m.Read(p.Projection, row, v.data.read[:0])
	for i, c := range v.data.read {
		if c.Fixed != nil {
			out[i] = v.data.texts.fixed(c.Fixed)
		} else {
			out[i] = v.lineValue(c.Value, m.Line(row))
		}
	}
	for _, i := range p.nanos {
		out[i] = nanos(m.Nanos(row))
	}
}

// nanos is a time in Unix ns, which a number cannot hold.
func nanos(ns int64) goja.Value { return engine.ToValue(big.NewInt(ns)) }

// lineValue is what a line holds in a script: an integer that a number would
// round is a BigInt, its text beyond 64 bits, an object or a list JSON.
func (v *vm) lineValue(x view.Value, line string) goja.Value {
	switch x.Kind {
	case view.Missing:
		return goja.Undefined()
	case view.Number:
		if x.Exact() {
			return v.data.numbers.value(x.Num)
		}
		if n, err := strconv.ParseInt(x.Text, 10, 64); err == nil {
			return v.data.numbers.int(n)
		}
	case view.Bool:
		return boolOf(x.Text == "true")
	}
	return v.part(x.Text, line)
}

// part is a part of a text in a script.
func (v *vm) part(part, text string) goja.Value {
	if len(part) > shortText {
		part = v.sandbox.parts.Of(part, text)
	}
	return v.data.texts.value(part)
}

func (v *vm) filterLines(call goja.FunctionCall) goja.Value {
	m := v.logs(call)
	v.readLines(m)
	p := v.projection(m, "", v.fieldNames(call.Argument(0), "filter"))
	fn := v.callbackArg(call, 1, "filter")
	args := make([]goja.Value, p.Len())
	for i := m.Next(0); i >= 0; i = m.Next(i + 1) {
		v.readCells(m, p, i, args)
		if !v.keeps(fn(goja.FunctionCall{This: goja.Undefined(), Arguments: args})) {
			m.Drop(i)
		}
	}
	return goja.Undefined()
}

// jsonEach is batch.json(["level"], (level, record) => …).
func (v *vm) jsonEach(call goja.FunctionCall) goja.Value { return v.projectEach(call, "json") }

// logfmtEach is batch.logfmt(["level"], (level, record) => …).
func (v *vm) logfmtEach(call goja.FunctionCall) goja.Value { return v.projectEach(call, "logfmt") }

func (v *vm) projectEach(call goja.FunctionCall, kind string) goja.Value {
	m := v.logs(call)
	v.readLines(m)
	p := v.projection(m, kind, v.fieldNames(call.Argument(0), kind))
	fn := v.callbackArg(call, 1, kind)
	n := p.Len()
	wants := takes(call.Argument(1), n+1)
	args := make([]goja.Value, n+1)
	v.eachRow(&m.Window, m, func(row int) {
		v.readCells(m, p, row, args)
		v.callLine(m, row, fn, args, n, wants)
	})
	return goja.Undefined()
}

// takes reports whether a function may read a parameter of that number: it
// names that many, or what it names does not tell, as with defaults, rest
// parameters and arguments.
func takes(fn goja.Value, n int) bool {
	o := fn.(*goja.Object)
	if length := o.Get("length"); length == nil || length.ToInteger() >= int64(n) {
		return true
	}
	text := o.String()
	params := "" // of x => …
	if i := strings.IndexAny(text, "(="); i >= 0 && text[i] == '(' {
		params = text[i:]
		if end := strings.IndexAny(params, ")="); end >= 0 {
			params = params[:end+1]
		}
	}
	return strings.Contains(text, "arguments") || strings.ContainsAny(params, ".=[{")
}

// callLine calls fn with the first n of args, and with the record behind them
// if it takes one. false drops the row, true and nothing keep it.
func (v *vm) callLine(m *view.Logs, row int, fn native, args []goja.Value, n int, record bool) {
	if record {
		args[n] = v.newLine(row).hosted.value()
		n++
	}
	x := fn(goja.FunctionCall{This: goja.Undefined(), Arguments: args[:n]})
	if keep, ok := boolean(x); ok {
		if !keep {
			m.Drop(row)
		}
		return
	}
	if !absentValue(x) {
		v.raise(fmt.Errorf("cannot use %s as an answer: the function returns false to drop the record, else nothing", kindOf(x)))
	}
}

// matchEach is batch.match(re, (group, record) => …), called for the lines that
// match.
func (v *vm) matchEach(call goja.FunctionCall) goja.Value {
	m := v.logs(call)
	v.readLines(m)
	re, fn := v.patternArg(call.Argument(0), "match"), v.callbackArg(call, 1, "match")
	var args []goja.Value
	wants := false
	v.eachRow(&m.Window, m, func(row int) {
		text := m.Line(row)
		at := v.find(re, text)
		if at == nil {
			return
		}
		if args == nil { // all matches have as many groups
			wants = takes(call.Argument(1), max(2, len(at)/2))
		}
		args = append(v.groups(args[:0], text, at), nil)
		v.callLine(m, row, fn, args, len(args)-1, wants)
	})
	return goja.Undefined()
}

// patternArg is a regular expression that a script passes: its text, or what
// re.compile made.
func (v *vm) patternArg(x goja.Value, method string) scripting.Pattern {
	if o, ok := boxed(x).(*scripting.Object); ok {
		if re, ok := o.Data.(scripting.Pattern); ok {
			return re
		}
	}
	src, ok := stringOf(x)
	if o, is := x.(*goja.Object); is && o.ClassName() == "RegExp" {
		v.raise(fmt.Errorf("cannot match by a RegExp of JavaScript: write its text, as in %q, or what re.compile of weir/re returns", o.Get("source").String()))
	}
	if !ok {
		v.typeError(method, "pattern", x, "a string, or what re.compile returned")
	}
	re, err := v.data.patterns.Compile(v.prog.stdlib, src)
	v.must(err)
	return re
}

func (v *vm) find(re scripting.Pattern, text string) []int {
	v.budget.native(len(text))
	v.must(v.budget.charge(int64(len(text)>>5) + 2))
	at, err := re.FindSubmatchIndex(text, regex.Guard{Steps: regex.MaxSteps, Check: v.budget.stopped})
	v.must(err)
	return at
}

// groups appends the groups of a match, or all of it when there are none; a
// group that took no part is undefined.
func (v *vm) groups(out []goja.Value, text string, at []int) []goja.Value {
	if len(at) == 2 {
		return append(out, v.part(text[at[0]:at[1]], text))
	}
	for i := 2; i < len(at); i += 2 {
		if at[i] < 0 {
			out = append(out, goja.Undefined())
		} else {
			out = append(out, v.part(text[at[i]:at[i+1]], text))
		}
	}
	return out
}

func (v *vm) eachLine(call goja.FunctionCall) goja.Value {
	m := v.logs(call)
	fn := v.callbackArg(call, 0, "each")
	args := make([]goja.Value, 1)
	v.eachRow(&m.Window, m, func(row int) {
		args[0] = v.newLine(row).hosted.value()
		v.atOnce(fn(goja.FunctionCall{This: goja.Undefined(), Arguments: args}))
	})
	return goja.Undefined()
}

func (v *vm) lineRows(call goja.FunctionCall) goja.Value {
	m := v.logs(call)
	v.readLines(m)
	p := v.projection(m, "", v.names(call))
	return v.iterateRows(&m.Window, "rows", func(row int) goja.Value {
		r := v.newRow(1 + p.Len())
		r.values[0] = v.data.numbers.int(int64(row))
		v.readCells(m, p, row, r.values[1:])
		return r.hosted.value()
	})
}

func (v *vm) lineRecords(call goja.FunctionCall) goja.Value {
	m := v.logs(call)
	return v.iterateRows(&m.Window, "records", func(row int) goja.Value { return v.newLine(row).hosted.value() })
}

// setLineRow is batch.set(i, field, value) and batch.set(i, { field: value }).
func (v *vm) setLineRow(call goja.FunctionCall) goja.Value {
	m := v.logs(call)
	i := v.rowNumber(&m.Window, call.Argument(0))
	v.setRow(call, func(field string, x goja.Value) {
		if name, ok := strings.CutPrefix(field, "labels."); ok {
			v.must(m.SetLabel(i, name, v.labelValue(x, name)))
		} else if name, ok := strings.CutPrefix(field, "meta."); ok {
			v.must(m.SetMeta(i, name, v.labelValue(x, name)))
		} else {
			v.setLineField(i, field, x, true)
		}
	})
	return goja.Undefined()
}

func (v *vm) logsText(call goja.FunctionCall) goja.Value {
	m := v.logs(call)
	v.must(v.budget.charge(int64(m.Len()) * 10))
	var out []byte
	for i := m.Next(0); i >= 0; i = m.Next(i + 1) {
		if out = m.Text(out, i); len(out) > scripting.MaxString {
			break // made says so
		}
	}
	return v.hostString(string(out))
}
