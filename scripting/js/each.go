package js

import (
	"fmt"
	"math"
	"strings"

	"github.com/dop251/goja"

	"github.com/weir-run/weir/scripting"
)

// each implements it.each(cases): it returns a function that declares a test
// for each case.
func (t *test) each(declare *scripting.Function, call goja.FunctionCall) goja.Value {
	v := t.v
	cases, ok := t.items(call.Argument(0))
	if !ok || len(call.Arguments) > 1 {
		v.raise(fmt.Errorf("cannot use %s.each on this: write %s.each([[1, 2], [3, 4]])(\"name %%d\", (a, b) => …)", declare.Name, declare.Name))
	}
	return v.function1("each", func(call goja.FunctionCall) goja.Value {
		fn, ok := goja.AssertFunction(call.Argument(1))
		if !ok {
			v.raise(fmt.Errorf("cannot declare tests without a function: write %s.each(cases)(name, fn)", declare.Name))
		}
		for i, c := range cases {
			args := []goja.Value{c}
			if o := objectOf(c); o != nil && o.ClassName() == "Array" {
				args, _ = t.items(c)
			}
			one := v.function1("", func(goja.FunctionCall) goja.Value {
				out, err := fn(goja.Undefined(), args...)
				v.must(err)
				return out
			})
			title := v.rt.ToValue(t.title(call.Argument(0).String(), i, c, args))
			v.callFunction(declare.Name, declare, nil, []goja.Value{title, one})
		}
		return goja.Undefined()
	})
}

// title returns the name of a case. %s and similar verbs stand for its
// arguments, $key for a field.
func (t *test) title(format string, index int, c goja.Value, args []goja.Value) string {
	var b strings.Builder
	next := 0
	for i := 0; i < len(format); i++ {
		if format[i] == '$' {
			if key, text := t.named(format[i+1:], c); key > 0 {
				b.WriteString(text)
				i += key
				continue
			}
		}
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		switch verb := format[i]; {
		case verb == '%':
			b.WriteByte('%')
		case verb == '#':
			fmt.Fprint(&b, index)
		case verb == '$':
			fmt.Fprint(&b, index+1)
		case !strings.ContainsRune("sdifjo", rune(verb)):
			b.WriteString("%" + string(verb))
		case next < len(args):
			b.WriteString(t.verb(verb, args[next]))
			next++
		}
	}
	return b.String()
}

func (t *test) verb(verb byte, x goja.Value) string {
	if goja.IsBigInt(x) || isSymbol(x) {
		return t.showFlat(x) // neither is a number
	}
	switch verb {
	case 'i':
		return t.v.rt.ToValue(math.Trunc(x.ToFloat())).String()
	case 'd', 'f':
		return x.ToNumber().String()
	case 's':
		if objectOf(x) == nil {
			return orUndefined(x).String()
		}
	}
	return t.showFlat(x)
}

// named reads the key at the beginning of text, "a.b", and returns its length
// and the value in the case. The length is 0 if there is no such key.
func (t *test) named(text string, c goja.Value) (length int, shown string) {
	end := 0
	for end < len(text) && (text[end] == '.' || text[end] == '_' || text[end] >= '0' && text[end] <= '9' || text[end]|0x20 >= 'a' && text[end]|0x20 <= 'z') {
		end++
	}
	for path := strings.TrimRight(text[:end], "."); path != ""; path = path[:max(strings.LastIndexByte(path, '.'), 0)] {
		at := c
		for key := range strings.SplitSeq(path, ".") {
			o := objectOf(at)
			if at = nil; o != nil {
				at = o.Get(key)
			}
		}
		if at == nil {
			continue
		}
		if goja.IsString(at) {
			return len(path), at.String()
		}
		return len(path), t.showFlat(at)
	}
	return 0, ""
}
