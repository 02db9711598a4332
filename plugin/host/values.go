package host

import (
	"fmt"
	"math"
	"reflect"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/plugin/protocol"
)

// encoder converts decoded arguments to messages.
type encoder struct {
	// number returns the number of a receiver on the stream.
	number    func(*flow.Receiver) uint32
	receivers []*protocol.Receiver
	index     map[*flow.Receiver]uint32 // in receivers
}

// encode converts arguments, a pointer to a value of o.typ.
func (o *object) encode(args any, number func(*flow.Receiver) uint32) (*protocol.Arguments, error) {
	e := &encoder{number: number, index: map[*flow.Receiver]uint32{}}
	body, err := e.body(o, reflect.ValueOf(args).Elem())
	return &protocol.Arguments{Body: body, Receivers: e.receivers}, err
}

// body converts a block. It leaves out what was not written and what equals a default.
func (e *encoder) body(o *object, v reflect.Value) (*protocol.Body, error) {
	b := &protocol.Body{Attributes: map[string]*protocol.Value{}}
	if o.labelled {
		b.Label = v.FieldByName("Label").String()
	}
	for _, a := range o.attrs {
		fv := v.Field(a.index)
		if !a.required && (nilable(fv.Type()) && fv.IsNil() || a.def != "" && reflect.DeepEqual(fv.Interface(), o.initial.Field(a.index).Interface())) {
			continue
		}
		val, err := e.value(fv)
		if err != nil {
			return nil, fmt.Errorf("cannot send %s to the plugin: %w", a.name, err)
		}
		b.Attributes[a.name] = val
	}
	for _, n := range o.blocks {
		fv := v.Field(n.index)
		var all []reflect.Value
		switch {
		case n.repeated:
			for i := range fv.Len() {
				all = append(all, fv.Index(i))
			}
		case n.required:
			all = append(all, fv)
		case !fv.IsNil():
			all = append(all, fv.Elem())
		}
		for _, in := range all {
			body, err := e.body(n.content, in)
			if err != nil {
				return nil, err
			}
			b.Blocks = append(b.Blocks, &protocol.Block{Name: n.name, Body: body})
		}
	}
	return b, nil
}

func (e *encoder) receiver(r *flow.Receiver) *protocol.Value {
	i, ok := e.index[r]
	if !ok {
		i = uint32(len(e.receivers))
		e.index[r] = i
		e.receivers = append(e.receivers, &protocol.Receiver{Number: e.number(r), Node: r.Node(), Accepts: uint32(r.Accepts())})
	}
	return &protocol.Value{Kind: &protocol.Value_Receiver{Receiver: i}}
}

// value converts a value.
func (e *encoder) value(v reflect.Value) (*protocol.Value, error) {
	if r, ok := v.Interface().(*flow.Receiver); ok && r != nil {
		return e.receiver(r), nil
	}
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		if v.IsNil() {
			return new(protocol.Value), nil
		}
		v = v.Elem()
	}
	switch x := v.Interface().(type) {
	case time.Duration:
		return text(x.String()), nil
	case component.OptionalSecret:
		return text(x.Value), nil
	case component.Size:
		return &protocol.Value{Kind: &protocol.Value_Integer{Integer: int64(x)}}, nil
	}
	switch v.Kind() {
	case reflect.String:
		return text(v.String()), nil
	case reflect.Bool:
		return &protocol.Value{Kind: &protocol.Value_Bool{Bool: v.Bool()}}, nil
	case reflect.Int, reflect.Int64:
		return &protocol.Value{Kind: &protocol.Value_Integer{Integer: v.Int()}}, nil
	case reflect.Float64:
		if f := v.Float(); f != math.Trunc(f) || math.Abs(f) > 1<<53 {
			return &protocol.Value{Kind: &protocol.Value_Number{Number: f}}, nil
		}
		return &protocol.Value{Kind: &protocol.Value_Integer{Integer: int64(v.Float())}}, nil
	case reflect.Slice:
		l := new(protocol.List)
		for i := range v.Len() {
			if r, ok := v.Index(i).Interface().(*flow.Receiver); ok && r == nil {
				continue // it is not known yet
			}
			val, err := e.value(v.Index(i))
			if err != nil {
				return nil, err
			}
			l.Values = append(l.Values, val)
		}
		return &protocol.Value{Kind: &protocol.Value_List{List: l}}, nil
	case reflect.Map:
		m := &protocol.Map{Values: map[string]*protocol.Value{}}
		for it := v.MapRange(); it.Next(); {
			val, err := e.value(it.Value())
			if err != nil {
				return nil, err
			}
			m.Values[it.Key().String()] = val
		}
		return &protocol.Value{Kind: &protocol.Value_Map{Map: m}}, nil
	}
	return nil, fmt.Errorf("plugins do not support the type %s", v.Type())
}

func text(s string) *protocol.Value {
	return &protocol.Value{Kind: &protocol.Value_String_{String_: s}}
}

// exports returns the exports struct with the values of a plugin.
func (o *object) exports(values map[string]*protocol.Value) (any, error) {
	v := reflect.New(o.typ).Elem()
	for _, a := range o.attrs {
		val, ok := values[a.name]
		if !ok || val.GetKind() == nil {
			continue
		}
		fv := v.Field(a.index)
		if fv.Kind() == reflect.Pointer && a.goType.Kind() != reflect.Pointer {
			fv.Set(reflect.New(a.goType))
			fv = fv.Elem()
		}
		if err := assign(fv, val); err != nil {
			return nil, fmt.Errorf("cannot use the export %s of the plugin: %w", a.name, err)
		}
	}
	return v.Interface(), nil
}

// assign sets v, which has a type that typeOf returns.
func assign(v reflect.Value, val *protocol.Value) (err error) {
	wrong := fmt.Errorf("the plugin exports a %T and describes a %s", val.GetKind(), v.Type())
	switch v.Interface().(type) {
	case time.Duration:
		d, err := time.ParseDuration(val.GetString_())
		v.SetInt(int64(d))
		return err
	case component.OptionalSecret:
		v.Set(reflect.ValueOf(component.OptionalSecret{Value: val.GetString_()}))
		return nil
	case component.Size:
		n, err := component.ParseSize(val.GetString_())
		v.SetInt(int64(n))
		return err
	}
	switch k := val.GetKind().(type) {
	case *protocol.Value_String_:
		if v.Kind() == reflect.String {
			v.SetString(k.String_)
			return nil
		}
	case *protocol.Value_Bool:
		if v.Kind() == reflect.Bool {
			v.SetBool(k.Bool)
			return nil
		}
	case *protocol.Value_Number:
		if v.Kind() == reflect.Float64 {
			v.SetFloat(k.Number)
			return nil
		}
	case *protocol.Value_Integer:
		if v.Kind() == reflect.Float64 {
			v.SetFloat(float64(k.Integer))
			return nil
		}
	case *protocol.Value_List:
		if v.Kind() == reflect.Slice {
			s := reflect.MakeSlice(v.Type(), len(k.List.GetValues()), len(k.List.GetValues()))
			for i, e := range k.List.GetValues() {
				if err := assign(s.Index(i), e); err != nil {
					return err
				}
			}
			v.Set(s)
			return nil
		}
	case *protocol.Value_Map:
		if v.Kind() == reflect.Map {
			m := reflect.MakeMap(v.Type())
			for key, e := range k.Map.GetValues() {
				one := reflect.New(v.Type().Elem()).Elem()
				if err := assign(one, e); err != nil {
					return err
				}
				m.SetMapIndex(reflect.ValueOf(key), one)
			}
			v.Set(m)
			return nil
		}
	}
	if p := plain(val); v.Kind() == reflect.Interface && p != nil {
		v.Set(reflect.ValueOf(p))
		return nil
	}
	return wrong
}

// plain returns a value as a value of the config language.
func plain(val *protocol.Value) any {
	switch k := val.GetKind().(type) {
	case *protocol.Value_String_:
		return k.String_
	case *protocol.Value_Bool:
		return k.Bool
	case *protocol.Value_Number:
		return k.Number
	case *protocol.Value_Integer:
		return int(k.Integer)
	case *protocol.Value_List:
		l := []any{}
		for _, e := range k.List.GetValues() {
			l = append(l, plain(e))
		}
		return l
	case *protocol.Value_Map:
		m := map[string]any{}
		for key, e := range k.Map.GetValues() {
			m[key] = plain(e)
		}
		return m
	}
	return nil
}
