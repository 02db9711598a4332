package scripting

import (
	"fmt"
	"reflect"
)

// exportsOf is the zero value of what a component of this definition exports:
// the receiver of one that takes data, or what a source declares; nil for
// nothing.
func exportsOf(def *Definition) any {
	switch {
	case def.Accepts() != 0:
		return Exports{}
	case len(def.Exports) == 0:
		return nil
	}
	return reflect.Zero(exportsType(def.Exports)).Interface()
}

// exportsType is the struct of exports: a field Export_<name> for each.
func exportsType(exports []*Arg) reflect.Type {
	fields := make([]reflect.StructField, len(exports))
	for i, a := range exports {
		fields[i] = reflect.StructField{
			Name: "Export_" + a.Name, Type: a.exportType(), Tag: reflect.StructTag(fmt.Sprintf("alloy:%q", a.Name+",attr")),
		}
	}
	return reflect.StructOf(fields)
}

// exportType is what the config sees of an export: texts for what is checked
// when it is decoded.
func (a *Arg) exportType() reflect.Type {
	switch a.Kind {
	case ArgEnum, ArgRegexp:
		return reflect.TypeFor[string]()
	}
	return a.plainType()
}

// owesExports reports whether nodes wait for exports that were not given yet.
func (c *Component) owesExports() bool { return false }
