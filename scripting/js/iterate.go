package js

import (
	"errors"
	"fmt"

	"github.com/dop251/goja"

	"github.com/weir-run/weir/engine/view"
)

// iterator is the result of rows, records and groupBy. A for of loop can
// iterate over it once.
type iterator struct {
	hosted
	sealed
	step  step // the result of a step, reused for all steps
	v     *vm
	more  func() (goja.Value, bool)
	ended bool
	holds int // bytes
}

// heldBytes returns the size of the iterated data that belongs to the iterator.
func (it *iterator) heldBytes() int { return it.holds }

// step is a result of an iterator, { value, done }.
type step struct {
	hosted
	sealed
	value goja.Value
	done  bool
}

// Get returns value or done.
func (s *step) Get(name string) goja.Value {
	switch name {
	case "done":
		return boolOf(s.done)
	case "value":
		return s.value
	}
	return nil
}

// Get returns the method next.
func (it *iterator) Get(name string) goja.Value {
	if name == "next" {
		return it.v.data.next.iterator
	}
	return nil
}

// iterate returns an iterator over the results of more, which holds the given
// number of bytes.
func (v *vm) iterate(holds int, more func() (goja.Value, bool)) goja.Value {
	it := &iterator{v: v, more: more, holds: holds}
	it.step.open(v.rt, nil, &it.step)
	return it.open(v.rt, v.data.proto.iterator, it)
}

// iterateRows returns an iterator over the rows that are not dropped.
func (v *vm) iterateRows(m *view.Window, what string, give func(row int) goja.Value) goja.Value {
	row, epoch := -1, m.Epoch()
	return v.iterate(0, func() (goja.Value, bool) {
		v.alive(m, epoch, what)
		if row = m.Next(row + 1); row < 0 {
			row = m.Len()
			return nil, false
		}
		return give(row), true
	})
}

// alive checks that the hook still runs in which an object of its batch was
// created.
func (v *vm) alive(m *view.Window, epoch uint64, what string) {
	if v.current() != m || m.Epoch() != epoch {
		v.raise(fmt.Errorf("cannot use %s after its hook returned", what))
	}
}

// openIterators creates the common prototypes of iterators and rows.
func (v *vm) openIterators() {
	d := &v.data
	d.proto.iterator = v.rt.CreateObject(nil)
	v.must(d.proto.iterator.SetSymbol(goja.SymIterator, v.function1("[Symbol.iterator]", func(call goja.FunctionCall) goja.Value { return call.This })))
	v.freeze(d.proto.iterator)
	d.next.iterator = v.function1("next", func(call goja.FunctionCall) goja.Value {
		it := self[*iterator](v, call, "an iterator")
		it.step.value = nil
		if !it.ended {
			var more bool
			it.step.value, more = it.more()
			it.ended = !more
		}
		it.step.done = it.ended
		return it.step.hosted.value()
	})
	array := v.rt.GlobalObject().Get("Array").(*goja.Object).Get("prototype").(*goja.Object)
	d.proto.row = v.rt.CreateObject(array)
	v.must(d.proto.row.SetSymbol(goja.SymIterator, v.function1("values", v.rowIterator)))
	v.freeze(d.proto.row)
	d.step.open(v.rt, nil, &d.step)
	d.next.row = v.function1("next", v.nextValue)
}

// rowValues is an element of an iterator over rows: [i, job, v].
type rowValues struct {
	hosted
	v      *vm
	values []goja.Value
}

// rowIterator iterates over the values of a row, for destructuring. A VM reuses
// one, and creates another while it is in use.
type rowIterator struct {
	hosted
	sealed
	v  *vm
	of *rowValues // nil if it is free
	at int
}

// newRow returns an array of n unset values.
func (v *vm) newRow(n int) *rowValues {
	d := &v.data
	if len(d.rows) == 0 {
		d.rows = make([]rowValues, handleBlock)
	}
	if len(d.cells) < n {
		d.cells = make([]goja.Value, max(n, handleBlock*4))
	}
	r := &d.rows[0]
	d.rows = d.rows[1:]
	r.values, d.cells = d.cells[:n:n], d.cells[n:]
	r.v = v
	r.openArray(v.rt, d.proto.row, r)
	return r
}

// Len returns the number of values.
func (r *rowValues) Len() int { return len(r.values) }

// Get returns a value.
func (r *rowValues) Get(i int) goja.Value {
	if i < 0 || i >= len(r.values) {
		return nil
	}
	return r.values[i]
}

// Set refuses.
func (r *rowValues) Set(int, goja.Value) bool {
	r.v.raise(errors.New("cannot assign to a row: batch.set sets the fields of its record"))
	return false
}

// SetLen refuses.
func (r *rowValues) SetLen(int) bool { return r.Set(0, nil) }

// heldBytes returns the size of the values: primitives, and the group of
// groupBy.
func (r *rowValues) heldBytes() int {
	n := 16 * len(r.values)
	for _, x := range r.values {
		if s, ok := x.(goja.String); ok {
			n += s.Length()
		} else if g, ok := arrayOf(x).(*group); ok {
			n += g.heldBytes()
		}
	}
	return n
}

// rowIterator implements Symbol.iterator of a row.
func (v *vm) rowIterator(call goja.FunctionCall) goja.Value {
	r, ok := arrayOf(call.This).(*rowValues)
	if !ok {
		v.raise(fmt.Errorf("cannot go over %s as over a row", kindOf(call.This)))
	}
	it := &v.data.rowIterator
	if it.of != nil {
		it = new(rowIterator)
	}
	it.of, it.at = r, 0
	if it.v == nil {
		it.v = v
		return it.open(v.rt, v.data.proto.iterator, it)
	}
	return it.value()
}

func (v *vm) nextValue(call goja.FunctionCall) goja.Value {
	it := self[*rowIterator](v, call, "an iterator")
	s := &v.data.step
	s.done, s.value = true, nil
	if it.of != nil && it.at < len(it.of.values) {
		s.done, s.value = false, it.of.values[it.at]
		it.at++
	} else {
		it.of = nil
	}
	return s.hosted.value()
}

// Get returns the method next. A caller that reads return has finished with the
// row.
func (it *rowIterator) Get(name string) goja.Value {
	switch name {
	case "next":
		return it.v.data.next.row
	case "return":
		it.of = nil
	}
	return nil
}
