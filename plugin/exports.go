package plugin

import (
	"encoding"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/plugin/protocol"
)

// exported returns the values of an exports struct. The receiver is not among them:
// weir sets it.
func exported(exports any) (map[string]*protocol.Value, error) {
	out := map[string]*protocol.Value{}
	v := reflect.ValueOf(exports)
	for v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return out, nil
	}
	return out, exportFields(out, v)
}

func exportFields(out map[string]*protocol.Value, v reflect.Value) error {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		tag, ok := f.Tag.Lookup("alloy")
		if !ok || f.Type == reflect.TypeFor[*flow.Receiver]() {
			continue
		}
		name, opts, _ := strings.Cut(tag, ",")
		if strings.HasPrefix(opts, "squash") {
			if err := exportFields(out, v.Field(i)); err != nil {
				return err
			}
			continue
		}
		val, err := value(v.Field(i))
		if err != nil {
			return fmt.Errorf("cannot export %s: %w", name, err)
		}
		out[name] = val
	}
	return nil
}

// value converts a Go value.
func value(v reflect.Value) (*protocol.Value, error) {
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
	case encoding.TextMarshaler:
		t, err := x.MarshalText()
		return text(string(t)), err
	}
	switch v.Kind() {
	case reflect.String:
		return text(v.String()), nil
	case reflect.Bool:
		return &protocol.Value{Kind: &protocol.Value_Bool{Bool: v.Bool()}}, nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return &protocol.Value{Kind: &protocol.Value_Integer{Integer: v.Int()}}, nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return &protocol.Value{Kind: &protocol.Value_Integer{Integer: int64(v.Uint())}}, nil
	case reflect.Float32, reflect.Float64:
		return &protocol.Value{Kind: &protocol.Value_Number{Number: v.Float()}}, nil
	case reflect.Slice, reflect.Array:
		l := new(protocol.List)
		for i := range v.Len() {
			e, err := value(v.Index(i))
			if err != nil {
				return nil, err
			}
			l.Values = append(l.Values, e)
		}
		return &protocol.Value{Kind: &protocol.Value_List{List: l}}, nil
	case reflect.Map:
		m := &protocol.Map{Values: map[string]*protocol.Value{}}
		for it := v.MapRange(); it.Next(); {
			e, err := value(it.Value())
			if err != nil {
				return nil, err
			}
			m.Values[it.Key().String()] = e
		}
		return &protocol.Value{Kind: &protocol.Value_Map{Map: m}}, nil
	}
	return nil, fmt.Errorf("plugins cannot export a %s", v.Type())
}

func text(s string) *protocol.Value {
	return &protocol.Value{Kind: &protocol.Value_String_{String_: s}}
}
