package js

import (
	"github.com/dop251/goja"

	"github.com/weir-run/weir/scripting"
)

const (
	// maxJSONDepth is the maximum depth of JSON, and maxJSONValues its maximum
	// number of values.
	maxJSONDepth  = 1000
	maxJSONValues = 500_000
)

// parseJSON limits the result of JSON.parse by checking the text first.
func (s *sandbox) parseJSON(f nativeFunc) nativeFunc {
	return func(call goja.FunctionCall) goja.Value {
		t := s.text(call.Argument(0))
		if t.Length() > scripting.MaxString {
			s.rangeError("cannot parse JSON of %d characters: the limit is %d", t.Length(), scripting.MaxString)
		}
		if t.Length() > maxJSONDepth {
			s.measureJSON(t.String())
		}
		args := []goja.Value{t}
		if v := call.Argument(1); !isUndefined(v) {
			args = append(args, v)
		}
		call.Arguments = args
		return f(call)
	}
}

// measureJSON refuses a text that is nested too deeply or has too many values.
// It may also refuse invalid JSON.
func (s *sandbox) measureJSON(t string) {
	depth, values, quoted := 0, 0, false
	for i := 0; i < len(t); i++ {
		switch c := t[i]; {
		case c == '"':
			quoted = !quoted
		case quoted:
			if c == '\\' {
				i++
			}
		case c == '[', c == '{':
			if depth++; depth > maxJSONDepth {
				s.rangeError("cannot parse JSON that nests deeper than %d levels", maxJSONDepth)
			}
			values++
		case c == ']', c == '}':
			depth--
		case c == ',':
			values++
		}
		if values > maxJSONValues {
			s.rangeError("cannot parse JSON with more than %d values", maxJSONValues)
		}
	}
}

// stringifyJSON limits the result of JSON.stringify by passing a function that
// is called for each value.
func (s *sandbox) stringifyJSON(f nativeFunc) nativeFunc {
	return func(call goja.FunctionCall) goja.Value {
		value, replacer := call.Argument(0), call.Argument(1)
		m := &measure{s: s, gap: 0}
		if v := call.Argument(2); !isUndefined(v) {
			m.gap = 10
		}
		if o := object(replacer); o != nil && !s.layout.kindOf(o).array {
			fn, ok := goja.AssertFunction(o)
			if !ok {
				o = nil
				if isProxy := s.layout.kindOf(goja.Value(replacer).(*goja.Object)).name == "proxyObject"; isProxy {
					panic(s.rt.NewTypeError("cannot take a Proxy for the names to keep: use a list"))
				}
			}
			m.replacer = fn
		}
		list := object(replacer)
		if list != nil && !s.layout.kindOf(list).array {
			list = nil
		}
		if list != nil {
			if n := s.lengthOf(list); n > maxItems {
				s.tooLong(n)
			}
			// With a list, goja calls no function. Therefore, a first run without the
			// list is measured, whose result is at least as long.
			f(goja.FunctionCall{This: call.This, Arguments: []goja.Value{value, s.rt.ToValue(m.value)}})
			s.chargeString(m.size)
			return f(call)
		}
		got := f(goja.FunctionCall{This: call.This, Arguments: []goja.Value{value, s.rt.ToValue(m.value), call.Argument(2)}})
		s.chargeString(m.size)
		return got
	}
}

// measure adds up the length of JSON while it is created.
type measure struct {
	s        *sandbox
	replacer goja.Callable // the script's replacer; nil if there is none
	gap      int64         // maximum length of an indentation
	holders  []*goja.Object
	values   int
	size     int64
}

func (m *measure) value(call goja.FunctionCall) goja.Value {
	m.s.budget.check()
	v := call.Argument(1)
	if m.replacer != nil {
		got, err := m.replacer(call.This, call.Arguments...)
		if err != nil {
			panic(err)
		}
		v = got
	}
	holder := object(call.This)
	for len(m.holders) > 0 && m.holders[len(m.holders)-1] != holder {
		m.holders = m.holders[:len(m.holders)-1]
	}
	if len(m.holders) == 0 {
		m.holders = append(m.holders, holder)
	}
	if o := object(v); o != nil {
		m.holders = append(m.holders, o)
	}
	depth := len(m.holders)
	if depth > maxJSONDepth {
		m.s.rangeError("cannot write JSON that nests deeper than %d levels", maxJSONDepth)
	}
	if m.values++; m.values > maxJSONValues {
		m.s.rangeError("cannot write JSON with more than %d values", maxJSONValues)
	}
	if k, ok := call.Argument(0).(goja.String); ok {
		m.size += int64(k.Length())
	}
	if t, ok := v.(goja.String); ok {
		m.size += int64(t.Length())
	}
	m.size += 4 + m.gap*int64(depth)
	if m.size > scripting.MaxString {
		m.s.tooLarge(m.size)
	}
	return v
}
