package lua

import (
	lua "github.com/yuin/gopher-lua"

	"github.com/weir-run/weir/engine/batch"
)

// histogramTable is a native histogram in a script: a table of its own, buckets
// from the lowest to the highest. nil for none.
func (v *vm) histogramTable(L *lua.LState, h batch.Histogram) lua.LValue {
	f := h.Float
	switch {
	case h.Int != nil:
		f = h.Int.ToFloat(nil)
	case f == nil:
		return lua.LNil
	}
	t := L.CreateTable(0, 6)
	for name, x := range map[string]float64{
		"count": f.Count, "sum": f.Sum, "schema": float64(f.Schema), "zero_count": f.ZeroCount, "zero_threshold": f.ZeroThreshold,
	} {
		t.RawSetString(name, v.values.numbers.value(x))
	}
	buckets := L.NewTable()
	for it := f.AllBucketIterator(); it.Next(); {
		v.must(L, v.budget.charge(5))
		b := it.At()
		bucket := L.CreateTable(0, 3)
		bucket.RawSetString("lower", v.values.numbers.value(b.Lower))
		bucket.RawSetString("upper", v.values.numbers.value(b.Upper))
		bucket.RawSetString("count", v.values.numbers.value(b.Count))
		buckets.Append(bucket)
	}
	t.RawSetString("buckets", buckets)
	return t
}

// exemplarsTable is a list of exemplars in a script: tables of its own. nil for
// none.
func (v *vm) exemplarsTable(L *lua.LState, es []batch.Exemplar) lua.LValue {
	if len(es) == 0 {
		return lua.LNil
	}
	list := L.CreateTable(len(es), 0)
	for _, e := range es {
		v.must(L, v.budget.charge(int64(5+2*len(e.Labels))))
		labels := L.CreateTable(0, len(e.Labels))
		for _, l := range e.Labels {
			labels.RawSetString(l.Name, lua.LString(l.Value))
		}
		t := L.CreateTable(0, 3)
		t.RawSetString("labels", labels)
		t.RawSetString("value", v.values.numbers.value(e.Value))
		if e.HasT {
			t.RawSetString("time", v.values.numbers.value(float64(e.T)))
		}
		list.Append(t)
	}
	return list
}
