package config

import (
	"reflect"

	"github.com/grafana/alloy/syntax"

	"github.com/weir-run/weir/engine/component"
)

// Secrets calls found with each secret that is set in arguments or exports:
// values of the types Secret and OptionalSecret. Headers and queries, which
// Redact hides as well, are not among them.
func Secrets(v any, found func(string)) { secretsIn(reflect.ValueOf(v), found) }

func secretsIn(v reflect.Value, found func(string)) {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		if v.Kind() == reflect.Pointer && isOpaque(v.Type().Elem()) {
			return
		}
		v = v.Elem()
	}
	if !v.IsValid() || !v.CanInterface() {
		return
	}
	switch x := v.Interface().(type) {
	case component.Secret:
		if x != "" {
			found(string(x))
		}
		return
	case component.OptionalSecret:
		if x.IsSecret && x.Value != "" {
			found(x.Value)
		}
		return
	}
	if p, ok := asPlain(v); ok {
		secretsIn(reflect.ValueOf(p), found)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for _, f := range tagged(v.Type()) {
			if fv, ok := f.valueIn(v); ok {
				secretsIn(fv, found)
			}
		}
	case reflect.Map:
		if hasSecrets(v.Type().Elem()) {
			for it := v.MapRange(); it.Next(); {
				secretsIn(it.Value(), found)
			}
		}
	case reflect.Slice, reflect.Array:
		if hasSecrets(v.Type().Elem()) {
			for i := range v.Len() {
				secretsIn(v.Index(i), found)
			}
		}
	}
}

// isOpaque reports whether pointers to a type are opaque values of the config language,
// such as receivers. Their fields may change at any time.
func isOpaque(t reflect.Type) bool {
	if t == reflect.TypeFor[component.Secret]() || t == reflect.TypeFor[component.OptionalSecret]() {
		return false
	}
	return reflect.PointerTo(t).Implements(reflect.TypeFor[syntax.Capsule]())
}

// hasSecrets reports whether values of a type may be or contain secrets. Lists
// of targets, which may be long, do not.
func hasSecrets(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String:
		return t == reflect.TypeFor[component.Secret]()
	case reflect.Map, reflect.Slice, reflect.Array:
		return hasSecrets(t.Elem())
	case reflect.Struct, reflect.Interface, reflect.Pointer:
		return true
	}
	return false
}
