package js

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/dop251/goja"

	"github.com/weir-run/weir/scripting"
)

// maxShownKeys is the maximum number of property names in the value of an object.
const maxShownKeys = 5

// show returns a value for a debugger. It may call getters of the script.
func (p *paused) show(name string, x goja.Value) scripting.Variable {
	out := scripting.Variable{Name: name, Type: strings.TrimPrefix(strings.TrimPrefix(kindOf(x), "a "), "an "), True: x.ToBoolean()}
	if ex := p.v.rt.Try(func() { out.Value, out.Fields = p.value(x) }); ex != nil {
		out.Value = "error: " + p.v.reason(ex.Value()).Error()
	}
	if len(out.Value) > 2*scripting.MaxShownValue {
		out.Value = strings.ToValidUTF8(out.Value[:scripting.MaxShownValue], "") + "…"
	}
	return out
}

// value returns the text of a value, and a function for the values in it.
func (p *paused) value(x goja.Value) (string, func() []scripting.Variable) {
	o := objectOf(x)
	switch {
	case o != nil:
		return p.object(o)
	case goja.IsString(x):
		return scripting.ShowString(x.String()), nil
	case goja.IsBigInt(x):
		return x.String() + "n", nil
	}
	if n, ok := primitive(x).(float64); ok && n == 0 && math.Signbit(n) {
		return "-0", nil
	}
	if sym, ok := x.(*goja.Symbol); ok {
		return "Symbol(" + sym.String() + ")", nil
	}
	return x.String(), nil
}

func (p *paused) object(o *goja.Object) (string, func() []scripting.Variable) {
	if rows := p.rows(o); rows != nil || o == p.v.batch || o == p.v.logBatch {
		return o.String(), rows
	}
	if isFunction(o) {
		if name := o.Get("name"); name != nil && name.String() != "" {
			return "function " + name.String(), nil
		}
		return "function", nil
	}
	if x := boxed(o); x != nil {
		return boxText(x), nil
	}
	class := o.ClassName()
	switch collection(o) {
	case "Map":
		return fmt.Sprintf("Map(%s)", o.Get("size")), p.items(o)
	case "Set":
		return fmt.Sprintf("Set(%s)", o.Get("size")), p.items(o)
	}
	switch {
	case promiseOf(o) != nil:
		return p.promise(promiseOf(o))
	case class == "Array":
		return fmt.Sprintf("Array(%d)", p.v.sandbox.lengthOf(o)), p.elements(o)
	case class == "Error":
		return messageOf(o), p.properties(o, p.v.keys(o))
	case class == "Date", class == "RegExp", class == "Number", class == "String", class == "Boolean":
		return o.String(), nil
	}
	keys := p.v.keys(o)
	if hostOf(o) != nil {
		return o.String(), p.properties(o, keys)
	}
	shown := strings.Join(keys[:min(len(keys), maxShownKeys)], ", ")
	if len(keys) > maxShownKeys {
		shown += ", …"
	}
	if c := objectOf(orUndefined(o.Get("constructor"))); c != nil && isFunction(c) {
		if name := c.Get("name"); name != nil && name.String() != "" && name.String() != "Object" {
			return name.String() + " {" + shown + "}", p.properties(o, keys)
		}
	}
	return "{" + shown + "}", p.properties(o, keys)
}

func (p *paused) promise(x *goja.Promise) (string, func() []scripting.Variable) {
	switch x.State() {
	case goja.PromiseStatePending:
		return "Promise, pending", nil
	case goja.PromiseStateRejected:
		return "Promise, rejected", p.single(x.Result())
	}
	return "Promise, fulfilled", p.single(x.Result())
}

func (p *paused) single(x goja.Value) func() []scripting.Variable {
	return func() []scripting.Variable {
		return p.list(func(add func(scripting.Variable)) { add(p.show("result", orUndefined(x))) })
	}
}

// properties returns the values of properties.
func (p *paused) properties(o *goja.Object, keys []string) func() []scripting.Variable {
	return p.bounded(len(keys), func(i int) scripting.Variable { return p.property(o, keys[i], keys[i]) })
}

// elements returns the items of a list.
func (p *paused) elements(o *goja.Object) func() []scripting.Variable {
	return p.bounded(int(p.v.sandbox.lengthOf(o)), func(i int) scripting.Variable {
		return p.property(o, "["+strconv.Itoa(i)+"]", strconv.Itoa(i))
	})
}

// property reads a property, which may have a getter of the script.
func (p *paused) property(o *goja.Object, name, key string) scripting.Variable {
	x := goja.Undefined()
	if ex := p.v.rt.Try(func() { x = orUndefined(o.Get(key)) }); ex != nil {
		return scripting.Variable{Name: name, Value: "error: " + p.v.reason(ex.Value()).Error()}
	}
	return p.show(name, x)
}

// bounded returns the first of n values.
func (p *paused) bounded(n int, get func(i int) scripting.Variable) func() []scripting.Variable {
	if n == 0 {
		return nil
	}
	return func() []scripting.Variable {
		return p.list(func(add func(scripting.Variable)) {
			for i := range min(n, scripting.MaxFields) {
				add(get(i))
			}
			if n > scripting.MaxFields {
				add(scripting.MoreFields(n - scripting.MaxFields))
			}
		})
	}
}

// items returns the items of a Map or a Set.
func (p *paused) items(o *goja.Object) func() []scripting.Variable {
	n := int(o.Get("size").ToInteger())
	if n == 0 {
		return nil
	}
	isMap := collection(o) == "Map"
	return func() []scripting.Variable {
		return p.list(func(add func(scripting.Variable)) {
			i := 0
			p.v.rt.ForOf(o, func(x goja.Value) bool {
				name := "[" + strconv.Itoa(i) + "]"
				if pair := objectOf(x); isMap && pair != nil {
					name, _ = p.value(orUndefined(pair.Get("0")))
					x = orUndefined(pair.Get("1"))
				}
				add(p.show(name, x))
				i++
				return i < scripting.MaxFields
			})
			if n > i {
				add(scripting.MoreFields(n - i))
			}
		})
	}
}

// rows returns the records of a batch that is an argument of a hook.
func (p *paused) rows(o *goja.Object) func() []scripting.Variable {
	v := p.v
	n, text := 0, func(int) string { return "" }
	switch {
	case o == v.batch && v.win != nil:
		n, text = v.win.Batch().Len(), v.win.RowText
	case o == v.logBatch && v.lines != nil:
		n, text = v.lines.Batch().Len(), v.lines.RowText
	}
	if n == 0 {
		return nil
	}
	return func() []scripting.Variable {
		var out []scripting.Variable
		for i := range min(n, scripting.MaxFields) {
			out = append(out, scripting.Variable{Name: "[" + strconv.Itoa(i) + "]", Value: text(i), Type: "record"})
		}
		if n > scripting.MaxFields {
			out = append(out, scripting.MoreFields(n-scripting.MaxFields))
		}
		return slices.Clip(out)
	}
}
