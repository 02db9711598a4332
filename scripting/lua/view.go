package lua

import (
	"errors"
	"fmt"
	"iter"
	"math"

	lua "github.com/yuin/gopher-lua"

	"github.com/weir-run/weir/engine/view"
	"github.com/weir-run/weir/scripting/api"
	"github.com/weir-run/weir/scripting/operation"
)

// metatables are one per kind of host value.
type metatables struct {
	record, labels, batch, series, copy, opaque, object, arg *lua.LTable
	line, lineCopy, group                                    *lua.LTable
	list                                                     *lua.LTable // marks a table that was an empty list
}

// record is a script's handle of one row: `m`. It is the row's for as long as
// the hook runs, so a script may keep the best of a batch in a local; after
// that every use is an error.
type record struct {
	ud, labels lua.LUserData
	v          *vm
	row        int
	epoch      uint64
}

// recordBlock is how many handles are made at once.
const recordBlock = 32

func (v *vm) newRecord(row int) *record {
	if len(v.handles.records) == 0 {
		v.handles.records = make([]record, recordBlock)
	}
	r := &v.handles.records[0]
	v.handles.records = v.handles.records[1:]
	r.v, r.row, r.epoch = v, row, v.call.metrics.Epoch()
	r.ud.Value, r.ud.Metatable = r, v.values.mt.record
	r.labels.Value, r.labels.Metatable = r, v.values.mt.labels
	return r
}

var errLate = errors.New("cannot use a record after its hook returned: keep record:copy() instead")

func (r *record) check(L *lua.LState) *view.Metrics {
	if r.v.call.metrics == nil || r.v.call.metrics.Epoch() != r.epoch {
		r.v.raise(L, errLate)
	}
	if r.v.projector.active != nil {
		r.v.projector.active.touch()
	}
	return r.v.call.metrics
}

// labelled is what a labels table of a script may stand for.
type labelled interface {
	label(L *lua.LState, name string) string
	setLabel(L *lua.LState, name, value string) error
	all(L *lua.LState) iter.Seq2[string, string]
}

func (r *record) label(L *lua.LState, name string) string { return r.check(L).Label(r.row, name) }
func (r *record) setLabel(L *lua.LState, name, value string) error {
	return r.check(L).SetLabel(r.row, name, value)
}
func (r *record) all(L *lua.LState) iter.Seq2[string, string] { return r.check(L).Labels(r.row) }

// seriesHandle is `s` of the hook series; there is one a VM.
type seriesHandle struct{ v *vm }

func (s seriesHandle) check(L *lua.LState) *view.Series {
	if s.v.call.series == nil {
		s.v.raise(L, errors.New("cannot use a series after its hook returned"))
	}
	return s.v.call.series
}
func (s seriesHandle) label(L *lua.LState, name string) string { return s.check(L).Label(name) }
func (s seriesHandle) setLabel(L *lua.LState, name, value string) error {
	return s.check(L).SetLabel(name, value)
}
func (s seriesHandle) all(L *lua.LState) iter.Seq2[string, string] { return s.check(L).Labels() }

// copied is what record:copy() returns: a record of the script's own.
type copied struct {
	rec    view.Record
	labels *lua.LUserData
}

// openMetatables makes the metatables of host values.
func (v *vm) openMetatables() {
	L := v.L
	mt := func(index, newindex, tostring lua.LGFunction) *lua.LTable {
		t := L.CreateTable(0, 8)
		t.RawSetString("__metatable", lua.LFalse)
		if index != nil {
			t.RawSetString("__index", L.NewFunction(index))
		}
		if newindex != nil {
			t.RawSetString("__newindex", L.NewFunction(newindex))
		}
		if tostring != nil {
			t.RawSetString("__tostring", L.NewFunction(tostring))
		}
		return t
	}
	v.values.mt.labels = mt(v.labelsIndex, v.labelsNewIndex, func(L *lua.LState) int {
		v.pushString(L, v.labelsText(L, self[labelled](v, L, "labels")))
		return 1
	})
	v.openRecord(mt)
	v.openSeries(mt)
	v.openBatch(mt)
	v.openLogs(mt)
	v.openGroup(mt)
	v.openValues(mt)
}

func (v *vm) labelsText(L *lua.LState, l labelled) string {
	out := "{"
	for n, val := range l.all(L) {
		if out != "{" {
			out += ","
		}
		out += fmt.Sprintf("%s=%q", n, val)
	}
	return out + "}"
}

// self returns argument 1 as a host value.
func self[T any](v *vm, L *lua.LState, what string) T {
	if ud, ok := L.Get(1).(*lua.LUserData); ok {
		if t, ok := ud.Value.(T); ok {
			return t
		}
	}
	v.raise(L, fmt.Errorf("cannot use %s as %s: call methods with a colon", L.Get(1).Type(), what))
	panic("unreachable")
}

func (v *vm) labelsIndex(L *lua.LState) int {
	name, ok := L.Get(2).(lua.LString)
	if !ok {
		L.Push(lua.LNil)
		return 1
	}
	val := self[labelled](v, L, "labels").label(L, string(name))
	if val == "" {
		L.Push(lua.LNil)
		return 1
	}
	L.Push(v.values.label(val))
	return 1
}

func (v *vm) labelsNewIndex(L *lua.LState) int {
	l := self[labelled](v, L, "labels")
	name, ok := L.Get(2).(lua.LString)
	if !ok {
		v.raise(L, fmt.Errorf("cannot use a %s as a label name", L.Get(2).Type()))
	}
	v.must(L, l.setLabel(L, string(name), v.labelValue(L, L.Get(3), string(name))))
	return 0
}

// labelValue is a value that a script gives to a label; nil removes it.
func (v *vm) labelValue(L *lua.LState, x lua.LValue, name string) string {
	switch x := x.(type) {
	case *lua.LNilType:
		return ""
	case lua.LString:
		return string(x)
	case lua.LNumber:
		return formatNumber(float64(x))
	case lua.LBool:
		return x.String()
	}
	v.raise(L, fmt.Errorf("cannot set label %q to a %s: it must be a string", name, x.Type()))
	return ""
}

// setLabels replaces all labels by a table's.
func (v *vm) setLabels(L *lua.LState, l labelled, x lua.LValue) { v.setPairs(L, "labels", l, x) }

// setPairs replaces all labels, or all metadata, by a table's.
func (v *vm) setPairs(L *lua.LState, what string, l labelled, x lua.LValue) {
	want := map[string]string{}
	switch x := x.(type) {
	case *lua.LTable:
		for k, val := range entries(v.readOnly.real(x)) {
			name, ok := k.(lua.LString)
			if !ok {
				v.raise(L, fmt.Errorf("cannot use a %s as a label name", k.Type()))
			}
			want[string(name)] = v.labelValue(L, val, string(name))
		}
	case *lua.LUserData:
		from, ok := x.Value.(labelled)
		if !ok {
			v.raise(L, fmt.Errorf("cannot set %s to this value: it must be a table", what))
		}
		for n, val := range from.all(L) {
			want[n] = val
		}
	default:
		v.raise(L, fmt.Errorf("cannot set %s to a %s: it must be a table", what, x.Type()))
	}
	for n := range l.all(L) {
		if _, keep := want[n]; !keep {
			v.must(L, l.setLabel(L, n, ""))
		}
	}
	for n, val := range want {
		v.must(L, l.setLabel(L, n, val))
	}
}

func (v *vm) openRecord(mt func(index, newindex, tostring lua.LGFunction) *lua.LTable) {
	methods := v.bindOperations(api.Get().Record, func(L *lua.LState, c *operation.Call) {
		r := self[*record](v, L, "a record")
		m := r.check(L)
		c.Window, c.Metrics, c.Logs, c.Record = &m.Window, m, nil, r.row
	})
	v.values.recordField = func(L *lua.LState, m *view.Metrics, r *record, field lua.LValue) int {
		key, _ := field.(lua.LString)
		switch key {
		case "labels":
			L.Push(&r.labels)
		case "name":
			L.Push(v.values.label(m.Name(r.row)))
		case "value":
			L.Push(v.sampleValue(m, r.row))
		case "time":
			L.Push(v.values.numbers.value(float64(m.Time(r.row))))
		case "type":
			L.Push(v.values.label(m.Type(r.row)))
		case "help":
			L.Push(lua.LString(m.Help(r.row)))
		case "unit":
			L.Push(v.values.label(m.Unit(r.row)))
		case "stale":
			L.Push(lua.LBool(m.Stale(r.row)))
		case "histogram":
			h, _ := m.Histogram(r.row)
			L.Push(v.histogramTable(L, h))
		case "exemplars":
			L.Push(v.exemplarsTable(L, m.Exemplars(r.row)))
		default:
			if f := methods.find(key); f != nil {
				L.Push(f)
				break
			}
			v.raise(L, api.Unknown(api.Get().Record, field.String()))
		}
		return 1
	}
	index := func(L *lua.LState) int {
		r := self[*record](v, L, "a record")
		return v.values.recordField(L, r.check(L), r, L.Get(2))
	}
	newindex := func(L *lua.LState) int {
		r := self[*record](v, L, "a record")
		r.check(L)
		key, _ := L.Get(2).(lua.LString)
		if key == "labels" {
			v.setLabels(L, r, L.Get(3))
			return 0
		}
		v.setField(L, r.row, string(key), L.Get(3), false)
		return 0
	}
	v.values.mt.record = mt(index, newindex, func(L *lua.LState) int {
		r := self[*record](v, L, "a record")
		v.pushString(L, r.check(L).RowText(r.row))
		return 1
	})
	v.values.mt.copy = mt(v.copyIndex, v.copyNewIndex, func(L *lua.LState) int {
		L.Push(lua.LString("record " + self[*copied](v, L, "a record").rec.Name))
		return 1
	})
}

// sampleValue is a row's value in a script: NaN of a staleness marker, nil of
// a native histogram.
func (v *vm) sampleValue(m *view.Metrics, row int) lua.LValue {
	f, ok := m.Value(row)
	switch {
	case !ok:
		return lua.LNil
	case m.Stale(row):
		return v.values.numbers.value(math.NaN())
	}
	return v.values.numbers.value(f)
}

// setField sets a field of a row; label says that other names are labels.
func (v *vm) setField(L *lua.LState, row int, field string, x lua.LValue, label bool) {
	m := v.call.metrics
	wrong := func(want string) {
		v.raise(L, fmt.Errorf("cannot set %s to a %s: it must be %s", field, x.Type(), want))
	}
	switch field {
	case "value":
		n, ok := x.(lua.LNumber)
		if !ok {
			wrong("a number")
		}
		v.must(L, m.SetValue(row, float64(n)))
	case "name":
		s, ok := x.(lua.LString)
		if !ok {
			wrong("a string")
		}
		v.must(L, m.SetName(row, string(s)))
	case "time":
		n, ok := x.(lua.LNumber)
		if !ok || float64(n) != math.Trunc(float64(n)) || math.Abs(float64(n)) > 1<<53 {
			wrong("a whole number of milliseconds")
		}
		m.SetTime(row, int64(n))
	case "stale":
		b, ok := x.(lua.LBool)
		if !ok {
			wrong("true or false")
		}
		m.SetStale(row, bool(b))
	default:
		if label && field != "type" && field != "help" && field != "unit" {
			v.must(L, m.SetLabel(row, field, v.labelValue(L, x, field)))
			return
		}
		v.raise(L, api.CannotSet(api.Get().Record, field))
	}
}

func (v *vm) newCopy(rec view.Record) *lua.LUserData {
	c := &copied{rec: rec}
	c.labels = &lua.LUserData{Value: own(&c.rec.Labels), Metatable: v.values.mt.labels}
	return &lua.LUserData{Value: c, Metatable: v.values.mt.copy}
}

func (v *vm) copyIndex(L *lua.LState) int {
	c := self[*copied](v, L, "a record")
	switch key := L.Get(2).String(); key {
	case "labels":
		L.Push(c.labels)
	case "name":
		L.Push(lua.LString(c.rec.Name))
	case "value":
		if c.rec.Histogram.Int != nil || c.rec.Histogram.Float != nil {
			L.Push(lua.LNil)
		} else if c.rec.Stale {
			L.Push(lua.LNumber(math.NaN()))
		} else {
			L.Push(lua.LNumber(c.rec.Value))
		}
	case "time":
		L.Push(lua.LNumber(c.rec.Time))
	case "type":
		L.Push(lua.LString(c.rec.Type))
	case "help":
		L.Push(lua.LString(c.rec.Help))
	case "unit":
		L.Push(lua.LString(c.rec.Unit))
	case "stale":
		L.Push(lua.LBool(c.rec.Stale))
	case "histogram":
		L.Push(v.histogramTable(L, c.rec.Histogram))
	case "exemplars":
		L.Push(v.exemplarsTable(L, c.rec.Exemplars))
	default:
		v.raise(L, api.Unknown(api.Get().Copy, key))
	}
	return 1
}

func (v *vm) copyNewIndex(L *lua.LState) int {
	c := self[*copied](v, L, "a record")
	key := L.Get(2).String()
	if key == "labels" {
		v.setLabels(L, own(&c.rec.Labels), L.Get(3))
		return 0
	}
	v.setRecord(L, &c.rec, key, L.Get(3))
	return 0
}

// setRecord sets a field of a record that is to be emitted.
func (v *vm) setRecord(L *lua.LState, r *view.Record, key string, x lua.LValue) {
	wrong := func(want string) {
		v.raise(L, fmt.Errorf("cannot set %s to a %s: it must be %s", key, x.Type(), want))
	}
	text := func() string {
		s, ok := x.(lua.LString)
		if !ok {
			wrong("a string")
		}
		return string(s)
	}
	switch key {
	case "name":
		r.Name = text()
	case "type":
		r.Type = text()
	case "help":
		r.Help = text()
	case "unit":
		r.Unit = text()
	case "value":
		n, ok := x.(lua.LNumber)
		if !ok {
			wrong("a number")
		}
		v.must(L, r.SetValue(float64(n)))
	case "time":
		n, ok := x.(lua.LNumber)
		if !ok || float64(n) != math.Trunc(float64(n)) || math.Abs(float64(n)) > 1<<53 {
			wrong("a whole number of milliseconds")
		}
		r.Time = int64(n)
	case "stale":
		b, ok := x.(lua.LBool)
		if !ok {
			wrong("true or false")
		}
		r.Stale = bool(b)
	default:
		v.raise(L, api.CannotSet(api.Get().Copy, key))
	}
}

func (v *vm) openSeries(mt func(index, newindex, tostring lua.LGFunction) *lua.LTable) {
	h := seriesHandle{v}
	labels := &lua.LUserData{Value: h, Metatable: v.values.mt.labels}
	methods := v.bindOperations(api.Get().Series, func(L *lua.LState, c *operation.Call) {
		c.Series = self[seriesHandle](v, L, "a series").check(L)
	})
	v.values.mt.series = mt(func(L *lua.LState) int {
		s := self[seriesHandle](v, L, "a series").check(L)
		switch key := L.Get(2).String(); key {
		case "labels":
			L.Push(labels)
		case "name":
			L.Push(v.values.label(s.Name()))
		case "type":
			L.Push(v.values.label(s.Type()))
		case "help":
			L.Push(lua.LString(s.Help()))
		case "unit":
			L.Push(v.values.label(s.Unit()))
		case "value", "time", "stale", "histogram", "exemplars":
			v.raise(L, fmt.Errorf("cannot read %s in series: the hook can read only labels because its result is cached; use metrics", key))
		default:
			if f := methods.find(lua.LString(key)); f != nil {
				L.Push(f)
				break
			}
			v.raise(L, api.Unknown(api.Get().Series, key))
		}
		return 1
	}, func(L *lua.LState) int {
		s := self[seriesHandle](v, L, "a series").check(L)
		switch key := L.Get(2).String(); key {
		case "name":
			name, ok := L.Get(3).(lua.LString)
			if !ok {
				v.raise(L, fmt.Errorf("cannot set name to a %s: it must be a string", L.Get(3).Type()))
			}
			v.must(L, s.SetName(string(name)))
		case "labels":
			v.setLabels(L, h, L.Get(3))
		default:
			v.raise(L, api.CannotSet(api.Get().Series, key))
		}
		return 0
	}, func(L *lua.LState) int {
		s := self[seriesHandle](v, L, "a series").check(L)
		L.Push(lua.LString("series " + s.Name()))
		return 1
	})
	v.args.series = &lua.LUserData{Value: h, Metatable: v.values.mt.series}
}
