package js

import (
	"errors"

	"github.com/dop251/goja"

	"github.com/weir-run/weir/scripting"
)

// data is what a VM has for scripts to see batches.
type data struct{}

// openData makes what scripts see of batches.
func (v *vm) openData() {
	v.batch, v.series, v.stream, v.logBatch = v.rt.NewObject(), v.rt.NewObject(), v.rt.NewObject(), v.rt.NewObject()
}

// closeData ends the life of handles when a hook has returned.
func (v *vm) closeData() {}

// dataToGo is toGo for records, labels and the like.
func (v *vm) dataToGo(o *goja.Object) (scripting.Value, bool) { return nil, false }

// ctxEmit is ctx.emit({ name, labels, value, time }), or of a copy or a record.
func (v *vm) ctxEmit(call goja.FunctionCall) goja.Value {
	v.emitting()
	v.raise(errors.New("cannot emit: it is not supported yet"))
	return nil
}

// ctxRoute is ctx.route(output, record).
func (v *vm) ctxRoute(call goja.FunctionCall) goja.Value {
	v.raise(errors.New("cannot route: it is not supported yet"))
	return nil
}
