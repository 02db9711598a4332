package config

import (
	"encoding"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/grafana/alloy/syntax"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/flow"
)

// Field is an attribute or block of a component's arguments, or one of its
// exports.
type Field struct {
	// Path is its name with the names of the blocks around it: endpoint.url. If a
	// block can contain the same kinds of blocks as a block around it, the path
	// ends with an asterisk: stage.match.stage.*.
	Path string
	// Type is the type as written in docs: string, number, bool, duration, secret,
	// receiver, list(string), map(secret), any, block.
	Type string
	// Required reports whether the attribute or block must be present.
	Required bool
	// Default is in config syntax. It is "" if there is no default or if it is the
	// empty value of its type.
	Default string
	// Block reports whether it is a block and not an attribute. Repeated reports
	// whether it may occur several times, Labeled whether it has a label.
	Block, Repeated, Labeled bool
}

// Describe returns the fields of an arguments struct or of an exports struct.
// args points to an arguments struct with its defaults. The fields of a nested
// block follow the block. nil has no fields.
func Describe(args any) []Field {
	v := reflect.ValueOf(args)
	for v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return nil
	}
	return describe(nil, v, "", []reflect.Type{v.Type()})
}

func describe(out []Field, v reflect.Value, path string, around []reflect.Type) []Field {
	for _, f := range tagged(v.Type()) {
		switch f.kind {
		case attrField:
			fd := Field{Path: join(path, f.name), Type: typeWords(f.typ), Required: !f.optional}
			if fv, ok := f.valueIn(v); ok {
				if p, ok := asPlain(fv); ok {
					fd.Type = typeWords(reflect.TypeOf(p))
				}
				if f.optional {
					fd.Default = literal(fv)
				}
			}
			out = append(out, fd)
		case blockField:
			fv, _ := f.valueIn(v)
			if start := f.start(v); start.IsValid() {
				fv = start
			}
			out = describeBlock(out, f.typ, fv, Field{Path: join(path, f.name), Required: !f.optional}, around)
		case enumField:
			kinds := deref(f.typ.Elem())
			if slices.Contains(around, kinds) { // stages of stage.match
				out = append(out, Field{Path: join(path, f.name+".*"), Type: "block", Block: true, Repeated: true})
				continue
			}
			within := append(slices.Clip(around), kinds)
			for _, k := range tagged(kinds) {
				out = describeBlock(out, k.typ, reflect.Value{}, Field{Path: join(path, f.name+"."+k.name), Repeated: true}, within)
			}
		}
	}
	return out
}

// describeBlock describes a block of type t. in is the value that the enclosing
// block has in its place. It contains the block's defaults, unless its type
// sets them.
func describeBlock(out []Field, t reflect.Type, in reflect.Value, fd Field, around []reflect.Type) []Field {
	fd.Type, fd.Block = "block", true
	t = deref(t)
	if t.Kind() == reflect.Slice || t.Kind() == reflect.Array {
		fd.Repeated = true
		t = deref(t.Elem())
	}
	if t.Kind() != reflect.Struct {
		if t.Kind() == reflect.Map {
			fd.Type = "block of " + typeWords(t.Elem())
		}
		return append(out, fd)
	}
	for _, f := range tagged(t) {
		fd.Labeled = fd.Labeled || f.kind == labelField
	}
	out = append(out, fd)
	for _, outer := range around {
		if outer == t { // a block may nest itself: stage.match
			return out
		}
	}
	v := reflect.New(t)
	for in.Kind() == reflect.Pointer {
		in = in.Elem()
	}
	if in.IsValid() && in.Type() == t {
		v.Elem().Set(in)
	}
	if d, ok := v.Interface().(syntax.Defaulter); ok {
		d.SetToDefault()
	}
	return describe(out, v.Elem(), fd.Path, append(around[:len(around):len(around)], t))
}

// TypeOf returns the type of a value in terms of the config language.
func TypeOf(v any) string {
	if v == nil {
		return "null"
	}
	switch words := typeWords(reflect.TypeOf(v)); words {
	case "list(any)":
		return "list"
	case "map(any)":
		return "object"
	default:
		return words
	}
}

// typeWords returns a type in terms of the config language.
func typeWords(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[component.Secret]():
		return "secret"
	case reflect.TypeFor[component.OptionalSecret]():
		return "secret or string"
	case reflect.TypeFor[*flow.Receiver](), reflect.TypeFor[flow.Receiver]():
		return "receiver"
	case reflect.TypeFor[time.Duration]():
		return "duration"
	case reflect.TypeFor[component.Size]():
		return "size"
	}
	if t.Kind() == reflect.Pointer {
		return typeWords(t.Elem())
	}
	p := reflect.PointerTo(t)
	switch {
	case p.Implements(reflect.TypeFor[syntax.Capsule]()):
		return strings.ToLower(t.Name())
	case p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return "string"
	}
	switch t.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "bool"
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return "string"
		}
		return "list(" + typeWords(t.Elem()) + ")"
	case reflect.Map:
		return "map(" + typeWords(t.Elem()) + ")"
	case reflect.Interface:
		return "any"
	case reflect.Struct:
		if len(tagged(t)) > 0 {
			return "object"
		}
		return strings.ToLower(t.Name())
	case reflect.Func:
		return "function"
	case reflect.Chan, reflect.UnsafePointer:
		return t.Kind().String()
	}
	return "number"
}

// literal returns a default in config syntax. It returns "" for an empty value.
func literal(v reflect.Value) string {
	if v.IsZero() && v.Kind() != reflect.Bool && typeWords(v.Type()) != "number" && typeWords(v.Type()) != "duration" {
		return ""
	}
	return literalOf((&redaction{most: math.MaxInt}).redact(v))
}

func literalOf(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return strconv.Quote(v)
	case []any:
		if len(v) == 0 {
			return ""
		}
		var parts []string
		for _, e := range v {
			parts = append(parts, literalOf(e))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case map[string]any:
		if len(v) == 0 {
			return ""
		}
		var parts []string
		for _, k := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, k+" = "+literalOf(v[k]))
		}
		return "{ " + strings.Join(parts, ", ") + " }"
	}
	return fmt.Sprint(v)
}

// Written returns the attributes of arguments that are required or differ from their
// defaults, in config syntax and on one line. args points to a struct with alloy tags.
// Secrets are redacted as by Redact. Blocks in an enum are left out.
func Written(args any) string {
	v := reflect.ValueOf(args).Elem()
	d := reflect.New(v.Type())
	if s, ok := d.Interface().(syntax.Defaulter); ok {
		s.SetToDefault()
	}
	var parts []string
	for _, f := range tagged(v.Type()) {
		fv, ok := f.valueIn(v)
		def, has := f.valueIn(d.Elem())
		if !ok || f.optional && has && reflect.DeepEqual(fv.Interface(), def.Interface()) {
			continue
		}
		switch f.kind {
		case attrField:
			shown := (&redaction{most: math.MaxInt}).redact(fv)
			if hidden[f.name] {
				shown = hide(shown)
			}
			if text := literalOf(shown); text != "" { // else an empty list, or null
				parts = append(parts, f.name+" = "+text)
			}
		case blockField:
			for _, b := range blocksOf(fv) {
				parts = append(parts, strings.TrimSpace(f.name+" { "+Written(b))+" }")
			}
		}
	}
	return strings.Join(parts, ", ")
}

// blocksOf returns pointers to the structs of a block field.
func blocksOf(v reflect.Value) (out []any) {
	switch v.Kind() {
	case reflect.Pointer:
		return append(out, v.Interface())
	case reflect.Slice:
		for i := range v.Len() {
			e := v.Index(i)
			if e.Kind() != reflect.Pointer {
				e = e.Addr()
			}
			out = append(out, e.Interface())
		}
		return out
	}
	p := reflect.New(v.Type())
	p.Elem().Set(v)
	return append(out, p.Interface())
}
