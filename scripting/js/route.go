package js

import (
	"errors"
	"fmt"
	"slices"

	"github.com/dop251/goja"

	"github.com/weir-run/weir/engine/view"
	"github.com/weir-run/weir/scripting"
)

// ctxEmit implements ctx.emit({ name, labels, value, time }), or of a copy or a
// current record. To end an emitted series, a script emits a record with stale
// set, such as a copy of a stale record.
func (v *vm) ctxEmit(call goja.FunctionCall) goja.Value {
	if v.out == nil && v.outLogs == nil {
		v.raise(v.notSent("", ""))
	}
	v.emitTo(0, call.Argument(0))
	return goja.Undefined()
}

// ctxRoute implements ctx.route(output, record). A record of the batch, or its
// row number, is sent to the output instead of forward_to. A copy or an object
// is sent there in addition.
func (v *vm) ctxRoute(call goja.FunctionCall) goja.Value {
	if v.out == nil && v.outLogs == nil {
		v.raise(errors.New("cannot use ctx.route here: it is for metrics, logs, every, poll, run and http"))
	}
	name, ok := stringOf(call.Argument(0))
	if !ok {
		v.raise(fmt.Errorf("cannot route to %s: write ctx.route(\"output\", record)", kindOf(call.Argument(0))))
	}
	way, err := v.prog.def.Way(name)
	v.must(reworded(err))
	x := call.Argument(1)
	switch r := hostOf(x).(type) {
	case *record:
		r.check().Route(r.row, way)
		return goja.Undefined()
	case *line:
		r.check().Route(r.row, way)
		return goja.Undefined()
	}
	if absentValue(x) {
		v.raise(fmt.Errorf("cannot route nothing: write ctx.route(%q, record)", name))
	}
	if goja.IsNumber(x) {
		m := v.current()
		if m == nil {
			v.raise(errors.New("cannot route a record by its number here: there is no batch"))
		}
		m.Route(v.rowNumber(m, x), way)
		return goja.Undefined()
	}
	v.emitTo(way, x)
	return goja.Undefined()
}

// emitTo emits a record, a copy or an object to a way.
func (v *vm) emitTo(way int, x goja.Value) {
	if v.emit--; v.emit < 0 {
		v.must(v.budget.stopCall(fmt.Errorf("%w: the call emitted more than %d records, the limit is script.limits.emit", scripting.ErrLimit, v.call.Emit)))
	}
	v.must(v.budget.charge(10))
	switch r := hostOf(x).(type) {
	case *copied:
		rec := r.rec
		rec.Labels = slices.Clone(r.rec.Labels)
		v.emitSample(way, rec)
	case *record:
		v.emitSample(way, r.check().Copy(r.row))
	case *copiedLine:
		v.emitLine(way, r.rec)
	case *line:
		v.emitLine(way, r.check().Copy(r.row))
	default:
		o, ok := x.(*goja.Object)
		if !ok || o.ClassName() != "Object" || boxed(x) != nil || r != nil {
			v.raise(fmt.Errorf("cannot emit %s: it must be an object or a record", kindOf(x)))
		}
		if !absentValue(o.Get("line")) {
			v.emitLine(way, v.lineObject(o))
		} else {
			v.emitSample(way, v.sampleObject(o))
		}
	}
}

// sampleObject converts an object to a sample.
func (v *vm) sampleObject(o *goja.Object) view.Record {
	rec := view.Record{Time: v.call.Now.UnixMilli()}
	if v.out != nil && v.out.Batch().Len() > 0 {
		rec.Time = v.out.Batch().T[0]
	}
	value := false
	for name, x := range v.entries(o) {
		if name == "labels" {
			v.setLabels(ownPairs(&rec.Labels), x)
			continue
		}
		value = value || name == "value" || name == "stale"
		v.setRecord(&rec, name, x)
	}
	if !value {
		v.raise(errors.New("cannot emit a record without a value, or a line if it is a log record"))
	}
	return rec
}

// lineObject converts an object to a log record.
func (v *vm) lineObject(o *goja.Object) view.LogRecord {
	rec := view.LogRecord{T: v.call.Now.UnixNano()}
	if m := v.lines; m != nil && m.Batch().Len() > 0 {
		rec.T = m.Batch().T[0]
	}
	for name, x := range v.entries(o) {
		v.setLogRecord(&rec, name, x)
	}
	return rec
}

// emitSample implements ctx.emit of a sample.
func (v *vm) emitSample(way int, rec view.Record) {
	if v.out == nil {
		v.raise(v.notSent("samples", "metrics"))
	}
	v.must(v.out.EmitTo(way, rec))
}

// emitLine implements ctx.emit of a log record.
func (v *vm) emitLine(way int, rec view.LogRecord) {
	if v.outLogs == nil {
		v.raise(v.notSent("log records", "logs"))
	}
	v.must(v.budget.charge(int64(len(rec.Line) >> 7)))
	v.must(v.outLogs.EmitTo(way, rec))
}

// notSent is the error for emitting a signal that the script does not send.
func (v *vm) notSent(what, signal string) error {
	if v.out == nil && v.outLogs == nil {
		return errors.New("cannot use ctx.emit here: it is for metrics, logs, every, poll, run and http")
	}
	return fmt.Errorf(`cannot emit %s: the script does not send %s; add sends: ["metrics", "logs"] to its definition`, what, signal)
}
