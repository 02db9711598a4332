package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

type fieldKind uint8

const (
	attrField fieldKind = iota
	blockField
	enumField // a list of structs with one block each: stage.json, stage.regex, …
	labelField
)

// field is a field of a struct with an alloy tag, including the fields of
// squashed structs.
type field struct {
	name     string // dotted for some blocks; empty for the label
	index    []int
	typ      reflect.Type
	kind     fieldKind
	optional bool
	// starts is the index of the field that contains the initial value of the
	// blocks of this field. It is nil for the zero value. Types created at run
	// time use it, because they have no SetToDefault. Its name is the name of this
	// field with Default appended.
	starts []int
}

// tagged returns the fields of a struct type, in order. The tags are those of
// alloy/syntax, whose parser for them is internal. It panics with BUG on an
// invalid tag.
func tagged(t reflect.Type) (fs []field) {
	for i := range t.NumField() {
		sf := t.Field(i)
		tag, ok := sf.Tag.Lookup("alloy")
		if !ok {
			continue
		}
		name, opts, _ := strings.Cut(tag, ",")
		opts, optional := strings.CutSuffix(opts, ",optional")
		f := field{name: name, index: sf.Index, typ: sf.Type, optional: optional}
		switch opts {
		case "attr":
		case "block":
			f.kind = blockField
			if d, ok := t.FieldByName(sf.Name + "Default"); ok {
				f.starts = d.Index
			}
		case "enum":
			f.kind = enumField
		case "label":
			f.kind = labelField
		case "squash":
			for _, inner := range tagged(deref(sf.Type)) {
				inner.index = slices.Concat(sf.Index, inner.index)
				if inner.starts != nil {
					inner.starts = slices.Concat(sf.Index, inner.starts)
				}
				fs = append(fs, inner)
			}
			continue
		default:
			panic(fmt.Sprintf("BUG: alloy tag %q of %s.%s", tag, t, sf.Name))
		}
		fs = append(fs, f)
	}
	return fs
}

func deref(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// allocate returns the field of an addressable struct. It allocates nil
// pointers on the path to the field.
func (f field) allocate(v reflect.Value) reflect.Value {
	for _, i := range f.index {
		v = alloc(v).Field(i)
	}
	return v
}

// valueIn returns the field of a struct. ok is false if a pointer on the path
// to the field is nil.
func (f field) valueIn(v reflect.Value) (_ reflect.Value, ok bool) {
	for _, i := range f.index {
		for v.Kind() == reflect.Pointer {
			if v.IsNil() {
				return v, false
			}
			v = v.Elem()
		}
		v = v.Field(i)
	}
	return v, true
}

// alloc follows pointers and allocates their targets if they are nil.
func alloc(v reflect.Value) reflect.Value {
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		v = v.Elem()
	}
	return v
}

// start returns the initial value of a block of the field in the struct v. It
// is not valid if the initial value is the zero value.
func (f field) start(v reflect.Value) reflect.Value {
	if f.starts == nil {
		return reflect.Value{}
	}
	for _, i := range f.starts {
		v = alloc(v).Field(i)
	}
	return v
}
