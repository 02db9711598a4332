package scripting

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir/engine/flow"
	"github.com/weir-run/weir/engine/journaling"
	"github.com/weir-run/weir/engine/regex"
)

// Enum is a string of the config that must be one of a list.
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

// Values returns what is allowed; the caller does not change it.
func (e Enum) Values() []string { return e.allowed }

// maxPattern is how long a regular expression of the config may be, in bytes;
// the module re takes no longer one.
const maxPattern = 8 << 10

// Regexp is a regular expression of the config, checked when it is decoded.
// Scripts get it compiled.
type Regexp string

// UnmarshalText accepts what Go's regexp does.
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

// Choices is a list or map of the config with enums in it: an element that is
// decoded alone would not know what it may be.
type Choices struct {
	arg   *Arg
	value any // of the type plainType
}

// UnmarshalAlloy decodes the list or map and checks what is in it.
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

// hasEnums reports whether there are enums in the elements.
func (a *Arg) hasEnums() bool {
	return (a.Kind == ArgList || a.Kind == ArgMap) && (a.Of.Kind == ArgEnum || a.Of.hasEnums())
}

// plainType is goType with strings for enums in lists and maps.
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

// plainValue is v as t, which is the plainType of an element.
func plainValue(v reflect.Value, t reflect.Type) reflect.Value {
	switch x := v.Interface().(type) {
	case Choices:
		return reflect.ValueOf(x.value)
	case Enum:
		return reflect.ValueOf(x.value)
	}
	return v.Convert(t)
}

// chosen is v, of plainType, as goType.
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
		for _, k := range sortedStrings(v.MapKeys()) { // of several mistakes, the same is said each time
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

// structFields are the fields that the config decoder fills, one for each
// argument, named Arg_<name>. What a block of an argument starts from is in a
// field beside it, where the decoder looks for it.
func structFields(args []*Arg) []reflect.StructField {
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
			t = reflect.PointerTo(t) // nil is missing
		}
		fields = append(fields, reflect.StructField{Name: "Arg_" + a.Name, Type: t, Tag: reflect.StructTag(fmt.Sprintf("alloy:%q", a.Name+kind))})
	}
	return fields
}

// setDefaults fills in the defaults of a struct of structFields.
func setDefaults(v reflect.Value, args []*Arg) {
	for _, a := range args {
		f := v.FieldByName("Arg_" + a.Name)
		switch {
		case a.Kind == ArgBlock:
			start := v.FieldByName("Arg_" + a.Name + "Default")
			setDefaults(start, a.Fields)
		case a.Default != nil:
			f.Set(cloneValue(reflect.ValueOf(a.Default)))
		case a.Kind == ArgEnum && a.Optional:
			// The decoder fills a pointer that is there; one that stays
			// unset is told apart by its empty value.
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

// structValues are what a script sees of a struct of structFields.
func structValues(args []*Arg, v reflect.Value) map[string]any {
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

// hostFields are the attributes and blocks of the host in a block of this
// definition.
func hostFields(def *Definition) (fields []reflect.StructField) {
	add := func(name string, t reflect.Type, tag string) {
		fields = append(fields, reflect.StructField{Name: name, Type: t, Tag: reflect.StructTag(fmt.Sprintf("alloy:%q", tag))})
	}
	if def.Sends != 0 {
		add(forwardField, reflect.TypeFor[[]*flow.Receiver](), "forward_to,attr")
	}
	if len(def.Outputs) > 0 {
		add(routesField, routesType(def.Outputs), "routes,block")
	}
	switch {
	case def.Interval > 0:
		add(intervalField, reflect.TypeFor[time.Duration](), "interval,attr,optional")
	case def.Poll:
		add(intervalField, reflect.TypeFor[time.Duration](), "interval,attr")
	}
	if len(def.HTTP) > 0 {
		add(listenField, reflect.TypeFor[*ListenBlock](), "listen,block,optional")
	}
	if def.Kind == Sink {
		add(batchField, reflect.TypeFor[BatchBlock](), "batch,block,optional")
		add(journalField, reflect.TypeFor[journaling.Arguments](), "journal,block,optional")
	}
	add("Script", scriptType(def), "script,block,optional")
	return fields
}

// Go fields of what the host adds.
const (
	forwardField  = "ForwardTo"
	intervalField = "Interval"
	listenField   = "Listen"
	batchField    = "Batch"
	journalField  = "Journal"
)

// argsType makes the type that the config decoder fills and a maker of new
// values with the defaults in. The fields are the script's arguments in order,
// then hostFields.
func argsType(def *Definition) (reflect.Type, func() any) {
	fields := append(structFields(def.Args), hostFields(def)...)
	t := reflect.StructOf(fields)
	return t, func() any {
		p := reflect.New(t)
		setDefaults(p.Elem(), def.Args)
		if def.Interval > 0 {
			p.Elem().FieldByName(intervalField).SetInt(int64(def.Interval))
		}
		if def.Kind == Sink {
			p.Elem().FieldByName(batchField).Set(reflect.ValueOf(def.Batch))
			p.Elem().FieldByName(journalField).Addr().Interface().(*journaling.Arguments).SetToDefault()
		}
		p.Elem().FieldByName("Script").Addr().Interface().(interface{ SetToDefault() }).SetToDefault()
		return p.Interface()
	}
}

// arguments are a value made by argsType, taken apart.
type arguments struct {
	values   map[string]any     // what the script sees in ctx.args
	ways     [][]*flow.Receiver // forward_to, then the routes in the order of outputs
	interval time.Duration      // of poll; 0 without
	listen   *ListenBlock       // nil: no address of its own
	batch    BatchBlock         // of a sink
	journal  journaling.Arguments
	block    ScriptBlock
}

func scriptArgs(def *Definition, v any) arguments {
	rv := reflect.ValueOf(v).Elem()
	a := arguments{values: structValues(def.Args, rv), ways: receiversByOutput(def, rv), block: scriptBlock(rv.FieldByName("Script").Interface())}
	if def.Poll {
		a.interval = time.Duration(rv.FieldByName(intervalField).Int())
	}
	if len(def.HTTP) > 0 {
		a.listen = rv.FieldByName(listenField).Interface().(*ListenBlock)
	}
	if def.Kind == Sink {
		a.batch = rv.FieldByName(batchField).Interface().(BatchBlock)
		a.journal = rv.FieldByName(journalField).Interface().(journaling.Arguments)
	}
	a.block.OnError = cmp.Or(a.block.OnError, def.onError())
	return a
}

// cloneValue copies lists and maps, so that no two blocks share a default.
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
