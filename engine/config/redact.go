package config

import (
	"encoding"
	"fmt"
	"math"
	"reflect"
	"strings"
	"time"

	"github.com/grafana/alloy/syntax"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
)

const redacted = "(secret)"

// hidden are attributes whose values may be secret although their type is not:
// headers, and queries that are separate from their URL.
var hidden = map[string]bool{"headers": true, "http_headers": true, "proxy_connect_header": true, "params": true}

// Redact converts arguments or exports, structs with alloy tags, to maps,
// slices, strings, numbers and bools that encoding/json can marshal. Keys are
// attribute names. Secrets, headers and query parameters become "(secret)",
// durations "30s", receivers "x.y.z.receiver", other opaque values their type.
// URLs are redacted with component.HideURLs. nil returns nil.
func Redact(v any) any {
	shown, _ := RedactUpTo(v, math.MaxInt)
	return shown
}

// RedactUpTo is like Redact, but returns at most the given number of elements
// per list. It also returns the number of omitted elements.
func RedactUpTo(v any, most int) (shown any, omitted int) {
	r := redaction{most: most}
	shown = r.redact(reflect.ValueOf(v))
	return shown, r.omitted
}

// redaction is one call of RedactUpTo.
type redaction struct{ most, omitted int }

func (r *redaction) redact(v reflect.Value) any {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		if v.IsNil() {
			return nil
		}
		if to, ok := v.Interface().(*flow.Receiver); ok {
			return to.Node() + ".receiver"
		}
		if s, ok := asText(v); ok {
			return s
		}
		v = v.Elem()
	}
	if !v.IsValid() {
		return nil
	}
	if s, ok := asText(v); ok {
		return s
	}
	if p, ok := asPlain(v); ok {
		return r.redact(reflect.ValueOf(p))
	}
	switch v.Kind() {
	case reflect.Struct:
		fs := tagged(v.Type())
		if len(fs) == 0 && v.NumField() > 0 {
			return "(" + typeWords(v.Type()) + ")"
		}
		return r.redactStruct(v, fs)
	case reflect.Map:
		m := map[string]any{}
		for it := v.MapRange(); it.Next(); {
			k := fmt.Sprint(it.Key().Interface())
			m[k] = r.redact(it.Value())
			if strings.HasPrefix(k, "__param_") { // of a target
				m[k] = hide(m[k])
			}
		}
		return m
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 && v.Kind() == reflect.Slice {
			return string(v.Bytes())
		}
		out := make([]any, min(v.Len(), r.most))
		for i := range out {
			out[i] = r.redact(v.Index(i))
		}
		r.omitted += v.Len() - len(out)
		return out
	case reflect.Func, reflect.Chan, reflect.UnsafePointer:
		return "(" + typeWords(v.Type()) + ")"
	case reflect.String: // also of a named type
		return component.HideURLs(v.String())
	case reflect.Float32, reflect.Float64:
		// JSON cannot represent NaN and the infinities.
		if f := v.Float(); f != f || f-f != 0 {
			return fmt.Sprint(f)
		}
	}
	if v.CanInterface() {
		return v.Interface()
	}
	return fmt.Sprint(v)
}

// Plain is a value that decodes itself (UnmarshalAlloy) and whose config type
// differs from its Go type.
type Plain interface {
	// Plain returns the value in its config type, never nil.
	Plain() any
}

func asPlain(v reflect.Value) (any, bool) {
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct || !v.CanInterface() {
		return nil, false
	}
	p, ok := v.Interface().(Plain)
	if !ok {
		return nil, false
	}
	return p.Plain(), true
}

func (r *redaction) redactStruct(v reflect.Value, fs []field) any {
	m := map[string]any{}
	for _, f := range fs {
		fv, ok := f.valueIn(v)
		if !ok {
			continue
		}
		name := f.name
		if f.kind == labelField {
			name = "label"
		}
		// An absent block is omitted. An attribute that is not set has its default.
		if f.kind == blockField && (fv.Kind() == reflect.Pointer || fv.Kind() == reflect.Slice) && fv.IsZero() {
			continue
		}
		m[name] = r.redact(fv)
		if hidden[name] {
			m[name] = hide(m[name])
		}
	}
	return m
}

// hide replaces all texts in v, a result of redact. It may modify v.
func hide(v any) any {
	switch v := v.(type) {
	case string:
		if v != "" {
			return redacted
		}
	case []any:
		for i := range v {
			v[i] = hide(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = hide(v[k])
		}
	}
	return v
}

// asText returns the text of a value that is a string in the config, or a
// capsule.
func asText(v reflect.Value) (string, bool) {
	if !v.CanInterface() {
		return "", false
	}
	if v.Kind() != reflect.Pointer && v.CanAddr() {
		v = v.Addr()
	}
	switch x := v.Interface().(type) {
	case component.Secret:
		return secret(x), true
	case *component.Secret:
		return secret(*x), true
	case component.OptionalSecret:
		return optional(x), true
	case *component.OptionalSecret:
		return optional(*x), true
	case time.Duration:
		return shortDuration(x), true
	case *time.Duration:
		return shortDuration(*x), true
	case encoding.TextMarshaler:
		b, err := x.MarshalText()
		if err != nil {
			return err.Error(), true
		}
		return string(b), true
	case syntax.Capsule:
		if v.Kind() == reflect.Pointer {
			v = v.Elem()
		}
		return "(" + typeWords(v.Type()) + ")", true
	}
	return "", false
}

// secret reveals only whether the secret is set.
func secret(s component.Secret) string {
	if s == "" {
		return ""
	}
	return redacted
}

func optional(s component.OptionalSecret) string {
	if s.IsSecret {
		return secret(component.Secret(s.Value))
	}
	return s.Value
}

// shortDuration formats d in its short form: 1m rather than 1m0s.
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}

// ReceiverRef is a receiver in decoded arguments with the path of its
// attribute.
type ReceiverRef struct {
	Path     string // such as forward_to or routes.errors, for Block.SpanOf
	Receiver *flow.Receiver
}

// Receivers returns the receivers in decoded arguments, in the order of their
// fields. The receivers in a map are unordered. nil receivers are omitted.
func Receivers(args any) []ReceiverRef {
	return appendReceivers(nil, reflect.ValueOf(args), "", tagged)
}

// Receivers is like the function Receivers, but faster for many blocks.
func (s *Scope) Receivers(args any) []ReceiverRef {
	return appendReceivers(nil, reflect.ValueOf(args), "", s.tagged)
}

func appendReceivers(refs []ReceiverRef, v reflect.Value, path string, tagged func(reflect.Type) []field) []ReceiverRef {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() || !v.CanInterface() {
			return refs
		}
		if r, ok := v.Interface().(*flow.Receiver); ok {
			return append(refs, ReceiverRef{path, r})
		}
		return appendReceivers(refs, v.Elem(), path, tagged)
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			refs = appendReceivers(refs, v.Index(i), path, tagged)
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			p := path
			if it.Key().Kind() == reflect.String {
				p = join(path, it.Key().String())
			}
			refs = appendReceivers(refs, it.Value(), p, tagged)
		}
	case reflect.Struct:
		for _, f := range tagged(v.Type()) {
			if fv, ok := f.valueIn(v); ok && f.kind != labelField {
				refs = appendReceivers(refs, fv, join(path, f.name), tagged)
			}
		}
	}
	return refs
}
