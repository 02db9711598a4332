package js

import (
	"fmt"
	"reflect"
	"time"
	"unsafe"

	"github.com/dop251/goja"

	"github.com/weir-run/weir/scripting"
)

const (
	// retainedEvery is the CPU time of the script after which the VM's memory
	// between calls is measured. The interval is longer if measuring took long.
	retainedEvery = 20 * time.Millisecond
)

// retained regularly measures the memory of the VM between calls: values in a
// variable of a file stay and could accumulate.
func (v *vm) retained() error {
	if v.broken || v.budget.worked < max(retainedEvery, v.walked*heapShare) && !v.hoards() {
		return nil
	}
	v.budget.worked, v.data.texts.given = 0, 0
	began := time.Now()
	size := v.sandbox.held(int(v.budget.heap.limit))
	v.walked = time.Since(began)
	v.budget.heap.known.Store(int64(size))
	if v.budget.heap.limit == 0 || int64(size) <= v.budget.heap.limit {
		return nil
	}
	v.broken = true
	e := v.prog.main.file.Error(0, v.hook, fmt.Errorf("%w: the script holds more than %s between calls%s", scripting.ErrLimit, sizeText(v.budget.heap.limit), v.budget.heap.setting))
	e.Hint = "a variable outside of the hooks grows; each VM has its own, and it now starts again"
	return e
}

// hoards reports whether the script has received so many long texts since the
// last measurement that it may use much more memory, even in a short time. The
// threshold is one byte per nanosecond of a measurement.
func (v *vm) hoards() bool {
	limit := v.budget.heap.limit
	return limit > 0 && v.data.texts.given > max(limit/2, v.walked.Nanoseconds())
}

// held returns the size of the VM in bytes, or any value over limit if it is
// larger. It includes everything that is reachable from the runtime and from
// kept, including its stack, closures and suspended functions. It must run on
// the goroutine of the VM. It does not include values that the host shares with
// the VM, or data in Go closures: the arguments of bound functions, and pending
// jobs.
func (s *sandbox) held(limit int) int {
	w := walker{seen: map[unsafe.Pointer]struct{}{}, texts: map[*byte]int{}, limit: limit}
	w.todo = append(w.todo, place{shapeOf(reflect.TypeFor[goja.Runtime]()), unsafe.Pointer(s.rt)})
	if s.kept != nil {
		for x := range s.kept {
			w.iface(valueType, unsafe.Pointer(&x))
		}
	}
	for len(w.todo) > 0 && w.size <= limit {
		p := w.todo[len(w.todo)-1]
		w.todo = w.todo[:len(w.todo)-1]
		w.visit(p.shape, p.at)
	}
	return w.size
}
