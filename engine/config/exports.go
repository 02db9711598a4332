package config

import (
	"maps"
	"reflect"
	"strings"

	"github.com/weir-run/weir/engine/flow"
)

// objects are nested objects under construction. A placed value may be shared,
// so only maps that objects created are modified.
type objects struct {
	root map[string]any
	own  map[string]bool // by dotted name
}

// place stores a value under its dotted name.
func (o objects) place(id string, v any) {
	obj := o.root
	for at := 0; ; {
		dot := strings.IndexByte(id[at:], '.')
		if dot < 0 {
			last := id[at:]
			if old, ok := obj[last]; ok && at > 0 || o.own[id] {
				merged := fields(old)
				maps.Copy(merged, fields(v))
				v = merged
				o.own[id] = true
			}
			obj[last] = v
			return
		}
		name, path := id[at:at+dot], id[:at+dot]
		next, ok := obj[name].(map[string]any)
		if !ok || !o.own[path] {
			// A component's namespace may have the name of an object in the standard
			// library (string, file), and the ID of a node without a label may be a
			// prefix of another node's ID.
			if old, ok := obj[name]; ok {
				next = fields(old)
			} else if std, ok := stdlib(name); ok && at == 0 {
				next = fields(std)
			} else {
				next = map[string]any{}
			}
			obj[name], o.own[path] = next, true
		}
		obj, at = next, at+dot+1
	}
}

// fields returns the fields of an object as a new map.
func fields(obj any) map[string]any {
	m := map[string]any{}
	v := reflect.ValueOf(obj)
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			m[it.Key().String()] = it.Value().Interface()
		}
	case reflect.Struct:
		for _, f := range tagged(v.Type()) {
			if fv, ok := f.valueIn(v); ok && f.kind == attrField {
				m[f.name] = fv.Interface()
			}
		}
	}
	return m
}

// exportNames returns the names of a node's exports, in order.
func exportNames(exports any) (names []string) {
	t := reflect.TypeOf(exports)
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil || t.Kind() != reflect.Struct {
		return nil
	}
	for _, f := range tagged(t) {
		names = append(names, f.name)
	}
	return names
}

func export(exports any, name string) (reflect.Value, bool) {
	v := reflect.ValueOf(exports)
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return reflect.Value{}, false
	}
	for _, f := range tagged(v.Type()) {
		if f.name == name {
			return f.valueIn(v)
		}
	}
	return reflect.Value{}, false
}

// WithReceiver returns a copy of a node's exports, a struct, with its field
// receiver set. It returns exports itself if it has no such field.
func WithReceiver(exports any, r *flow.Receiver) any {
	v := reflect.ValueOf(exports)
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return exports
	}
	for _, f := range tagged(v.Type()) {
		if f.name == "receiver" && f.typ == reflect.TypeFor[*flow.Receiver]() {
			out := reflect.New(v.Type()).Elem()
			out.Set(v)
			f.allocate(out).Set(reflect.ValueOf(r))
			return out.Interface()
		}
	}
	return exports
}
