package scripting

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// ExportType returns the type of an export in the config. Types that are
// checked when they are decoded become strings.
func (a *Arg) ExportType() reflect.Type {
	switch a.Kind {
	case ArgEnum, ArgRegexp:
		return reflect.TypeFor[string]()
	}
	return a.plainType()
}

// ExportsType returns the struct type of exports, with a field Export_<name>
// for each.
func ExportsType(exports []*Arg) reflect.Type {
	fields := make([]reflect.StructField, len(exports))
	for i, a := range exports {
		fields[i] = reflect.StructField{
			Name: "Export_" + a.Name, Type: a.ExportType(), Tag: reflect.StructTag(fmt.Sprintf("alloy:%q", a.Name+",attr")),
		}
	}
	return reflect.StructOf(fields)
}

// ExportValues converts the exports that a script gives by name to their
// ExportType. The error names the wrong export.
func ExportValues(exports []*Arg, given *Map) (map[string]reflect.Value, error) {
	values := map[string]reflect.Value{}
	for _, name := range given.Keys() {
		i := slices.IndexFunc(exports, func(a *Arg) bool { return a.Name == name })
		if i < 0 {
			names := argNames(exports)
			return nil, fmt.Errorf("cannot export %q: the definition's exports have %s%s", name, strings.Join(names, ", "), suggestName(name, names))
		}
		x, _ := given.Get(name)
		v, err := exports[i].convert(exports[i].raw(x))
		if err != nil {
			return nil, fmt.Errorf("cannot export %q: %w", name, err)
		}
		values[name] = plainValue(v, exports[i].ExportType())
	}
	return values, nil
}

func argNames(args []*Arg) []string {
	names := make([]string, len(args))
	for i, a := range args {
		names[i] = a.Name
	}
	return names
}

// raw returns a script's value in the form that convert takes. A label of
// targets may be a number or a bool, as in a record.
func (a *Arg) raw(v Value) any {
	switch x := v.(type) {
	case *List:
		out := make([]any, len(x.Items))
		for i, e := range x.Items {
			out[i] = a.raw(e)
		}
		return out
	case *Map:
		out := make(map[string]any, x.Len())
		for _, k := range x.Keys() {
			e, _ := x.Get(k)
			out[k] = a.raw(e)
		}
		return out
	case float64:
		if a.Kind == ArgTargets {
			return strconv.FormatFloat(x, 'g', -1, 64)
		}
	case bool:
		if a.Kind == ArgTargets {
			return strconv.FormatBool(x)
		}
	case int64:
		switch {
		case a.Kind == ArgTargets:
			return strconv.FormatInt(x, 10)
		case int64(float64(x)) == x:
			return float64(x)
		}
	}
	return v
}
