package js

import (
	"slices"
	"strconv"

	"github.com/dop251/goja"

	"github.com/weir-run/weir/scripting"
)

// lengthOf returns the length of a list or an array-like object.
func (s *sandbox) lengthOf(o *goja.Object) int64 {
	v := o.Get("length")
	if v == nil {
		return 0
	}
	return max(0, v.ToInteger())
}

func (s *sandbox) tooLong(n int64) {
	s.rangeError("cannot go over a list of %d items: the limit is %d", n, maxItems)
}

// lent returns an object that replaces o for a native function that iterates
// over all items. It is o itself if o is a list of limited length, so that the
// loop is limited.
func (s *sandbox) lent(o *goja.Object) *goja.Object {
	k := s.layout.kindOf(o)
	if k.buffer {
		return o
	}
	if k.array && s.lengthOf(o) <= maxItems {
		return o
	}
	if !k.array && s.plainLength(o) {
		return o
	}
	return s.rt.NewDynamicObject(&lentList{s, o, s.rt.ToValue(s.lengthOf(o))})
}

// plainLength reports whether o has an own length property that is a small
// number and not computed.
func (s *sandbox) plainLength(o *goja.Object) bool {
	if !s.layout.kindOf(o).plain {
		return false
	}
	v, ok := (*base)(s.layout.data(o)).values["length"]
	if p := s.layout.asProperty(v); p != nil {
		if p.accessor {
			return false
		}
		v = p.value
	}
	return ok && v != nil && goja.IsNumber(v) && v.ToInteger() <= shortList
}

// lentList replaces an object that may be too long for native functions. Its
// length is read once, and each access to an item checks the budget.
type lentList struct {
	s      *sandbox
	o      *goja.Object
	length goja.Value
}

// Get returns a property of the list.
func (l *lentList) Get(key string) goja.Value {
	l.s.budget.check()
	if key == "length" {
		return l.length
	}
	return l.o.Get(key)
}

// Set changes the list.
func (l *lentList) Set(key string, v goja.Value) bool {
	l.s.budget.check()
	if key == "length" {
		l.length = v
	}
	if err := l.o.Set(key, v); err != nil {
		panic(err)
	}
	return true
}

// Has reports whether the list or its prototype has a property.
func (l *lentList) Has(key string) bool {
	l.s.budget.check()
	return key == "length" || l.s.has(l.o, key)
}

// Delete deletes a property of the list.
func (l *lentList) Delete(key string) bool {
	l.s.budget.check()
	if err := l.o.Delete(key); err != nil {
		panic(err)
	}
	return true
}

// Keys returns the keys of the list.
func (l *lentList) Keys() []string { return l.o.Keys() }

// has implements the operator in.
func (s *sandbox) has(o *goja.Object, key string) bool {
	if s.reflectHas == nil {
		s.reflectHas, _ = goja.AssertFunction(s.rt.Get("Reflect").(*goja.Object).Get("has"))
	}
	v, err := s.reflectHas(goja.Undefined(), o, s.rt.ToValue(key))
	if err != nil {
		panic(err)
	}
	return v.ToBoolean()
}

// overList limits the loop of a list function over this.
func (s *sandbox) overList(f nativeFunc) nativeFunc {
	return func(call goja.FunctionCall) goja.Value {
		this := object(call.This)
		if this == nil {
			return f(call)
		}
		lent := s.lent(this)
		if lent == this {
			return f(call)
		}
		call.This = lent
		// The callback gets the list itself.
		for i, v := range call.Arguments {
			if fn, ok := goja.AssertFunction(v); ok && i == 0 {
				call.Arguments = append([]goja.Value(nil), call.Arguments...)
				call.Arguments[0] = s.rt.ToValue(func(c goja.FunctionCall) goja.Value {
					for j, a := range c.Arguments {
						if a == lent {
							c.Arguments = append([]goja.Value(nil), c.Arguments...)
							c.Arguments[j] = this
						}
					}
					got, err := fn(c.This, c.Arguments...)
					if err != nil {
						panic(err)
					}
					return got
				})
			}
		}
		if got := f(call); got != lent {
			return got
		}
		return this
	}
}

// copied limits functions that create a list as long as this at once.
func (s *sandbox) copied(f nativeFunc) nativeFunc {
	over := s.overList(f)
	return func(call goja.FunctionCall) goja.Value {
		if o := object(call.This); o != nil {
			lent := s.lent(o)
			if n := s.lengthOf(lent); n > maxItems {
				s.tooLong(n)
			}
			call.This = lent
		}
		return over(call)
	}
}

// sort limits a sort without a comparison function, which compares items as
// texts, by passing a comparison function that checks the budget.
func (s *sandbox) sort(f nativeFunc) nativeFunc {
	over := s.copied(f)
	return func(call goja.FunctionCall) goja.Value {
		if o := object(call.This); o != nil && isUndefined(call.Argument(0)) && s.layout.kindOf(o).array && s.lengthOf(o) > shortList {
			call.Arguments = []goja.Value{s.rt.ToValue(func(c goja.FunctionCall) goja.Value {
				s.budget.check()
				return s.rt.ToValue(s.text(c.Argument(0)).CompareTo(s.text(c.Argument(1))))
			})}
		}
		return over(call)
	}
}

// concatLists limits the length of concatenated lists.
func (s *sandbox) concatLists(f nativeFunc) nativeFunc {
	return func(call goja.FunctionCall) goja.Value {
		n := int64(0)
		for _, v := range append([]goja.Value{call.This}, call.Arguments...) {
			o := object(v)
			if o == nil {
				continue
			}
			k := s.layout.kindOf(o)
			spread := o.GetSymbol(goja.SymIsConcatSpreadable)
			if !k.array && (k.name == "proxyObject" || !isUndefined(spread)) && !s.plainLength(o) {
				panic(s.rt.NewTypeError("cannot join what is no list to a list: copy it by Array.from"))
			}
			if k.array {
				n += s.lengthOf(o)
			}
		}
		if n > maxItems {
			s.tooLong(n)
		}
		return f(call)
	}
}

// fromList limits a list that is created from an array-like object without an
// iterator.
func (s *sandbox) fromList(f nativeFunc) nativeFunc {
	return func(call goja.FunctionCall) goja.Value {
		o := object(call.Argument(0))
		if o == nil || s.layout.kindOf(o).array || s.layout.kindOf(o).buffer || !isUndefined(o.GetSymbol(goja.SymIterator)) {
			return f(call)
		}
		lent := s.lent(o)
		if n := s.lengthOf(lent); n > maxItems {
			s.tooLong(n)
		}
		call.Arguments = append([]goja.Value{lent}, call.Arguments[1:]...)
		return f(call)
	}
}

// fewArgs limits a list that is converted to arguments.
func (s *sandbox) fewArgs(f nativeFunc) nativeFunc {
	return func(call goja.FunctionCall) goja.Value {
		for i, v := range call.Arguments {
			o := object(v)
			if o == nil {
				continue
			}
			if _, function := goja.AssertFunction(o); function {
				continue
			}
			k := s.layout.kindOf(o)
			lent := o
			if !k.array && !k.buffer && k.name != "argumentsObject" {
				if isUndefined(o.Get("length")) {
					continue
				}
				lent = s.lent(o)
			}
			if n := s.lengthOf(lent); n > maxArgs {
				s.rangeError("cannot pass %d arguments: the limit is %d", n, maxArgs)
			}
			if lent != o {
				call.Arguments = append([]goja.Value(nil), call.Arguments...)
				call.Arguments[i] = lent
			}
		}
		return f(call)
	}
}

// join implements joining the items of a list, because the lengths of their
// texts are not known in advance.
func (s *sandbox) join(nativeFunc) nativeFunc {
	return func(call goja.FunctionCall) goja.Value {
		o := call.This.ToObject(s.rt)
		if slices.Contains(s.joining, o) {
			return s.rt.ToValue("")
		}
		s.joining = append(s.joining, o)
		defer func() { s.joining = s.joining[:len(s.joining)-1] }()

		n := s.lengthOf(o)
		sep := s.text(s.rt.ToValue(","))
		if v := call.Argument(0); !isUndefined(v) {
			sep = s.text(v)
		}
		var b goja.StringBuilder
		size := int64(0)
		for i := range n {
			s.budget.check()
			var item goja.String
			if v := o.Get(strconv.FormatInt(i, 10)); !isUndefined(v) && !goja.IsNull(v) {
				item = s.text(v)
				size += int64(item.Length())
			}
			if i > 0 {
				size += int64(sep.Length())
			}
			if size > scripting.MaxString {
				s.tooLarge(size)
			}
			if i > 0 {
				b.WriteString(sep)
			}
			if item != nil {
				b.WriteString(item)
			}
		}
		s.chargeString(size)
		return b.String()
	}
}

// joinNumbers limits the text for the items of a buffer.
func (s *sandbox) joinNumbers(f nativeFunc) nativeFunc {
	return func(call goja.FunctionCall) goja.Value {
		if o := object(call.This); o != nil && s.layout.kindOf(o).buffer {
			sep := s.text(s.rt.ToValue(","))
			if v := call.Argument(0); !isUndefined(v) {
				sep = s.text(v)
			}
			s.room(s.lengthOf(o) * int64(sep.Length()))
			call.Arguments = []goja.Value{sep}
		}
		return f(call)
	}
}
