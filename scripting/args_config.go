package scripting

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/weir-run/weir/engine/regex"
)

// Enum is a string in the config that must be one of a list.
type Enum struct {
	allowed []string
	value   string
}

// UnmarshalText accepts an allowed value.
func (e *Enum) UnmarshalText(text []byte) error {
	if !slices.Contains(e.allowed, string(text)) {
		return fmt.Errorf("cannot use %q: it must be one of %s", text, strings.Join(e.allowed, ", "))
	}
	e.value = string(text)
	return nil
}

// MarshalText returns the value.
func (e Enum) MarshalText() ([]byte, error) { return []byte(e.value), nil }

// String returns the value.
func (e Enum) String() string { return e.value }

// Values returns the allowed values. The caller must not change them.
func (e Enum) Values() []string { return e.allowed }

// maxPattern is the maximum length of a regular expression in the config, in
// bytes. The module re has the same limit.
const maxPattern = 8 << 10

// Regexp is a regular expression in the config. It is checked when it is
// decoded. Scripts get it compiled.
type Regexp string

// UnmarshalText accepts the syntax of Go's regexp.
func (r *Regexp) UnmarshalText(text []byte) error {
	if len(text) > maxPattern {
		return fmt.Errorf("cannot use a regular expression of %d bytes: at most %d", len(text), maxPattern)
	}
	if _, err := regex.Compile(string(text), regex.MaxBytes); err != nil {
		return fmt.Errorf("cannot use %q as a regular expression: %s", text, strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	*r = Regexp(text)
	return nil
}

// MarshalText returns the pattern.
func (r Regexp) MarshalText() ([]byte, error) { return []byte(r), nil }

// Choices is a list or map in the config that contains enums. They are checked
// together, because an element that is decoded alone does not know its allowed
// values.
type Choices struct {
	arg   *Arg
	value any // of the type plainType
}

// UnmarshalAlloy decodes the list or map and checks its enums.
func (c *Choices) UnmarshalAlloy(decode func(any) error) error {
	v := reflect.New(c.arg.plainType())
	if err := decode(v.Interface()); err != nil {
		return err
	}
	if err := c.arg.choose(v.Elem()); err != nil {
		return err
	}
	c.value = v.Elem().Interface()
	return nil
}

// Plain returns the list or map.
func (c Choices) Plain() any {
	if c.value == nil {
		return reflect.Zero(c.arg.plainType()).Interface()
	}
	return c.value
}

// hasEnums reports whether the elements contain enums.
func (a *Arg) hasEnums() bool {
	return (a.Kind == ArgList || a.Kind == ArgMap) && (a.Of.Kind == ArgEnum || a.Of.hasEnums())
}

// plainType returns goType with strings instead of enums in lists and maps.
func (a *Arg) plainType() reflect.Type {
	if a.Kind != ArgList && a.Kind != ArgMap {
		return a.goType()
	}
	elem := a.Of.plainType()
	if a.Of.Kind == ArgEnum {
		elem = reflect.TypeFor[string]()
	}
	if a.Kind == ArgMap {
		return reflect.MapOf(reflect.TypeFor[string](), elem)
	}
	return reflect.SliceOf(elem)
}

// plainValue converts v to t, the plainType of an element.
func plainValue(v reflect.Value, t reflect.Type) reflect.Value {
	switch x := v.Interface().(type) {
	case Choices:
		return reflect.ValueOf(x.value)
	case Enum:
		return reflect.ValueOf(x.value)
	}
	return v.Convert(t)
}

// chosen converts v from plainType to goType.
func (a *Arg) chosen(v reflect.Value) reflect.Value {
	if a.hasEnums() {
		return reflect.ValueOf(Choices{arg: a, value: v.Interface()})
	}
	return v
}

// choose checks the enums in v.
func (a *Arg) choose(v reflect.Value) error {
	switch {
	case a.Kind == ArgEnum:
		e := Enum{allowed: a.Values}
		return e.UnmarshalText([]byte(v.String()))
	case !a.hasEnums():
		return nil
	case a.Kind == ArgList:
		for i := range v.Len() {
			if err := a.Of.choose(v.Index(i)); err != nil {
				return err
			}
		}
	default:
		for _, k := range sortedStrings(v.MapKeys()) { // sorted, so that the same error is reported each time
			if err := a.Of.choose(v.MapIndex(reflect.ValueOf(k))); err != nil {
				return fmt.Errorf("%s: %w", k, err)
			}
		}
	}
	return nil
}

func sortedStrings(vs []reflect.Value) []string {
	out := make([]string, len(vs))
	for i, v := range vs {
		out[i] = v.String()
	}
	slices.Sort(out)
	return out
}

// ArgFields returns a struct field for each argument, named Arg_<name>, for the
// config decoder. The initial value for the blocks of an argument is in a field
// next to it, where the decoder looks for it.
func ArgFields(args []*Arg) []reflect.StructField {
	fields := make([]reflect.StructField, 0, len(args)+3)
	for _, a := range args {
		t := a.goType()
		kind := ",attr"
		if a.Kind == ArgBlock {
			kind = ",block"
			start := t
			if a.Repeated {
				start = t.Elem()
			}
			fields = append(fields, reflect.StructField{Name: "Arg_" + a.Name + "Default", Type: start})
		}
		if a.Optional || a.Default != nil {
			kind += ",optional"
		}
		if a.Optional && !a.Repeated {
			t = reflect.PointerTo(t) // nil means missing
		}
		fields = append(fields, reflect.StructField{Name: "Arg_" + a.Name, Type: t, Tag: reflect.StructTag(fmt.Sprintf("alloy:%q", a.Name+kind))})
	}
	return fields
}

// SetArgDefaults sets the defaults in a struct of ArgFields.
func SetArgDefaults(v reflect.Value, args []*Arg) {
	for _, a := range args {
		f := v.FieldByName("Arg_" + a.Name)
		switch {
		case a.Kind == ArgBlock:
			start := v.FieldByName("Arg_" + a.Name + "Default")
			SetArgDefaults(start, a.Fields)
		case a.Default != nil:
			f.Set(cloneValue(reflect.ValueOf(a.Default)))
		case a.Kind == ArgEnum && a.Optional:
			// The decoder sets a pointer that is not nil. If it stays unset, its value
			// is empty.
			f.Set(reflect.ValueOf(&Enum{allowed: a.Values}))
		case a.Kind == ArgEnum:
			f.Set(reflect.ValueOf(Enum{allowed: a.Values}))
		case a.hasEnums() && a.Optional:
			f.Set(reflect.ValueOf(&Choices{arg: a}))
		case a.hasEnums():
			f.Set(reflect.ValueOf(Choices{arg: a}))
		}
	}
}

// ArgValues returns the values for the script from a struct of ArgFields.
func ArgValues(args []*Arg, v reflect.Value) map[string]any {
	values := make(map[string]any, len(args))
	for _, a := range args {
		f := v.FieldByName("Arg_" + a.Name)
		if a.Optional && !a.Repeated {
			if f.IsNil() {
				continue
			}
			f = f.Elem()
			if e, ok := f.Interface().(Enum); ok && e.value == "" {
				continue
			}
			if c, ok := f.Interface().(Choices); ok && c.value == nil {
				continue
			}
		}
		values[a.Name] = a.scriptValue(f)
	}
	return values
}

// cloneValue copies lists and maps, so that blocks do not share a default.
func cloneValue(v reflect.Value) reflect.Value {
	switch v.Kind() {
	case reflect.Slice:
		out := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		for i := range v.Len() {
			out.Index(i).Set(cloneValue(v.Index(i)))
		}
		return out
	case reflect.Map:
		out := reflect.MakeMapWithSize(v.Type(), v.Len())
		for it := v.MapRange(); it.Next(); {
			out.SetMapIndex(it.Key(), cloneValue(it.Value()))
		}
		return out
	}
	return v
}
