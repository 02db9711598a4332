package lua

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/view"
	"github.com/weir-run/weir/scripting"
)

// openContext makes `ctx`: one for metrics, and one for series, where all that
// may change its answer is refused, because the answer is remembered.
func (v *vm) openContext() {
	L := v.L
	args := L.CreateTable(0, 4)
	for name, x := range v.host.Args {
		args.RawSetString(name, v.argValue(x, "ctx.args."+name))
	}
	amt := L.CreateTable(0, 4)
	frozen := v.readOnly.freeze(args, "ctx.args")
	declared := map[string]bool{}
	for _, a := range v.prog.def.Args {
		declared[a.Name] = true
	}
	amt.RawSetString("__index", L.NewFunction(func(L *lua.LState) int {
		if name := L.Get(2).String(); !declared[name] {
			v.raise(L, fmt.Errorf("there is no argument %q: declare it in args", name))
		}
		L.Push(lua.LNil) // optional and left out
		return 1
	}))
	args.Metatable = amt

	logger := v.newLog()
	build := func(fields map[string]lua.LValue, other lua.LGFunction) *lua.LTable {
		t := L.CreateTable(0, 4)
		for n, f := range fields {
			t.RawSetString(n, f)
		}
		mt := L.CreateTable(0, 4)
		mt.RawSetString("__index", L.NewFunction(other))
		t.Metatable = mt
		return v.readOnly.freeze(t, "ctx")
	}
	fields := map[string]lua.LValue{"args": frozen, "log": logger, "emit": L.NewFunction(v.ctxEmit), "route": L.NewFunction(v.ctxRoute)}
	if v.host.Context != nil {
		for k, x := range entries(v.bindContext(v.host.Context)) {
			fields[k.String()] = x
		}
	}
	names := slices.Sorted(maps.Keys(fields))
	v.args.ctx.metrics = build(fields, func(L *lua.LState) int {
		name := L.Get(2).String()
		e := fmt.Errorf("ctx has no %q: there is %s", name, strings.Join(names, ", "))
		if hint := config.DidYouMean(name, names); hint != "" {
			e = fmt.Errorf("%w; %s", e, hint)
		}
		v.raise(L, absent(v.host.Context, name, e))
		return 0
	})
	v.args.ctx.series = build(map[string]lua.LValue{"args": frozen}, func(L *lua.LState) int {
		name := L.Get(2).String()
		if _, there := fields[name]; there || absent(v.host.Context, name, nil) != nil {
			v.raise(L, refusedInSeries("ctx."+name))
		}
		v.raise(L, fmt.Errorf("ctx has no %q in series: there is args", name))
		return 0
	})
}

// argValue is a block's argument in a script, read-only.
func (v *vm) argValue(x any, what string) lua.LValue {
	switch x := x.(type) {
	case string:
		return lua.LString(x)
	case float64:
		return lua.LNumber(x)
	case int64:
		return lua.LNumber(x)
	case bool:
		return lua.LBool(x)
	case scripting.Secret:
		return v.opaque(x)
	case scripting.Regexp:
		return v.patternValue(x)
	case []any:
		t := v.L.CreateTable(len(x), 0)
		for _, e := range x {
			t.Append(v.argValue(e, what+"[i]"))
		}
		return v.readOnly.freeze(t, what)
	case map[string]any:
		t := v.L.CreateTable(0, len(x))
		for _, k := range slices.Sorted(maps.Keys(x)) { // so that pairs has the same order in all VMs
			t.RawSetString(k, v.argValue(x[k], what+"."+k))
		}
		return v.readOnly.freeze(t, what)
	}
	panic(fmt.Sprintf("BUG: argument of type %T", x))
}

// patternValue returns a regular expression of the config as an object of module re.
func (v *vm) patternValue(re scripting.Regexp) lua.LValue {
	if o, err := scripting.CompilePattern(v.prog.stdlib, string(re)); err == nil { // checked when it was decoded
		return v.fromGo(v.L, o, 0)
	}
	return lua.LString(re)
}

// newLog makes ctx.log: info(msg, fields) and so on.
func (v *vm) newLog() *lua.LTable {
	t := v.L.CreateTable(0, 4)
	for name, level := range map[string]slog.Level{"debug": levelDebug, "info": levelInfo, "warn": levelWarn, "error": levelError} {
		t.RawSetString(name, v.L.NewFunction(func(L *lua.LState) int {
			i := 1
			if L.Get(1) == lua.LValue(v.readOnly.of(t)) {
				i = 2 // called with a colon
			}
			msg := v.tostring(L, L.CheckAny(i))
			var fields []any
			if f, ok := L.Get(i + 1).(*lua.LTable); ok {
				for k, x := range entries(v.readOnly.real(f)) {
					if len(fields) == 2*scripting.MaxLogFields {
						break
					}
					fields = append(fields, k.String(), v.logValue(L, x))
				}
			}
			v.log(L, level, msg, fields)
			return 0
		}))
	}
	return v.readOnly.freeze(t, "ctx.log")
}

func (v *vm) logValue(L *lua.LState, x lua.LValue) any {
	switch x := x.(type) {
	case lua.LNumber:
		if n := float64(x); n == math.Trunc(n) && math.Abs(n) <= 1<<53 {
			return int64(n) // the log writes large floats with an exponent, which makes times unreadable
		}
		return float64(x)
	case lua.LBool:
		return bool(x)
	}
	s := v.tostring(L, x)
	if len(s) > 1000 {
		s = strings.ToValidUTF8(s[:997], "") + "…"
	}
	return s
}

// bindContext makes the table of a part of ctx. Its functions are refused in
// series, wherever a script kept ctx, and a part's may be called with a colon.
func (v *vm) bindContext(m *scripting.Module) *lua.LTable {
	t := v.bindWith(m, func(t *lua.LTable, name string, f *scripting.Function) lua.LGFunction {
		return func(L *lua.LState) int {
			if v.call.stage == inSeries {
				v.raise(L, refusedInSeries(name))
			}
			first := 1
			if self, ok := L.Get(1).(*lua.LTable); ok && v.readOnly.behind[self] == t {
				first = 2
			}
			return v.callFunction(L, name, f, nil, first)
		}
	})
	for _, part := range m.Tables {
		whole := *part
		whole.Name = m.Name + "." + part.Name
		t.RawSetString(part.Name, v.readOnly.freeze(v.bindContext(&whole), whole.Name))
	}
	return t
}

func refusedInSeries(what string) error {
	return fmt.Errorf("cannot use %s in series: its result is cached and may depend only on labels and ctx.args; use metrics", what)
}

// ctxEmit is ctx.emit{ name =, labels =, value =, time = }, or of a copied or
// present record. A series that is emitted ends when a record of it is
// emitted with stale set: a copy of a stale record is one.
func (v *vm) ctxEmit(L *lua.LState) int {
	if !v.call.canEmit() {
		v.raise(L, v.notSent("", ""))
	}
	v.emitTo(L, 0, L.Get(1))
	return 0
}

// emitTo emits a record, a copy or a table to a way.
func (v *vm) emitTo(L *lua.LState, way int, arg lua.LValue) {
	if !v.call.takeEmission() {
		v.must(L, v.budget.stopCall(fmt.Errorf("%w: the call emitted more than %d records, the limit is script.limits.emit", scripting.ErrLimit, v.call.params.Emit)))
	}
	v.must(L, v.budget.charge(10))
	switch x := arg.(type) {
	case *lua.LTable:
		if t := v.readOnly.real(x); t.RawGetString("line") != lua.LNil {
			v.emitLine(L, way, v.lineTable(L, t))
		} else {
			v.emitSample(L, way, v.sampleTable(L, t))
		}
	case *lua.LUserData:
		switch r := x.Value.(type) {
		case *copied:
			rec := r.rec
			rec.Labels = append([]batch.Label(nil), r.rec.Labels...)
			v.emitSample(L, way, rec)
		case *record:
			v.emitSample(L, way, r.check(L).Copy(r.row))
		case *copiedLine:
			v.emitLine(L, way, r.rec)
		case *line:
			v.emitLine(L, way, r.check(L).Copy(r.row))
		default:
			v.raise(L, errors.New("cannot emit this value: it must be a table or a record"))
		}
	default:
		v.raise(L, fmt.Errorf("cannot emit a %s: it must be a table or a record", x.Type()))
	}
}

// sampleTable reads a table as a sample.
func (v *vm) sampleTable(L *lua.LState, t *lua.LTable) view.Record {
	rec := view.Record{Time: v.call.params.Now.UnixMilli()}
	if v.call.outMetrics != nil && v.call.outMetrics.Batch().Len() > 0 {
		rec.Time = v.call.outMetrics.Batch().T[0]
	}
	value := false
	for k, x := range entries(t) {
		if k.String() == "labels" {
			v.setLabels(L, own(&rec.Labels), x)
			continue
		}
		value = value || k.String() == "value" || k.String() == "stale"
		v.setRecord(L, &rec, k.String(), x)
	}
	if !value {
		v.raise(L, errors.New("cannot emit a record without a value, or a line if it is a log record"))
	}
	return rec
}

// emitSample is ctx.emit of a sample.
func (v *vm) emitSample(L *lua.LState, way int, rec view.Record) {
	if v.call.outMetrics == nil {
		v.raise(L, v.notSent("samples", "metrics"))
	}
	v.must(L, v.call.outMetrics.EmitTo(way, rec))
}
