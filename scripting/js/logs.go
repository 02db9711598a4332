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
	"github.com/weir-run/weir/scripting/operation"
)

func (v *vm) openLogs() {
	t := named().logs
	v.logBatch = v.openRows(&rowsHandle{logs: true}, t, v.operations(t, func(call goja.FunctionCall, c *operation.Call) {
		m := v.logs(call)
		c.Window, c.Metrics, c.Logs = &m.Window, nil, m
	}))
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

// readCells reads the fields of a row into out. ts is a BigInt.
func (v *vm) readCells(m *view.Logs, f *operation.Fields, row int, out []goja.Value) {
	v.data.read = m.Read(f.Lines, row, v.data.read[:0])
	for i, c := range v.data.read {
		if c.Fixed != nil {
			out[i] = v.data.texts.fixed(c.Fixed)
		} else {
			out[i] = v.lineValue(c.Value, m.Line(row))
		}
	}
	for _, i := range f.Nanos {
		out[i] = nanos(m.Nanos(row))
	}
}

// nanos converts a time in Unix ns, which a number cannot represent exactly.
func nanos(ns int64) goja.Value { return engine.ToValue(big.NewInt(ns)) }

// lineValue converts a field of a line: an integer that a number cannot
// represent exactly is a BigInt, beyond 64 bits its text; an object or a list
// is JSON.
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

// part converts a part of a text.
func (v *vm) part(part, text string) goja.Value {
	if len(part) > shortText {
		part = v.sandbox.parts.Of(part, text)
	}
	return v.data.texts.value(part)
}

// takesParams reports whether a function may read a parameter with the given
// number: it declares that many, or this cannot be determined because of
// defaults, rest parameters or arguments.
func takesParams(fn goja.Value, n int) bool {
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

// callLine calls fn with the first n of args, followed by the record if fn
// takes it. The result false drops the row; true and undefined keep it.
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

// patternArg converts a regular expression from a script: its text, or a result
// of re.compile.
func (v *vm) patternArg(x goja.Value, f *scripting.Function, i int) scripting.Pattern {
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
		v.typeError(f, i, x, "a string, or what re.compile returned")
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

// groupsOf appends the groups of a match, or the whole match if there are none.
// A group that did not participate is undefined.
func (v *vm) groupsOf(out []goja.Value, text string, at []int) []goja.Value {
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
