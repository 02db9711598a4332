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
	// retainedEvery is after how much time of the script it is added up what a VM
	// holds between calls; it waits longer when that took long.
	retainedEvery = 20 * time.Millisecond
)

// retained looks now and then at what the VM holds between calls: what a script
// puts into a variable of its file stays, and would add up.
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
	e.Hint = "a variable outside of the hooks grows; each VM has its own, and it now starts anew"
	return e
}

// hoards reports whether the script got so many long texts since the last look that
// it may hold much more memory, in however little time. A look is worth a byte for
// each nanosecond that it takes.
func (v *vm) hoards() bool {
	limit := v.budget.heap.limit
	return limit > 0 && v.data.texts.given > max(limit/2, v.walked.Nanoseconds())
}

// held is what the VM holds, in bytes, or something over limit: all that can be
// reached from the runtime and from kept, their stack and what closures and suspended
// functions have included. It must run on the goroutine that the VM runs on. What the host
// shares with the VM is not among it, nor what is in Go's own closures: what a
// bound function is bound to, and jobs that wait.
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
