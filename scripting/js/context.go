package js

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/dop251/goja"

	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/scripting"
)

// openContext creates two `ctx` objects. In the one for series, everything that
// could change its result is refused, because the result is cached.
func (v *vm) openContext() {
	args := v.contextArgs()
	whole := v.rt.NewObject()
	v.put(whole, "args", args)
	v.put(whole, "log", v.newLog())
	v.method(whole, "emit", v.ctxEmit)
	v.method(whole, "route", v.ctxRoute)
	if m := v.host.Context; m != nil {
		v.bindContext(whole, m)
	}
	names := whole.Keys()
	slices.Sort(names)
	v.ctx.metrics = v.freeze(v.guard(whole, func(name string) error {
		e := fmt.Errorf("ctx has no %q: there is %s", name, strings.Join(names, ", "))
		if hint := config.DidYouMean(name, names); hint != "" {
			e = fmt.Errorf("%w; %s", e, hint)
		}
		return absent(v.host.Context, name, e)
	}))
	series := v.rt.NewObject()
	v.put(series, "args", args)
	v.ctx.series = v.freeze(v.guard(series, func(name string) error {
		if slices.Contains(names, name) || absent(v.host.Context, name, nil) != nil {
			return refusedInSeries("ctx." + name)
		}
		return fmt.Errorf("ctx has no %q in series: there is args", name)
	}))
}

// contextArgs creates ctx.args.
func (v *vm) contextArgs() *goja.Object {
	args := v.rt.NewObject()
	var names []string
	for _, a := range v.prog.def.Args { // in order of declaration; omitted arguments are undefined
		names = append(names, a.Name)
		v.put(args, a.Name, v.argValue(v.host.Args[a.Name]))
	}
	return v.freeze(v.guard(args, func(name string) error {
		err := fmt.Errorf("there is no argument %q: declare it in args", name)
		if hint := config.DidYouMean(name, names); hint != "" {
			err = fmt.Errorf("%w; %s", err, hint)
		}
		return err
	}))
}

// argValue converts a block's argument to a read-only script value.
func (v *vm) argValue(x any) goja.Value {
	switch x := x.(type) {
	case scripting.Secret:
		return v.box(x)
	case scripting.Regexp:
		return v.pattern(x)
	case []any:
		items := make([]any, len(x))
		for i, e := range x {
			items[i] = v.argValue(e)
		}
		return v.freeze(v.rt.NewArray(items...))
	case map[string]any:
		o := v.rt.NewObject()
		keys := make([]string, 0, len(x))
		for k := range x {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			v.put(o, k, v.argValue(x[k]))
		}
		return v.freeze(o)
	}
	return v.fromGo(x)
}

// pattern converts a regular expression of the config to an object of the
// module re.
func (v *vm) pattern(re scripting.Regexp) goja.Value {
	if o, err := scripting.CompilePattern(v.prog.stdlib, string(re)); err == nil { // checked when it was decoded
		return v.fromGo(o)
	}
	return v.rt.ToValue(string(re))
}

var levels = []struct {
	name  string
	level slog.Level
}{{"debug", slog.LevelDebug}, {"info", slog.LevelInfo}, {"warn", slog.LevelWarn}, {"error", slog.LevelError}}

// newLog creates ctx.log: info(msg, fields) and so on.
func (v *vm) newLog() *goja.Object {
	o := v.rt.NewObject()
	for _, l := range levels {
		v.method(o, l.name, func(call goja.FunctionCall) goja.Value {
			if len(call.Arguments) == 0 {
				v.raise(fmt.Errorf("cannot log nothing: write ctx.log.%s(message)", l.name))
			}
			var fields []any
			if f, ok := call.Argument(1).(*goja.Object); ok {
				for _, k := range v.keys(f) {
					if len(fields) == 2*scripting.MaxLogFields {
						break
					}
					fields = append(fields, k, v.logValue(f.Get(k)))
				}
			}
			v.log(l.level, v.text(call.Argument(0)), fields)
			return goja.Undefined()
		})
	}
	return v.freeze(v.guard(o, func(name string) error {
		return fmt.Errorf("ctx.log has no %q: there is debug, info, warn, error", name)
	}))
}

// openConsole creates console, which logs like ctx.log.
func (v *vm) openConsole() {
	o := v.rt.NewObject()
	method := func(name string, level slog.Level) {
		v.method(o, name, func(call goja.FunctionCall) goja.Value {
			words := make([]string, len(call.Arguments))
			for i, a := range call.Arguments {
				words[i] = v.text(a)
			}
			v.log(level, strings.Join(words, " "), nil)
			return goja.Undefined()
		})
	}
	method("log", slog.LevelInfo)
	for _, l := range levels {
		method(l.name, l.level)
	}
	v.freeze(v.guard(o, func(name string) error {
		return fmt.Errorf("console has no %q: there is log, debug, info, warn, error", name)
	}))
	v.must(v.rt.GlobalObject().DefineDataProperty("console", o, goja.FLAG_FALSE, goja.FLAG_FALSE, goja.FLAG_TRUE))
}

// maxText is the maximum length of a value in a log line, in bytes.
const maxText = 1000

// text formats a value for a log line: strings unchanged, records and batches
// as text, everything else as JSON.
func (v *vm) text(x goja.Value) string {
	s := ""
	switch o, isObject := x.(*goja.Object); {
	case !isObject:
		if _, symbol := x.(*goja.Symbol); symbol {
			return "a symbol"
		}
		s = x.String()
	case boxed(o) != nil:
		s = boxText(boxed(o))
	case o.ClassName() == "Error":
		s = messageOf(o)
	case isFunction(o):
		return "a function"
	case hostOf(o) != nil, arrayOf(o) != nil: // of a batch
		s = o.String()
	case o.ClassName() == "Date":
		iso, err := v.native("Date", "toISOString")(o)
		if err != nil {
			return kindOf(o)
		}
		s = iso.String()
	default:
		y, err := v.toGo(o)
		if err != nil {
			return kindOf(o)
		}
		s = jsonText(y, maxText)
	}
	if len(s) > maxText {
		s = strings.ToValidUTF8(s[:maxText-3], "") + "…"
	}
	return s
}

func (v *vm) logValue(x goja.Value) any {
	if y, err := v.toGo(x); err == nil {
		switch y.(type) {
		case bool, float64, int64:
			return y
		}
	}
	return v.text(x)
}

// bindContext adds the parts of ctx to o. Its functions are refused in series,
// even if a script kept ctx.
func (v *vm) bindContext(o *goja.Object, m *scripting.Module) {
	for i := range m.Funcs {
		f := m.Funcs[i].Camel()
		name := m.Name + "." + f.Name
		v.method(o, f.Name, func(call goja.FunctionCall) goja.Value {
			if v.seen != nil {
				v.raise(refusedInSeries(name))
			}
			return v.callFunction(name, f, nil, call.Arguments)
		})
	}
	for _, c := range m.Consts {
		v.put(o, scripting.CamelCase(c.Name), v.fromGo(c.Value))
	}
	for _, part := range m.Tables {
		whole := *part
		whole.Name = m.Name + "." + part.Name
		t := v.rt.NewObject()
		v.bindContext(t, &whole)
		v.put(o, scripting.CamelCase(part.Name), v.freeze(v.guard(t, func(name string) error {
			return absent(part, name, fmt.Errorf("%s has no %q", whole.Name, name))
		})))
	}
}

func refusedInSeries(what string) error {
	return fmt.Errorf("cannot use %s in series: its result is cached and may depend only on labels and ctx.args; use metrics", what)
}
