package js

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"sync"

	"github.com/dop251/goja"

	"github.com/weir-run/weir/engine/batch"
	"github.com/weir-run/weir/engine/view"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/api"
	"github.com/weir-run/weir/scripting/operation"
)

// data contains the script-visible objects for batches in a VM.
type data struct {
	numbers numbers
	texts   texts

	records  []record    // unused handles
	lines    []line      // unused handles
	rows     []rowValues // unused handles
	cells    []goja.Value
	read     []view.Cell // scratch
	patterns scripting.Patterns

	rowIterator rowIterator
	step        step // its result

	proto   struct{ record, labels, iterator, row, group, lineGroup *goja.Object }
	methods map[*scripting.ObjectType]map[string]goja.Value
	next    struct{ iterator, row goja.Value }

	spareCall *operation.Call // for the next operation, if it is not in use
}

// openData creates the script-visible objects for batches.
func (v *vm) openData() {
	v.data.methods = map[*scripting.ObjectType]map[string]goja.Value{}
	v.data.proto.record = v.intrinsics.objectProto
	// All its names are labels, so it inherits nothing from Object. The text form
	// is requested with a symbol.
	v.data.proto.labels = v.rt.CreateObject(nil)
	v.must(v.data.proto.labels.SetSymbol(goja.SymToPrimitive, v.function1("toString", func(call goja.FunctionCall) goja.Value {
		return v.data.texts.value(labelsText(self[*labels](v, call, "labels").of))
	})))
	v.freeze(v.data.proto.labels)
	v.openIterators()
	v.openRecord()
	v.openSeries()
	v.openBatch()
	v.openLogs()
	v.openGroups()
}

// closeData releases data of a batch when its hook has returned.
func (v *vm) closeData() {
	d := &v.data
	d.records, d.lines, d.rows, d.cells = nil, nil, nil, nil
	d.texts.Forget() // parts of lines, which would keep the whole lines alive
	clear(d.read[:cap(d.read)])
	d.step.value, d.rowIterator.of = nil, nil
	d.spareCall.Forget()
}

// dataToGo is like toGo, for records and labels; other data consists of normal
// objects.
func (v *vm) dataToGo(o *goja.Object) (scripting.Value, bool) {
	switch x := hostOf(o).(type) {
	case *record:
		x.check()
		return scripting.Row(x.row), true
	case *line:
		x.check()
		return scripting.Row(x.row), true
	case *labels:
		m := scripting.NewMap()
		for n, val := range x.of.all() {
			m.Set(n, val)
		}
		return m, true
	}
	return nil, false
}

// names contains the types of the API with their JavaScript names.
type names struct {
	batch, record, copy, group, series      *scripting.ObjectType
	logs, line, lineCopy, lineGroup, stream *scripting.ObjectType
}

var named = sync.OnceValue(func() names {
	t := api.Get()
	return names{
		batch: camel(t.Batch), record: camel(t.Record), copy: camel(t.Copy), group: camel(t.Group), series: camel(t.Series),
		logs: camel(t.Logs), line: camel(t.Line), lineCopy: camel(t.LineCopy), lineGroup: camel(t.LineGroup), stream: camel(t.Stream),
	}
})

// camel returns a type with the JavaScript names of its members.
func camel(t *scripting.ObjectType) *scripting.ObjectType {
	out := &scripting.ObjectType{Name: t.Name}
	for _, f := range t.Fields {
		f.Name = scripting.CamelCase(f.Name)
		out.Fields = append(out.Fields, f)
	}
	for _, m := range t.Methods {
		m.Name = scripting.CamelCase(m.Name)
		out.Methods = append(out.Methods, m)
	}
	if t.Len != nil {
		out.Fields = append(out.Fields, scripting.Param{Name: "length"})
	}
	return out
}

// openMethods creates the methods of a type; fns must contain all of them.
func (v *vm) openMethods(t *scripting.ObjectType, fns map[string]func(goja.FunctionCall) goja.Value) map[string]goja.Value {
	ms := map[string]goja.Value{}
	for name, fn := range fns {
		ms[name] = v.function1(name, fn)
	}
	v.data.methods[t] = ms
	return ms
}

// member returns a member of a type that is not a field: a method, or a
// property of all objects. It throws if there is none.
func (v *vm) member(t *scripting.ObjectType, name string) goja.Value {
	if m, ok := v.data.methods[t][name]; ok {
		return m
	}
	if !asked[name] && v.intrinsics.objectProto.Get(name) == nil {
		v.raise(api.Unknown(t, name))
	}
	return nil
}

// has reports whether a type has a member called name. It is called for each
// assignment.
func has(t *scripting.ObjectType, name string) bool {
	for i := range t.Fields {
		if t.Fields[i].Name == name {
			return true
		}
	}
	_, ok := t.Method(name)
	return ok
}

// errLate is the error for a handle that is used after its hook.
var errLate = errors.New("cannot use a record after its hook returned: keep record.copy() instead")

// self returns the receiver of a method.
func self[T goja.DynamicObject](v *vm, call goja.FunctionCall, what string) T {
	t, ok := hostOf(call.This).(T)
	if !ok {
		v.raise(fmt.Errorf("cannot use %s as %s: call a method on what it belongs to", kindOf(call.This), what))
	}
	return t
}

// labelled is an object whose labels a script can access.
type labelled interface {
	label(name string) string
	setLabel(name, value string) error
	all() iter.Seq2[string, string]
}

// labels is record.labels and similar objects: any name is a label.
type labels struct {
	hosted
	v  *vm
	of labelled
}

func (l *labels) init(v *vm, of labelled) goja.Value {
	l.v, l.of = v, of
	return l.open(v.rt, v.data.proto.labels, l)
}

// Get returns the value of a label, or nil if it is missing.
func (l *labels) Get(name string) goja.Value {
	if s := l.of.label(name); s != "" {
		return l.v.data.texts.value(s)
	}
	return nil
}

// Set sets a label.
func (l *labels) Set(name string, x goja.Value) bool {
	l.v.must(l.of.setLabel(name, l.v.labelValue(x, name)))
	return true
}

// Has reports whether there is a label of that name.
func (l *labels) Has(name string) bool { return l.of.label(name) != "" }

// Delete removes a label.
func (l *labels) Delete(name string) bool {
	l.v.must(l.of.setLabel(name, ""))
	return true
}

// Keys returns the names of the labels.
func (l *labels) Keys() (names []string) {
	for n := range l.of.all() {
		names = append(names, n)
	}
	return names
}

func labelsText(l labelled) string {
	out := "{"
	for n, val := range l.all() {
		if out != "{" {
			out += ","
		}
		out += fmt.Sprintf("%s=%q", n, val)
	}
	return out + "}"
}

// labelValue converts a value for a label; undefined and null remove the label.
func (v *vm) labelValue(x goja.Value, name string) string {
	if s, ok := stringOf(x); ok {
		return s
	}
	switch {
	case absentValue(x):
		return ""
	case goja.IsNumber(x):
		return labelNumber(x)
	case goja.IsBigInt(x), isBoolean(x):
		return x.String()
	}
	v.raise(fmt.Errorf("cannot set label %q to %s: it must be a string", name, kindOf(x)))
	return ""
}

// labelNumber converts a number to the value of a label. Numbers that are not
// finite are written as in Lua, because a series must not depend on the
// language of a script.
func labelNumber(x goja.Value) string {
	switch n := x.ToFloat(); {
	case math.IsNaN(n):
		return "nan"
	case math.IsInf(n, 1):
		return "inf"
	case math.IsInf(n, -1):
		return "-inf"
	}
	return x.String()
}

// absentValue reports whether a value is undefined or null.
func absentValue(x goja.Value) bool { return x == nil || goja.IsUndefined(x) || goja.IsNull(x) }

// setLabels replaces all labels by the properties of an object.
func (v *vm) setLabels(l labelled, x goja.Value) { v.setPairs("labels", l, x) }

// setPairs replaces all labels, or all metadata, by the properties of an
// object.
func (v *vm) setPairs(what string, l labelled, x goja.Value) {
	want := view.Pairs{}
	if from, ok := hostOf(x).(*labels); ok {
		for n, val := range from.of.all() {
			want.Set(n, val)
		}
	} else {
		o := v.plain(x, "set "+what+" to")
		for name, val := range v.entries(o) {
			want.Set(name, v.labelValue(val, name))
		}
	}
	for n := range l.all() {
		if want.Get(n) == "" {
			v.must(l.setLabel(n, ""))
		}
	}
	for n, val := range want.All() {
		v.must(l.setLabel(n, val))
	}
}

// plain returns an object with names and values.
func (v *vm) plain(x goja.Value, use string) *goja.Object {
	o, ok := x.(*goja.Object)
	if !ok || o.ClassName() != "Object" || boxed(x) != nil {
		v.raise(fmt.Errorf("cannot %s %s: it must be an object", use, kindOf(x)))
	}
	return o
}

// entries yields the names and values of a script's object, except undefined
// ones.
func (v *vm) entries(o *goja.Object) iter.Seq2[string, goja.Value] {
	return func(yield func(string, goja.Value) bool) {
		for _, name := range v.keys(o) {
			if x := o.Get(name); x != nil && !goja.IsUndefined(x) && !yield(name, x) {
				return
			}
		}
	}
}

// record is a script's handle of one row: `m`. It stays valid as long as the
// hook runs, so a script may keep a record of the batch in a variable. After
// that, every use is an error.
type record struct {
	hosted
	labels labels // open when labels.v is set
	v      *vm
	row    int
	epoch  uint64
}

// handleBlock is the number of handles that are allocated together.
const handleBlock = 32

func (v *vm) newRecord(row int) *record {
	if len(v.data.records) == 0 {
		v.data.records = make([]record, handleBlock)
	}
	r := &v.data.records[0]
	v.data.records = v.data.records[1:]
	r.v, r.row, r.epoch = v, row, v.win.Epoch()
	r.open(v.rt, v.data.proto.record, r)
	return r
}

func (r *record) check() *view.Metrics {
	if r.v.win == nil || r.v.win.Epoch() != r.epoch {
		r.v.raise(errLate)
	}
	return r.v.win
}

func (r *record) label(name string) string          { return r.check().Label(r.row, name) }
func (r *record) setLabel(name, value string) error { return r.check().SetLabel(r.row, name, value) }
func (r *record) all() iter.Seq2[string, string]    { return r.check().Labels(r.row) }

// Get returns a field or a method.
func (r *record) Get(name string) goja.Value {
	v, m := r.v, r.check()
	switch name {
	case "labels":
		if r.labels.v == nil {
			return r.labels.init(v, r)
		}
		return r.labels.value()
	case "name":
		return v.data.texts.value(m.Name(r.row))
	case "value":
		return v.sampleValue(m, r.row)
	case "time":
		return v.data.numbers.int(m.Time(r.row))
	case "type":
		return v.data.texts.value(m.Type(r.row))
	case "help":
		return v.data.texts.value(m.Help(r.row))
	case "unit":
		return v.data.texts.value(m.Unit(r.row))
	case "stale":
		return boolOf(m.Stale(r.row))
	case "histogram":
		h, _ := m.Histogram(r.row)
		return v.histogram(h)
	case "exemplars":
		return v.exemplars(m.Exemplars(r.row))
	}
	return v.member(named().record, name)
}

// Set sets a field.
func (r *record) Set(name string, x goja.Value) bool {
	r.check()
	if name == "labels" {
		r.v.setLabels(r, x)
	} else {
		r.v.setField(r.row, name, x, false)
	}
	return true
}

// Has reports whether a record has a member of that name.
func (*record) Has(name string) bool { return has(named().record, name) }

// Delete refuses.
func (r *record) Delete(name string) bool {
	r.v.raise(fmt.Errorf("cannot delete %s of a record: set what can be set, or drop the record", name))
	return false
}

// Keys returns the names of the fields.
func (*record) Keys() []string { return scripting.Names(named().record.Fields) }

// sampleValue returns a row's value: NaN for a staleness marker, undefined for
// a native histogram.
func (v *vm) sampleValue(m *view.Metrics, row int) goja.Value {
	f, ok := m.Value(row)
	switch {
	case !ok:
		return goja.Undefined()
	case m.Stale(row):
		return goja.NaN()
	}
	return v.data.numbers.value(f)
}

func boolOf(b bool) goja.Value {
	if b {
		return trueValue
	}
	return falseValue
}

// setField sets a field of a row. label means that any other name is a label.
func (v *vm) setField(row int, field string, x goja.Value, label bool) {
	m := v.win
	switch field {
	case "value":
		v.must(m.SetValue(row, v.numberField(field, x)))
	case "name":
		v.must(m.SetName(row, v.stringField(field, x)))
	case "time":
		m.SetTime(row, v.timeField(x))
	case "stale":
		m.SetStale(row, v.boolField(field, x))
	default:
		if label && field != "type" && field != "help" && field != "unit" {
			v.must(m.SetLabel(row, field, v.labelValue(x, field)))
			return
		}
		v.raise(api.CannotSet(named().record, field))
	}
}

// cannotSet is the error for a value of the wrong type.
func cannotSet(field string, x goja.Value, want string) error {
	return fmt.Errorf("cannot set %s to %s: it must be %s", field, kindOf(x), want)
}

func (v *vm) numberField(field string, x goja.Value) float64 {
	f, ok := number(x)
	if !ok {
		v.raise(cannotSet(field, x, "a number"))
	}
	return f
}

func (v *vm) stringField(field string, x goja.Value) string {
	s, ok := stringOf(x)
	if !ok {
		v.raise(cannotSet(field, x, "a string"))
	}
	return s
}

func (v *vm) boolField(field string, x goja.Value) bool {
	b, ok := boolean(x)
	if !ok {
		v.raise(cannotSet(field, x, "true or false"))
	}
	return b
}

func (v *vm) timeField(x goja.Value) int64 {
	f, ok := number(x)
	if !ok || f != math.Trunc(f) || math.Abs(f) > maxSafe {
		v.raise(cannotSet("time", x, "a whole number of milliseconds"))
	}
	return int64(f)
}

// openRecord creates the methods of records and of their copies.
func (v *vm) openRecord() {
	ms := v.operations(named().record, func(call goja.FunctionCall, c *operation.Call) {
		r := self[*record](v, call, "a record")
		m := r.check()
		c.Window, c.Metrics, c.Logs, c.Record = &m.Window, m, nil, r.row
	})
	ms["toString"] = func(call goja.FunctionCall) goja.Value {
		r := self[*record](v, call, "a record")
		return v.data.texts.value(r.check().RowText(r.row))
	}
	v.openMethods(named().record, ms)
	v.openMethods(named().copy, map[string]func(goja.FunctionCall) goja.Value{
		"toString": func(call goja.FunctionCall) goja.Value {
			return v.data.texts.value("record " + self[*copied](v, call, "a record").rec.Name)
		},
	})
}

// own contains the labels or the metadata of a record that belongs to the
// script.
type own struct{ *view.Pairs }

func ownPairs(ls *[]batch.Label) own { return own{(*view.Pairs)(ls)} }

func (o own) label(name string) string { return o.Get(name) }
func (o own) setLabel(name, value string) error {
	o.Pairs.Set(name, value)
	return nil
}
func (o own) all() iter.Seq2[string, string] { return o.All() }

// copied is the result of record.copy(): a record that belongs to the script.
type copied struct {
	hosted
	v      *vm
	rec    view.Record
	labels labels
}

func (v *vm) newCopy(rec view.Record) goja.Value {
	c := &copied{v: v, rec: rec}
	c.labels.init(v, ownPairs(&c.rec.Labels))
	return c.open(v.rt, v.data.proto.record, c)
}

// Get returns a field or a method.
func (c *copied) Get(name string) goja.Value {
	d := &c.v.data
	switch name {
	case "labels":
		return c.labels.hosted.value()
	case "name":
		return d.texts.value(c.rec.Name)
	case "value":
		switch {
		case c.rec.Histogram.Int != nil || c.rec.Histogram.Float != nil:
			return goja.Undefined()
		case c.rec.Stale:
			return goja.NaN()
		}
		return d.numbers.value(c.rec.Value)
	case "time":
		return d.numbers.int(c.rec.Time)
	case "type":
		return d.texts.value(c.rec.Type)
	case "help":
		return d.texts.value(c.rec.Help)
	case "unit":
		return d.texts.value(c.rec.Unit)
	case "stale":
		return boolOf(c.rec.Stale)
	case "histogram":
		return c.v.histogram(c.rec.Histogram)
	case "exemplars":
		return c.v.exemplars(c.rec.Exemplars)
	}
	return c.v.member(named().copy, name)
}

// Set sets a field.
func (c *copied) Set(name string, x goja.Value) bool {
	if name == "labels" {
		c.v.setLabels(ownPairs(&c.rec.Labels), x)
	} else {
		c.v.setRecord(&c.rec, name, x)
	}
	return true
}

// Has reports whether a copy has a member of that name.
func (*copied) Has(name string) bool { return has(named().copy, name) }

// Delete refuses.
func (c *copied) Delete(name string) bool {
	c.v.raise(fmt.Errorf("cannot delete %s of a record: set what can be set", name))
	return false
}

// heldBytes returns the size of a copy.
func (c *copied) heldBytes() int { return c.rec.Held() }

// Keys returns the names of the fields.
func (*copied) Keys() []string { return scripting.Names(named().copy.Fields) }

// setRecord sets a field of a record that will be emitted.
func (v *vm) setRecord(r *view.Record, name string, x goja.Value) {
	switch name {
	case "name":
		r.Name = v.stringField(name, x)
	case "type":
		r.Type = v.stringField(name, x)
	case "help":
		r.Help = v.stringField(name, x)
	case "unit":
		r.Unit = v.stringField(name, x)
	case "value":
		v.must(r.SetValue(v.numberField(name, x)))
	case "time":
		r.Time = v.timeField(x)
	case "stale":
		r.Stale = v.boolField(name, x)
	default:
		v.raise(api.CannotSet(named().copy, name))
	}
}
