package config

import (
	"reflect"

	"github.com/weir-run/weir/engine/flow"
)

// Redirect replaces the receivers in decoded arguments, which nobody uses yet, by to.
// Lists of receivers then have this one alone, even if they were empty.
func Redirect(args any, to *flow.Receiver) { redirect(reflect.ValueOf(args).Elem(), to) }

var receiverType = reflect.TypeFor[*flow.Receiver]()

func redirect(v reflect.Value, to *flow.Receiver) {
	switch v.Kind() {
	case reflect.Pointer:
		switch {
		case v.IsNil():
		case v.Type() == receiverType:
			v.Set(reflect.ValueOf(to))
		default:
			redirect(v.Elem(), to)
		}
	case reflect.Slice:
		if v.Type().Elem() == receiverType {
			v.Set(reflect.ValueOf([]*flow.Receiver{to}))
			return
		}
		for i := range v.Len() {
			redirect(v.Index(i), to)
		}
	case reflect.Map:
		if v.IsNil() || v.Type().Elem().Kind() == reflect.String {
			return
		}
		// The map may be that of an export, which others use.
		own := reflect.MakeMap(v.Type())
		for it := v.MapRange(); it.Next(); {
			elem := reflect.New(v.Type().Elem()).Elem()
			elem.Set(it.Value())
			redirect(elem, to)
			own.SetMapIndex(it.Key(), elem)
		}
		v.Set(own)
	case reflect.Struct:
		for _, f := range tagged(v.Type()) {
			if fv, ok := f.valueIn(v); ok && fv.CanSet() {
				redirect(fv, to)
			}
		}
	}
}
