package js

import (
	"github.com/dop251/goja"

	"github.com/weir-run/weir/engine/batch"
)

// histogram converts a native histogram to a separate script object, with
// buckets from lowest to highest. It returns undefined if there is none.
func (v *vm) histogram(h batch.Histogram) goja.Value {
	f := h.Float
	switch {
	case h.Int != nil:
		f = h.Int.ToFloat(nil)
	case f == nil:
		return goja.Undefined()
	}
	n := &v.data.numbers
	o := v.rt.NewObject()
	v.put(o, "count", n.value(f.Count))
	v.put(o, "sum", n.value(f.Sum))
	v.put(o, "schema", n.value(float64(f.Schema)))
	v.put(o, "zeroCount", n.value(f.ZeroCount))
	v.put(o, "zeroThreshold", n.value(f.ZeroThreshold))
	var buckets []any
	for it := f.AllBucketIterator(); it.Next(); {
		v.must(v.budget.charge(5))
		at := it.At()
		b := v.rt.NewObject()
		v.put(b, "lower", n.value(at.Lower))
		v.put(b, "upper", n.value(at.Upper))
		v.put(b, "count", n.value(at.Count))
		buckets = append(buckets, b)
	}
	v.put(o, "buckets", v.rt.NewArray(buckets...))
	return o
}

// exemplars converts exemplars to a list of separate script objects. It returns
// undefined if there are none.
func (v *vm) exemplars(es []batch.Exemplar) goja.Value {
	if len(es) == 0 {
		return goja.Undefined()
	}
	d := &v.data
	var list []any
	for _, e := range es {
		v.must(v.budget.charge(int64(5 + 2*len(e.Labels))))
		labels := v.rt.NewObject()
		for _, l := range e.Labels {
			v.put(labels, l.Name, d.texts.value(l.Value))
		}
		o := v.rt.NewObject()
		v.put(o, "labels", labels)
		v.put(o, "value", d.numbers.value(e.Value))
		if e.HasT {
			v.put(o, "time", d.numbers.int(e.T))
		}
		list = append(list, o)
	}
	return v.rt.NewArray(list...)
}
